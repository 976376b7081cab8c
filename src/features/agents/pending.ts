/**
 * Keeps starts, stops and restarts of agents whose node does not answer. The request fails in time and is kept in the
 * agent's row. A later request replaces it, and a withdrawal removes it. A `pursue` intent carries out the kept request once
 * the node answers. So no command is in transit while the request can still change.
 *
 * One case is different: if the link breaks during a command, the intent of the session (`start` or `stop`) may or may not
 * have reached the node. A later request joins this intent if it asks for the same thing, and withdraws it otherwise.
 *
 * A restart is kept also if the node answers, because it takes two transactions: the stop, and then the start. Clients do not
 * see it, unless the plane was killed in between; then the next one shows it as pending.
 */

import { limits as sharedLimits } from '../../base/limits.ts';
import type { StopReport } from '../../core/node.ts';
import {
  agentProcessesSurvived,
  isInterrupted,
  isUnreachable,
  Problem,
  problems,
} from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { NotYet } from '../../work/failures.ts';
import type { IntentHandlers } from '../../work/outbox.ts';
import type { AgentCore, Principal } from './core.ts';
import type { Lifecycle } from './lifecycle.ts';
import { limits } from './limits.ts';
import { type AgentRow, findAgent, findSession, unshownRequests, updateAgent } from './queries/agents.ts';
import { isLive, nothingPending } from './records.ts';
import type { PendingKind } from './rules.ts';
import { ignoreNotRunning } from './session-errors.ts';

/** As stored in `pending_request`. */
export interface StoredRequest {
  kind: PendingKind;
  /** Who made the request. */
  principal: Principal;
  /** 0 for a start. */
  grace_ms: number;
  /** Derived from an idempotency key. */
  session_id?: string | undefined;
}

type Find = (reader: Reader) => Promise<AgentRow>;

/** The requests that were pending when another request arrived. */
interface Earlier {
  pending_request: string | null;
  start: boolean;
  stop: boolean;
}

export class Pending {
  readonly #core: AgentCore;
  readonly #lifecycle: Lifecycle;

  constructor(core: AgentCore, lifecycle: Lifecycle) {
    this.#core = core;
    this.#lifecycle = lifecycle;
  }

