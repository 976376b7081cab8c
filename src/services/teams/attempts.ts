/**
 * Attempts as rows: what an attempt of a step, or a round of a leader, came to is taken into its run here, once. Whoever
 * comes after that is too late, and changes nothing.
 */
import { limits } from '../../base/limits.ts';
import { actorIdOf } from '../../domain/actor.ts';
import { problems } from '../../domain/problem.ts';
import { type Happened, isStepOver } from '../../domain/run.ts';
import { findAgent, findSession } from '../../store/agents.ts';
import { deletePrompt, findPrompt } from '../../store/prompts.ts';
import {
  type AttemptRow,
  attemptOfNum,
  attemptsOfSession,
  findStep,
  runOfNum,
  updateAttempt,
  updateStep,
} from '../../store/runs.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { endTurn } from '../acp/driver.ts';
import { Exchange } from '../acp/exchange.ts';
import { type AgentsContext, type Errand, SERVICE } from '../agents/context.ts';
import type { Lifecycle } from '../agents/lifecycle.ts';
import type { Progress } from './progress.ts';
import { hasRoom, stepInput } from './step-data.ts';

/** What came of an attempt. `output`: any JSON. */
export type Outcome =
  | { kind: 'completed'; output: unknown }
  /** `final`: trying again is no use. */
  | { kind: 'failed'; error_text: string; final?: boolean }
  | { kind: 'unclear'; reason: string };

export class Attempts {
  readonly #context: AgentsContext;
  readonly #lifecycle: Lifecycle;
  readonly #progress: Progress;

  constructor(context: AgentsContext, lifecycle: Lifecycle, progress: Progress) {
    this.#context = context;
    this.#lifecycle = lifecycle;
    this.#progress = progress;
  }

  /** Its process, or turn, is there. */
  running(tx: Tx, attempt: AttemptRow): void {
    if (attempt.over === 1 || attempt.started_at !== null) return;
    const now = this.#context.now();
    updateAttempt(tx, attempt.num, { started_at: now });
    if (attempt.step_key === '') return;
    const { step_key, run_num } = attempt;
    const timeout_seconds = findStep(tx, run_num, step_key)?.timeout_seconds ?? null;
    if (timeout_seconds !== null) this.#watch(tx, attempt, timeout_seconds, timeout_seconds * 1000);
    this.#tell(tx, attempt, { kind: 'step_running', step_key, attempt: attempt.attempt });
  }

  /** The first word on an attempt; later ones are not heard. */
  settle(tx: Tx, attempt_num: number, told: Outcome): void {
    const attempt = attemptOfNum(tx, attempt_num);
    if (!attempt || attempt.over === 1) return;
    this.#over(tx, attempt);
    const outcome = keepable(tx, attempt, told);
    const output = outcome.kind === 'completed' ? outcome.output : null;
    // What a leader says last is the run's own.
    const ends = attempt.step_key === '' ? output : undefined;
    if (outcome.kind === 'completed' && isPresent(tx, attempt)) keepOutput(tx, attempt, output);
    this.#tell(tx, attempt, happenedOf(attempt, outcome), ends);
  }

  /** Nothing of it was begun, and nothing will be: it is given to its agent anew. */
  again(tx: Tx, attempt: AttemptRow): void {
    const agent = findAgent(tx, attempt.agent_id);
    if (!agent) return;
    const prompt = attempt.prompt_id === null ? undefined : findPrompt(tx, agent.num, attempt.prompt_id);
    if (prompt) deletePrompt(tx, prompt.num);
    updateAttempt(tx, attempt.num, { session_id: null, prompt_id: null });
    const payload = { attempt_num: attempt.num };
    this.#context.options.outbox.enqueue(tx, agent.node_id, agent.id, 'prepare', payload);
  }

  /** Ends what goes on of it. Its agent stays when it speaks ACP: the run has more for it. */
  end(tx: Tx, attempt: AttemptRow): void {
    if (attempt.over === 1) return;
    this.#over(tx, attempt);
    const agent = findAgent(tx, attempt.agent_id);
    if (!agent) return;
    if (attempt.prompt_id !== null) this.#endPrompt(tx, agent.num, agent.session_id, attempt.prompt_id);
    else if (attempt.session_id !== null && agent.session_id === attempt.session_id) {
      this.endAgent(tx, agent.id);
    }
  }

  /** Stops an agent that runs, unless that is under way. */
  endAgent(tx: Tx, agent_id: string): void {
    const row = findAgent(tx, agent_id);
    if (!row?.session_id || row.session_state === 'ended') return;
    if (findSession(tx, row.session_id)!.stopping === 1) return;
    this.#lifecycle.end(tx, row, SERVICE, limits.stop_grace_ms);
  }

