/** Following the end of an agent's output while the agent prints very fast. */
import { sleep } from '../../../src/base/async.ts';
import { Child } from '../../child.ts';
import { type Figure, median, percentile, type Row } from '../../figure.ts';
import type { WriterArgs } from '../../processes/writer.ts';
import { layoutShift } from '../shifts.ts';
import { at, type OpenPage, type Stage, withStage } from '../stage.ts';

const LINES_PER_S = 2_000;
/** The flood starts this long before the measurement. */
const BEFORE_MS = 1_000;

export const flood: Row = {
  name: 'flood',
  how:
    'Two thousand lines a second are written to the standard output of an agent whose Output is open at its ' +
    'end. During four seconds, the row measures the frames, after each frame how far the last line is from ' +
    'being visible, and the layout shift (CLS). The limit is an empty page, while another agent that nobody ' +
    'follows prints as much. Medians of the runs, which alternate.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      const ms = quick ? 1_000 : 4_000;
      const rounds = quick ? 1 : 3;
      const p95s: number[] = [];
      const bare_p95s: number[] = [];
      const from_end: number[] = [];
      const shifts: number[] = [];
      for (let round = 0; round < rounds; round++) {
        await flooded(stage, ms, openOutput, async (ui) => {
          await ui.probe('forget');
          const { frames, from_end_px } = await ui.probe('follow', at.output, ms);
          p95s.push(percentile(frames, 95));
          from_end.push(from_end_px);
          shifts.push(layoutShift(await ui.probe('shifts')));
        });
        await flooded(stage, ms / 2, openEmpty, async (empty) => {
          bare_p95s.push(percentile(await empty.probe('frames', ms / 2), 95));
        });
      }
      const what = `following ${LINES_PER_S.toLocaleString('en-US')} lines/s`;
      return [
        {
          what: `${what}: a frame, p95`,
          unit: 'ms',
          value: median(p95s),
          limit: median(bare_p95s),
          limit_is: 'empty page',
          goal: { of: 'value', at_most: 20 },
        },
        {
          what: `${what}: largest distance from the end`,
          unit: 'px',
          value: median(from_end),
          // Zooming can cause a distance of a fraction of a pixel.
          goal: { of: 'value', at_most: 1 },
        },
        {
          what: `${what}: layout shift (CLS)`,
          unit: '',
          value: median(shifts),
          goal: { of: 'value', at_most: 0.02 },
        },
      ] satisfies Figure[];
    }),
};

const openEmpty = (stage: Stage) => stage.empty();
async function openOutput(stage: Stage, agent_id: string): Promise<OpenPage> {
  const ui = await stage.ui(`/agents/${agent_id}/output`);
  await ui.has(`${at.output} [data-line]`);
  return ui;
}

/** Measures a page while a new agent prints. */
async function flooded(
  stage: Stage,
  ms: number,
  open: (stage: Stage, agent_id: string) => Promise<OpenPage>,
  measure: (seen: OpenPage) => Promise<void>,
): Promise<void> {
  const { agent, output } = await stage.withOutput('flood');
  const seen = await open(stage, agent.id);
  const seconds = Math.ceil((BEFORE_MS + ms) / 1000) + 1;
  const writer = new Child('writer', {
    outputs: [output],
    lines_per_s: LINES_PER_S,
    seconds,
  } satisfies WriterArgs);
  await sleep(BEFORE_MS);
  await measure(seen);
  await writer.end();
  await seen.close();
}
