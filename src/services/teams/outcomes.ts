/**
 * What came of attempts: sessions and turns of a run's agents, told as facts, become outcomes. What an outcome needs from
 * the node or from the log is read by intents, before the session's directory goes.
 */
import { failpoint } from '../../base/failpoint.ts';
import { limits } from '../../base/limits.ts';
import { actorIdOf } from '../../domain/actor.ts';
import { isOutOfReach, Problem, problems } from '../../domain/problem.ts';
import { isRunOver } from '../../domain/run.ts';
import { type Exit, START_INTERRUPTED } from '../../domain/session.ts';
import type { EventLog } from '../../events/log.ts';
import type { FactHandlers, FactPayloads } from '../../flow/facts.ts';
import type { IntentHandlers } from '../../flow/outbox.ts';
import { findAgent, findSession, type SessionRow } from '../../store/agents.ts';
import { deletePrompt, findPrompt } from '../../store/prompts.ts';
import {
  type AttemptRow,
  attemptOfNum,
  attemptOfPrompt,
  attemptsOfSession,
  openAttemptsOfAgent,
  runOfNum,
  updateAttempt,
} from '../../store/runs.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { AgentsContext } from '../agents/context.ts';
import type { Attempts, Outcome } from './attempts.ts';
import { lastWords } from './last-words.ts';
import type { Progress } from './progress.ts';
import { readOutput } from './step-data.ts';

const UNKNOWN = 'outcome unknown';

export class Outcomes {
  readonly #context: AgentsContext;
  readonly #attempts: Attempts;
  readonly #progress: Pick<Progress, 'wantEye'>;

  constructor(context: AgentsContext, attempts: Attempts, progress: Pick<Progress, 'wantEye'>) {
    this.#context = context;
    this.#attempts = attempts;
    this.#progress = progress;
  }

  facts(): FactHandlers {
    return {
      session_started: (tx, { payload }) => {
        const attempt = openPlain(tx, payload.session_id);
        if (attempt) this.#attempts.running(tx, attempt);
      },
      session_refused: (tx, { payload: { session_id, agent_id, error } }) => {
        const attempt = openPlain(tx, session_id);
        const failed = { kind: 'failed', error_text: error } as const;
        if (attempt) this.#attempts.settle(tx, attempt.num, failed);
        this.#endPrompts(tx, agent_id, error);
      },
      session_ended: (tx, { payload }) => {
        this.#attend(tx, payload.agent_id, null);
        this.#sessionEnded(tx, payload);
      },
      acp_failed: (tx, { payload: { agent_id, error } }) =>
        this.#endPrompts(tx, agent_id, error.slice(0, limits.step_error_chars_max)),
      acp_waits: (tx, { payload: { agent_id, reason } }) => this.#attend(tx, agent_id, reason),
      session_ready: (tx, { payload: { agent_id } }) => this.#attend(tx, agent_id, null),
      turn_began: (tx, { payload: { session_id, prompt_id } }) => {
        const attempt = attemptOfPrompt(tx, prompt_id);
        if (!attempt) return;
        updateAttempt(tx, attempt.num, { session_id });
        this.#attempts.running(tx, attempt);
      },
      turn_ended: (tx, { payload }) => this.#turnEnded(tx, payload),
      prompt_removed: (tx, { payload: { prompt_id } }) => {
        const attempt = attemptOfPrompt(tx, prompt_id);
        const reason = 'its prompt was taken back';
        if (attempt) this.#attempts.settle(tx, attempt.num, { kind: 'unclear', reason });
      },
    };
  }

  /** The session's directory is about to go: an output in it is read before. */
  sessionEnded(tx: Tx, session_id: string, exit: Exit): void {
    const attempt = openPlain(tx, session_id);
    const session = findSession(tx, session_id)!;
    if (!attempt || exit.exit_code !== 0 || session.stopping === 1) return;
    const { node_id } = session;
    const payload = { attempt_num: attempt.num };
    this.#context.options.outbox.enqueue(tx, node_id, session_id, 'collect', payload);
  }

  intents(): Pick<IntentHandlers, 'collect' | 'hear'> {
    return {
      collect: async ({ session_id, node_id, payload: { attempt_num } }) => {
        await this.#complete(attempt_num, async ({ agent_id }) => {
          const left = await this.#stepOutput(node_id, session_id);
          return readOutput(left ?? (await lastStdout(this.#context.options.log, agent_id, session_id)));
        });
        failpoint('step_collected');
      },
      hear: async ({ payload: { attempt_num, prompt_id } }) => {
        const { log } = this.#context.options;
        await this.#complete(attempt_num, ({ agent_id }) => lastWords(log, agent_id, prompt_id));
        failpoint('step_heard');
      },
    };
  }

  /** Completes an attempt with an output that has to be read first; one that cannot be read at all fails it. */
  async #complete(attempt_num: number, read: (attempt: AttemptRow) => Promise<unknown>): Promise<void> {
    const { store } = this.#context.options;
    const attempt = await store.read((reader) => attemptOfNum(reader, attempt_num));
    if (!attempt || attempt.over === 1) return;
    const outcome = await read(attempt).then(
      (output): Outcome => ({ kind: 'completed', output }),
      (error: unknown): Outcome => {
        const later = !(error instanceof Problem) || isOutOfReach(error);
        if (later || error.code === problems.draining().code) throw error;
        return { kind: 'failed', error_text: `its output cannot be read: ${error.message}`, final: true };
      },
    );
    await store.write((tx) => this.#attempts.settle(tx, attempt_num, outcome));
  }

  /** The run shows that an agent of it takes no prompts, so what it has to do waits; null: that is over. */
  #attend(tx: Tx, agent_id: string, reason: string | null): void {
    const agent = findAgent(tx, agent_id);
    const run = agent && agent.run_num !== null ? runOfNum(tx, agent.run_num) : undefined;
    if (!run) return;
    const about = `${actorIdOf(agent!.member_id!, run.team_id)}: `;
    if (reason !== null && !isRunOver(run)) this.#progress.wantEye(tx, run, about + reason);
    else if (run.attention?.startsWith(about)) this.#progress.wantEye(tx, run, null);
  }

