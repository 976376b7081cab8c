/**
 * Starting, stopping and restarting: each decision is one transaction that leaves rows and an intent; the outbox carries
 * the intent to the node, and the settlement tells what came of it. A crash anywhere leaves rows that go on.
 */

import { sleep } from '../../base/async.ts';
import { failpoint } from '../../base/failpoint.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { StopReport } from '../../domain/node.ts';
import { agentProcessesSurvived, isOutOfReach, Problem, problems } from '../../domain/problem.ts';
import type { IntentHandlers } from '../../flow/outbox.ts';
import type { Ingest } from '../../ingest/ingest.ts';
import {
  type AgentRow,
  deleteSession,
  findSession,
  insertSession,
  type SessionRow,
  sessionsOf,
  updateAgent,
  updateSession,
} from '../../store/agents.ts';
import { insertForgotten } from '../../store/forgotten.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { type AgentsContext, type Doer, isLive, nothingPending } from './context.ts';
import { permissionEnvOf } from './creation.ts';
import type { Settlement } from './settle.ts';

export class Lifecycle {
  readonly #context: AgentsContext;
  readonly #settlement: Settlement;
  readonly #ingest: (node_id: string) => Ingest | null;
  /** Stops under way, so that a second one joins the first. */
  readonly #stops = new Map<string, Promise<StopReport>>();

  constructor(context: AgentsContext, settlement: Settlement, ingest: (node_id: string) => Ingest | null) {
    this.#context = context;
    this.#settlement = settlement;
    this.#ingest = ingest;
  }

  /** Inside a transaction: a new session and the intent to start it. Throws when the agent runs. */
  begin(
    tx: Tx,
    row: AgentRow,
    doer: Doer,
    session_id = newId('ses'),
  ): { session_id: string; intent_id: number } {
    if (isLive(row)) throw problems.agentAlreadyRunning();
    const { outbox, timers } = this.#context.options;
    const now = this.#context.now();
    const number = row.session_count + 1;
    insertSession(tx, {
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
      ...nothingPending,
      updated_at: now,
    });
    timers.clear(tx, 'agent_restart', row.id);
    this.#audit(tx, 'agent_started', row, doer, { session_id });
    return { session_id, intent_id: outbox.enqueue(tx, row.node_id, session_id, 'start', {}) };
  }

