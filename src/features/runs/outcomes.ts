/**
 * Determines the outcomes of assignments from facts about the sessions and turns of a run's agents. If an outcome depends on
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
import type { Assignments, Outcome } from './assignments.ts';
import { lastMessage } from './last-message.ts';
import { lastStdout } from './last-stdout.ts';
import { limits } from './limits.ts';
import type { Obstacles } from './obstacles.ts';
import type { RunPublisher } from './publisher.ts';
import {
  type Assignment,
  assignmentOfNum,
  assignmentOfPrompt,
  assignmentsOfSession,
  openAssignmentsOfAgent,
  updateAssignment,
} from './queries/assignments.ts';
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

/** The outcome of an assignment whose output had to be read first. */
interface Reading {
  outcome: Outcome;
  /** Why a part of the output is missing, for the agent's log. */
  incomplete?: string;
}

export class Outcomes {
  readonly #core: AgentCore;
  readonly #assignments: Assignments;
  readonly #publisher: Pick<RunPublisher, 'addAttention' | 'dropAttention'>;
  readonly #obstacles: Obstacles;

  constructor(
    core: AgentCore,
    assignments: Assignments,
    publisher: Pick<RunPublisher, 'addAttention' | 'dropAttention'>,
    obstacles: Obstacles,
  ) {
    this.#core = core;
    this.#assignments = assignments;
    this.#publisher = publisher;
    this.#obstacles = obstacles;
  }

  facts(): FactHandlers {
    return {
      session_started: async (tx, { payload }) => {
        await this.#showWaiting(tx, payload, null);
        const assignment = await openPlainAssignment(tx, payload.session_id);
        if (assignment) await this.#assignments.started(tx, assignment);
      },
      session_refused: async (tx, { payload }) => {
        const { session_id, agent_id, error } = payload;
        await this.#showWaiting(tx, payload, null);
        const assignment = await openPlainAssignment(tx, session_id);
        const failed = { kind: 'failed', error_text: error } as const;
        if (assignment) await this.#assignments.end(tx, assignment.num, failed);
        await this.#endQueued(tx, agent_id, error);
      },
      session_ended: (tx, { payload }) => this.#sessionEnded(tx, payload),
      acp_failed: (tx, { payload: { agent_id, error } }) =>
        this.#endQueued(tx, agent_id, error.slice(0, limits.step_error_chars_max)),
      acp_waits: (tx, { payload }) => this.#showWaiting(tx, payload, payload.reason),
      session_ready: (tx, { payload }) => this.#showWaiting(tx, payload, null),
      turn_began: async (tx, { payload: { session_id, prompt_id } }) => {
        const assignment = await assignmentOfPrompt(tx, prompt_id);
        if (!assignment) return;
        updateAssignment(tx, assignment.num, { session_id });
        await this.#assignments.started(tx, assignment);
      },
      turn_ended: (tx, { payload }) => this.#turnEnded(tx, payload),
      prompt_removed: async (tx, { payload: { prompt_id } }) => {
        const assignment = await assignmentOfPrompt(tx, prompt_id);
        const reason = 'its prompt was removed';
        if (assignment) await this.#assignments.end(tx, assignment.num, { kind: 'unknown', reason });
      },
    };
  }

  /** Enqueues the reading of the output in the session's folder, which is about to be deleted. */
  async collectOutput(tx: Tx, session_id: string, exit: Exit): Promise<void> {
    const assignment = await openPlainAssignment(tx, session_id);
    const session = (await findSession(tx, session_id))!;
    if (!assignment || exit.exit_code !== 0 || session.stopping === 1) return;
    const { node_id } = session;
    const payload = { assignment_num: assignment.num };
    await this.#core.outbox.enqueue(tx, node_id, session_id, 'collect', payload);
  }

