/**
 * Commands of people and agents to runs and steps. Each method applies the command and writes its audit record in the caller's
 * transaction. The caller must check the permission. A command has the id of its operation in the API.
 */
import { rfc3339OrNull } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { humanActorId, memberActorId, parseUsername } from '../actors/rules/actor.ts';
import { type AuditEvent, BY_OPERATOR } from '../audit/rules/audit.ts';
import type { Audit } from '../audit/service.ts';
import { memberKind, type StepSpec } from '../teams/rules/team.ts';
import { agentsOfSteps } from './queries/assignments.ts';
import { findRun, parseSpec, type RunRow, toRun } from './queries/runs.ts';
import {
  countSteps,
  findStep,
  insertSteps,
  listRunSteps,
  type StepRow,
  toStep,
  updateStep,
} from './queries/steps.ts';
import { findOpenRun } from './queries/tasks.ts';
import { IllegalTransition, type RunCommand, type StepCommand } from './rules/graph.ts';
import { isRunOver, type Run, type Step } from './rules/run.ts';
import type { Scheduler } from './scheduler.ts';
import { hasOutputCapacity } from './step-io.ts';

/** Who gives the command. `user_id` is null for an agent that acts without a user. */
export interface Commander {
  user_id: string | null;
  ip: string | null;
  /** `user:<username>` or `<member_id>@<team_id>`. */
  actor_id: string;
  /** Whether an operator acts as this actor, without a user's token. */
  operator?: boolean | undefined;
}

/** A person who acts with a user's token. */
export function toCommander({ user_id, ip, username }: Caller): Commander {
  return { user_id, ip, actor_id: humanActorId(username) };
}

/**
 * A command to a run as requested. `output`: any JSON value; absent if none exists. `version`: of the run as the sender knows it;
 * absent if the command applies to the run as it is now.
 */
export type RunRequest =
  | { kind: 'completeRun'; output?: unknown }
  | { kind: 'resumeRun' | 'restartRun'; version?: number | undefined }
  | Exclude<RunCommand, { kind: 'completeRun' | 'resumeRun' | 'restartRun' }>;

/**
 * A command to a step as requested. `output` and `input`: any JSON value; absent if none exists. `started_at` and `waiting_since`:
 * of the step as the sender knows it; absent if the command applies to whatever the step does now.
 */
export type StepRequest =
  | { kind: 'completeStep'; output?: unknown; started_at?: string | null | undefined }
  | { kind: 'failStep'; error_text: string; started_at?: string | null | undefined }
  | { kind: 'resumeStep'; input?: unknown; waiting_since?: string | undefined }
  | Exclude<StepCommand, { kind: 'completeStep' | 'failStep' | 'resumeStep' }>;

const auditEvents = {
  completeRun: 'run_completed',
  failRun: 'run_failed',
  cancelRun: 'run_cancelled',
  resumeRun: 'run_resumed',
  restartRun: 'run_restarted',
  startStep: 'step_started',
  completeStep: 'step_completed',
  failStep: 'step_failed',
  requireStepInput: 'step_input_required',
  resumeStep: 'step_resumed',
} as const satisfies Record<(RunCommand | StepCommand)['kind'], string>;

export interface RunCommandsOptions {
  scheduler: Scheduler;
  audit: Audit;
  /** The ids of runs that are being deleted, which cannot continue. Only the active plane deletes and continues runs. */
  deleting: ReadonlySet<string>;
}

export class RunCommands {
  readonly #options: RunCommandsOptions;

  constructor(options: RunCommandsOptions) {
    this.#options = options;
  }