  /** Null where nothing was left, also when the node, or the session on it, is no more. */
  async #stepOutput(node_id: string, session_id: string): Promise<Uint8Array | null> {
    const gone: string[] = [problems.sessionNotFound().code, problems.nodeNotFound().code];
    try {
      return await this.#context.node(node_id).stepOutput(session_id, limits.step_output_bytes_max + 1);
    } catch (error) {
      if (error instanceof Problem && gone.includes(error.code)) return null;
      throw error;
    }
  }

  #sessionEnded(tx: Tx, { agent_id, session_id, status, message }: FactPayloads['session_ended']): void {
    const attempt = openPlain(tx, session_id);
    const session = findSession(tx, session_id);
    if (attempt) {
      // Of a completed one the output is being read.
      if (status === 'completed') return;
      if (message === START_INTERRUPTED) this.#attempts.again(tx, attempt);
      else this.#attempts.settle(tx, attempt.num, outcomeOf(session, status, message ?? null));
      return;
    }
    const agent = findAgent(tx, agent_id);
    for (const { num, prompt_id } of openAttemptsOfAgent(tx, agent_id)) {
      if (prompt_id === null) continue;
      const prompt = agent && findPrompt(tx, agent.num, prompt_id);
      // What the agent's next session was told is not lost with this one.
      const is_its = prompt?.session_num === session?.num;
      const lost = !prompt || (is_its && (prompt.state === 'sent' || prompt.state === 'lost'));
      if (lost) this.#attempts.settle(tx, num, { kind: 'unclear', reason: UNKNOWN });
    }
    // The next session of the agent takes what waits.
    if (agent?.session_id !== session_id) return;
    this.#endPrompts(tx, agent_id, message === START_INTERRUPTED ? null : 'its agent ended before');
  }

  /** Prompts that an agent does not take any more: nothing of them was done. `error_text`: null where nothing went wrong. */
  #endPrompts(tx: Tx, agent_id: string, error_text: string | null): void {
    const agent = findAgent(tx, agent_id);
    if (!agent) return;
    for (const attempt of openAttemptsOfAgent(tx, agent_id)) {
      const { prompt_id } = attempt;
      const prompt = prompt_id === null ? undefined : findPrompt(tx, agent.num, prompt_id);
      if (prompt?.state !== 'queued') continue;
      if (error_text === null) {
        this.#attempts.again(tx, attempt);
        continue;
      }
      deletePrompt(tx, prompt.num);
      this.#attempts.settle(tx, attempt.num, { kind: 'failed', error_text });
    }
  }

  #turnEnded(tx: Tx, { session_id, prompt_id, stop_reason }: FactPayloads['turn_ended']): void {
    const attempt = attemptOfPrompt(tx, prompt_id);
    if (!attempt || attempt.over === 1) return;
    if (stop_reason === 'end_turn') {
      const payload = { attempt_num: attempt.num, prompt_id };
      const node_id = findSession(tx, session_id)?.node_id ?? '';
      this.#context.options.outbox.enqueue(tx, node_id, session_id, 'hear', payload);
      return;
    }
    const outcome: Outcome =
      stop_reason === 'cancelled'
        ? { kind: 'unclear', reason: 'the turn was cancelled' }
        : {
            kind: 'failed',
            error_text:
              stop_reason === null ? 'the agent answered with an error' : `the turn ended: ${stop_reason}`,
          };
    this.#attempts.settle(tx, attempt.num, outcome);
  }
}

/** The attempt that a session is there for, while nothing is known of its end. */
function openPlain(reader: Reader, session_id: string): AttemptRow | undefined {
  const found = attemptsOfSession(reader, session_id);
  return found.findLast(({ over, prompt_id }) => over === 0 && prompt_id === null);
}

/** Of a session that did not complete. */
function outcomeOf(session: SessionRow | undefined, status: string, message: string | null): Outcome {
  if (status === 'cancelled') return { kind: 'unclear', reason: 'its agent was stopped' };
  switch (session?.reason) {
    case 'exit_code':
      return { kind: 'failed', error_text: `exit code ${session.exit_code}` };
    case 'signal':
      return { kind: 'failed', error_text: `signal ${session.exit_signal}` };
    case 'spawn_failed':
    case 'workdir_refused':
      return {
        kind: 'failed',
        error_text: (message ?? session.reason).slice(0, limits.step_error_chars_max),
        final: true,
      };
    default:
      return { kind: 'unclear', reason: UNKNOWN };
  }
}

async function lastStdout(log: EventLog, agent_id: string, session_id: string): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  try {
    const output = await log.output(agent_id, session_id, 'stdout');
    const { size_bytes } = output;
    const from = Math.max(0, size_bytes - limits.step_stdout_bytes);
    for await (const part of output.read(from, size_bytes)) parts.push(part);
  } catch (error) {
    // The agent was deleted meanwhile, and its log with it.
    if (!(error instanceof Problem)) throw error;
  }
  return Buffer.concat(parts);
}
