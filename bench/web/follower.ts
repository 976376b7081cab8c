/** A minimal page that follows an agent: it appends the text that the service sends, and scrolls to its end. */
import type { OpenPage, Stage } from './stage.ts';

/** The element with the text. */
export const FOLLOWED = '[role="log"]';

export async function openFollower(stage: Stage, agent_id: string): Promise<OpenPage> {
  const request = [`/api/agents/${agent_id}/events?tail=0`, stage.plane.token].map((text) =>
    JSON.stringify(text),
  );
  const seen = await stage.empty(
    '<div role="log" style="height: 100vh; overflow: auto; white-space: pre-wrap"></div><script type="module">' +
      `${follow}\nawait follow(${request});</script>`,
  );
  await seen.has('html[data-follows]');
  return seen;
}

const follow = `
  async function follow(path, token) {
    const log = document.querySelector('[role="log"]');
    const response = await fetch(path, { headers: { authorization: 'Bearer ' + token } });
    document.documentElement.dataset.follows = '';
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      log.append(text);
      log.scrollTop = log.scrollHeight;
    }
  }`;