  /**
   * Returns the run after the command. Throws `run is <status>`, `run changed concurrently; reload and retry`, `run is being
   * deleted`, `task has an active run`, and its own error for resuming a completed run.
   */
  async commandRun(tx: Tx, run: RunRow, request: RunRequest, by: Commander): Promise<Run> {
    const reopens = isRunOver(run) && (request.kind === 'resumeRun' || request.kind === 'restartRun');
    if (reopens && this.#options.deleting.has(run.id)) throw problems.runBeingDeleted();
    try {
      const command: RunCommand = request.kind === 'failRun' ? request : { kind: request.kind };
      const details = {
        ...(request.kind === 'completeRun' && { output: request.output }),
        ...(request.kind !== 'cancelRun' && { answered_by: displayName(by) }),
      };
      await this.#options.scheduler.apply(tx, run.num, { kind: 'run_command', command }, details);
    } catch (error) {
      if (!(error instanceof IllegalTransition)) throw error;
      if (request.kind === 'resumeRun' && error.status === 'completed') throw problems.runCompleted();
      throw runStatusError(error);
    }
    // Checked last, because a wrong status takes precedence. The error rolls the command back.
    if ('version' in request && (request.version ?? run.version) !== run.version) throw problems.runChanged();
    if (reopens && (await findOpenRun(tx, run.task_num, { except_num: run.num })))
      throw problems.taskHasRun();
    await this.#audit(tx, by, auditEvents[request.kind], run);
    return toRun((await findRun(tx, run.id))!);
  }

  /**
   * Returns the step after the command. Throws `step not found`, `step is <status>`, `step changed concurrently; reload and
   * retry`, and `the outputs of the run are over 32 MiB`.
   */
  async commandStep(
    tx: Tx,
    run: RunRow,
    step_key: string,
    request: StepRequest,
    by: Commander,
  ): Promise<Step> {
    const step = await findStep(tx, run.num, step_key);
    if (!step) throw problems.stepNotFound();
    // Stored first, because applying the command records an event with it. An illegal command rolls it back.
    if (request.kind === 'completeStep') {
      const output = json(request.output);
      if (!(await hasOutputCapacity(tx, run.num, step_key, output))) throw problems.outputsTooLarge();
      updateStep(tx, step.num, { output });
    }
    if (request.kind === 'resumeStep') updateStep(tx, step.num, { answer: json(request.input) });
    const answered_by = displayName(by);
    if (step.status === 'input_required') updateStep(tx, step.num, { answered_by });
    try {
      const own = by.actor_id === memberActorId(step.member_id, run.team_id);
      const event = { kind: 'step_command', step_key, command: request, by_own_member: own } as const;
      await this.#options.scheduler.apply(tx, run.num, event, { answered_by });
    } catch (error) {
      if (!(error instanceof IllegalTransition)) throw error;
      throw new Problem('conflict', 'step_status', `step is ${error.status}`);
    }
    // Checked last, because a wrong status takes precedence. The error rolls the command back.
    if (isAboutOther(request, step)) throw problems.stepChanged();
    await this.#audit(tx, by, auditEvents[request.kind], run, { step_key });
    return requireStep(tx, run, step_key);
  }

  /**
   * Returns the new step. Throws `step already exists for run`, `run is <status>`, and errors for unknown members and
   * dependencies.
   */
  async addStep(tx: Tx, run: RunRow, spec: StepSpec, by: Commander): Promise<Step> {
    const { step_key, member_id, depends_on, when, max_attempts } = spec;
    const member = parseSpec(run).members.find((member) => member.member_id === member_id);
    if (!member) throw problems.memberUndefined();
    if (await findStep(tx, run.num, step_key)) throw problems.stepExists();
    for (const key of depends_on)
      if (!(await findStep(tx, run.num, key))) throw problems.stepNeedsUndefined();
    if ((await countSteps(tx, run.num)) >= limits.team_steps_max) throw problems.tooManySteps();
    const kind = memberKind(member);
    await insertSteps(tx, run.num, [{ ...stepRow(spec, kind), added: 1 }]);
    const step = { step_key, member_id, kind, depends_on, when, max_attempts };
    try {
      await this.#options.scheduler.apply(tx, run.num, { kind: 'step_added', step });
    } catch (error) {
      throw error instanceof IllegalTransition ? runStatusError(error) : error;
    }
    await this.#audit(tx, by, 'step_added', run, { step_key });
    return requireStep(tx, run, step_key);
  }

  async #audit(
    tx: Tx,
    by: Commander,
    event: AuditEvent,
    run: RunRow,
    step: { step_key?: string } = {},
  ): Promise<void> {
    const { user_id, ip, actor_id, operator } = by;
    const { id: run_id, team_id, number } = run;
    await this.#options.audit.record(tx, {
      event,
      user_id,
      ip,
      details: { run_id, team_id, number, ...step, actor_id, ...(operator && BY_OPERATOR) },
    });
  }
}

/** Whether the command is about an earlier start of the step, or answers another question, than the step has now. */
function isAboutOther(request: StepRequest, step: StepRow): boolean {
  switch (request.kind) {
    case 'completeStep':
    case 'failStep':
      return isOther(request.started_at, step.started_at);
    case 'resumeStep':
      return isOther(request.waiting_since, step.waiting_since);
    default:
      return false;
  }
}

function isOther(known: string | null | undefined, now: number | null): boolean {
  return known !== undefined && known !== rfc3339OrNull(now);
}

/** All steps, in the order in which they were defined or added. */
export async function stepsOfRun(reader: Reader, run: RunRow): Promise<Step[]> {
  const agents = await agentsOfSteps(reader, run);
  return (await listRunSteps(reader, run.num)).map((row) =>
    toStep(row, run.id, agents.get(row.step_key) ?? null),
  );
}

async function requireStep(reader: Reader, run: RunRow, step_key: string): Promise<Step> {
  const agents = await agentsOfSteps(reader, run, [step_key]);
  return toStep((await findStep(reader, run.num, step_key))!, run.id, agents.get(step_key) ?? null);
}

/** The columns of a new step. */
export function stepRow(step: StepSpec, kind: ReturnType<typeof memberKind>) {
  const { step_key, member_id, depends_on, when, prompt, input, timeout_seconds, max_attempts } = step;
  return {
    ...{ step_key, member_id, kind, when, prompt, timeout_seconds, max_attempts },
    depends_on: JSON.stringify(depends_on),
    input: json(input),
    added: 0,
    status: 'pending' as const,
    waits_for: depends_on.length,
    ...{ upstream_failed: 0, attempt: 0, tries: 0, launched: 0 },
  };
}

function displayName({ actor_id }: Commander): string {
  return parseUsername(actor_id) ?? actor_id;
}

function runStatusError({ status }: IllegalTransition): Problem {
  return new Problem('conflict', 'run_status', `run is ${status}`);
}

function json(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value);
}