  /**
   * Runs `carryOut` if the agent's node answers; a kept request is replaced by this one. Otherwise keeps the request and
   * throws `node_unreachable` with `pending`, within `limits.node_answer_ms`. Throws `agent_not_running` for a stop of an agent
   * that neither runs nor has a pending request.
   */
  async request(find: Find, pending_request: StoredRequest, carryOut: () => Promise<void>): Promise<void> {
    const { store } = this.#core;
    const { row, earlier } = await store.read(async (reader) => {
      const found = await find(reader);
      return { row: found, earlier: await this.#unansweredRequests(reader, found) };
    });
    try {
      await this.#core.nodes.get(row.node_id).reach();
      const done =
        row.pending !== null &&
        (await store.write(async (tx) => this.#replace(tx, await find(tx), pending_request.kind)));
      if (!done) await carryOut();
    } catch (error) {
      if (!(error instanceof Problem) || !isUnreachable(error)) throw error;
      const was_stored = await store.write(async (tx) => {
        const now = await find(tx);
        if (await this.#isSuperseded(tx, now, pending_request, earlier)) return false;
        await this.#keep(tx, now, pending_request);
        return true;
      });
      // All connection failures look the same to clients; a disabled internal listener keeps its own error.
      const { kind, code, message } = error.kind === 'bad_gateway' ? problems.nodeUnreachable() : error;
      throw new Problem(kind, code, message, was_stored ? { pending: pending_request.kind } : {});
    }
  }

  /**
   * Stops the agent if it runs, and starts it. A repeated request does not stop it again. Throws `agent is not running` if
   * the agent was stopped in the meantime.
   */
  async restartAndWait(find: Find, request: StoredRequest): Promise<void> {
    const { store } = this.#core;
    const { principal, grace_ms, session_id } = request;
    const lifecycle = this.#lifecycle;
    const { id, needs_stop } = await store.read(async (reader) => {
      const row = await find(reader);
      const repeated = session_id !== undefined && (await lifecycle.isRepeated(reader, session_id));
      const starts = row.pending !== null && (await lifecycle.isUnanswered(reader, row, 'start'));
      return { id: row.id, needs_stop: isLive(row) && !repeated && !starts };
    });
    const next = JSON.stringify(request);
    try {
      const stop = needs_stop && lifecycle.stopAndWait(find, principal, grace_ms, next);
      const stopped = stop && (await stop.then(() => true, ignoreNotRunning));
      await lifecycle.startAndWait(find, principal, session_id, stopped ? next : null);
    } catch (error) {
      // A plane that shuts down leaves it to the next one.
      const failed = error instanceof Problem && !isUnreachable(error) && !isInterrupted(error);
      if (failed) await this.#dropRestart(id, next);
      throw error;
    }
  }

  /** Continues the restarts during which the last plane ended. Call it before intents are carried out. */
  async resumeRestarts(): Promise<void> {
    const { store, outbox, records, clock } = this.#core;
    await store.write(async (tx) => {
      for (const row of await unshownRequests(tx)) {
        const { kind } = parseRequest(row.pending_request!);
        updateAgent(tx, row.num, { pending: kind, updated_at: clock.now() });
        if (!(await outbox.isPending(tx, row.id, 'pursue')))
          await outbox.enqueue(tx, row.node_id, row.id, 'pursue', {});
        await records.publish(tx, row.id);
      }
    });
  }

  async #dropRestart(agent_id: string, next: string): Promise<void> {
    await this.#core.store.write(async (tx) => {
      const row = await findAgent(tx, agent_id);
      if (row?.pending === null && row.pending_request === next) updateAgent(tx, row.num, nothingPending);
    });
  }

  /** Removes the kept request. Idempotent. */
  async withdraw(find: Find, principal: Principal): Promise<void> {
    await this.#core.store.write(async (tx) => {
      const row = await find(tx);
      if (row.pending === null) return;
      await this.#withdraw(tx, row, ['start', 'stop']);
      updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#core.clock.now() });
      await this.#audit(tx, 'agent_request_withdrawn', row, principal, row.pending);
      await this.#core.records.publish(tx, row.id);
    });
  }

  intentHandlers(): Pick<IntentHandlers, 'pursue'> {
    return { pursue: ({ lane: agent_id }) => this.#pursue(agent_id) };
  }

  /** Replaces a kept request with one that is about to be carried out. True if nothing remains to be done. */
  async #replace(tx: Tx, row: AgentRow, kind: PendingKind): Promise<boolean> {
    if (row.pending === null) return false;
    const joins = kind !== 'stop' && (await this.#lifecycle.isUnanswered(tx, row, 'start'));
    if (joins) return false;
    if (kind === 'start') await this.#withdraw(tx, row, ['stop']);
    updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#core.clock.now() });
    await this.#core.records.publish(tx, row.id);
    return kind === 'stop' && !isLive(row);
  }

  async #unansweredRequests(reader: Reader, row: AgentRow): Promise<Earlier> {
    const unanswered = (kind: 'start' | 'stop') => this.#lifecycle.isUnanswered(reader, row, kind);
    return {
      pending_request: row.pending_request,
      start: await unanswered('start'),
      stop: await unanswered('stop'),
    };
  }

  /** Whether a later request was accepted while this one waited for the node. The last request wins. */
  async #isSuperseded(
    reader: Reader,
    row: AgentRow,
    request: StoredRequest,
    earlier: Earlier,
  ): Promise<boolean> {
    const { kind } = request;
    const now = await this.#unansweredRequests(reader, row);
    const known = [null, earlier.pending_request, JSON.stringify(request)];
    if (!known.includes(now.pending_request)) return true;
    if (kind === 'start') return now.stop && !earlier.stop;
    if (kind === 'stop') return now.start && !earlier.start;
    return false;
  }

  async #keep(tx: Tx, row: AgentRow, pending_request: StoredRequest): Promise<void> {
    const { outbox, timers } = this.#core;
    const { kind } = pending_request;
    const is_kept = row.pending !== null || row.pending_request !== null;
    if (kind === 'stop' && !isLive(row) && !is_kept) throw problems.agentNotRunning();
    if (kind === 'start') await this.#withdraw(tx, row, ['stop']);
    if (kind === 'stop') {
      await this.#withdraw(tx, row, ['start']);
      await timers.clear(tx, 'agent_restart', row.id);
    }
    updateAgent(tx, row.num, {
      pending: kind,
      pending_request: JSON.stringify(pending_request),
      updated_at: this.#core.clock.now(),
    });
    if (!(await outbox.isPending(tx, row.id, 'pursue')))
      await outbox.enqueue(tx, row.node_id, row.id, 'pursue', {});
    if (row.pending === kind) return;
    await this.#audit(tx, 'agent_request_kept', row, pending_request.principal, kind);
    await this.#core.records.publish(tx, row.id);
  }

  /** Withdraws intents that may or may not have reached the node. */
  async #withdraw(tx: Tx, row: AgentRow, kinds: readonly ('start' | 'stop')[]): Promise<void> {
    if (kinds.includes('start') && (await this.#lifecycle.isUnanswered(tx, row, 'start'))) {
      await this.#lifecycle.withdrawStart(tx, row);
    } else if (kinds.includes('stop') && (await this.#lifecycle.isUnanswered(tx, row, 'stop'))) {
      await this.#lifecycle.withdrawStop(tx, row);
    }
  }

  /** Carries out the kept request, and the ones that replace it meanwhile. Throws while the node does not answer. */
  async #pursue(agent_id: string): Promise<void> {
    const { store, outbox } = this.#core;
    for (;;) {
      const row = await store.read((reader) => findAgent(reader, agent_id));
      if (!row?.pending_request) return;
      await this.#core.nodes.get(row.node_id).reach();
      // Its end may have been reported but not committed yet.
      if (isLive(row)) await this.#lifecycle.waitUntilEnded(row.session_id!, sharedLimits.node_answer_ms);
      const stop_id = await store.write(async (tx) => {
        const now = await findAgent(tx, agent_id);
        return now?.pending_request === row.pending_request ? this.#begin(tx, now) : null;
      });
      if (stop_id === null) continue;
      const report = (await outbox.outcome(stop_id)) as StopReport;
      if (report.survivors.length > 0) return this.#giveUp(agent_id, report.survivors);
      await this.#lifecycle.waitUntilEnded(row.session_id!, limits.status_wait_ms);
    }
  }

  /** Takes the first step of the kept request. Returns the intent to wait for if another step follows, else null. */
  async #begin(tx: Tx, row: AgentRow): Promise<number | null> {
    const { kind, principal, grace_ms, session_id } = parseRequest(row.pending_request!);
    const is_live = isLive(row);
    if (this.#core.deleting.has(row.id)) throw new NotYet(`the agent ${row.id} is being deleted`);
    if (is_live && (await this.#lifecycle.isUnanswered(tx, row, 'stop'))) {
      throw new NotYet(`the stop of ${row.session_id} has not been carried out yet`);
    }
    if (is_live && kind === 'restart') {
      const intent_id = await this.#lifecycle.enqueueStop(tx, row, principal, grace_ms);
      updateAgent(tx, row.num, { pending: kind, pending_request: row.pending_request });
      return intent_id;
    }
    updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#core.clock.now() });
    if (is_live && kind === 'stop') await this.#lifecycle.enqueueStop(tx, row, principal, grace_ms);
    if (!is_live && kind !== 'stop') {
      const fresh = session_id !== undefined && !(await findSession(tx, session_id)) ? session_id : undefined;
      await this.#lifecycle.enqueueStart(tx, row, principal, { session_id: fresh });
    }
    await this.#core.records.publish(tx, row.id);
    return null;
  }

  /** Some processes of the session cannot be ended; the agent is not started next to them. */
  async #giveUp(agent_id: string, survivors: readonly number[]): Promise<void> {
    await this.#core.store.write(async (tx) => {
      const row = await findAgent(tx, agent_id);
      if (!row) return;
      updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#core.clock.now() });
      const { code, message } = agentProcessesSurvived(survivors);
      await this.#core.records.logError(tx, agent_id, row.session_id, code, message);
      await this.#core.records.publish(tx, agent_id);
    });
  }

  async #audit(
    tx: Tx,
    event: 'agent_request_kept' | 'agent_request_withdrawn',
    { id, workdir, node_id }: AgentRow,
    { user_id, ip }: Principal,
    request: string,
  ): Promise<void> {
    const details = { request, node_id };
    await this.#core.audit.record(tx, { event, agent_id: id, user_id, ip, workdir, details });
  }
}

/** Earlier versions stored the principal as `doer`. */
function parseRequest(text: string): StoredRequest {
  const stored = JSON.parse(text);
  return { principal: stored.doer, ...stored };
}
