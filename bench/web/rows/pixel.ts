/** The time from a line that an agent writes until it is painted, and from a click until its result is painted. */
import { Child } from '../../child.ts';
import { type Figure, median, percentile, type Row } from '../../figure.ts';
import { nowUs } from '../../processes/clock.ts';
import type { WriterArgs } from '../../processes/writer.ts';
import { FOLLOWED, openFollower } from '../follower.ts';
import { at, type OpenPage, type Stage, withStage } from '../stage.ts';

const LINES_PER_S = 20;
const HELLO = 'hello from the agent';

export const pixel: Row = {
  name: 'pixel',
  how:
    `Another process writes ${LINES_PER_S} lines a second to the standard output of an agent, each with its ` +
    'time. The page reads the clock when the frame that contains the line is painted. The limit is another ' +
    'page that follows the same agent and shows what arrives as plain text. The clicks are on “Start agent” ' +
    'by a user who opens the form for the first time, with an empty cache. They are measured from the event ' +
    'to the painted conversation, or to the painted first line of `echo`; in between, the agent, its folder, ' +
    'its session and its process are created. Their limit is a click that adds an element to an empty page. ' +
    'Medians of the clicks.',
  bottleneck:
    'The agent and its folder are created in 30 ms; the rest is rendering its page for the first time.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      const seconds = quick ? 2 : 10;
      const late = await delaysOf(stage, seconds, at.output, async (agent_id) => {
        const ui = await stage.ui(`/agents/${agent_id}/output`);
        await ui.has(`${at.output} [data-line]`);
        return ui;
      });
      const bare = await delaysOf(stage, seconds / 2, FOLLOWED, (agent_id) => openFollower(stage, agent_id));
      const conversations: number[] = [];
      const outputs: number[] = [];
      const elements: number[] = [];
      for (let round = 0; round < (quick ? 1 : 3); round++) {
        conversations.push(await startClick(stage, 'Demo agent', null, at.conversation, ''));
        outputs.push(await startClick(stage, 'Command', `echo ${HELLO}`, `${at.output} [data-line]`, HELLO));
        elements.push(await bareClick(stage));
      }
      const limit_is = 'bare text';
      const limit = median(elements);
      return [
        {
          what: 'line to pixel, p50',
          unit: 'ms',
          value: percentile(late, 50),
          ...{ limit: percentile(bare, 50), limit_is },
        },
        {
          what: 'line to pixel, p95',
          unit: 'ms',
          value: percentile(late, 95),
          ...{ limit: percentile(bare, 95), limit_is },
          goal: { of: 'value', at_most: 150 },
        },
        {
          what: 'click on Start to the open conversation',
          unit: 'ms',
          value: median(conversations),
          ...{ limit, limit_is: 'empty page' },
          goal: { of: 'value', at_most: 100 },
        },
        {
          what: 'click on Start to the first line of output',
          unit: 'ms',
          value: median(outputs),
          ...{ limit, limit_is: 'empty page' },
          goal: { of: 'value', at_most: 300 },
        },
      ] satisfies Figure[];
    }),
};

/** The delay of each line in milliseconds. */
async function delaysOf(
  stage: Stage,
  seconds: number,
  place: string,
  open: (agent_id: string) => Promise<OpenPage>,
): Promise<number[]> {
  const { agent, output } = await stage.withOutput('clock');
  const seen = await open(agent.id);
  await seen.probe('seeLines', place);
  const writer = new Child('writer', {
    outputs: [output],
    lines_per_s: LINES_PER_S,
    seconds,
  } satisfies WriterArgs);
  const { written } = await writer.next<{ written: number }>();
  await seen.page.waitForTimeout(500);
  const lines = await seen.probe('seenLines');
  await seen.close();
  if (lines.length < written * 0.95) throw new Error(`${lines.length} of ${written} lines were seen`);
  // The difference between the two clocks.
  const wall_us = (performance.timeOrigin + performance.now()) * 1000 - nowUs();
  return lines.map(({ written_us, painted_us }) => (painted_us - wall_us - written_us) / 1000);
}

async function startClick(
  stage: Stage,
  preset: string,
  command: string | null,
  place: string,
  text: string,
): Promise<number> {
  const ui = await stage.ui('/agents/new');
  const { page } = ui;
  await ui.has('form', preset);
  await page.getByRole('combobox', { name: 'Agent' }).selectOption({ label: preset });
  if (command !== null) await page.getByRole('textbox', { name: 'Command' }).fill(command);
  await ui.probe('awaitAfter', 'click', place, text);
  await page.getByRole('button', { name: 'Start agent' }).click();
  await ui.has(place, text);
  const ms = await ui.probe('awaited');
  await ui.close();
  return ms;
}

async function bareClick(stage: Stage): Promise<number> {
  const empty = await stage.empty(
    '<button onclick="document.body.append(document.createElement(\'output\'))">Start</button>',
  );
  await empty.probe('awaitAfter', 'click', 'output', '');
  await empty.page.getByRole('button').click();
  const ms = await empty.probe('awaited');
  await empty.close();
  return ms;
}
