/**
 * The life of an assignment, which asks an agent to do an attempt of a step or a round of the leader. It starts, and ends once,
 * with an outcome that is applied to its run. Outcomes that arrive later are ignored.
 *
 *     created ──▶ given to its agent ──▶ running ──▶ ended: completed │ failed │ unknown │ cancelled
 *        ▲               │
 *        └── reassign ───┘
 */
import { limits as sharedLimits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Timer, TimerPayloads } from '../../work/timers.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';
import { type AgentCore, SERVICE } from '../agents/core.ts';
import type { Lifecycle } from '../agents/lifecycle.ts';
import { findAgent, findSession } from '../agents/queries/agents.ts';
import { endTurn } from '../conversations/driver.ts';
import { deletePrompt, findPrompt } from '../conversations/queries.ts';
import { limits } from './limits.ts';
import type { Obstacles } from './obstacles.ts';
import { type Assignment, assignmentOfNum, endAssignment, updateAssignment } from './queries/assignments.ts';
import { runOfNum } from './queries/runs.ts';
import { findStep, updateStep } from './queries/steps.ts';
import type { AssignedWork, GraphEvent, StepAttempt } from './rules/graph.ts';
import { isStepOver } from './rules/run.ts';
import type { Scheduler } from './scheduler.ts';
import { hasOutputCapacity } from './step-io.ts';

/** How an assignment ended. `output`: any JSON value. */
export type Outcome =
  | { kind: 'completed'; output: unknown }
  /** `final`: a retry would not help. */
  | { kind: 'failed'; error_text: string; final?: boolean }
  | { kind: 'unknown'; reason: string };

export class Assignments {
  readonly #core: AgentCore;
  readonly #lifecycle: Lifecycle;
  readonly #scheduler: Scheduler;
  readonly #obstacles: Obstacles;
  /** Unix ms. */
  readonly #opened_at: number;

  constructor(
    core: AgentCore,
    { lifecycle, scheduler, obstacles }: { lifecycle: Lifecycle; scheduler: Scheduler; obstacles: Obstacles },
  ) {
    this.#core = core;
    this.#lifecycle = lifecycle;
    this.#scheduler = scheduler;
    this.#obstacles = obstacles;
    this.#opened_at = core.clock.now();
  }

  /** Records that the agent's process or turn has started. Idempotent. */
  async started(tx: Tx, assignment: Assignment): Promise<void> {
    if (assignment.ended || assignment.started_at !== null) return;
    const now = this.#core.clock.now();
    updateAssignment(tx, assignment.num, { started_at: now });
    const { work, run_num } = assignment;
    if (work.kind === 'round') return;
    const { step_key, attempt } = work;
    const timeout_seconds = (await findStep(tx, run_num, step_key))?.timeout_seconds ?? null;
    if (timeout_seconds !== null)
      await this.#setTimeout(tx, assignment, { timeout_seconds }, timeout_seconds * 1000);
    await this.#apply(tx, assignment, { kind: 'step_running', step_key, attempt });
  }

  /** Records the outcome of the assignment. Only the first outcome counts. */
  async end(tx: Tx, assignment_num: number, observed: Outcome): Promise<void> {
    const assignment = await assignmentOfNum(tx, assignment_num);
    if (!assignment || assignment.ended) return;
    await this.#markEnded(tx, assignment);
    const outcome = await withinLimits(tx, assignment, observed);
    const { work } = assignment;
    const output = outcome.kind === 'completed' ? outcome.output : null;
    if (outcome.kind === 'completed' && work.kind === 'step' && (await isCurrent(tx, assignment))) {
      await storeOutput(tx, assignment.run_num, work, output);
    }
    // The output of the last round is the output of the run.
    const run_output = work.kind === 'round' ? output : undefined;
    await this.#apply(tx, assignment, toGraphEvent(work, outcome), run_output);
  }

  /** Gives an assignment to its agent again. Call this only if the agent has not started work on it, and will not. */
  async reassign(tx: Tx, assignment: Assignment): Promise<void> {
    const agent = await findAgent(tx, assignment.agent_id);
    if (!agent) return;
    const prompt =
      assignment.prompt_id === null ? undefined : await findPrompt(tx, agent.num, assignment.prompt_id);
    if (prompt) await deletePrompt(tx, prompt.num);
    updateAssignment(tx, assignment.num, { session_id: null, prompt_id: null });
    const payload = { assignment_num: assignment.num };
    await this.#core.outbox.enqueue(tx, agent.node_id, agent.id, 'prepare', payload);
  }

  /**
   * Ends the assignment without an outcome, and stops the agent's turn or process. An agent that speaks ACP keeps running,
   * because it may receive other assignments of the run.
   */
  async cancel(tx: Tx, assignment: Assignment): Promise<void> {
    if (assignment.ended) return;
    await this.#markEnded(tx, assignment);
    const agent = await findAgent(tx, assignment.agent_id);
    if (!agent) return;
    if (assignment.prompt_id !== null)
      await this.#endPrompt(tx, agent.num, agent.session_id, assignment.prompt_id);
    else if (assignment.session_id !== null && agent.session_id === assignment.session_id) {
      await this.stopAgent(tx, agent.id);
    }
  }

  /** Stops an agent if it is running and not being stopped already. */
  async stopAgent(tx: Tx, agent_id: string): Promise<void> {
    const row = await findAgent(tx, agent_id);
    if (!row?.session_id || row.session_state === 'ended') return;
    if ((await findSession(tx, row.session_id))!.stopping === 1) return;
    await this.#lifecycle.enqueueStop(tx, row, SERVICE, sharedLimits.stop_grace_ms);
  }

