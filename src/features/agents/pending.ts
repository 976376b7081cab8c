/**
 * Requests to start, stop and restart agents whose node may not answer (states: `pending-state.ts`). If it does not, the
 * request fails in time and is kept until it does. A later request replaces it, and a withdrawal removes it. So no command is
 * in transit while the request can still change.
 *
 * One case is different: if the link breaks during a command, the intent of the session (`start` or `stop`) stalls. A later
 * request joins this intent if it asks for the same thing, and withdraws it otherwise.
 */

import { limits as sharedLimits } from '../../base/limits.ts';
import type { StopReport } from '../../core/node.ts';
import {
  agentProcessesSurvived,
  isInterrupted,
  isTemporary,
  isUnreachable,
  Problem,
  problems,
} from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { NotYet } from '../../work/failures.ts';
import type { Intent, IntentHandlers } from '../../work/outbox.ts';
import { type AgentCore, auditAgent, type Principal } from './core.ts';
import type { Lifecycle } from './lifecycle.ts';
import { limits } from './limits.ts';
import {
  hasState,
  nothingPending,
  parseRequest,
  pendingState,
  type StoredRequest,
  toColumns,
} from './pending-state.ts';
import { type AgentRow, findAgent, interruptedRestarts, updateAgent } from './queries/agents.ts';
import { isLive } from './records.ts';
import type { PendingKind } from './rules.ts';
import { ignoreNotRunning } from './session-errors.ts';

type Find = (reader: Reader) => Promise<AgentRow>;

/** The intent of the session that a request contradicts. A restart contradicts neither. */
const opposites = { start: 'stop', stop: 'start', restart: null } as const;

/** What shows that a later request was accepted. */
interface Observed {
  pending_request: string | null;
  /** Whether the opposite of the request is on its way. */
  opposite: boolean;
}

export class PendingRequests {
  readonly #core: AgentCore;
  readonly #lifecycle: Lifecycle;

  constructor(core: AgentCore, lifecycle: Lifecycle) {
    this.#core = core;
    this.#lifecycle = lifecycle;
  }