  intents(): Pick<IntentHandlers, 'collect' | 'collect_message' | 'collect_failure'> {
    return {
      collect: async (intent) => {
        const { lane: session_id, node_id } = intent;
        await this.#endAfterReading(intent, async ({ agent_id }) => {
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
        await this.#endAfterReading(intent, async ({ agent_id }) => {
          const output = await lastMessage(this.#core.events, agent_id, prompt_id);
          return { outcome: { kind: 'completed', output } };
        });
        failpoint('step_message_collected');
      },
      collect_failure: async (intent) => {
        const { prompt_id, error_text } = intent.payload;
        await this.#endAfterReading(intent, async ({ agent_id }) => {
          const message = await lastMessage(this.#core.events, agent_id, prompt_id);
          return { outcome: withCause({ kind: 'failed', error_text }, message && excerpt(message)) };
        });
      },
    };
  }

  /** Ends an assignment whose output must be read first. If the output can never be read, it fails. */
  async #endAfterReading(
    intent: Intent<'collect' | 'collect_message' | 'collect_failure'>,
    read: (assignment: Assignment) => Promise<Reading>,
  ): Promise<void> {
    const { store, outbox, records } = this.#core;
    const { assignment_num } = intent.payload;
    const assignment = await store.read((reader) => assignmentOfNum(reader, assignment_num));
    if (!assignment || assignment.ended) return;
    const { outcome, incomplete } = await read(assignment).catch(async (error: unknown): Promise<Reading> => {
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
        await records.logError(tx, assignment.agent_id, intent.lane, 'output_incomplete', incomplete);
      await this.#assignments.end(tx, assignment_num, outcome);
      await outbox.complete(tx, intent);
    });
  }

  /**
   * Shows on the run why one of its agents cannot start, or accepts no prompts. `reason` is null if it has started, accepts
   * prompts or has ended.
   */
  async #showWaiting(
    tx: Tx,
    { agent_id, session_id }: { agent_id: string; session_id: string },
    reason: string | null,
  ): Promise<void> {
    const agent = await findAgent(tx, agent_id);
    const run = agent && agent.run_num !== null ? await runOfNum(tx, agent.run_num) : undefined;
    if (!run) return;
    // A member has a plain agent for each of its steps.
    const assignment = await openPlainAssignment(tx, session_id);
    if (assignment && reason === null) return this.#obstacles.clear(tx, run, assignment);
    if (assignment && !isRunOver(run)) return this.#obstacles.put(tx, run, assignment, reason!);
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

  async #sessionEnded(tx: Tx, end: FactPayloads['session_ended']): Promise<void> {
    await this.#showWaiting(tx, end, null);
    const assignment = await openPlainAssignment(tx, end.session_id);
    if (assignment) await this.#endPlain(tx, assignment, end);
    else await this.#endPrompted(tx, end);
  }

  /** Ends the assignment of a plain agent's session. */
  async #endPlain(
    tx: Tx,
    assignment: Assignment,
    { session_id, status, message = null }: FactPayloads['session_ended'],
  ): Promise<void> {
    // The intent `collect` reads the output and then ends the assignment.
    if (status === 'completed') return;
    if (message === START_INTERRUPTED) return this.#assignments.reassign(tx, assignment);
    const session = await findSession(tx, session_id);
    const cause = session && (await lastErrorLines(tx, session));
    await this.#assignments.end(tx, assignment.num, withCause(toOutcome(session, status, message), cause));
  }

  /** Ends the assignments whose prompts the session has received, or that no later session will receive. */
  async #endPrompted(
    tx: Tx,
    { agent_id, session_id, message }: FactPayloads['session_ended'],
  ): Promise<void> {
    const agent = await findAgent(tx, agent_id);
    const session = await findSession(tx, session_id);
    for (const { num, prompt_id } of await openAssignmentsOfAgent(tx, agent_id)) {
      if (prompt_id === null) continue;
      const prompt = agent && (await findPrompt(tx, agent.num, prompt_id));
      // A prompt that the agent's next session received was not lost with this session.
      const was_sent_here = prompt?.session_num === session?.num;
      const lost = !prompt || (was_sent_here && (prompt.state === 'sent' || prompt.state === 'lost'));
      if (lost) await this.#assignments.end(tx, num, { kind: 'unknown', reason: UNKNOWN });
    }
    // The agent's next session receives the queued prompts.
    if (agent?.session_id !== session_id) return;
    await this.#endQueued(tx, agent_id, message === START_INTERRUPTED ? null : 'its agent ended before');
  }

  /**
   * Ends the assignments whose prompts the agent will not receive. The agent has not started work on them, so without an error
   * (`error_text` null) it gets them again.
   */
  async #endQueued(tx: Tx, agent_id: string, error_text: string | null): Promise<void> {
    const agent = await findAgent(tx, agent_id);
    if (!agent) return;
    for (const assignment of await openAssignmentsOfAgent(tx, agent_id)) {
      const { prompt_id } = assignment;
      const prompt = prompt_id === null ? undefined : await findPrompt(tx, agent.num, prompt_id);
      if (prompt?.state !== 'queued') continue;
      if (error_text === null) {
        await this.#assignments.reassign(tx, assignment);
        continue;
      }
      await deletePrompt(tx, prompt.num);
      await this.#assignments.end(tx, assignment.num, { kind: 'failed', error_text });
    }
  }

  async #turnEnded(
    tx: Tx,
    { session_id, prompt_id, stop_reason }: FactPayloads['turn_ended'],
  ): Promise<void> {
    const assignment = await assignmentOfPrompt(tx, prompt_id);
    if (!assignment || assignment.ended) return;
    const outcome = cutTurns.get(stop_reason);
    if (outcome) return this.#assignments.end(tx, assignment.num, outcome);
    const { outbox } = this.#core;
    const turn = { assignment_num: assignment.num, prompt_id };
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

/** The assignment for which the session of a plain agent was started, unless it has ended. */
async function openPlainAssignment(reader: Reader, session_id: string): Promise<Assignment | undefined> {
  const found = await assignmentsOfSession(reader, session_id);
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

/** Adds the last lines of stderr, or the agent's last message, to the error of a failed assignment. */
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
