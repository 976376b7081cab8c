/**
 * Starts, stops and restarts of agents whose node does not answer. Such a request is answered in time and kept in the
 * agent's row, where a later one takes its place and a withdrawal removes it; a `pursue` intent carries out what is kept
 * once the node answers. So nothing of a request is on its way while somebody may still change their mind.
 *
 * Only a link that breaks in the middle of a command leaves more: an intent of the session (`start`, `stop`) that the node may
 * or may not have heard of. A later request joins it where both want the same, and takes it back otherwise.
 */
import { limits } from '../../base/limits.ts';
import type { PendingKind } from '../../domain/agent.ts';
import type { StopReport } from '../../domain/node.ts';
import { agentProcessesSurvived, isOutOfReach, Problem, problems } from '../../domain/problem.ts';
import type { IntentHandlers } from '../../flow/outbox.ts';
import { type AgentRow, findAgent, findSession, updateAgent } from '../../store/agents.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { type AgentsContext, type Doer, isLive, nothingPending } from './context.ts';
import type { Lifecycle } from './lifecycle.ts';

/** As it is stored in `pending_request`. */
export interface KeptRequest {
  kind: PendingKind;
  doer: Doer;
  /** 0 for a start. */
  grace_ms: number;
  /** The session that an idempotency key stands for. */
  session_id?: string | undefined;
}

type Find = (reader: Reader) => AgentRow;

export class Pending {
  readonly #context: AgentsContext;
  readonly #lifecycle: Lifecycle;

  constructor(context: AgentsContext, lifecycle: Lifecycle) {
    this.#context = context;
    this.#lifecycle = lifecycle;
  }

  /**
   * Runs `carryOut` when the agent's node answers; what was kept before is replaced by it. Otherwise keeps the request and
   * throws `node_unreachable` with `pending`, within `limits.node_answer_ms`. A stop of an agent that neither
   * runs nor has anything pending is refused as `agent_not_running`, wherever its node is.
   */
  async request(find: Find, asked: KeptRequest, carryOut: () => Promise<void>): Promise<void> {
    const { store } = this.#context.options;
    const row = await store.read(find);
    try {
      await this.#context.node(row.node_id).reach();
      const done =
        row.pending !== null && (await store.write((tx) => this.#replace(tx, find(tx), asked.kind)));
      if (!done) await carryOut();
    } catch (error) {
      if (!(error instanceof Problem) || !isOutOfReach(error)) throw error;
      await store.write((tx) => this.#keep(tx, find(tx), asked));
      // However the connection failed; that nodes are switched off altogether is another matter.
      const { kind, code, message } = error.kind === 'bad_gateway' ? problems.nodeUnreachable() : error;
      throw new Problem(kind, code, message, { pending: asked.kind });
    }
  }

  /** Nothing of what is kept happens any more. Idempotent. */
  async withdraw(find: Find, doer: Doer): Promise<void> {
    await this.#context.options.store.write((tx) => {
      const row = find(tx);
      if (row.pending === null) return;
      this.#takeBack(tx, row, ['start', 'stop']);
      updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#context.now() });
      this.#audit(tx, 'agent_request_withdrawn', row, doer, row.pending);
      this.#context.publish(tx, row.id);
    });
  }

  handlers(): Pick<IntentHandlers, 'pursue'> {
    return { pursue: ({ session_id: agent_id }) => this.#pursue(agent_id) };
  }

  /** A request that is about to be carried out takes the place of a kept one; true when nothing else is left to do. */
  #replace(tx: Tx, row: AgentRow, kind: PendingKind): boolean {
    if (row.pending === null) return false;
    const joins = kind !== 'stop' && this.#lifecycle.isUnanswered(tx, row, 'start');
    if (joins) return false;
    if (kind === 'start') this.#takeBack(tx, row, ['stop']);
    updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#context.now() });
    this.#context.publish(tx, row.id);
    return kind === 'stop' && !isLive(row);
  }

  #keep(tx: Tx, row: AgentRow, asked: KeptRequest): void {
    const { outbox, timers } = this.#context.options;
    const { kind } = asked;
    if (kind === 'stop' && !isLive(row) && row.pending === null) throw problems.agentNotRunning();
    if (kind === 'start') this.#takeBack(tx, row, ['stop']);
    if (kind === 'stop') {
      this.#takeBack(tx, row, ['start']);
      timers.clear(tx, 'agent_restart', row.id);
    }
    updateAgent(tx, row.num, {
      pending: kind,
      pending_request: JSON.stringify(asked),
      updated_at: this.#context.now(),
    });
    if (!outbox.waits(tx, row.id, 'pursue')) outbox.enqueue(tx, row.node_id, row.id, 'pursue', {});
    if (row.pending === kind) return;
    this.#audit(tx, 'agent_request_kept', row, asked.doer, kind);
    this.#context.publish(tx, row.id);
  }

