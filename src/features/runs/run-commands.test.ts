/** Commands to runs from people whose page may be behind. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, FeaturesFixture } from '../../testing/features-fixture.ts';
import { applyEvent, beginRun, plainMember, runOf } from '../../testing/team-runs.ts';
import type { RunRequest } from './run-commands.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

async function command(run_id: string, request: RunRequest) {
  const { team_id } = await runOf(fixture, run_id);
  return fixture.runs.runs.commandRun(ANA, { team_id, run_id }, request, null);
}

const run_changed = { kind: 'conflict', code: 'run_changed' };

test('a run that somebody else has resumed is not restarted, and its step continues', async () => {
  const members = [plainMember('dev', 'sleep 600')];
  const run_id = await beginRun(fixture, { members, steps: [{ step_key: 'a' }] });
  const { version } = await command(run_id, { kind: 'cancelRun' });
  await command(run_id, { kind: 'resumeRun', version });
  await expect(command(run_id, { kind: 'restartRun', version })).rejects.toMatchObject(run_changed);
  expect((await runOf(fixture, run_id)).attempt).toBe(1);
  // The version changes while the agent of the step starts.
  const restart = async () => {
    const current = (await runOf(fixture, run_id)).version;
    return command(run_id, { kind: 'restartRun', version: current });
  };
  expect(await vi.waitFor(restart, { timeout: 20_000 })).toMatchObject({ attempt: 2 });
});

test('a run that waits again is not resumed by the answer to its earlier wait', async () => {
  const run_id = await beginRun(fixture, { members: [plainMember('lead', 'sleep 600')], leader: 'lead' });
  const interrupt = (round: number) =>
    applyEvent(fixture, run_id, { kind: 'round_unknown', round, reason: 'outcome unknown' });
  const waiting = async () => (await fixture.runs.runs.waitingRuns(ANA, {})).items[0]!;
  await interrupt(1);
  const { version } = await waiting();
  await command(run_id, { kind: 'resumeRun', version });
  await expect(command(run_id, { kind: 'resumeRun', version })).rejects.toThrow('run is running');
  await interrupt(2);
  await expect(command(run_id, { kind: 'resumeRun', version })).rejects.toMatchObject(run_changed);
  const again = await waiting();
  expect(await command(run_id, { kind: 'resumeRun', version: again.version })).toMatchObject({
    status: 'running',
  });
});
