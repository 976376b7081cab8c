/**
 * Forgets agents whose machine will not come back. Root deletes their records without contacting the node, and gets a list
 * of what remains there. If the machine does come back, their sessions are ended and reported instead of adopted.
 */
import { limits } from '../../base/limits.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import { isUnreachable, Problem, problems } from '../../core/problem.ts';
import type { Ingest } from '../../events/ingest/ingest.ts';
import { writeForLink } from '../../store/links.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { NotYet } from '../../work/failures.ts';
import type { Intent, IntentHandlers } from '../../work/outbox.ts';
import type { Caller } from '../accounts/rules.ts';
import { type AgentCore, SERVICE } from './core.ts';
import { type AgentRow, agentsOfWorktree, listAgents, listSessions } from './queries/agents.ts';
import { deleteForgotten, forgottenAgent, forgottenSessions, insertForgotten } from './queries/forgotten.ts';
import type { Reconciler } from './reconciler.ts';
import type { LeftBehind } from './rules.ts';

export class Forgetting {
  readonly #core: AgentCore;
  readonly #reconciler: Reconciler;
  readonly #ingest: (node_id: string) => Ingest | null;

  constructor(core: AgentCore, reconciler: Reconciler, ingest: (node_id: string) => Ingest | null) {
    this.#core = core;
    this.#reconciler = reconciler;
    this.#ingest = ingest;
  }

  /**
   * Deletes the record of one agent; only for root. Throws `agent_node_answers` while the agent's node answers. `dry_run`: only
   * lists what would be left.
   */
  async forget(caller: Caller, agent_id: string, { dry_run = false } = {}): Promise<LeftBehind> {
    authorize(caller, 'agent.forget');
    const { store } = this.#core;
    const { node_id } = await store.read((reader) => this.#core.records.mustFind(reader, agent_id));
    await this.assertUnreachable(node_id);
    if (dry_run)
      return store.read(async (reader) =>
        leftBehind(reader, await this.#core.records.mustFind(reader, agent_id)),
      );
    return this.#forget(caller, agent_id);
  }

  /** Deletes the records of all agents of a node, newest first. Throws like `forget`. */
  async forgetAll(caller: Caller, node_id: string): Promise<LeftBehind[]> {
    authorize(caller, 'agent.forget');
    const { store } = this.#core;
    await this.assertUnreachable(node_id);
    const rows = await store.read((reader) => listAgents(reader, { view: viewOf(caller), node_id }));
    const left_behind: LeftBehind[] = [];
    for (const { id } of rows) left_behind.push(await this.#forget(caller, id));
    return left_behind;
  }

  /** Throws `agent_node_answers` unless the node is unreachable or no longer registered. */
  async assertUnreachable(node_id: string): Promise<void> {
    try {
      await this.#core.nodes.get(node_id).reach();
    } catch (error) {
      const unregistered = error instanceof Problem && error.code === problems.nodeNotFound().code;
      if (isUnreachable(error) || unregistered) return;
      throw error;
    }
    throw problems.nodeAnswers();
  }

  intentHandlers(): Pick<IntentHandlers, 'discard' | 'forget_owner'> {
    return {
      discard: (intent) => this.#discard(intent),
      forget_owner: async ({ node_id, payload: { owner_id } }) => {
        await this.#core.nodes.get(node_id).forgetOwner(owner_id);
      },
    };
  }

  async #forget(caller: Caller, agent_id: string): Promise<LeftBehind> {
    const { node_id, left_behind } = await this.#core.store.write(async (tx) => {
      const row = await this.#core.records.mustFind(tx, agent_id);
      return { node_id: row.node_id, left_behind: await this.#deleteRecord(tx, caller, row) };
    });
    for (const { id } of left_behind.sessions) this.#ingest(node_id)?.unfollow(id);
    return left_behind;
  }

  async #deleteRecord(tx: Tx, caller: Caller, row: AgentRow): Promise<LeftBehind> {
    const { outbox, audit } = this.#core;
    const now = this.#core.clock.now();
    const left_behind = await leftBehind(tx, row);
    for (const { id } of left_behind.sessions) {
      await this.#reconciler.endWithoutProcess(tx, id, {
        exit_code: null,
        exit_signal: null,
        reason: 'session_lost',
        message: 'the agent was forgotten',
      });
      await outbox.withdraw(tx, id, ['start', 'stop', 'input', 'forget']);
      // This is necessary because no further snapshot arrives while the link lasts.
      await outbox.enqueue(tx, row.node_id, id, 'discard', { agent_id: row.id });
    }
    await outbox.withdraw(tx, row.id, ['pursue']);
    await insertForgotten(tx, { id: row.id, agent_id: row.id, node_id: row.node_id, created_at: now });
    await this.#core.records.remove(tx, await this.#core.records.mustFind(tx, row.id));
    if (row.worktree_mode === 'create_worktree') {
      const others = await agentsOfWorktree(tx, row.node_id, row.workdir);
      if (others.length === 0)
        await this.#core.extensions.onWorktreeReleased(
          tx,
          row,
          'its node did not answer when the agent was forgotten',
        );
    }
    // Without the command lines, which may contain secrets: audit records cannot be deleted.
    const leftovers = left_behind.leftovers.map(({ pid }) => pid);
    await audit.record(tx, {
      event: 'agent_forgotten',
      agent_id: row.id,
      user_id: caller.user_id,
      ip: caller.ip,
      workdir: row.workdir,
      details: { name: row.name, left_behind: { ...left_behind, leftovers } },
    });
    return left_behind;
  }

  /**
   * Ends a forgotten session on its node, and reports it if there was one. Retried until its processes and folder no longer
   * exist there.
   */
  async #discard({ node_id, lane: session_id, payload }: Intent<'discard'>): Promise<void> {
    const { store, audit, log } = this.#core;
    const node = this.#core.nodes.get(node_id);
    await node.reach();
    const { link } = node;
    /** Null if there was no session: its start was withdrawn before, for example. */
    let survivors: number[] | null = null;
    try {
      ({ survivors } = await node.stop(session_id, limits.stop_grace_ms));
      if (survivors.length === 0) await node.forget(session_id);
    } catch (error) {
      const code = error instanceof Problem ? error.code : null;
      // Its last output is still being written: retry.
      if (code === problems.agentRunning().code) throw new NotYet(`session ${session_id} is still ending`);
      if (code !== problems.sessionNotFound().code) throw error;
    }
    const { agent_id } = payload;
    await writeForLink(store, link, async (tx) => {
      await deleteForgotten(tx, session_id);
      if (survivors === null) return;
      const details = { node_id, session_id, survivors };
      const event = 'forgotten_session_ended';
      await audit.record(tx, { event, level: 'warn', agent_id, ...SERVICE, details });
    });
    if (survivors !== null)
      log.warn({ node_id, session_id, agent_id, survivors }, 'ended a forgotten session on its node');
  }
}

