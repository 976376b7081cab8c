/** Typing a prompt while the agent writes: each key must be visible at once. */
import { sleep } from '../../../src/base/async.ts';
import { type Figure, median, type Row } from '../../figure.ts';
import { at, drip, type OpenPage, type Stage, withStage } from '../stage.ts';

const UPDATES_PER_S = 2_000;
const WORDS = 'and when you have done that, please look at the tests as well';
/** Fewer keys, for a page that may be slow. */
const FEW_WORDS = WORDS.slice(0, 20);
const KEY_MS = 40;
const BEFORE_MS = 1_000;
/** The browser does not report shorter interactions. */
const REPORTED_MS_MIN = 16;

export const typing: Row = {
  name: 'typing',
  how:
    `About sixty keys, one every ${KEY_MS} ms, are typed into the prompt of a conversation while its agent ` +
    `sends ${UPDATES_PER_S.toLocaleString('en-US')} pieces of a message a second, and then into that of one ` +
    'where the demo agent runs `/flood`, as fast as the machine and the service allow. Each key is measured ' +
    'from the press to the frame that shows it, with the browser’s event timing, in steps of 8 ms and not ' +
    'below 16 ms. The figure is the INP: the second slowest of these keys, and the slowest of the twenty keys ' +
    'for `/flood`. The limit is a text field in an empty page, while an agent that nobody follows sends as ' +
    'much. Medians of the runs, which alternate.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      const rounds = quick ? 1 : 2;
      const inps: number[] = [];
      const bare_inps: number[] = [];
      for (let round = 0; round < rounds; round++) {
        inps.push(await steady(stage, (agent_id) => openConversation(stage, agent_id)));
        bare_inps.push(await steady(stage, () => stage.empty('<textarea></textarea>')));
      }
      return [
        {
          what: `typing while the agent sends ${UPDATES_PER_S.toLocaleString('en-US')} pieces/s, INP`,
          unit: 'ms',
          value: median(inps),
          limit: median(bare_inps),
          limit_is: 'empty page',
          goal: { of: 'value', at_most: 100 },
        },
        {
          what: 'typing while the agent sends flat out, INP',
          unit: 'ms',
          value: await flatOut(stage, (agent_id) => openConversation(stage, agent_id)),
          limit: await flatOut(stage, () => stage.empty('<textarea></textarea>')),
          limit_is: 'empty page',
          goal: { of: 'value', at_most: 200 },
        },
      ] satisfies Figure[];
    }),
};

type Open = (agent_id: string) => Promise<OpenPage>;

async function openConversation(stage: Stage, agent_id: string): Promise<OpenPage> {
  const ui = await stage.ui(`/agents/${agent_id}/conversation`);
  await ui.has(`${at.conversation} [data-row]`);
  return ui;
}

async function steady(stage: Stage, open: Open): Promise<number> {
  const { agent, output, toFrame: said } = await stage.withConversation('talker');
  const seen = await open(agent.id);
  const stop = new AbortController();
  const talking = drip(output, pieces(said), UPDATES_PER_S, stop.signal);
  try {
    await sleep(BEFORE_MS);
    return await typed(seen, WORDS);
  } finally {
    stop.abort();
    await talking;
    await seen.close();
  }
}

async function flatOut(stage: Stage, open: Open): Promise<number> {
  const { plane } = stage;
  const agent = await plane.client.call('createAgent', {
    body: { name: 'flood', workdir: plane.work, preset: 'demo', prompt: '/flood 1000000', start: true },
  });
  const seen = await open(agent.id);
  await sleep(BEFORE_MS);
  const inp = await typed(seen, FEW_WORDS);
  await seen.close();
  await plane.client.call('stopAgent', { params: { agent_id: agent.id } });
  return inp;
}

/** The INP (interaction to next paint) of typing the words into the only text field of the page. */
async function typed(seen: OpenPage, text: string): Promise<number> {
  const field = seen.page.locator('textarea');
  await field.click();
  await seen.probe('forget');
  await seen.page.keyboard.type(text, { delay: KEY_MS });
  await seen.page.waitForFunction(`document.querySelector('textarea').value === ${JSON.stringify(text)}`);
  // The browser reports events after they are over.
  await sleep(500);
  const worst = (await seen.probe('interactions')).sort((a, b) => b - a);
  return worst[Math.floor(text.length / 50)] ?? REPORTED_MS_MIN;
}

/** An endless sequence of messages like those of `/flood`. */
function* pieces(toFrame: (text: string) => string): Generator<string> {
  for (let n = 1; ; n++) yield toFrame(`${n} `);
}
