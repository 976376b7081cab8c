/** The list of many agents, while some of them change all the time. */
import { sleep } from '../../../src/base/async.ts';
import type { TestPlane } from '../../../src/testing/plane.ts';
import { type Figure, median, percentile, type Row } from '../../figure.ts';
import { addEnded } from '../../rows/ended-agents.ts';
import { type OpenPage, withStage } from '../stage.ts';

const AGENTS = 1_000;
const CHANGES_PER_S = 10;
const LIST = 'main .scroll-y';

export const fleet: Row = {
  name: 'fleet',
  how:
    `Agents lists ${AGENTS.toLocaleString('en-US')} agents, of which ${CHANGES_PER_S} a second, spread over the list, get ` +
    'another name through the API. The frames are those of the page at rest, and of the page while it scrolls from the first agent ' +
    'to the last in five seconds. The limit is an empty page during the same changes. Medians of the runs, which alternate.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      await addAgents(stage.plane);
      const seconds = quick ? 1 : 5;
      const ui = await stage.ui('/agents');
      await ui.has(`${LIST} tr`, name(AGENTS - 1));
      const empty = await stage.empty();
      const stop = new AbortController();
      const changing = changeNames(stage.plane, stop.signal);
      const resting: number[] = [];
      const scrolling: number[] = [];
      const bare: number[] = [];
      const p95 = async (seen: OpenPage, frames: () => Promise<number[]>) => {
        await seen.page.bringToFront();
        return percentile(await frames(), 95);
      };
      for (let round = 0; round < (quick ? 1 : 3); round++) {
        resting.push(await p95(ui, () => ui.probe('frames', seconds * 1000)));
        scrolling.push(await p95(ui, async () => (await ui.probe('scroll', LIST, seconds * 1000)).frames));
        bare.push(await p95(empty, () => empty.probe('frames', (seconds * 1000) / 2)));
      }
      stop.abort();
      const changes = await changing;
      if (changes === 0) throw new Error('no agent was changed');
      const what = `${AGENTS.toLocaleString('en-US')} agents with ${CHANGES_PER_S} changes/s`;
      const figure = (kind: string, values: number[]): Figure => ({
        what: `${what}, ${kind}: a frame, p95`,
        unit: 'ms',
        value: median(values),
        limit: median(bare),
        limit_is: 'empty page',
        goal: { of: 'value', at_most: 20 },
      });
      return [figure('at rest', resting), figure('scrolling', scrolling)];
    }),
};

const name = (i: number) => `agt_${i}`;

/** Adds the agents to the database of the service, which is restarted. */
async function addAgents(plane: TestPlane): Promise<void> {
  await plane.kill('SIGTERM');
  await addEnded(plane.data_dir, AGENTS);
  await plane.start();
}

/** Changes agents until `signal` aborts. Returns how many changes were made. */
async function changeNames(plane: TestPlane, signal: AbortSignal): Promise<number> {
  const begun_ms = performance.now();
  let changes = 0;
  // A step that has no factor in common with the number of agents visits all of them.
  for (; !signal.aborted; changes++) {
    const agent_id = name((changes * 97) % AGENTS);
    await plane.client.call('updateAgent', { params: { agent_id }, body: { name: `changed-${changes}` } });
    const due_ms = begun_ms + (changes / CHANGES_PER_S) * 1000 - performance.now();
    if (due_ms > 0) await sleep(due_ms, signal);
  }
  return changes;
}