  /** What the node may or may not have heard of. */
  #takeBack(tx: Tx, row: AgentRow, kinds: readonly ('start' | 'stop')[]): void {
    if (kinds.includes('start') && this.#lifecycle.isUnanswered(tx, row, 'start')) {
      this.#lifecycle.takeBackStart(tx, row);
    } else if (kinds.includes('stop') && this.#lifecycle.isUnanswered(tx, row, 'stop')) {
      this.#lifecycle.takeBackStop(tx, row);
    }
  }

  /** Carries out what is kept, and what takes its place meanwhile. Throws while the node does not answer. */
  async #pursue(agent_id: string): Promise<void> {
    const { store, outbox } = this.#context.options;
    for (;;) {
      const row = await store.read((reader) => findAgent(reader, agent_id));
      if (!row?.pending_request) return;
      await this.#context.node(row.node_id).reach();
      // Its end may have been told just now, and is on its way through the log.
      if (isLive(row)) await this.#lifecycle.untilOver(row.session_id!, limits.node_answer_ms);
      const stop_id = await store.write((tx) => {
        const now = findAgent(tx, agent_id);
        return now?.pending_request === row.pending_request ? this.#begin(tx, now) : null;
      });
      if (stop_id === null) continue;
      const report = (await outbox.outcome(stop_id)) as StopReport;
      if (report.survivors.length > 0) return this.#giveUp(agent_id, report.survivors);
      await this.#lifecycle.untilOver(row.session_id!, limits.settle_ms);
    }
  }

  /** The first step of what is kept. Answers the intent to wait for where another step follows; null otherwise. */
  #begin(tx: Tx, row: AgentRow): number | null {
    const { kind, doer, grace_ms, session_id } = JSON.parse(row.pending_request!) as KeptRequest;
    const lives = isLive(row);
    if (lives && this.#lifecycle.isUnanswered(tx, row, 'stop')) {
      throw new Error(`the stop of ${row.session_id} has not been carried out yet`);
    }
    if (lives && kind === 'restart') {
      const intent_id = this.#lifecycle.end(tx, row, doer, grace_ms);
      updateAgent(tx, row.num, { pending: kind, pending_request: row.pending_request });
      return intent_id;
    }
    updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#context.now() });
    if (lives && kind === 'stop') this.#lifecycle.end(tx, row, doer, grace_ms);
    if (!lives && kind !== 'stop') {
      const fresh = session_id !== undefined && !findSession(tx, session_id) ? session_id : undefined;
      this.#lifecycle.begin(tx, row, doer, fresh);
    }
    this.#context.publish(tx, row.id);
    return null;
  }

  /** Processes of the session are left that nobody can end: the agent is not started beside them. */
  async #giveUp(agent_id: string, survivors: readonly number[]): Promise<void> {
    await this.#context.options.store.write((tx) => {
      const row = findAgent(tx, agent_id);
      if (!row) return;
      updateAgent(tx, row.num, { ...nothingPending, updated_at: this.#context.now() });
      const { code, message } = agentProcessesSurvived(survivors);
      this.#context.error(tx, agent_id, row.session_id, code, message);
      this.#context.publish(tx, agent_id);
    });
  }

  #audit(
    tx: Tx,
    event: 'agent_request_kept' | 'agent_request_withdrawn',
    { id, workdir, node_id }: AgentRow,
    { user_id, ip }: Doer,
    request: string,
  ): void {
    const details = { request, node_id };
    this.#context.options.audit.record(tx, { event, agent_id: id, user_id, ip, workdir, details });
  }
}