  /**
   * Starts an agent and waits until its process is known to run, or its failure is settled. `session_id` is the one that
   * an idempotency key stands for. Throws `node_unreachable` when the node falls silent; the intent waits for it then.
   */
  async start(find: (reader: Reader) => AgentRow, doer: Doer, session_id?: string): Promise<void> {
    const spare = newId('ses');
    const begun = await this.#context.options.store.write((tx) => {
      const row = find(tx);
      const { node_id } = row;
      if (session_id !== undefined && this.isRepeated(tx, session_id))
        return { node_id, session_id, intent_id: null };
      // A start that its node has not answered is joined, not doubled.
      if (row.pending !== null && this.isUnanswered(tx, row, 'start'))
        return { node_id, session_id: row.session_id!, intent_id: null };
      updateAgent(tx, row.num, { restart_count: 0 });
      const fresh = session_id !== undefined && !findSession(tx, session_id) ? session_id : spare;
      return { node_id, ...this.begin(tx, row, doer, fresh) };
    });
    const { outbox } = this.#context.options;
    if (begun.intent_id === null) outbox.retryNow(begun.node_id);
    else await this.whileReachable(begun.node_id, outbox.outcome(begun.intent_id));
    await this.whileReachable(
      begun.node_id,
      this.#context.until(
        begun.session_id,
        (reader) => !isStarting(reader, begun.session_id),
        limits.settle_ms,
      ),
    );
  }

  /** Whether the intent to start or stop an agent's session is on its way, or waits for its node to be back. */
  isUnanswered(reader: Reader, row: AgentRow, kind: 'start' | 'stop'): boolean {
    return isLive(row) && this.#context.options.outbox.waits(reader, row.session_id!, kind);
  }

  /** Whether the session of a key was begun within the key's day: the same request was carried out before. */
  isRepeated(reader: Reader, session_id: string): boolean {
    const session = findSession(reader, session_id);
    return session !== undefined && session.created_at > this.#context.now() - limits.idempotency_keep_ms;
  }

  /** Stops the whole tree and waits until it is gone and the last byte is committed. Throws when something survives. */
  async stop(find: (reader: Reader) => AgentRow, doer: Doer, grace_ms: number): Promise<void> {
    const { store } = this.#context.options;
    const row = await store.read(find);
    const session_id = liveSession(row);
    let stop = this.#stops.get(session_id);
    if (!stop) {
      stop = this.#beginStop(find, doer, grace_ms, session_id).finally(() => this.#stops.delete(session_id));
      this.#stops.set(session_id, stop);
    }
    const { survivors } = await this.whileReachable(row.node_id, stop);
    if (survivors.length > 0) throw agentProcessesSurvived(survivors);
    await this.whileReachable(row.node_id, this.untilOver(session_id, limits.settle_ms));
  }

  /** Stops an agent that runs, and starts it. One that ended by itself meanwhile, or a repeated request, needs no stop. */
  async restart(
    find: (reader: Reader) => AgentRow,
    doer: Doer,
    grace_ms: number,
    session_id?: string,
  ): Promise<void> {
    const stands = await this.#context.options.store.read((reader) => {
      const row = find(reader);
      const repeated = session_id !== undefined && this.isRepeated(reader, session_id);
      const starts = row.pending !== null && this.isUnanswered(reader, row, 'start');
      return !isLive(row) || repeated || starts;
    });
    if (!stands) await this.stop(find, doer, grace_ms).catch(unlessNotRunning);
    await this.start(find, doer, session_id);
  }

  /** Whether a session is over within the time. */
  untilOver(session_id: string, timeout_ms: number): Promise<boolean> {
    return this.#context.until(session_id, (reader) => isOver(reader, session_id), timeout_ms);
  }

  /**
   * Inside a transaction: takes back a start that its node has not answered. The agent is as it was before; should the node have
   * it all the same, it is ended there once that shows.
   */
  takeBackStart(tx: Tx, row: AgentRow): void {
    const session = findSession(tx, row.session_id!)!;
    this.#context.options.outbox.withdraw(tx, session.id, ['start', 'stop', 'input']);
    insertForgotten(tx, {
      id: session.id,
      agent_id: row.id,
      node_id: session.node_id,
      created_at: this.#context.now(),
    });
    this.#undo(tx, row, session, 'the start was withdrawn');
  }

  /** Inside a transaction: takes back a stop that its node has not answered. */
  takeBackStop(tx: Tx, row: AgentRow): void {
    this.#context.options.outbox.withdraw(tx, row.session_id!, ['stop']);
    updateSession(tx, findSession(tx, row.session_id!)!.num, { stopping: 0 });
  }

  async #beginStop(
    find: (reader: Reader) => AgentRow,
    doer: Doer,
    grace_ms: number,
    session_id: string,
  ): Promise<StopReport> {
    const { store, outbox } = this.#context.options;
    const intent_id = await store.write((tx) => {
      const row = find(tx);
      if (liveSession(row) !== session_id) throw problems.agentNotRunning();
      return this.end(tx, row, doer, grace_ms);
    });
    return (await outbox.outcome(intent_id)) as StopReport;
  }

  /** Inside a transaction: the intent to stop an agent that runs; answers its id. */
  end(tx: Tx, row: AgentRow, doer: Doer, grace_ms: number): number {
    const session_id = liveSession(row);
    this.#context.options.farewell(tx, session_id);
    updateSession(tx, findSession(tx, session_id)!.num, { stopping: 1 });
    updateAgent(tx, row.num, nothingPending);
    this.#audit(tx, 'agent_stopped', row, doer, { session_id });
    return this.#context.options.outbox.enqueue(tx, row.node_id, session_id, 'stop', { grace_ms });
  }

  /** How intents reach the node. */
  handlers(): Pick<IntentHandlers, 'start' | 'stop' | 'input' | 'forget'> {
    return {
      start: (intent) => this.#dispatchStart(intent.session_id),
      stop: (intent) => this.#dispatchStop(intent.session_id, intent.payload.grace_ms),
      input: async ({ session_id, payload }) => {
        const session = await this.#liveSession(session_id);
        if (!session) throw problems.agentNotRunning();
        const node = this.#context.node(session.node_id);
        const data = Buffer.from(payload.data, 'base64');
        const length = await node.input(session_id, payload.offset, data, payload.eof);
        failpoint('stdin_written');
        return length;
      },
      forget: async ({ node_id, session_id }) => {
        try {
          await this.#context.node(node_id).forget(session_id);
        } catch (error) {
          if (!isUnknownSession(error)) throw error;
        }
      },
    };
  }

  async #dispatchStart(session_id: string): Promise<void> {
    const starting = await this.#liveSession(session_id);
    if (starting && !starting.stopping) await this.#reach(starting, 'start');
    const found = await this.#context.options.store.read((reader) => {
      const session = findSession(reader, session_id);
      // A stop was accepted before the node heard of the start: the stop's own intent settles it.
      return session?.state === 'starting' && !session.stopping
        ? {
            session,
            agent: this.#context.mustFind(reader, session.agent_id),
            errand: this.#context.options.errand(reader, session_id),
          }
        : null;
    });
    if (!found) return;
    const { session, agent, errand } = found;
    const node = this.#context.node(agent.node_id);
    const actor_token = this.#context.options.actorToken(session_id);
    try {
      const view = await node.start({
        session_id,
        plane_id: this.#context.options.plane_id,
        agent_id: agent.id,
        agent_name: agent.name,
        owner_id: agent.owner_id,
        workdir: agent.workdir,
        preset: agent.preset,
        argv: agent.argv === null ? ['/bin/sh', '-c', agent.command] : JSON.parse(agent.argv),
        env: { ...permissionEnvOf(agent), ...JSON.parse(agent.env), ...errand.env },
        stdin: agent.stdin === 1,
        on_exit: agent.on_exit as 'kill' | 'keep',
        ...(actor_token !== null && { actor_token }),
        ...(errand.step_input !== null && { step_input: errand.step_input }),
      });
      this.#ingest(agent.node_id)?.follow(session_id, view.facts);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.kind === 'invalid') {
        const exit = {
          exit_code: null,
          exit_signal: null,
          reason: 'workdir_refused',
          message: error.message,
        } as const;
        return this.#settlement.settleWithoutProcess(session_id, exit);
      }
      if (isOutOfReach(error)) await this.#markPending(session, 'start');
      else await this.#undoStart(agent.id, session, error.message);
      throw error;
    }
  }

  async #dispatchStop(session_id: string, grace_ms: number): Promise<StopReport> {
    const gone = { cleanup: null, survivors: [] };
    const session = await this.#liveSession(session_id);
    if (!session) return gone;
    await this.#reach(session, 'stop');
    if ((await this.#liveSession(session_id))?.stopping !== 1) return gone;
    try {
      return await this.#context.node(session.node_id).stop(session_id, grace_ms);
    } catch (error) {
      // It ended by itself meanwhile.
      if (!(await this.#liveSession(session_id))) return gone;
      if (isOutOfReach(error)) await this.#markPending(session, 'stop');
      if (!isUnknownSession(error)) throw error;
      // It never heard of the start, or lost the session: there is nothing whose end could be told.
      const exit = { exit_code: null, exit_signal: null, reason: null, message: null };
      await this.#settlement.settleWithoutProcess(session_id, exit);
      return gone;
    }
  }

  /** Nothing is sent to a node that does not answer: what lies on the way could not be taken back. */
  async #reach(session: SessionRow, kind: 'start' | 'stop'): Promise<void> {
    try {
      await this.#context.node(session.node_id).reach();
    } catch (error) {
      if (isOutOfReach(error)) await this.#markPending(session, kind);
      throw error;
    }
  }

  /** Waits for work on a node for as long as that answers; throws `node_unreachable` once it does not. The work goes on. */
  async whileReachable<T>(node_id: string, work: Promise<T>): Promise<T> {
    // It goes on without us, also when it fails.
    work.catch(() => {});
    const node = this.#context.node(node_id);
    const done = new AbortController();
    const watch = async (): Promise<never> => {
      for (;;) {
        await sleep(limits.node_answer_look_ms, done.signal);
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

  /** Shown until the intent is carried out, unless somebody has asked for something since. */
  async #markPending(session: SessionRow, kind: 'start' | 'stop'): Promise<void> {
    await this.#context.options.store.write((tx) => {
      const row = this.#context.mustFind(tx, session.agent_id);
      if (row.session_id !== session.id || row.pending !== null || !this.isUnanswered(tx, row, kind)) return;
      updateAgent(tx, row.num, { pending: kind, updated_at: this.#context.now() });
      this.#context.publish(tx, row.id);
    });
  }

  /** The node refused before anything happened. */
  async #undoStart(agent_id: string, session: SessionRow, error: string): Promise<void> {
    await this.#context.options.store.write((tx) => {
      if (!isStarting(tx, session.id)) return;
      const row = this.#context.mustFind(tx, agent_id);
      this.#undo(tx, row, session, error);
      // The restart that its policy promises is still owed.
      const [previous] = sessionsOf(tx, row.num, { limit: 1 });
      if (previous && row.status === 'failed' && row.restart_policy === 'on_failure') {
        const due_at = this.#context.now() + limits.restart_backoff_ms_max;
        const payload = { session_id: previous.id };
        this.#context.options.timers.set(tx, 'agent_restart', agent_id, due_at, payload);
      }
      this.#context.publish(tx, agent_id);
    });
  }

  /** Inside a transaction: as if the start of this session had not been asked for. */
  #undo(tx: Tx, row: AgentRow, session: SessionRow, error: string): void {
    deleteSession(tx, session.num);
    const [previous] = sessionsOf(tx, row.num, { limit: 1 });
    updateAgent(tx, row.num, {
      session_id: previous?.id ?? null,
      activity: null,
      session_count: session.number - 1,
      ...nothingPending,
      updated_at: this.#context.now(),
    });
    const refused = { agent_id: row.id, session_id: session.id, error };
    this.#context.options.facts.record(tx, 'session_refused', session.id, refused);
    tx.afterCommit(() => this.#context.changed(session.id));
  }

  async #liveSession(session_id: string): Promise<SessionRow | null> {
    const session = await this.#context.options.store.read((reader) => findSession(reader, session_id));
    return session && session.state !== 'ended' ? session : null;
  }

  #audit(tx: Tx, event: AuditEvent, row: AgentRow, doer: Doer, details: Record<string, unknown>): void {
    this.#context.options.audit.record(tx, {
      event,
      agent_id: row.id,
      user_id: doer.user_id,
      ip: doer.ip,
      workdir: row.workdir,
      details,
    });
  }
}

function isStarting(reader: Reader, session_id: string): boolean {
  return findSession(reader, session_id)?.state === 'starting';
}

function isOver(reader: Reader, session_id: string): boolean {
  return (findSession(reader, session_id)?.state ?? 'ended') === 'ended';
}

/** An agent that ended by itself before it could be stopped is as good as stopped. */
export function unlessNotRunning(error: unknown): void {
  if (!(error instanceof Problem) || error.code !== problems.agentNotRunning().code) throw error;
}

function isUnknownSession(error: unknown): boolean {
  return error instanceof Problem && error.code === 'session_not_found';
}

function liveSession(row: AgentRow): string {
  if (row.session_id === null || row.session_state === null || row.session_state === 'ended')
    throw problems.agentNotRunning();
  return row.session_id;
}
