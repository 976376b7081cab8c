/** A long output: scrolling through it, its memory use, and finding one line of it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Figure, MB, median, percentile, type Row } from '../../figure.ts';
import { logLine } from '../../program.ts';
import { at, type OpenPage, type Stage, withStage } from '../stage.ts';

const LINES = 100_000;
const NEEDLE = 'here it is';

export const output: Row = {
  name: 'output',
  how:
    'An agent printed 100,000 lines of log text, and its Output is open. Each frame scrolls further, so that ' +
    'it takes five seconds from the first line to the last and every frame shows other lines. The limit is an ' +
    'empty page that counts its frames. Elements are the most that the whole page has while it scrolls. ' +
    'Memory is the page’s JavaScript heap after a garbage collection, with all lines loaded; it does not ' +
    'include the worker that reads the streams. The time to find a line runs from the input of the search ' +
    'text to the painted match and count; the match is in line 3 while the last line is visible. Medians of ' +
    'the runs, which alternate.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      const seconds = quick ? 1 : 5;
      const rounds = quick ? 1 : 3;
      const ui = await longOutput(stage);
      const heap = await heapMb(ui);
      const empty = await stage.empty();
      const finds: number[] = [];
      const scrolls: { p95: number; empty_p95: number; nodes: number }[] = [];
      for (let round = 0; round < rounds; round++) {
        finds.push(await find(ui));
        await ui.page.bringToFront();
        const { frames, nodes } = await ui.probe('scroll', at.output, seconds * 1000);
        await empty.page.bringToFront();
        const bare = await empty.probe('frames', (seconds * 1000) / 2);
        scrolls.push({ p95: percentile(frames, 95), empty_p95: percentile(bare, 95), nodes });
      }
      const what = `scrolling through ${LINES.toLocaleString('en-US')} lines`;
      return [
        {
          what: `${what}: a frame, p95`,
          unit: 'ms',
          value: median(scrolls.map(({ p95 }) => p95)),
          limit: median(scrolls.map(({ empty_p95 }) => empty_p95)),
          limit_is: 'empty page',
          goal: { of: 'value', at_most: 20 },
        },
        {
          what: `${what}: elements in the page, at most`,
          unit: 'elements',
          value: Math.max(...scrolls.map(({ nodes }) => nodes)),
          goal: { of: 'value', at_most: 400 },
        },
        { what: `${what}: memory`, unit: 'MB', value: heap, goal: { of: 'value', at_most: 60 } },
        {
          what: `find in ${LINES.toLocaleString('en-US')} lines, match in line 3`,
          unit: 'ms',
          value: median(finds),
          goal: { of: 'value', at_most: 300 },
        },
      ] satisfies Figure[];
    }),
};

async function longOutput(stage: Stage): Promise<OpenPage> {
  const { plane } = stage;
  const file = join(plane.work, 'long.txt');
  const lines = Array.from({ length: LINES }, (_, i) => (i === 2 ? `${NEEDLE}\n` : logLine(i)));
  await writeFile(file, lines.join(''));
  const agent = await plane.agent(['/bin/cat', file], { name: 'long' });
  await plane.finished(agent.id);
  const ui = await stage.ui(`/agents/${agent.id}/output`);
  await ui.has('main', `${LINES.toLocaleString('en')} lines`);
  await ui.has(`${at.output} [data-line="${LINES}"]`);
  return ui;
}

/** The time from the query to the painted match, in milliseconds. Closes the search afterwards. */
async function find(ui: OpenPage): Promise<number> {
  const { page } = ui;
  await page.bringToFront();
  await page.locator(at.output).press('End');
  await ui.has(`${at.output} [data-line="${LINES}"]`);
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await ui.probe('awaitAfter', 'input', `${at.output} mark`, NEEDLE);
  await page.getByLabel('Find in output').fill(NEEDLE);
  const ms = await ui.probe('awaited');
  await ui.has('search output', '1 of 1 line');
  await page.getByRole('button', { name: 'Close find' }).click();
  return ms;
}

async function heapMb({ page }: OpenPage): Promise<number> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('HeapProfiler.collectGarbage');
  await cdp.send('Performance.enable');
  const { metrics } = await cdp.send('Performance.getMetrics');
  await cdp.detach();
  return metrics.find(({ name }) => name === 'JSHeapUsedSize')!.value / MB;
}
