/**
 * Agents whose machine is gone for good: root removes their records without the node, and gets a list of what is left there.
 * Should the machine come back, their sessions are ended and reported instead of being adopted.
 */
import { limits } from '../../base/limits.ts';
import type { LeftBehind } from '../../domain/agent.ts';
import { authorize, viewOf } from '../../domain/policy.ts';
import { isOutOfReach, Problem, problems } from '../../domain/problem.ts';
import type { Caller } from '../../domain/user.ts';
import type { Intent, IntentHandlers } from '../../flow/outbox.ts';
import { type AgentRow, listAgents, sessionsOf } from '../../store/agents.ts';
import {
  deleteForgotten,
  forgottenAgent,
  forgottenSessions,
  insertForgotten,
} from '../../store/forgotten.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { type AgentsContext, removeRecord, SERVICE } from './context.ts';
import type { Settlement } from './settle.ts';

export class Forgetting {
  readonly #context: AgentsContext;
  readonly #settlement: Settlement;

  constructor(context: AgentsContext, settlement: Settlement) {
    this.#context = context;
    this.#settlement = settlement;
  }

  /** Removes the record of one agent. Refused to all but root, and while the agent's node answers. */
  async forget(caller: Caller, agent_id: string): Promise<LeftBehind> {
    authorize(caller, 'agent.forget');
    const { store } = this.#context.options;
    const { node_id } = await store.read((reader) => this.#context.mustFind(reader, agent_id));
    await this.mustBeAway(node_id);
    return store.write((tx) => this.#forget(tx, caller, this.#context.mustFind(tx, agent_id)));
  }

  /** Removes the records of all agents of a node, newest first. Refused as `forget` is. */
  async forgetAll(caller: Caller, node_id: string): Promise<LeftBehind[]> {
    authorize(caller, 'agent.forget');
    const { store } = this.#context.options;
    await this.mustBeAway(node_id);
    const rows = await store.read((reader) => listAgents(reader, { view: viewOf(caller), node_id }));
    const left: LeftBehind[] = [];
    for (const { id } of rows) {
      left.push(await store.write((tx) => this.#forget(tx, caller, this.#context.mustFind(tx, id))));
    }
    return left;
  }

  /** Throws `agent_node_answers` unless the node is out of reach, or no longer registered. */
  async mustBeAway(node_id: string): Promise<void> {
    try {
      await this.#context.node(node_id).reach();
    } catch (error) {
      const unregistered = error instanceof Problem && error.code === problems.nodeNotFound().code;
      if (isOutOfReach(error) || unregistered) return;
      throw error;
    }
    throw problems.nodeAnswers();
  }

  handlers(): Pick<IntentHandlers, 'discard'> {
    return { discard: (intent) => this.#discard(intent) };
  }

  #forget(tx: Tx, caller: Caller, row: AgentRow): LeftBehind {
    const { outbox, audit } = this.#context.options;
    const now = this.#context.now();
    const left_behind = leftBehind(tx, row);
    for (const { id } of left_behind.sessions) {
      this.#settlement.endWithoutProcess(tx, id, {
        exit_code: null,
        exit_signal: null,
        reason: 'session_lost',
        message: 'the agent was forgotten',
      });
      outbox.withdraw(tx, id, ['start', 'stop', 'input', 'forget']);
      // Over a link that lasts no snapshot comes that would show it.
      outbox.enqueue(tx, row.node_id, id, 'discard', { agent_id: row.id });
    }
    outbox.withdraw(tx, row.id, ['pursue']);
    insertForgotten(tx, { id: row.id, agent_id: row.id, node_id: row.node_id, created_at: now });
    removeRecord(this.#context, tx, this.#context.mustFind(tx, row.id));
    audit.record(tx, {
      event: 'agent_forgotten',
      agent_id: row.id,
      user_id: caller.user_id,
      ip: caller.ip,
      workdir: row.workdir,
      details: { name: row.name, left_behind },
    });
    return left_behind;
  }

  /** Ends a forgotten session on its node, and reports it. Tried again until the node has neither process nor folder of it. */
  async #discard({ node_id, session_id, payload }: Intent<'discard'>): Promise<void> {
    const { store, audit, logger } = this.#context.options;
    const node = this.#context.node(node_id);
    await node.reach();
    let survivors: number[] = [];
    try {
      ({ survivors } = await node.stop(session_id, limits.stop_grace_ms));
      if (survivors.length === 0) await node.forget(session_id);
    } catch (error) {
      const code = error instanceof Problem ? error.code : null;
      // Its last output is still being written down: tried again.
      if (code === problems.agentRunning().code) throw new Error(`session ${session_id} is still ending`);
      if (code !== problems.sessionNotFound().code) throw error;
    }
    const { agent_id } = payload;
    await store.write((tx) => {
      deleteForgotten(tx, session_id);
      const details = { node_id, session_id, survivors };
      const event = 'forgotten_session_ended';
      audit.record(tx, { event, level: 'warn', agent_id, ...SERVICE, details });
    });
    logger.warn({ node_id, session_id, agent_id, survivors }, 'a forgotten session was ended on its node');
  }
}

/** Inside a transaction: has a session ended on its node if it was forgotten; answers whether it was. */
export function discardForgotten(
  context: AgentsContext,
  tx: Tx,
  node_id: string,
  session_id: string,
  agent_id?: string,
): boolean {
  const { outbox } = context.options;
  const forgotten = forgottenAgent(tx, session_id, agent_id);
  if (forgotten === undefined) return false;
  if (!outbox.waits(tx, session_id, 'discard')) {
    outbox.enqueue(tx, node_id, session_id, 'discard', { agent_id: forgotten });
  }
  return true;
}

/** Inside a transaction: what a node does not have need not be remembered, session by session. */
export function dropUnseen(tx: Tx, node_id: string, seen: ReadonlySet<string>): void {
  for (const id of forgottenSessions(tx, node_id)) if (!seen.has(id)) deleteForgotten(tx, id);
}

function leftBehind(reader: Reader, row: AgentRow): LeftBehind {
  const { id, name, node_id, workdir, worktree_repo, worktree_branch } = row;
  const live = sessionsOf(reader, row.num).filter(({ state }) => state !== 'ended');
  return {
    agent_id: id,
    name,
    node_id,
    workdir,
    worktree_mode: row.worktree_mode as LeftBehind['worktree_mode'],
    worktree_repo,
    worktree_branch,
    sessions: live.map((session) => ({ id: session.id, pid: session.pid })),
    leftovers: JSON.parse(row.leftovers),
  };
}