  /** Fails an assignment that exceeded the time limit of its step, unless it may have ended in time. */
  async timedOut(tx: Tx, { ref, due_at_ms, payload }: Timer<'step_timeout'>): Promise<void> {
    const { timeout_seconds, waited = false } = payload;
    const assignment = await assignmentOfNum(tx, Number(ref));
    if (!assignment || assignment.ended) return;
    // The plane's machine may have been asleep, so that a node has not reported the end yet. Wait once: a busy plane may always be late.
    const is_late = !waited && this.#core.clock.now() - due_at_ms >= limits.timeout_late_ms;
    const wait_ms = is_late ? limits.timeouts_wait_ms : await this.#waitForEnd(tx, assignment);
    if (wait_ms > 0) {
      const next = { timeout_seconds, waited: waited || is_late };
      await this.#setTimeout(tx, assignment, next, wait_ms);
      return;
    }
    const error_text = `timed out after ${timeout_seconds} s`;
    await this.cancel(tx, assignment);
    await this.#apply(tx, assignment, toGraphEvent(assignment.work, { kind: 'failed', error_text }));
  }

  /** How long to wait, in ms, for an end that has not been processed; 0 if there can be none. */
  async #waitForEnd(tx: Tx, { agent_id, session_id, started_at }: Assignment): Promise<number> {
    // Its node cannot report it now.
    if ((await findAgent(tx, agent_id))?.stale_since != null) return sharedLimits.node_suspect_ms;
    // Only the output has not been read.
    for (const kind of ['collect', 'collect_message', 'collect_failure'] as const) {
      if (session_id !== null && (await this.#core.outbox.isPending(tx, session_id, kind)))
        return sharedLimits.node_suspect_ms;
    }
    // It may have ended while no plane was running, and its node has not reported that yet.
    if (started_at === null || started_at >= this.#opened_at) return 0;
    return Math.max(0, this.#opened_at + limits.timeouts_wait_ms - this.#core.clock.now());
  }

  /** `output`: the run's output if the event completes the run. */
  async #apply(tx: Tx, assignment: Assignment, event: GraphEvent, output?: unknown): Promise<void> {
    if (await isCurrent(tx, assignment))
      await this.#scheduler.apply(tx, assignment.run_num, event, { output });
  }

  async #setTimeout(
    tx: Tx,
    { num }: Assignment,
    payload: TimerPayloads['step_timeout'],
    wait_ms: number,
  ): Promise<void> {
    const due_at = this.#core.clock.now() + wait_ms;
    await this.#core.timers.set(tx, 'step_timeout', String(num), due_at, payload);
  }

  async #markEnded(tx: Tx, assignment: Assignment): Promise<void> {
    const { num, run_num } = assignment;
    endAssignment(tx, num, this.#core.clock.now());
    await this.#obstacles.clear(tx, (await runOfNum(tx, run_num))!, assignment);
    await this.#core.timers.clear(tx, 'step_timeout', String(num));
  }

  async #endPrompt(tx: Tx, agent_num: number, session_id: string | null, prompt_id: string): Promise<void> {
    const prompt = await findPrompt(tx, agent_num, prompt_id);
    if (prompt?.state === 'queued') await deletePrompt(tx, prompt.num);
    if (prompt?.state !== 'sent' || session_id === null) return;
    await AcpTransaction.run(this.#core, tx, session_id, async (transaction) => {
      if (transaction.state.turn?.prompt_id === prompt_id) await endTurn(transaction, null);
    });
    const due_at = this.#core.clock.now() + sharedLimits.turn_cancel_ms;
    await this.#core.timers.set(tx, 'turn_cancel', session_id, due_at, { prompt_id });
  }
}

/** False if the run was restarted since: a restart may reuse the numbers of attempts, because it removes added steps. */
async function isCurrent(reader: Reader, { run_num, run_attempt }: Assignment): Promise<boolean> {
  return (await runOfNum(reader, run_num))?.attempt === run_attempt;
}

/** The outcome, or a failure if the run has no room for the output of the step. */
async function withinLimits(
  reader: Reader,
  { run_num, work }: Assignment,
  outcome: Outcome,
): Promise<Outcome> {
  if (outcome.kind !== 'completed' || work.kind === 'round') return outcome;
  if (await hasOutputCapacity(reader, run_num, work.step_key, JSON.stringify(outcome.output))) return outcome;
  return { kind: 'failed', error_text: problems.outputsTooLarge().message, final: true };
}

async function storeOutput(
  tx: Tx,
  run_num: number,
  { step_key, attempt }: StepAttempt,
  output: unknown,
): Promise<void> {
  const step = await findStep(tx, run_num, step_key);
  // The member itself ended the step or asked for input. The end of its turn or process does not replace that input.
  if (step?.attempt !== attempt || isStepOver(step) || step.status === 'input_required') return;
  updateStep(tx, step.num, { output: output === null ? null : JSON.stringify(output) });
}

function toGraphEvent(work: AssignedWork, outcome: Outcome): GraphEvent {
  if (work.kind === 'round') {
    const { round } = work;
    if (outcome.kind === 'completed') return { kind: 'round_ended', round };
    const reason = outcome.kind === 'failed' ? outcome.error_text : outcome.reason;
    return { kind: 'round_unknown', round, reason: `the leader: ${reason}` };
  }
  const { step_key, attempt } = work;
  switch (outcome.kind) {
    case 'completed':
      return { kind: 'step_completed', step_key, attempt };
    case 'failed': {
      const { error_text, final = false } = outcome;
      return { kind: 'step_failed', step_key, attempt, error_text, final };
    }
    case 'unknown':
      return { kind: 'step_unknown', step_key, attempt, reason: outcome.reason };
  }
}
