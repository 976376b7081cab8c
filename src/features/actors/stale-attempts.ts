/**
 * Rejects calls from stale attempts. An agent's calls about steps and runs count only while its attempt is current, but an
 * agent whose run was restarted, or whose step is being repeated, may still be running and call.
 */
import { Problem } from '../../core/problem.ts';
import type { Reader } from '../../store/store.ts';
import { assignmentsOfSession } from '../runs/queries/assignments.ts';
import type { RunRow } from '../runs/queries/runs.ts';
import type { StepRow } from '../runs/queries/steps.ts';
import type { ActorCaller } from './rules/actor.ts';

/** Throws `attempt <n> of the run is over` for a session of an earlier attempt of the run. */
export async function assertCurrentRunAttempt(
  reader: Reader,
  { session }: ActorCaller,
  run: RunRow,
): Promise<void> {
  if (session === null) return;
  const latest = (await assignmentsOfSession(reader, session.id)).at(-1);
  if (latest && latest.run_attempt !== run.attempt) throw isOver('run', latest.run_attempt);
}

/** Throws `attempt <n> of the step is over` for a session of an earlier attempt of the step. */
export async function assertCurrentStepAttempt(
  reader: Reader,
  { session }: ActorCaller,
  step: StepRow,
): Promise<void> {
  if (session === null) return;
  const assigned = (await assignmentsOfSession(reader, session.id)).map(({ work }) => work);
  const latest = assigned.findLast((work) => work.kind === 'step' && work.step_key === step.step_key);
  if (latest?.kind !== 'step') return;
  const awaits_launch = step.status === 'ready' && step.launched === 0;
  if (latest.attempt !== step.attempt || awaits_launch) throw isOver('step', latest.attempt);
}

/** The attempt of the run to which messages of the session belong; undefined for the current one. */
export async function getRunAttempt(reader: Reader, { session }: ActorCaller): Promise<number | undefined> {
  return session === null ? undefined : (await assignmentsOfSession(reader, session.id)).at(-1)?.run_attempt;
}

function isOver(what: 'run' | 'step', attempt: number): Problem {
  return new Problem('conflict', 'attempt_over', `attempt ${attempt} of the ${what} is over`);
}