  /**
   * Runs `carryOut` if the agent's node answers; a pending request is replaced by this one. Otherwise keeps the request and
   * throws `node_unreachable` with `pending`, within `limits.node_answer_ms`. Throws `agent_not_running` for a stop of an agent
   * that neither runs nor has a pending request.
   */
  async request(find: Find, request: StoredRequest, carryOut: () => Promise<void>): Promise<void> {
    const { store } = this.#core;
    const { kind } = request;
    const { row, before } = await store.read(async (reader) => {
      const found = await find(reader);
      return { row: found, before: await this.#observe(reader, found, kind) };
    });
    try {
      await this.#core.nodes.get(row.node_id).reach();
      const is_done =
        row.pending !== null && (await store.write(async (tx) => this.#replace(tx, await find(tx), kind)));
      if (!is_done) await carryOut();
    } catch (error) {
      if (!(error instanceof Problem) || !isUnreachable(error)) throw error;
      const is_kept = await store.write(async (tx) => {
        const now = await find(tx);
        if (await this.#isSuperseded(tx, now, request, before)) return false;
        await this.#keep(tx, now, request);
        return true;
      });
      // All connection failures look the same to clients. A disabled internal listener and a fault of the node do not.
      const is_connection = error.kind === 'bad_gateway' && error.code !== problems.nodeFailed().code;
      const shown = is_connection ? problems.nodeUnreachable() : error;
      throw new Problem(shown.kind, shown.code, shown.message, is_kept ? { pending: kind } : {});
    }
  }

  /**
   * Stops the agent if it runs, and starts it. A repeated request does not stop it again. The restart is stored with its stop,
   * so that it continues even if the plane ends in between. Throws `agent is not running` if the agent was stopped in the
   * meantime.
   */
  async restartAndWait(find: Find, request: StoredRequest): Promise<void> {
    const lifecycle = this.#lifecycle;
    const { principal, grace_ms, session_id } = request;
    const { id, needs_stop } = await this.#core.store.read(async (reader) => {
      const row = await find(reader);
      const is_repeated = session_id !== undefined && (await lifecycle.isRepeated(reader, session_id));
      const starts_anyway = is_repeated || (await lifecycle.hasStalledStart(reader, row));
      return { id: row.id, needs_stop: isLive(row) && !starts_anyway };
    });
    const restart = JSON.stringify(request);
    try {
      const then = { is: 'restarting', request: restart } as const;
      const stop = needs_stop && lifecycle.stopAndWait(find, principal, grace_ms, then);
      const is_stopped = stop && (await stop.then(() => true, ignoreNotRunning));
      await lifecycle.startAndWait(find, principal, session_id, is_stopped ? restart : null);
    } catch (error) {
      // A plane that shuts down leaves it to the next one.
      const failed = error instanceof Problem && !isUnreachable(error) && !isInterrupted(error);
      if (failed) await this.#dropRestart(id, restart);
      throw error;
    }
  }

  /** Withdraws the request that clients see. Idempotent. */
  async withdraw(find: Find, principal: Principal): Promise<void> {
    await this.#core.store.write(async (tx) => {
      const row = await find(tx);
      if (row.pending === null) return;
      for (const kind of ['start', 'stop'] as const) await this.#lifecycle.withdrawIntent(tx, row, kind);
      await this.#clear(tx, row);
      const details = { request: row.pending, node_id: row.node_id };
      await auditAgent(this.#core, tx, 'agent_request_withdrawn', row, principal, details);
    });
  }

  /** Keeps the restarts during which the last plane ended. Call it before intents are carried out. */
  async resumeRestarts(): Promise<void> {
    await this.#core.store.write(async (tx) => {
      for (const row of await interruptedRestarts(tx)) {
        await this.#setKept(tx, row, row.pending_request!);
        await this.#core.records.publish(tx, row.id);
      }
    });
  }

  intentHandlers(): Pick<IntentHandlers, 'pursue'> {
    return { pursue: (intent) => this.#pursue(intent) };
  }

  async #observe(reader: Reader, row: AgentRow, kind: PendingKind): Promise<Observed> {
    const opposite = opposites[kind];
    return {
      pending_request: row.pending_request,
      opposite: opposite !== null && (await this.#lifecycle.isUnanswered(reader, row, opposite)),
    };
  }

  /** Whether a later request was accepted while this one waited for the node. The last request wins. */
  async #isSuperseded(
    reader: Reader,
    row: AgentRow,
    request: StoredRequest,
    before: Observed,
  ): Promise<boolean> {
    const { pending_request, opposite } = await this.#observe(reader, row, request.kind);
    const expected = [null, before.pending_request, JSON.stringify(request)];
    return !expected.includes(pending_request) || (opposite && !before.opposite);
  }

  /** Any state ──▶ kept. */
  async #keep(tx: Tx, row: AgentRow, request: StoredRequest): Promise<void> {
    const { kind, principal } = request;
    const is_stopped = !isLive(row) && pendingState(row).is === 'nothing';
    if (kind === 'stop' && is_stopped) throw problems.agentNotRunning();
    const opposite = opposites[kind];
    if (opposite !== null) await this.#lifecycle.withdrawIntent(tx, row, opposite);
    if (kind === 'stop') await this.#core.timers.clear(tx, 'agent_restart', row.id);
    await this.#setKept(tx, row, JSON.stringify(request));
    if (row.pending === kind) return;
    const details = { request: kind, node_id: row.node_id };
    await auditAgent(this.#core, tx, 'agent_request_kept', row, principal, details);
    await this.#core.records.publish(tx, row.id);
  }

  async #setKept(tx: Tx, row: AgentRow, request: string): Promise<void> {
    const { outbox, clock } = this.#core;
    const { kind } = parseRequest(request);
    updateAgent(tx, row.num, { ...toColumns({ is: 'kept', kind, request }), updated_at: clock.now() });
    if (!(await outbox.isPending(tx, row.id, 'pursue')))
      await outbox.enqueue(tx, row.node_id, row.id, 'pursue', {});
  }

  /**
   * Stalled or kept ──▶ nothing, because another request is about to be carried out. Returns whether that is already done: a
   * stop of an agent that does not run.
   */
  async #replace(tx: Tx, row: AgentRow, kind: PendingKind): Promise<boolean> {
    if (row.pending === null) return false;
    const joins = kind !== 'stop' && (await this.#lifecycle.hasStalledStart(tx, row));
    if (joins) return false;
    if (kind === 'start') await this.#lifecycle.withdrawIntent(tx, row, 'stop');
    await this.#clear(tx, row);
    return kind === 'stop' && !isLive(row);
  }

  /** Restarting ──▶ nothing, unless a later request has replaced the restart. */
  async #dropRestart(agent_id: string, request: string): Promise<void> {
    await this.#core.store.write(async (tx) => {
      const row = await findAgent(tx, agent_id);
      if (row && hasState(row, { is: 'restarting', request })) updateAgent(tx, row.num, nothingPending);
    });
  }

  /** Stalled or kept ──▶ nothing. */
  async #clear(tx: Tx, row: AgentRow): Promise<void> {
    updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#core.clock.now() });
    await this.#core.records.publish(tx, row.id);
  }

  /** Carries out the kept request, and the ones that replace it meanwhile. Throws while the node does not answer. */
  async #pursue(intent: Intent<'pursue'>): Promise<void> {
    for (let kept = await this.#nextKept(intent); kept; kept = await this.#nextKept(intent)) {
      try {
        await this.#carryOut(kept);
      } catch (error) {
        if (isTemporary(error)) throw error;
        await this.#giveUp(kept, error as Problem);
      }
    }
  }

  /**
   * The agent with its kept request. Without one, completes the intent. The same transaction does both: a request that is kept
   * after it gets another intent.
   */
  async #nextKept(intent: Intent<'pursue'>): Promise<AgentRow | null> {
    const { store, outbox } = this.#core;
    const find = async (reader: Reader) => {
      const row = await findAgent(reader, intent.lane);
      return row && pendingState(row).is === 'kept' ? row : null;
    };
    const found = await store.read(find);
    if (found) return found;
    return store.write(async (tx) => {
      const row = await find(tx);
      if (!row) await outbox.complete(tx, intent);
      return row;
    });
  }

  /** Does nothing if another request has replaced it. A restart of a running agent only stops it, and remains kept. */
  async #carryOut(kept: AgentRow): Promise<void> {
    const { store, outbox, nodes } = this.#core;
    await nodes.get(kept.node_id).reach();
    // Its end may have been reported but not committed yet.
    if (isLive(kept)) await this.#lifecycle.waitUntilEnded(kept.session_id!, sharedLimits.node_answer_ms);
    const stop_id = await store.write(async (tx) => {
      const row = await findAgent(tx, kept.id);
      return row && hasState(row, pendingState(kept)) ? this.#begin(tx, row) : null;
    });
    if (stop_id === null) return;
    const { survivors } = (await outbox.outcome(stop_id)) as StopReport;
    // The agent is not started next to them.
    if (survivors.length > 0) throw agentProcessesSurvived(survivors);
    await this.#lifecycle.waitUntilEnded(kept.session_id!, limits.status_wait_ms);
  }

  /** Kept ──▶ nothing. A restart of a running agent remains kept; returns the intent of its stop. */
  async #begin(tx: Tx, row: AgentRow): Promise<number | null> {
    const { kind, principal, grace_ms, session_id } = parseRequest(row.pending_request!);
    const is_live = isLive(row);
    if (this.#core.deleting.has(row.id)) throw new NotYet(`the agent ${row.id} is being deleted`);
    if (is_live && (await this.#lifecycle.isUnanswered(tx, row, 'stop'))) {
      throw new NotYet(`the stop of ${row.session_id} has not been carried out yet`);
    }
    if (is_live && kind === 'restart')
      return this.#lifecycle.enqueueStop(tx, row, principal, grace_ms, pendingState(row));
    updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#core.clock.now() });
    if (is_live && kind === 'stop') await this.#lifecycle.enqueueStop(tx, row, principal, grace_ms);
    if (!is_live && kind !== 'stop')
      await this.#lifecycle.enqueueStart(tx, row, principal, { keyed_id: session_id, logs: true });
    await this.#core.records.publish(tx, row.id);
    return null;
  }

  /** Kept ──▶ nothing, unless a later request has replaced it. Logs why it cannot be carried out. */
  async #giveUp(kept: AgentRow, { code, message }: Problem): Promise<void> {
    await this.#core.store.write(async (tx) => {
      const row = await findAgent(tx, kept.id);
      if (!row) return;
      await this.#core.records.logError(tx, row.id, row.session_id, code, message);
      if (hasState(row, pendingState(kept))) await this.#clear(tx, row);
    });
  }
}
