/** Runs the pipeline of `examples/` in the real program. `tutorial-teams` runs the other teams of that folder. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { isRunOver, type Run } from '../src/features/runs/rules/run.ts';
import { longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
afterEach(() => plane.close());

/** Runs the example and waits until it is over. */
async function runExample(example: string, input: Record<string, unknown>): Promise<Run> {
  const text = await readFile(new URL(`../examples/${example}.json`, import.meta.url), 'utf8');
  const { client } = plane;
  const { id: team_id } = await client.call('createTeam', { body: JSON.parse(text) });
  const { id: run_id } = await client.call('createRun', { params: { team_id }, body: { input } });
  for (;;) {
    const run = await client.call('getRun', { params: { team_id, run_id } });
    if (isRunOver(run)) return run;
    await sleep(50);
  }
}

async function stepsOf({ id: run_id, team_id }: Run) {
  const steps = await plane.client.call('listSteps', { params: { team_id, run_id } });
  return Object.fromEntries(steps.map((step) => [step.step_key, step]));
}

longTest(
  'the pipeline counts and packs a repository, and its report has the result of every step',
  async () => {
    plane = await TestPlane.open();
    const repository = makeRepository(join(plane.folder, 'repo'), {
      'a.txt': 'one\ntwo\n',
      'b.json': '{}\n',
    });
    const run = await runExample('pipeline', { repository });
    expect(run).toMatchObject({ status: 'completed', error: null });
    const { checkout, ...counted } = (run.output as { report: { steps: Record<string, unknown> } }).report
      .steps;
    expect(checkout).toMatchObject({ commit: expect.stringMatching(/^[0-9a-f]{40}$/) });
    expect(counted).toMatchObject({
      files: 2,
      lines: 3,
      json: 1,
      package: { size_bytes: expect.any(Number) },
    });
  },
);

test('the pipeline skips the package if a check fails, and still writes its report', async () => {
  plane = await TestPlane.open();
  const repository = makeRepository(join(plane.folder, 'repo'), { 'a.txt': 'one\n', 'b.json': '{} \n' });
  const run = await runExample('pipeline', { repository });
  expect(run).toMatchObject({
    status: 'failed',
    error: 'step json failed: exit code 1: blanks at the end of lines',
  });
  const steps = await stepsOf(run);
  expect(steps.json).toMatchObject({ status: 'failed' });
  expect(steps.package).toMatchObject({ status: 'skipped' });
  expect(steps.report).toMatchObject({ status: 'completed', output: { built: false, steps: { files: 2 } } });
});
