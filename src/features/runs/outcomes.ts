/**
 * Determines the outcomes of attempts from facts about the sessions and turns of a run's agents. If an outcome depends on
 * the node's disk or the log, an intent reads it before the session's folder is deleted.
 */
import { truncateText } from '../../acp/json.ts';
import { failpoint } from '../../base/failpoint.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { isTemporary, Problem, problems } from '../../core/problem.ts';
import { type Exit, START_INTERRUPTED } from '../../core/session.ts';
import { lastOutputText } from '../../store/event-rows/read.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { FactHandlers, FactPayloads } from '../../work/facts.ts';
import type { Intent, IntentHandlers } from '../../work/outbox.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import type { AgentCore } from '../agents/core.ts';
import { findAgent, findSession, type SessionRow } from '../agents/queries/agents.ts';
import { deletePrompt, findPrompt } from '../conversations/queries.ts';
import type { Attempts, Outcome } from './attempts.ts';
import { lastMessage } from './last-message.ts';
import { lastStdout } from './last-stdout.ts';
import { limits } from './limits.ts';
import type { Obstacles } from './obstacles.ts';
import type { RunPublisher } from './publisher.ts';
import {
  type Attempt,
  attemptOfNum,
  attemptOfPrompt,
  attemptsOfSession,
  openAttemptsOfAgent,
  updateAttempt,
} from './queries/attempts.ts';
import { runOfNum } from './queries/runs.ts';
import { isRunOver } from './rules/run.ts';
import { readOutput } from './step-io.ts';

const UNKNOWN = 'outcome unknown';

/** The outcomes of turns that ended too early, by the stop reasons of ACP. The agent's last message does not explain them. */
const cutTurns: ReadonlyMap<string | null, Outcome> = new Map<string | null, Outcome>([
  [null, { kind: 'failed', error_text: 'the agent answered with an error' }],
  ['cancelled', { kind: 'unknown', reason: 'the turn was cancelled' }],
  ['max_tokens', { kind: 'failed', error_text: 'the agent reached the maximum number of tokens' }],
  [
    'max_turn_requests',
    { kind: 'failed', error_text: 'the agent reached the maximum number of requests of a turn' },
  ],
]);

/** What was read of an attempt whose output had to be read first. */
interface Reading {
  outcome: Outcome;
  /** Why a part of the output is missing, for the agent's log. */
  incomplete?: string;
}

export class Outcomes {
  readonly #core: AgentCore;
  readonly #attempts: Attempts;
  readonly #publisher: Pick<RunPublisher, 'addAttention' | 'dropAttention'>;
  readonly #obstacles: Obstacles;

  constructor(
    core: AgentCore,
    attempts: Attempts,
    publisher: Pick<RunPublisher, 'addAttention' | 'dropAttention'>,
    obstacles: Obstacles,
  ) {
    this.#core = core;
    this.#attempts = attempts;
    this.#publisher = publisher;
    this.#obstacles = obstacles;
  }

  facts(): FactHandlers {
    return {
      session_started: async (tx, { payload }) => {
        await this.#showWaiting(tx, payload.agent_id, null);
        const attempt = await openPlainAttempt(tx, payload.session_id);
        if (attempt) await this.#attempts.started(tx, attempt);
      },
      session_refused: async (tx, { payload: { session_id, agent_id, error } }) => {
        const attempt = await openPlainAttempt(tx, session_id);
        const failed = { kind: 'failed', error_text: error } as const;
        if (attempt) await this.#attempts.end(tx, attempt.num, failed);
        await this.#endPrompts(tx, agent_id, error);
      },
      session_ended: async (tx, { payload }) => {
        await this.#showWaiting(tx, payload.agent_id, null);
        await this.#endAttempts(tx, payload);
      },
      acp_failed: (tx, { payload: { agent_id, error } }) =>
        this.#endPrompts(tx, agent_id, error.slice(0, limits.step_error_chars_max)),
      acp_waits: (tx, { payload: { agent_id, reason } }) => this.#showWaiting(tx, agent_id, reason),
      session_ready: (tx, { payload: { agent_id } }) => this.#showWaiting(tx, agent_id, null),
      turn_began: async (tx, { payload: { session_id, prompt_id } }) => {
        const attempt = await attemptOfPrompt(tx, prompt_id);
        if (!attempt) return;
        updateAttempt(tx, attempt.num, { session_id });
        await this.#attempts.started(tx, attempt);
      },
      turn_ended: (tx, { payload }) => this.#turnEnded(tx, payload),
      prompt_removed: async (tx, { payload: { prompt_id } }) => {
        const attempt = await attemptOfPrompt(tx, prompt_id);
        const reason = 'its prompt was removed';
        if (attempt) await this.#attempts.end(tx, attempt.num, { kind: 'unknown', reason });
      },
    };
  }