  /** Its time is over. */
  timedOut(tx: Tx, attempt_num: number, timeout_seconds: number): void {
    const attempt = attemptOfNum(tx, attempt_num);
    if (!attempt || attempt.over === 1) return;
    // It may have ended in time: its node will tell.
    const out_of_reach = findAgent(tx, attempt.agent_id)?.stale_since != null;
    if (out_of_reach) {
      this.#watch(tx, attempt, timeout_seconds, limits.node_suspect_ms);
      return;
    }
    const error_text = `timed out after ${timeout_seconds} s`;
    this.end(tx, attempt);
    this.#tell(tx, attempt, happenedOf(attempt, { kind: 'failed', error_text }));
  }

  /** `ends`: the run's output, where this completes it. */
  #tell(tx: Tx, attempt: AttemptRow, happened: Happened, ends?: unknown): void {
    if (isPresent(tx, attempt)) this.#progress.apply(tx, attempt.run_num, happened, ends);
  }

  #watch(tx: Tx, { num }: AttemptRow, timeout_seconds: number, wait_ms: number): void {
    const due_at = this.#context.now() + wait_ms;
    this.#context.options.timers.set(tx, 'step_timeout', String(num), due_at, { timeout_seconds });
  }

  #over(tx: Tx, { num }: AttemptRow): void {
    updateAttempt(tx, num, { over: 1, ended_at: this.#context.now() });
    this.#context.options.timers.clear(tx, 'step_timeout', String(num));
  }

  #endPrompt(tx: Tx, agent_num: number, session_id: string | null, prompt_id: string): void {
    const prompt = findPrompt(tx, agent_num, prompt_id);
    if (prompt?.state === 'queued') deletePrompt(tx, prompt.num);
    if (prompt?.state !== 'sent' || session_id === null) return;
    Exchange.run(this.#context, tx, session_id, (exchange) => {
      if (exchange.state.turn?.prompt_id === prompt_id) endTurn(exchange, null);
    });
    const due_at = this.#context.now() + limits.turn_cancel_ms;
    this.#context.options.timers.set(tx, 'turn_cancel', session_id, due_at, { prompt_id });
  }
}

/** Steps that were added go with a restart, and one of the same key counts its attempts from the beginning. */
function isPresent(reader: Reader, { run_num, run_attempt }: AttemptRow): boolean {
  return runOfNum(reader, run_num)?.attempt === run_attempt;
}

function keepable(reader: Reader, { run_num, step_key }: AttemptRow, told: Outcome): Outcome {
  if (told.kind !== 'completed' || step_key === '') return told;
  if (hasRoom(reader, run_num, step_key, JSON.stringify(told.output))) return told;
  return { kind: 'failed', error_text: problems.outputsTooLarge().message, final: true };
}

function keepOutput(tx: Tx, { run_num, step_key, attempt }: AttemptRow, output: unknown): void {
  const step = findStep(tx, run_num, step_key);
  // Its member has said what came of it, or asked for a word, which its end does not answer.
  if (step?.attempt !== attempt || isStepOver(step) || step.status === 'input_required') return;
  updateStep(tx, step.num, { output: output === null ? null : JSON.stringify(output) });
}

function happenedOf({ step_key, attempt }: AttemptRow, outcome: Outcome): Happened {
  if (step_key === '') {
    if (outcome.kind === 'completed') return { kind: 'leader_ended', round: attempt };
    const reason = outcome.kind === 'failed' ? outcome.error_text : outcome.reason;
    return { kind: 'leader_unclear', round: attempt, reason: `the leader: ${reason}` };
  }
  switch (outcome.kind) {
    case 'completed':
      return { kind: 'step_completed', step_key, attempt };
    case 'failed': {
      const { error_text, final = false } = outcome;
      return { kind: 'step_failed', step_key, attempt, error_text, final };
    }
    case 'unclear':
      return { kind: 'step_unclear', step_key, attempt, reason: outcome.reason };
  }
}

/** What the session of a team's agent gets beside the agent's own. */
export function errandOf(reader: Reader, session_id: string): Errand {
  const none = { env: {}, step_input: null };
  const session = findSession(reader, session_id);
  const agent = session && findAgent(reader, session.agent_id);
  const run = agent?.run_num != null ? runOfNum(reader, agent.run_num) : undefined;
  if (!agent?.member_id || !run) return none;
  const env: Record<string, string> = {
    SVC_TEAM_ID: run.team_id,
    SVC_RUN_ID: run.id,
    SVC_MEMBER_ID: agent.member_id,
    SVC_ACTOR_ID: actorIdOf(agent.member_id, run.team_id),
  };
  if (agent.protocol === 'acp') return { env, step_input: null };
  const attempt = attemptsOfSession(reader, session_id).findLast(({ over }) => over === 0);
  if (!attempt) return { env, step_input: null };
  if (attempt.step_key !== '') {
    Object.assign(env, { SVC_STEP_KEY: attempt.step_key, SVC_STEP_ATTEMPT: String(attempt.attempt) });
  }
  return { env, step_input: JSON.stringify(stepInput(reader, run, attempt)) };
}
