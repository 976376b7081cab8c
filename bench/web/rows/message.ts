/** A long Markdown message that arrives in small pieces: the work for each piece, and layout shifts. */
import { type Figure, median, percentile, type Row } from '../../figure.ts';
import { FOLLOWED, openFollower } from '../follower.ts';
import type { Shift } from '../probed.ts';
import { layoutShift } from '../shifts.ts';
import { at, drip, type OpenPage, type Stage, withStage } from '../stage.ts';
import { TRACED, type TraceEvent, workBetween } from '../trace.ts';

const CHARS = 50_000;
const PIECE_CHARS = 50;
const MARK = 'bench: changed';
/** Slow enough that each piece is painted separately. */
const PIECES_PER_S = 40;
export const message: Row = {
  name: 'message',
  how:
    `In one turn, the demo agent sends a message of ${CHARS.toLocaleString('en-US')} characters of Markdown ` +
    `(headings, lists, code, tables, links) in pieces of ${PIECE_CHARS}, ${PIECES_PER_S} a second. Its ` +
    'conversation is open at the end. The figure is all work of the page’s main thread from one change of the ' +
    'conversation to the next, from the browser’s trace: reading the piece, Markdown, layout and paint. The ' +
    'limit is another page that follows the same agent and shows what arrives as plain text. The layout shift ' +
    '(CLS) is that of the same conversation while the message arrives.',
  bottleneck:
    'Of ten ms, three are scripts (React and the Markdown of the last block), and one is layout. The rest is ' +
    'the browser’s own work: compositing and painting a page that has a scrollable box for each table and ' +
    'block of code.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      const chars = quick ? CHARS / 5 : CHARS;
      const cost = await costOf(stage, chars, async (agent_id) => {
        const ui = await stage.ui(`/agents/${agent_id}/conversation`);
        await ui.has(`${at.conversation} [data-row]`);
        return ui;
      });
      const bare = await costOf(stage, Math.min(chars, CHARS / 4), (agent_id) =>
        openFollower(stage, agent_id),
      );
      const what = `a piece of a Markdown message of ${chars.toLocaleString('en-US')} characters`;
      const limit_is = 'bare text';
      return [
        {
          what: `${what}, median`,
          unit: 'ms',
          value: median(cost.work),
          ...{ limit: median(bare.work), limit_is },
          goal: { of: 'value', at_most: 8 },
        },
        {
          what: `${what}, p95`,
          unit: 'ms',
          value: percentile(cost.work, 95),
          ...{ limit: percentile(bare.work, 95), limit_is },
          goal: { of: 'value', at_most: 25 },
        },
        {
          what: `${what}: page changes per piece`,
          unit: 'changes',
          value: cost.work.length / (chars / PIECE_CHARS),
        },
        {
          what: `${what}: layout shift (CLS)`,
          unit: '',
          value: layoutShift(cost.shifts),
          goal: { of: 'value', at_most: 0.02 },
        },
      ] satisfies Figure[];
    }),
};

/** The work of a page while a new agent sends the message. */
async function costOf(
  stage: Stage,
  chars: number,
  open: (agent_id: string) => Promise<OpenPage>,
): Promise<{ work: number[]; shifts: Shift[] }> {
  const { agent, output, toFrame: said } = await stage.withConversation('writer');
  const seen = await open(agent.id);
  const { page } = seen;
  await seen.probe('markChanges', FOLLOWED, MARK);
  const browser = page.context().browser()!;
  await seen.probe('forget');
  await browser.startTracing(page, { categories: TRACED });
  await drip(output, piecesOf(markdown(chars)).map(said), PIECES_PER_S);
  await page.waitForTimeout(500);
  const trace: { traceEvents: TraceEvent[] } = JSON.parse((await browser.stopTracing()).toString());
  const work = workBetween(trace.traceEvents, MARK);
  if (work.length === 0) throw new Error('nothing of the message was seen');
  const shifts = await seen.probe('shifts');
  await seen.close();
  return { work, shifts };
}

function piecesOf(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / PIECE_CHARS) }, (_, i) =>
    text.slice(i * PIECE_CHARS, (i + 1) * PIECE_CHARS),
  );
}

/** Markdown with this many characters, in which no two parts are the same. */
function markdown(chars: number): string {
  let text = '';
  for (let n = 1; text.length < chars; n++) {
    text +=
      `## Step ${n}\n\nThe **cart** rounds \`price * ${n}\` too early, see [the note](https://example.com/notes/${n}). ` +
      'It adds what is left over to the last position, which is *almost* always right, and nobody noticed.\n\n' +
      `- line ${n * 7} of \`src/cart.ts\` sums floats\n- its test compares with \`toBe(${n}.5)\`\n  - and only one\n\n` +
      `\`\`\`ts\nexport function total${n}(prices: number[]): number {\n  return prices.reduce((a, b) => a + b, ${n});\n}\n\`\`\`\n\n` +
      `| file | lines | done |\n| --- | ---: | --- |\n| cart.ts | ${n * 3} | yes |\n| shop.ts | ${n * 5} | not yet |\n\n`;
  }
  return text.slice(0, chars);
}