  /** Enqueues the reading of the output in the session's folder, which is about to be deleted. */
  async collectOutput(tx: Tx, session_id: string, exit: Exit): Promise<void> {
    const attempt = await openPlainAttempt(tx, session_id);
    const session = (await findSession(tx, session_id))!;
    if (!attempt || exit.exit_code !== 0 || session.stopping === 1) return;
    const { node_id } = session;
    const payload = { attempt_num: attempt.num };
    await this.#core.outbox.enqueue(tx, node_id, session_id, 'collect', payload);
  }

  intents(): Pick<IntentHandlers, 'collect' | 'collect_message' | 'collect_failure'> {
    return {
      collect: async (intent) => {
        const { lane: session_id, node_id } = intent;
        await this.#end(intent, async ({ agent_id }) => {
          const left = await this.#stepOutput(node_id, session_id);
          if (left) return { outcome: { kind: 'completed', output: readOutput(left) } };
          const { bytes, missing } = await lastStdout(this.#core.events, agent_id, session_id);
          const outcome: Outcome = { kind: 'completed', output: readOutput(bytes) };
          if (missing === null) return { outcome };
          const incomplete = `the step ends with the part of its output that can be read: ${missing}`;
          return { outcome, incomplete };
        });
        failpoint('step_collected');
      },
      collect_message: async (intent) => {
        const { prompt_id } = intent.payload;
        await this.#end(intent, async ({ agent_id }) => {
          const output = await lastMessage(this.#core.events, agent_id, prompt_id);
          return { outcome: { kind: 'completed', output } };
        });
        failpoint('step_message_collected');
      },
      collect_failure: async (intent) => {
        const { prompt_id, error_text } = intent.payload;
        await this.#end(intent, async ({ agent_id }) => {
          const message = await lastMessage(this.#core.events, agent_id, prompt_id);
          return { outcome: withCause({ kind: 'failed', error_text }, message && excerpt(message)) };
        });
      },
    };
  }

  /** Ends an attempt whose output must be read first. If the output can never be read, the attempt fails. */
  async #end(
    intent: Intent<'collect' | 'collect_message' | 'collect_failure'>,
    read: (attempt: Attempt) => Promise<Reading>,
  ): Promise<void> {
    const { store, outbox, records } = this.#core;
    const { attempt_num } = intent.payload;
    const attempt = await store.read((reader) => attemptOfNum(reader, attempt_num));
    if (!attempt || attempt.ended) return;
    const { outcome, incomplete } = await read(attempt).catch(async (error: unknown): Promise<Reading> => {
      if (isTemporary(error)) {
        await this.#obstacles.show(intent, 'its output cannot be read yet', error);
        throw error;
      }
      const reason = (error as Problem).message;
      return { outcome: { kind: 'failed', error_text: `its output cannot be read: ${reason}`, final: true } };
    });
    await store.write(async (tx) => {
      // In the same transaction, because the intent may be repeated.
      if (incomplete !== undefined)
        await records.logError(tx, attempt.agent_id, intent.lane, 'output_incomplete', incomplete);
      await this.#attempts.end(tx, attempt_num, outcome);
      await outbox.complete(tx, intent);
    });
  }

  /**
   * Shows on the run why one of its agents accepts no prompts. `reason` is null if the agent accepts prompts or has ended.
   */
  async #showWaiting(tx: Tx, agent_id: string, reason: string | null): Promise<void> {
    const agent = await findAgent(tx, agent_id);
    const run = agent && agent.run_num !== null ? await runOfNum(tx, agent.run_num) : undefined;
    if (!run) return;
    const about = `${memberActorId(agent!.member_id!, run.team_id)}: `;
    const isAbout = (other: string) => other.startsWith(about);
    if (reason === null || isRunOver(run)) return this.#publisher.dropAttention(tx, run, isAbout);
    await this.#publisher.addAttention(tx, run, about + reason, isAbout);
  }

  /** Null if the session left no output file, or the node no longer knows the session. */
  async #stepOutput(node_id: string, session_id: string): Promise<Uint8Array | null> {
    const missing_codes: string[] = [problems.sessionNotFound().code, problems.nodeNotFound().code];
    try {
      return await this.#core.nodes
        .get(node_id)
        .stepOutput(session_id, sharedLimits.step_output_bytes_max + 1);
    } catch (error) {
      if (error instanceof Problem && missing_codes.includes(error.code)) return null;
      throw error;
    }
  }

  /** Ends the attempts that a session leaves open. An attempt whose output must be read stays open until it is. */
  async #endAttempts(
    tx: Tx,
    { agent_id, session_id, status, message }: FactPayloads['session_ended'],
  ): Promise<void> {
    const attempt = await openPlainAttempt(tx, session_id);
    const session = await findSession(tx, session_id);
    if (attempt) {
      // The intent `collect` reads the output and then ends the attempt.
      if (status === 'completed') return;
      if (message === START_INTERRUPTED) await this.#attempts.reassign(tx, attempt);
      else {
        const why = session && (await lastErrorLines(tx, session));
        await this.#attempts.end(
          tx,
          attempt.num,
          withCause(toOutcome(session, status, message ?? null), why),
        );
      }
      return;
    }
    const agent = await findAgent(tx, agent_id);
    for (const { num, prompt_id } of await openAttemptsOfAgent(tx, agent_id)) {
      if (prompt_id === null) continue;
      const prompt = agent && (await findPrompt(tx, agent.num, prompt_id));
      // A prompt that the agent's next session received was not lost with this session.
      const was_sent_here = prompt?.session_num === session?.num;
      const lost = !prompt || (was_sent_here && (prompt.state === 'sent' || prompt.state === 'lost'));
      if (lost) await this.#attempts.end(tx, num, { kind: 'unknown', reason: UNKNOWN });
    }
    // The agent's next session receives the queued prompts.
    if (agent?.session_id !== session_id) return;
    await this.#endPrompts(tx, agent_id, message === START_INTERRUPTED ? null : 'its agent ended before');
  }

  /**
   * Ends the attempts whose prompts the agent will not receive. The agent has not started work on them, so without an error
   * (`error_text` null) they are assigned to it again.
   */
  async #endPrompts(tx: Tx, agent_id: string, error_text: string | null): Promise<void> {
    const agent = await findAgent(tx, agent_id);
    if (!agent) return;
    for (const attempt of await openAttemptsOfAgent(tx, agent_id)) {
      const { prompt_id } = attempt;
      const prompt = prompt_id === null ? undefined : await findPrompt(tx, agent.num, prompt_id);
      if (prompt?.state !== 'queued') continue;
      if (error_text === null) {
        await this.#attempts.reassign(tx, attempt);
        continue;
      }
      await deletePrompt(tx, prompt.num);
      await this.#attempts.end(tx, attempt.num, { kind: 'failed', error_text });
    }
  }

  async #turnEnded(
    tx: Tx,
    { session_id, prompt_id, stop_reason }: FactPayloads['turn_ended'],
  ): Promise<void> {
    const attempt = await attemptOfPrompt(tx, prompt_id);
    if (!attempt || attempt.ended) return;
    const outcome = cutTurns.get(stop_reason);
    if (outcome) return this.#attempts.end(tx, attempt.num, outcome);
    const { outbox } = this.#core;
    const turn = { attempt_num: attempt.num, prompt_id };
    const node_id = (await findSession(tx, session_id))?.node_id ?? '';
    if (stop_reason === 'end_turn') {
      await outbox.enqueue(tx, node_id, session_id, 'collect_message', turn);
      return;
    }
    // An agent usually says why it does not continue.
    const error_text = stop_reason === 'refusal' ? 'the agent refused' : `the turn ended: ${stop_reason}`;
    await outbox.enqueue(tx, node_id, session_id, 'collect_failure', { ...turn, error_text });
  }
}

