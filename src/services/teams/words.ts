/**
 * What somebody says to a run or to a step of it, people and agents alike: the rule, the change and the audit record, in
 * the transaction of whoever lets them say it. Whether they may is decided before.
 */

import { limits } from '../../base/limits.ts';
import { actorIdOf } from '../../domain/actor.ts';
import { Problem, problems } from '../../domain/problem.ts';
import { type Happened, IllegalWord, type RunWord, type StepWord } from '../../domain/run.ts';
import { memberKind, type StepSpec } from '../../domain/team.ts';
import { countSteps, findStep, insertSteps, type RunRow, specOf, updateStep } from '../../store/runs.ts';
import type { Tx } from '../../store/store.ts';
import type { Audit } from '../audit.ts';
import type { Progress } from './progress.ts';
import { hasRoom } from './step-data.ts';

/** Who says it: a user, or an actor for which no user stands. */
export interface Speaker {
  user_id: string | null;
  ip: string | null;
  /** `user:<username>`, or a member's. */
  actor_id: string;
}

export interface Hearing {
  progress: Progress;
  audit: Audit;
}

export type RunSaid = { kind: 'complete'; output?: unknown } | Exclude<RunWord, { kind: 'complete' }>;

/** `output` and `input`: any JSON; absent: none. */
export type StepSaid =
  | { kind: 'complete'; output?: unknown }
  | { kind: 'resume'; input?: unknown }
  | Exclude<StepWord, { kind: 'complete' | 'resume' }>;

const runAudits = {
  complete: 'run_completed',
  fail: 'run_failed',
  cancel: 'run_cancelled',
  resume: 'run_resumed',
  restart: 'run_restarted',
} as const satisfies Record<RunWord['kind'], string>;

const stepAudits = {
  start: 'step_started',
  complete: 'step_completed',
  fail: 'step_failed',
  input_required: 'step_input_required',
  resume: 'step_resumed',
} as const satisfies Record<StepWord['kind'], string>;

/** Throws `run is <status>`, or that a completed one cannot be resumed. */
export function sayToRun(
  { progress, audit }: Hearing,
  tx: Tx,
  run: RunRow,
  said: RunSaid,
  who: Speaker,
): void {
  try {
    const { kind } = said;
    const word: RunWord = kind === 'fail' ? said : { kind };
    progress.apply(tx, run.num, { kind: 'run_said', word }, kind === 'complete' ? said.output : undefined);
  } catch (error) {
    if (!(error instanceof IllegalWord)) throw error;
    if (said.kind === 'resume' && error.status === 'completed') throw problems.runCompleted();
    throw runIs(error);
  }
  const { user_id, ip, actor_id } = who;
  audit.record(tx, { event: runAudits[said.kind], user_id, ip, details: { run_id: run.id, actor_id } });
}

/** Throws `step not found`, `step is <status>` and `the outputs of the run are over 32 MiB`. */
export function sayToStep(
  { progress, audit }: Hearing,
  tx: Tx,
  run: RunRow,
  step_key: string,
  said: StepSaid,
  who: Speaker,
): void {
  const step = findStep(tx, run.num, step_key);
  if (!step) throw problems.stepNotFound();
  // Before the step is told with it; an illegal word takes it back.
  if (said.kind === 'complete') {
    const output = json(said.output);
    if (!hasRoom(tx, run.num, step_key, output)) throw problems.outputsTooLarge();
    updateStep(tx, step.num, { output });
  }
  if (said.kind === 'resume') updateStep(tx, step.num, { answer: json(said.input) });
  try {
    const own = who.actor_id === actorIdOf(step.member_id, run.team_id);
    progress.apply(tx, run.num, { kind: 'step_said', step_key, word: said, own });
  } catch (error) {
    if (!(error instanceof IllegalWord)) throw error;
    throw new Problem('conflict', 'step_status', `step is ${error.status}`);
  }
  const { user_id, ip, actor_id } = who;
  const details = { run_id: run.id, step_key, actor_id };
  audit.record(tx, { event: stepAudits[said.kind], user_id, ip, details });
}

/** Throws `step already exists for run`, for unknown members and dependencies, and `run is <status>`. */
export function addStep(
  { progress, audit }: Hearing,
  tx: Tx,
  run: RunRow,
  asked: StepSpec,
  who: Speaker,
): void {
  const { step_key, member_id, depends_on, when, max_attempts } = asked;
  const member = specOf(run).members.find((one) => one.member_id === member_id);
  if (!member) throw problems.memberUndefined();
  if (findStep(tx, run.num, step_key)) throw problems.stepExists();
  if (depends_on.some((key) => !findStep(tx, run.num, key))) throw problems.stepNeedsUndefined();
  if (countSteps(tx, run.num) >= limits.team_steps_max) throw problems.tooManySteps();
  const kind = memberKind(member);
  insertSteps(tx, run.num, [{ ...stepRow(asked, kind), added: 1 }]);
  const happened: Happened = {
    kind: 'step_added',
    step: { step_key, member_id, kind, depends_on, when, max_attempts },
  };
  try {
    progress.apply(tx, run.num, happened);
  } catch (error) {
    throw error instanceof IllegalWord ? runIs(error) : error;
  }
  const { user_id, ip, actor_id } = who;
  audit.record(tx, { event: 'step_added', user_id, ip, details: { run_id: run.id, step_key, actor_id } });
}

/** The columns of a step that nothing has happened to. */
export function stepRow(step: StepSpec, kind: ReturnType<typeof memberKind>) {
  const { step_key, member_id, depends_on, when, prompt, input, timeout_seconds, max_attempts } = step;
  return {
    ...{ step_key, member_id, kind, when, prompt, timeout_seconds, max_attempts },
    depends_on: JSON.stringify(depends_on),
    input: json(input),
    added: 0,
    status: 'pending' as const,
    waits_for: depends_on.length,
    ...{ spoiled: 0, attempt: 0, tries: 0, launched: 0 },
  };
}

function runIs({ status }: IllegalWord): Problem {
  return new Problem('conflict', 'run_status', `run is ${status}`);
}

function json(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value);
}
