/** Failures of the database must not become the outcome of a step. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { OutputMissing } from '../../events/output.ts';
import { storageFailed } from '../../store/problems.ts';
import { FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { beginRun, plainMember, stepsOfRun, untilRun } from '../../testing/team-runs.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await fixture.end();
});

const spec = { members: [plainMember('m', 'x')], steps: [{ step_key: 'a', max_attempts: 2 }] };

async function nextSession(): Promise<string> {
  return vi.waitFor(() => {
    const [id] = fixture.node.launches.keys();
    expect(id).toBeDefined();
    return id!;
  }, SOON);
}

test('a step does not fail if its output cannot be read for a moment', async () => {
  const read = vi.spyOn(fixture.log, 'output').mockRejectedValueOnce(storageFailed());
  const run_id = await beginRun(fixture, spec);
  const id = await nextSession();
  fixture.node.write(id, Buffer.from('printed'));
  fixture.node.end(id, 0);
  await untilRun(fixture, run_id, 'completed');
  expect(read).toHaveBeenCalledTimes(2);
  expect((await stepsOfRun(fixture, run_id)).a).toMatchObject({ output: 'printed', attempt: 1 });
});

test('a step completes with what can be read of its output, and its agent’s log says so', async () => {
  const read = fixture.log.output.bind(fixture.log);
  const output = vi.spyOn(fixture.log, 'output').mockImplementation(async (...args) => ({
    ...(await read(...args)),
    // As of a damaged segment.
    // biome-ignore lint/correctness/useYield: it always fails
    async *read() {
      throw new OutputMissing('a block cannot be read');
    },
  }));
  const complete = fixture.core.outbox.complete.bind(fixture.core.outbox);
  vi.spyOn(fixture.core.outbox, 'complete').mockImplementation(async (tx, intent) => {
    // The attempt cannot be ended before its output was read twice.
    if (intent.kind === 'collect' && output.mock.calls.length < 2) throw storageFailed();
    return complete(tx, intent);
  });
  const run_id = await beginRun(fixture, spec);
  const id = await nextSession();
  fixture.node.write(id, Buffer.from('printed'));
  fixture.node.end(id, 0);
  await untilRun(fixture, run_id, 'completed');
  expect(output).toHaveBeenCalledTimes(2);
  const { a } = await stepsOfRun(fixture, run_id);
  expect(a).toMatchObject({ output: 'printed', attempt: 1 });
  expect(await fixture.errors(a!.agent_id!)).toEqual(['output_incomplete']);
});

test('the output of a step is not removed before it is read, although its node links again', async () => {
  const { node } = fixture;
  vi.spyOn(node, 'stepOutput').mockImplementationOnce(async () => {
    await node.sendSnapshot(node.link!);
    throw storageFailed();
  });
  const run_id = await beginRun(fixture, spec);
  const id = await nextSession();
  node.write(id, Buffer.from('printed'));
  node.outputs.set(id, Buffer.from('"written to its file"'));
  node.end(id, 0);
  await untilRun(fixture, run_id, 'completed');
  expect((await stepsOfRun(fixture, run_id)).a).toMatchObject({ output: 'written to its file' });
  await expect.poll(() => node.views.size, SOON).toBe(0);
});

test('an attempt that a failure of the database keeps from starting is started later', async () => {
  const { resolve } = fixture.node.folders;
  let requests = 0;
  fixture.node.folders.resolve = async (workdir) => {
    // For creating the agent, and for starting it.
    if (++requests < 3) throw storageFailed();
    return resolve(workdir);
  };
  const run_id = await beginRun(fixture, spec);
  fixture.node.end(await nextSession(), 0);
  await untilRun(fixture, run_id, 'completed');
  expect((await stepsOfRun(fixture, run_id)).a!.attempt).toBe(1);
});