/** The attempt for which the session of a plain agent was started, unless it has ended. */
async function openPlainAttempt(reader: Reader, session_id: string): Promise<Attempt | undefined> {
  const found = await attemptsOfSession(reader, session_id);
  return found.findLast(({ ended, prompt_id }) => !ended && prompt_id === null);
}

/** What the session wrote last to stderr; empty if it wrote nothing. */
async function lastErrorLines(reader: Reader, { num: session_num, agent_num }: SessionRow): Promise<string> {
  const of = { agent_num, session_num, stream: 'stderr' } as const;
  const lines = (await lastOutputText(reader, of, limits.step_error_lines))
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '');
  return lines.slice(-limits.step_error_lines).join('\n').slice(-limits.step_error_excerpt_chars);
}

/** Adds the last lines of stderr, or the agent's last message, to the error of a failed attempt. */
function withCause(outcome: Outcome, cause: string | null | undefined): Outcome {
  if (outcome.kind !== 'failed' || !cause) return outcome;
  return { ...outcome, error_text: `${outcome.error_text}: ${cause}`.slice(0, limits.step_error_chars_max) };
}

/** The start of a message. */
function excerpt(message: string): string {
  const text = message.trim();
  const shown = truncateText(text, limits.step_error_excerpt_chars);
  return shown === text ? text : `${shown}…`;
}

/** The outcome of a session that did not complete. */
function toOutcome(session: SessionRow | undefined, status: string, message: string | null): Outcome {
  if (status === 'cancelled') return { kind: 'unknown', reason: 'its agent was stopped' };
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
      return { kind: 'unknown', reason: UNKNOWN };
  }
}
