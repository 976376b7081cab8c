/**
 * Decides to start and stop agents. Each decision is one transaction that writes rows and an intent. `session-dispatch.ts`
 * carries out the intent on the node, and the reconciler applies what the node reports. After a crash, the rows and intents
 * continue.
 */
import { sleep } from '../../base/async.ts';
import { newId } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { StopReport } from '../../core/node.ts';
import { agentProcessesSurvived, problems } from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { IntentPayloads } from '../../work/outbox.ts';
import { type AgentCore, auditAgent, type Principal } from './core.ts';
import { limits } from './limits.ts';
import { hasState, nothingPending, type PendingState, toColumns } from './pending-state.ts';
import {
  type AgentRow,
  deleteSession,
  findSession,
  insertSession,
  listSessions,
  type SessionRow,
  updateAgent,
  updateSession,
} from './queries/agents.ts';
import { insertForgotten } from './queries/forgotten.ts';
import { isLive } from './records.ts';

/** A stop in progress. */
interface Stop {
  /** Resolves to the id of its intent once it is stored. */
  stored: Promise<number>;
  /** The node's answer. */
  report: Promise<StopReport>;
}

export class Lifecycle {
  readonly #core: AgentCore;
  /** By session, so that a second stop joins the first. */
  readonly #stops = new Map<string, Stop>();

  constructor(core: AgentCore) {
    this.#core = core;
  }

