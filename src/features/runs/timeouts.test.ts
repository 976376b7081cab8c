/** Time limits of steps. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { beginRun, passTimeLimits, plainMember, stepsOfRun, untilRun } from '../../testing/team-runs.ts';
import { limits } from './limits.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

/** Begins a run whose only step may take half a minute. Returns its id and that of the step's session. */
async function begin(): Promise<{ run_id: string; session_id: string }> {
  const run_id = await beginRun(fixture, {
    members: [plainMember('m', 'x')],
    steps: [{ step_key: 'a', timeout_seconds: 30 }],
  });
  await vi.waitFor(async () => expect((await stepsOfRun(fixture, run_id)).a!.status).toBe('running'), SOON);
  const [session_id] = fixture.node.launches.keys();
  return { run_id, session_id: session_id! };
}
const stepA = async (run_id: string) => (await stepsOfRun(fixture, run_id)).a!;

test('a step that ended in time while no plane was running has not timed out', async () => {
  const { run_id, session_id } = await begin();
  await fixture.close();
  fixture.node.write(session_id, Buffer.from('in time'));
  fixture.node.end(session_id, 0);
  fixture.clock.advance(60_000);
  await fixture.open();
  await untilRun(fixture, run_id, 'completed');
  expect(await stepA(run_id)).toMatchObject({ status: 'completed', output: 'in time' });
});

test('a step that has not ended a while after a start of the plane has timed out', async () => {
  const { run_id } = await begin();
  await fixture.advanceClock(31_000);
  expect((await stepA(run_id)).status).toBe('running');
  await passTimeLimits(fixture, limits.timeouts_wait_ms);
  await untilRun(fixture, run_id, 'failed');
  expect((await stepA(run_id)).error_text).toBe('timed out after 30 s');
});

test('a step that ended in time while the plane’s machine was asleep has not timed out', async () => {
  const { run_id, session_id } = await begin();
  await passTimeLimits(fixture, 60_000, 30_000);
  expect((await stepA(run_id)).status).toBe('running');
  // Its node reports the end once it is linked again.
  fixture.node.write(session_id, Buffer.from('in time'));
  fixture.node.end(session_id, 0);
  await untilRun(fixture, run_id, 'completed');
  expect(await stepA(run_id)).toMatchObject({ status: 'completed', output: 'in time' });
});

test('a step that has not ended a while after the machine woke up has timed out, even if the plane is late again', async () => {
  const { run_id } = await begin();
  await passTimeLimits(fixture, 60_000, 30_000);
  expect((await stepA(run_id)).status).toBe('running');
  await passTimeLimits(fixture, limits.timeouts_wait_ms, 30_000);
  await untilRun(fixture, run_id, 'failed');
});

test('a step does not time out while the output of its ended session is read', async () => {
  const { run_id, session_id } = await begin();
  const reading = Promise.withResolvers<void>();
  const output = vi.spyOn(fixture.node, 'stepOutput').mockImplementation(async () => {
    await reading.promise;
    return Buffer.from('"in time"');
  });
  fixture.node.end(session_id, 0);
  await vi.waitFor(() => expect(output).toHaveBeenCalled(), SOON);
  await passTimeLimits(fixture, 31_000);
  expect((await stepA(run_id)).status).toBe('running');
  reading.resolve();
  await untilRun(fixture, run_id, 'completed');
});
