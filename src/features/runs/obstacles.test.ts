/** An attempt that cannot start, or whose output cannot be read, waits if the reason may pass. It does not fail. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { invalid, Problem, problems } from '../../core/problem.ts';
import { FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { applyEvent, beginRun, plainMember, runOf, stepsOfRun, untilRun } from '../../testing/team-runs.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await fixture.end();
});

const begin = (max_attempts = 1) =>
  beginRun(fixture, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a', max_attempts }] });

/** Repeats what has failed, without its pauses. */
const again = () => fixture.core.outbox.retryNow('main');

function untilAttention(run_id: string, expected: unknown): Promise<void> {
  return vi.waitFor(async () => {
    again();
    expect((await runOf(fixture, run_id)).attention).toEqual(expected);
  }, SOON);
}

async function nextSession(): Promise<string> {
  return vi.waitFor(() => {
    again();
    const [id] = fixture.node.launches.keys();
    expect(id).toBeDefined();
    return id!;
  }, SOON);
}

const failed = new Problem(
  'unavailable',
  'folder_worker_failed',
  "a job in the agent's folder failed: closing",
);

test.each([
  ['too many jobs in folders', problems.tooManyFolderJobs(), problems.tooManyFolderJobs().message],
  ['a job in a folder that was interrupted', failed, failed.message],
  ['a full disk', problems.diskSpace(), 'not enough disk space'],
  ['work of a newer version', problems.newerIntent(), problems.newerIntent().message],
  [
    'an unexpected error',
    new TypeError('x is not a function'),
    'unexpected error; see the log of the control plane',
  ],
])('a step waits for its agent: %s', async (_what, error, message) => {
  const { resolve } = fixture.node.folders;
  fixture.node.folders.resolve = () => Promise.reject(error);
  const run_id = await begin();
  await untilAttention(run_id, expect.stringMatching(/^m@team_\w+, step a: cannot start yet: /));
  expect((await runOf(fixture, run_id)).attention).toContain(`: ${message}`);
  expect((await stepsOfRun(fixture, run_id)).a).toMatchObject({ status: 'ready' });
  fixture.node.folders.resolve = resolve;
  fixture.node.end(await nextSession(), 0);
  expect((await untilRun(fixture, run_id, 'completed')).attention).toBe(null);
  expect((await stepsOfRun(fixture, run_id)).a!.attempt).toBe(1);
});

test('a step whose agent cannot start yet can be cancelled with its run', async () => {
  fixture.node.folders.resolve = () => Promise.reject(problems.diskSpace());
  const run_id = await begin();
  await untilAttention(run_id, expect.any(String));
  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'cancelRun' } });
  await untilAttention(run_id, null);
  await vi.waitFor(() => {
    again();
    expect(fixture.core.outbox.size).toBe(0);
  }, SOON);
});

test('a start of a run waits while the node refuses it for a reason that may pass', async () => {
  const { start } = fixture.node;
  fixture.node.start = () => Promise.reject(problems.diskSpace());
  const run_id = await begin();
  await untilAttention(
    run_id,
    expect.stringMatching(/^m@team_\w+, step a: the agent cannot start yet: not enough disk/),
  );
  fixture.node.start = start;
  fixture.node.end(await nextSession(), 0);
  expect((await untilRun(fixture, run_id, 'completed')).attention).toBe(null);
  expect((await stepsOfRun(fixture, run_id)).a!.attempt).toBe(1);
});

test('an attempt fails if the node refuses its start for another reason', async () => {
  const { start } = fixture.node;
  fixture.node.start = (launch) => {
    fixture.node.start = start;
    return Promise.reject(new Problem('conflict', 'refused', `not ${launch.session_id}`));
  };
  const run_id = await begin(2);
  fixture.node.end(await nextSession(), 0);
  await untilRun(fixture, run_id, 'completed');
  expect((await stepsOfRun(fixture, run_id)).a!.attempt).toBe(2);
});

test('a step fails at once if its folder is not allowed', async () => {
  fixture.node.folders.resolve = () => Promise.reject(invalid('no such folder'));
  expect((await untilRun(fixture, await begin(2), 'failed')).error).toBe('step a failed: no such folder');
});

test.each([
  ['its file', () => vi.spyOn(fixture.node, 'stepOutput')],
  ['the log', () => vi.spyOn(fixture.log, 'output')],
])('a step completes once %s can be read', async (_what, spy) => {
  const read = spy();
  read.mockRejectedValue(problems.outputUnreadable());
  const run_id = await begin();
  const id = await nextSession();
  fixture.node.write(id, Buffer.from('printed'));
  fixture.node.end(id, 0);
  await untilAttention(
    run_id,
    expect.stringMatching(/, step a: its output cannot be read yet: output cannot be/),
  );
  read.mockRestore();
  again();
  expect((await untilRun(fixture, run_id, 'completed')).attention).toBe(null);
  expect((await stepsOfRun(fixture, run_id)).a).toMatchObject({ output: 'printed', attempt: 1 });
});