/** If the session was forgotten, records an intent to end it on its node. Returns whether it was forgotten. */
export async function discardForgotten(
  core: AgentCore,
  tx: Tx,
  node_id: string,
  session_id: string,
  agent_id?: string,
): Promise<boolean> {
  const forgotten = await forgottenAgent(tx, session_id, agent_id);
  if (forgotten === undefined) return false;
  await enqueueDiscard(core, tx, node_id, { id: session_id, agent_id: forgotten });
  return true;
}

/** Records an intent to end a session on its node, unless there is one. */
export async function enqueueDiscard(
  { outbox }: AgentCore,
  tx: Tx,
  node_id: string,
  { id, agent_id }: { id: string; agent_id: string },
): Promise<void> {
  if (await outbox.isPending(tx, id, 'discard')) return;
  await outbox.enqueue(tx, node_id, id, 'discard', { agent_id });
}

/** Deletes the rows of forgotten sessions that the node does not have. */
export async function discardForgottenExcept(
  tx: Tx,
  node_id: string,
  seen: ReadonlySet<string>,
): Promise<void> {
  for (const id of await forgottenSessions(tx, node_id)) if (!seen.has(id)) await deleteForgotten(tx, id);
}

async function leftBehind(reader: Reader, row: AgentRow): Promise<LeftBehind> {
  const { id, name, node_id, workdir, worktree_repo, worktree_branch } = row;
  const live = (await listSessions(reader, row.num)).filter(({ state }) => state !== 'ended');
  return {
    agent_id: id,
    name,
    node_id,
    workdir,
    worktree_mode: row.worktree_mode,
    worktree_repo,
    worktree_branch,
    sessions: live.map((session) => ({ id: session.id, pid: session.pid })),
    leftovers: JSON.parse(row.leftovers),
  };
}
