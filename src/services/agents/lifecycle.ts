/**
 * Starting, stopping and restarting: each decision is one transaction that leaves rows and an intent; the outbox carries
 * the intent to the node, and the settlement tells what came of it. A crash anywhere leaves rows that go on.
 */

import { failpoint } from '../../base/failpoint.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { StopReport } from '../../domain/node.ts';
import { isOutOfReach, Problem, problems } from '../../domain/problem.ts';
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
import type { Reader, Tx } from '../../store/store.ts';
import type { AgentsContext, Doer } from './context.ts';
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
    if (row.session_state === 'starting' || row.session_state === 'running')
      throw problems.agentAlreadyRunning();
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
      pending: null,
      updated_at: now,
    });
    timers.clear(tx, 'agent_restart', row.id);
    this.#audit(tx, 'agent_started', row, doer, { session_id });
    return { session_id, intent_id: outbox.enqueue(tx, row.node_id, session_id, 'start', {}) };
  }

  /**
   * Starts an agent and waits until its process is known to run, or its failure is settled. `session_id` is the one that
   * an idempotency key stands for.
   */
  async start(find: (reader: Reader) => AgentRow, doer: Doer, session_id?: string): Promise<void> {
    const spare = newId('ses');
    const begun = await this.#context.options.store.write((tx) => {
      const row = find(tx);
      // A start that its node has not answered is joined, not doubled.
      if (row.pending === 'start') throw problems.nodeUnreachable();
      if (session_id !== undefined && this.isRepeated(tx, session_id)) return { session_id, intent_id: null };
      updateAgent(tx, row.num, { restart_count: 0 });
      const fresh = session_id !== undefined && !findSession(tx, session_id) ? session_id : spare;
      return this.begin(tx, row, doer, fresh);
    });
    if (begun.intent_id !== null) await this.#context.options.outbox.outcome(begun.intent_id);
    await this.#context.until(
      begun.session_id,
      (reader) => !isStarting(reader, begun.session_id),
      limits.settle_ms,
    );
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
    const { survivors } = await stop;
    if (survivors.length > 0) {
      throw new Problem(
        'conflict',
        'agent_processes_survived',
        `agent processes survived: ${survivors.join(', ')}`,
      );
    }
    await this.#context.until(session_id, (reader) => isOver(reader, session_id), limits.settle_ms);
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
      if (isOutOfReach(error)) await this.#markPending(agent.id, session);
      else await this.#undoStart(agent.id, session, error.message);
      throw error;
    }
  }

  async #dispatchStop(session_id: string, grace_ms: number): Promise<StopReport> {
    const gone = { cleanup: null, survivors: [] };
    const session = await this.#liveSession(session_id);
    if (!session) return gone;
    try {
      return await this.#context.node(session.node_id).stop(session_id, grace_ms);
    } catch (error) {
      // It ended by itself meanwhile.
      if (!(await this.#liveSession(session_id))) return gone;
      if (!isUnknownSession(error)) throw error;
      // It never heard of the start, or lost the session: there is nothing whose end could be told.
      const exit = { exit_code: null, exit_signal: null, reason: null, message: null };
      await this.#settlement.settleWithoutProcess(session_id, exit);
      return gone;
    }
  }

  async #markPending(agent_id: string, session: SessionRow): Promise<void> {
    await this.#context.options.store.write((tx) => {
      const row = this.#context.mustFind(tx, agent_id);
      if (row.session_id !== session.id || row.pending === 'start') return;
      updateAgent(tx, row.num, { pending: 'start', updated_at: this.#context.now() });
      this.#context.publish(tx, agent_id);
    });
  }

  /** The node refused before anything happened: as if the start had not been asked for. */
  async #undoStart(agent_id: string, session: SessionRow, error: string): Promise<void> {
    await this.#context.options.store.write((tx) => {
      if (!isStarting(tx, session.id)) return;
      const row = this.#context.mustFind(tx, agent_id);
      deleteSession(tx, session.num);
      const previous = sessionsOf(tx, row.num, { limit: 1 })[0];
      updateAgent(tx, row.num, {
        session_id: previous?.id ?? null,
        activity: null,
        session_count: session.number - 1,
        pending: null,
        updated_at: this.#context.now(),
      });
      // The restart that its policy promises is still owed.
      if (previous && row.status === 'failed' && row.restart_policy === 'on_failure') {
        const due_at = this.#context.now() + limits.restart_backoff_ms_max;
        const payload = { session_id: previous.id };
        this.#context.options.timers.set(tx, 'agent_restart', agent_id, due_at, payload);
      }
      const refused = { agent_id, session_id: session.id, error };
      this.#context.options.facts.record(tx, 'session_refused', session.id, refused);
      this.#context.publish(tx, agent_id);
      tx.afterCommit(() => this.#context.changed(session.id));
    });
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

function isUnknownSession(error: unknown): boolean {
  return error instanceof Problem && error.code === 'session_not_found';
}

function liveSession(row: AgentRow): string {
  if (row.session_id === null || row.session_state === null || row.session_state === 'ended')
    throw problems.agentNotRunning();
  return row.session_id;
}
