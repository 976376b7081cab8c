/**
 * What an agent says of steps and runs counts while its attempt does: one that is being ended, because its run was
 * restarted or its step is to be taken again, may still speak.
 */
import type { ActorCaller } from '../../domain/actor.ts';
import { Problem } from '../../domain/problem.ts';
import { attemptsOfSession, type RunRow, type StepRow } from '../../store/runs.ts';
import type { Reader } from '../../store/store.ts';

/** Throws `attempt <n> of the run is over`. */
export function mustBeOfRun(reader: Reader, { kind, session }: ActorCaller, run: RunRow): void {
  if (kind !== 'session' || session === null) return;
  const latest = attemptsOfSession(reader, session.id).at(-1);
  if (latest && latest.run_attempt !== run.attempt) throw isOver('run', latest.run_attempt);
}

/** Throws `attempt <n> of the step is over`: for a session that the step's present attempt was not given to, after one of before. */
export function mustBeOfStep(reader: Reader, { kind, session }: ActorCaller, step: StepRow): void {
  if (kind !== 'session' || session === null) return;
  const told = attemptsOfSession(reader, session.id).findLast(({ step_key }) => step_key === step.step_key);
  const waits = step.status === 'ready' && step.launched === 0;
  if (told && (told.attempt !== step.attempt || waits)) throw isOver('step', told.attempt);
}

function isOver(what: 'run' | 'step', attempt: number): Problem {
  return new Problem('conflict', 'attempt_over', `attempt ${attempt} of the ${what} is over`);
}