  /**
   * Inserts a session and the intent to start it. `keyed_id`: an id for the session, derived from an idempotency key; used
   * unless an earlier session has it. For starts that nobody waits for: with `waits`, the start waits while the node refuses it
   * for a reason that may pass; with `logs`, a refusal is recorded in the agent's log. Throws `agent is already running`,
   * `agent is being deleted`, `agents_stopping` and `no_local_node`.
   */
  async enqueueStart(
    tx: Tx,
    row: AgentRow,
    principal: Principal,
    { keyed_id, ...payload }: { keyed_id?: string | undefined } & IntentPayloads['start'] = {},
  ): Promise<{ session_id: string; intent_id: number }> {
    if (isLive(row)) throw problems.agentAlreadyRunning();
    if (this.#core.starts.active) throw problems.agentsStopping();
    if (this.#core.deleting.has(row.id)) throw problems.agentBeingDeleted();
    const { outbox, timers, nodes } = this.#core;
    // Throws if agents can no longer run there.
    nodes.choose(row.node_id);
    const is_free = keyed_id !== undefined && !(await findSession(tx, keyed_id));
    const session_id = is_free ? keyed_id : newId('ses');
    const now = this.#core.clock.now();
    const number = row.session_count + 1;
    await insertSession(tx, {
      id: session_id,
      agent_num: row.num,
      node_id: row.node_id,
      number,
      state: 'starting',
      created_at: now,
      protocol: row.protocol === 'acp' ? 'acp' : 'plain',
      first_seq: (row.last_seq ?? 0) + 1,
      stopping: 0,
      fact: 0,
      stdin_bytes: 0,
    });
    const activity = row.protocol === 'acp' ? 'starting' : null;
    updateAgent(tx, row.num, {
      session_id,
      session_count: number,
      activity,
      sign_in_since: null,
      ...nothingPending,
      updated_at: now,
    });
    await timers.clear(tx, 'agent_restart', row.id);
    await auditAgent(this.#core, tx, 'agent_started', row, principal, { session_id });
    return { session_id, intent_id: await outbox.enqueue(tx, row.node_id, session_id, 'start', payload) };
  }

  /** Records the intent to stop a running agent, and returns its id. `then`: the state afterwards. Throws `agent is not running`. */
  async enqueueStop(
    tx: Tx,
    row: AgentRow,
    principal: Principal,
    grace_ms: number,
    then: PendingState = { is: 'nothing' },
  ): Promise<number> {
    const session_id = liveSessionId(row);
    await this.#core.session.beforeStop(tx, session_id);
    updateSession(tx, (await findSession(tx, session_id))!.num, { stopping: 1 });
    updateAgent(tx, row.num, toColumns(then));
    await auditAgent(this.#core, tx, 'agent_stopped', row, principal, { session_id });
    return this.#core.outbox.enqueue(tx, row.node_id, session_id, 'stop', { grace_ms });
  }

  /**
   * Starts an agent and waits until its process runs or has failed, at most `limits.status_wait_ms` after the node's answer.
   * `keyed_id`: derived from an idempotency key; a repetition waits for the same session. `restart`: the restart that
   * `stopAndWait` has stored; throws `agent is not running` if a later request has replaced it. Throws `node_unreachable` if
   * the node stops answering; the intent is kept.
   */
  async startAndWait(
    find: (reader: Reader) => Promise<AgentRow>,
    principal: Principal,
    keyed_id?: string,
    restart: string | null = null,
  ): Promise<void> {
    const begun = await this.#core.store.write(async (tx) => {
      const row = await find(tx);
      const { node_id } = row;
      const join = (session_id: string) => ({ node_id, session_id, intent_id: null });
      if (keyed_id !== undefined && (await this.isRepeated(tx, keyed_id))) return join(keyed_id);
      if (await this.hasStalledStart(tx, row)) return join(row.session_id!);
      if (restart !== null && row.pending_request !== restart && !isLive(row))
        throw problems.agentNotRunning();
      updateAgent(tx, row.num, { restart_count: 0 });
      return { node_id, ...(await this.enqueueStart(tx, row, principal, { keyed_id })) };
    });
    const { outbox } = this.#core;
    if (begun.intent_id === null) outbox.retryNow(begun.node_id);
    else await this.whileReachable(begun.node_id, outbox.outcome(begun.intent_id));
    await this.whileReachable(
      begun.node_id,
      this.#core.waits.until(
        begun.session_id,
        async (reader) => !(await isStarting(reader, begun.session_id)),
        limits.status_wait_ms,
      ),
    );
  }

  /**
   * Stops all processes of the agent, and waits until they are gone and the last byte is committed. `grace_ms`: between TERM
   * and KILL. `then`: the state that is stored with the stop. It replaces that of a restart that waits for the same stop.
   * Throws `agent is not running`, and `agent_processes_survived` if a process cannot be ended.
   */
  async stopAndWait(
    find: (reader: Reader) => Promise<AgentRow>,
    principal: Principal,
    grace_ms: number,
    then: PendingState = { is: 'nothing' },
  ): Promise<void> {
    const { store } = this.#core;
    const row = await store.read(find);
    const replaceRestart = () => store.write(async (tx) => this.#replaceRestart(tx, await find(tx), then));
    if (!isLive(row) && row.pending_request !== null && (await replaceRestart())) return;
    const session_id = liveSessionId(row);
    const joined = this.#stops.get(session_id);
    const stop = joined ?? this.#stopOnNode(find, principal, grace_ms, session_id, then);
    if (joined !== undefined) {
      // Otherwise, the earlier request could be stored last, and win.
      await joined.stored;
      await replaceRestart();
    }
    const { survivors } = await this.whileReachable(row.node_id, stop.report);
    if (survivors.length > 0) throw agentProcessesSurvived(survivors);
    await this.whileReachable(row.node_id, this.waitUntilEnded(session_id, limits.status_wait_ms));
  }

  #stopOnNode(
    find: (reader: Reader) => Promise<AgentRow>,
    principal: Principal,
    grace_ms: number,
    session_id: string,
    then: PendingState,
  ): Stop {
    const { store, outbox } = this.#core;
    const stored = store.write(async (tx) => {
      const row = await find(tx);
      if (liveSessionId(row) !== session_id) throw problems.agentNotRunning();
      return this.enqueueStop(tx, row, principal, grace_ms, then);
    });
    const report = stored
      .then((intent_id) => outbox.outcome(intent_id) as Promise<StopReport>)
      .finally(() => this.#stops.delete(session_id));
    const stop = { stored, report };
    this.#stops.set(session_id, stop);
    return stop;
  }

  /** Nothing or restarting ──▶ `then`. Returns whether the state changed. */
  #replaceRestart(tx: Tx, row: AgentRow, then: PendingState): boolean {
    if (row.pending !== null || hasState(row, then)) return false;
    updateAgent(tx, row.num, toColumns(then));
    return true;
  }

  /** Resolves to whether the session ends within the time. */
  waitUntilEnded(session_id: string, timeout_ms: number): Promise<boolean> {
    return this.#core.waits.until(session_id, (reader) => hasEnded(reader, session_id), timeout_ms);
  }

  /** Waits for work on a node while the node answers. Throws `node_unreachable` once it does not; the work continues. */
  async whileReachable<T>(node_id: string, work: Promise<T>): Promise<T> {
    // Handles its rejection if nobody waits for it any longer.
    work.catch(() => {});
    const node = this.#core.nodes.get(node_id);
    const done = new AbortController();
    const watch = async (): Promise<never> => {
      for (;;) {
        await sleep(limits.node_answer_poll_ms, done.signal);
        if (done.signal.aborted) return new Promise(() => {});
        await node.reach();
      }
    };
    try {
      return await Promise.race([work, watch()]);
    } finally {
      done.abort();
    }
  }

  /** Whether the session of an idempotency key was created within the key's lifetime, so the request is a repetition. */
  async isRepeated(reader: Reader, keyed_id: string): Promise<boolean> {
    const session = await findSession(reader, keyed_id);
    return (
      session !== undefined && session.created_at > this.#core.clock.now() - sharedLimits.idempotency_keep_ms
    );
  }

  /**
   * Whether the intent to start or stop the agent's session is pending or in progress. The intent of a start may remain for
   * a moment after the node has reported that the session runs.
   */
  async isUnanswered(reader: Reader, row: AgentRow, kind: 'start' | 'stop'): Promise<boolean> {
    const may_be = kind === 'start' ? row.session_state === 'starting' : isLive(row);
    return may_be && (await this.#core.outbox.isPending(reader, row.session_id!, kind));
  }

  /** Whether the agent's node does not answer its start. Other requests to start it join this one. */
  async hasStalledStart(reader: Reader, row: AgentRow): Promise<boolean> {
    return row.pending !== null && (await this.isUnanswered(reader, row, 'start'));
  }

  /** Withdraws the intent to start or stop the agent's session, if its node has not answered it. */
  async withdrawIntent(tx: Tx, row: AgentRow, kind: 'start' | 'stop'): Promise<void> {
    if (!(await this.isUnanswered(tx, row, kind))) return;
    const { outbox, clock } = this.#core;
    const session = (await findSession(tx, row.session_id!))!;
    const { id, node_id } = session;
    if (kind === 'stop') {
      await outbox.withdraw(tx, id, ['stop']);
      updateSession(tx, session.num, { stopping: 0, stopped_by_run: null });
      return;
    }
    await outbox.withdraw(tx, id, ['start', 'stop', 'input']);
    // If the start has reached the node, the session is ended there as soon as the node reports it.
    await insertForgotten(tx, { id, agent_id: row.id, node_id, created_at: clock.now() });
    await this.undoStart(tx, row, session, 'the start was withdrawn');
  }

  /** Restores the agent's row as it was before the session was created, and deletes the session. `error`: why it did not start. */
  async undoStart(tx: Tx, row: AgentRow, session: SessionRow, error: string): Promise<void> {
    await deleteSession(tx, session.num);
    const [previous] = await listSessions(tx, row.num, { limit: 1 });
    updateAgent(tx, row.num, {
      session_id: previous?.id ?? null,
      activity: null,
      session_count: session.number - 1,
      ...nothingPending,
      updated_at: this.#core.clock.now(),
    });
    const refused = { agent_id: row.id, session_id: session.id, error };
    await this.#core.facts.record(tx, 'session_refused', session.id, refused);
    tx.wake('sessions', session.id);
  }
}

/** Whether the session's process has neither run nor failed. */
export async function isStarting(reader: Reader, session_id: string): Promise<boolean> {
  return (await findSession(reader, session_id))?.state === 'starting';
}

async function hasEnded(reader: Reader, session_id: string): Promise<boolean> {
  return ((await findSession(reader, session_id))?.state ?? 'ended') === 'ended';
}

function liveSessionId(row: AgentRow): string {
  if (row.session_id === null || row.session_state === null || row.session_state === 'ended')
    throw problems.agentNotRunning();
  return row.session_id;
}
