/**
 * Agents as clients see them: create, list, change, delete, and the doors to their lives. Rules stand here; the life of
 * a session is in `lifecycle.ts`, what nodes observed becomes true in `settle.ts`.
 */
import { idFrom, newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { Agent, PermissionMode, RestartPolicy } from '../../domain/agent.ts';
import { showArgv } from '../../domain/command.ts';
import type {
  Changes,
  ChangesRequest,
  FileChange,
  Folders,
  FoundFiles,
  Worktree,
} from '../../domain/node.ts';
import { type Action, authorize, viewOf } from '../../domain/policy.ts';
import { isOutOfReach, Problem, problems } from '../../domain/problem.ts';
import type { Session } from '../../domain/session.ts';
import type { Caller } from '../../domain/user.ts';
import type { Audience } from '../../events/feed.ts';
import {
  type AgentRow,
  agentsNamed,
  findAgent,
  findSession,
  listAgents,
  sessionsOf,
  spoolsOf,
  toSession,
  updateAgent,
  updateSession,
} from '../../store/agents.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { differs } from '../changes.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import { type AgentsContext, type Doer, isLive, removeRecord } from './context.ts';
import { type CreateAgent, fromPreset, insertNew, place, withPreset } from './creation.ts';
import { type Lifecycle, unlessNotRunning } from './lifecycle.ts';
import type { Pending } from './pending.ts';

export interface UpdateAgent {
  name?: string | undefined;
  labels?: Record<string, string> | undefined;
  command?: string | undefined;
  argv?: string[] | null | undefined;
  env?: Record<string, string> | undefined;
  restart_policy?: RestartPolicy | undefined;
  permission_mode?: PermissionMode | undefined;
}

export interface AgentListFilter {
  status?: string | undefined;
  node_id?: string | undefined;
  name?: string | undefined;
  /** `name=value`; an agent must have all. */
  label?: readonly string[] | undefined;
  /** Username or id. */
  owner?: string | undefined;
  team_id?: string | undefined;
  /** The `worktree_repo` of agents. */
  repo?: string | undefined;
  /** Words that all occur in an agent's id, name, command, workdir or labels. */
  q?: string | undefined;
}

export interface Deleted {
  /** Null when no worktree was left behind. */
  worktree_kept: { workdir: string; reason: string } | null;
}

export class Agents {
  readonly #context: AgentsContext;
  readonly #lifecycle: Lifecycle;
  readonly #pending: Pending;

  constructor(context: AgentsContext, lifecycle: Lifecycle, pending: Pending) {
    this.#context = context;
    this.#lifecycle = lifecycle;
    this.#pending = pending;
  }

  get(caller: Caller, agent_id: string): Promise<Agent> {
    return this.#record(caller, 'agent.read', agent_id);
  }

  /** `action`: what the caller asked for; whoever changes an agent gets its record, also without the scope to read. */
  #record(caller: Caller, action: Action, agent_id: string): Promise<Agent> {
    return this.#context.options.store.read((reader) =>
      this.#context.record(this.#context.find(reader, caller, action, agent_id)),
    );
  }

  /** Newest first. Without a page request at most `limits.plain_list_items_max`, with the cursor of the rest. */
  list(caller: Caller, filter: AgentListFilter, request: PageRequest): Promise<Page<Agent>> {
    authorize(caller, 'agents.list');
    const paged = request.limit !== undefined || request.cursor !== undefined;
    const limit = request.limit ?? (paged ? limits.page_items_default : limits.plain_list_items_max);
    const { label = [], q = '', ...exact } = filter;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#context.options.store.read((reader) => {
      const rows = listAgents(reader, {
        view: viewOf(caller),
        ...exact,
        labels: label.map(pairOf),
        words: q.split(/\s+/).filter((word) => word !== ''),
        before_num,
        limit: limit + 1,
      });
      return page(
        rows,
        limit,
        (row) => this.#context.record(row),
        (row) => [row.num],
      );
    });
  }

  /**
   * `replace`: agents of this name that the caller owns are deleted first, worktrees with unsaved work are kept. Throws
   * `agent is running`, and changes nothing, while one of them runs.
   */
  async create(
    caller: Caller,
    asked: CreateAgent,
    idempotency_key: string | null,
    { replace = false } = {},
  ): Promise<Agent> {
    authorize(caller, 'agents.create');
    // Before anything is made: a token may lack the scope for the start.
    if (asked.start) authorize(caller, 'agent.drive');
    const request = fromPreset(asked);
    if (request.prompt !== null && request.protocol !== 'acp') throw problems.promptNeedsAcp();
    const node = this.#context.node(request.node_id);
    const of_key = idempotency_key ? idFrom('agt', caller.user_id, 'create', idempotency_key) : newId('agt');
    const known = await this.#context.options.store.read((reader) => findAgent(reader, of_key));
    // Within the key's day this very call was made before, and its answer was lost.
    const made = known && known.created_at > this.#context.now() - limits.idempotency_keep_ms;
    if (made && known.name !== request.name) throw problems.idempotencyReused();
    const id = known && !made ? newId('agt') : of_key;
    if (!made) {
      await node.reach();
      const replaced = replace ? await this.#replaceable(caller, request.name) : [];
      const worktree = await this.#place(node.folders, caller, id, request, async () => {
        for (const row of replaced)
          await this.delete(caller, row.id, { force: false, delete_worktree: false });
      });
      await this.#context.options.store.write((tx) =>
        insertNew(this.#context, tx, id, { user_id: caller.user_id, doer: doer(caller) }, request, worktree),
      );
    }
    if (request.start) await this.start(caller, id, idempotency_key);
    return this.#record(caller, 'agent.change', id);
  }

  /** Ids of the other agents of the owner that have the same name, newest first. */
  namesakes(agent: Agent): Promise<string[]> {
    return this.#context.options.store.read((reader) =>
      agentsNamed(reader, agent.owner_id, agent.name)
        .map(({ id }) => id)
        .filter((id) => id !== agent.id),
    );
  }

  /**
   * The folder of a new agent, with `vacate` called before it is taken: as late as can be, so that a folder that cannot be
   * had leaves everything as it was. A new worktree at a certain path may need the place of an old one.
   */
  async #place(
    folders: Folders,
    caller: Caller,
    agent_id: string,
    request: CreateAgent,
    vacate: () => Promise<void>,
  ): Promise<Worktree> {
    const may_be_taken = request.worktree_mode === 'create_worktree' && request.workdir !== null;
    if (may_be_taken) await vacate();
    const worktree = await place(folders, agent_id, request, {
      store: this.#context.options.store,
      all: caller.role === 'root',
      mayOperate: (reader, row) => this.#context.may(reader, caller, 'agent.change', row),
    });
    if (!may_be_taken) await vacate();
    return worktree;
  }

  /** What a new agent of this name may replace. Not what a team's run made: that is part of its history. */
  async #replaceable(caller: Caller, name: string): Promise<AgentRow[]> {
    const rows = await this.#context.options.store.read((reader) =>
      agentsNamed(reader, caller.user_id, name).filter(({ team_num }) => team_num === null),
    );
    if (rows.some(isLive)) throw problems.agentRunning();
    return rows;
  }

  /** Fields that equal the present values change nothing and are not audited. */
  async update(caller: Caller, agent_id: string, changes: UpdateAgent): Promise<Agent> {
    await this.#context.options.store.write((tx) => {
      const row = this.#context.find(tx, caller, 'agent.change', agent_id);
      const { name, labels, command, argv, env, restart_policy, permission_mode } = changes;
      const needs_rest = [command, argv, env, restart_policy, permission_mode].some(
        (value) => value !== undefined,
      );
      if (needs_rest && isLive(row)) throw problems.agentRunning();
      if (argv === null && command === undefined && row.argv !== null) throw problems.commandRequired();
      const values = {
        ...(name !== undefined && { name }),
        ...(labels !== undefined && { labels: JSON.stringify(labels) }),
        ...(command !== undefined && { command, argv: null }),
        ...(argv && { command: showArgv(argv), argv: JSON.stringify(argv) }),
        ...(env !== undefined && { env: JSON.stringify(withPreset(row.preset, env)) }),
        ...(restart_policy !== undefined && { restart_policy }),
        ...(permission_mode !== undefined && { permission_mode }),
      };
      if (!differs(row, values)) return;
      updateAgent(tx, row.num, { ...values, updated_at: this.#context.now() });
      if (restart_policy === 'never') this.#context.options.timers.clear(tx, 'agent_restart', agent_id);
      const changed = Object.keys(changes).filter((key) => changes[key as keyof UpdateAgent] !== undefined);
      this.#audit(tx, caller, 'agent_updated', row, { changed });
      this.#context.publish(tx, agent_id);
    });
    return this.#record(caller, 'agent.change', agent_id);
  }

  async start(caller: Caller, agent_id: string, idempotency_key: string | null): Promise<Agent> {
    const session_id = idempotency_key ? idFrom('ses', caller.user_id, agent_id, idempotency_key) : undefined;
    const find = this.#driven(caller, agent_id);
    const asked = { kind: 'start', doer: doer(caller), grace_ms: 0, session_id } as const;
    await this.#pending.request(find, asked, () => this.#lifecycle.start(find, asked.doer, session_id));
    return this.#record(caller, 'agent.drive', agent_id);
  }

  async stop(caller: Caller, agent_id: string, grace_ms: number): Promise<Agent> {
    const find = this.#driven(caller, agent_id);
    const asked = { kind: 'stop', doer: doer(caller), grace_ms } as const;
    await this.#pending.request(find, asked, () => this.#lifecycle.stop(find, asked.doer, grace_ms));
    return this.#record(caller, 'agent.drive', agent_id);
  }

  async restart(
    caller: Caller,
    agent_id: string,
    grace_ms: number,
    idempotency_key: string | null,
  ): Promise<Agent> {
    const session_id = idempotency_key ? idFrom('ses', caller.user_id, agent_id, idempotency_key) : undefined;
    const find = this.#driven(caller, agent_id);
    const asked = { kind: 'restart', doer: doer(caller), grace_ms, session_id } as const;
    const carryOut = () => this.#lifecycle.restart(find, asked.doer, grace_ms, session_id);
    await this.#pending.request(find, asked, carryOut);
    return this.#record(caller, 'agent.drive', agent_id);
  }

  /** Takes back what is kept until the agent's node answers. Idempotent. */
  withdraw(caller: Caller, agent_id: string): Promise<void> {
    return this.#pending.withdraw(this.#driven(caller, agent_id), doer(caller));
  }

  #driven(caller: Caller, agent_id: string): (reader: Reader) => AgentRow {
    return (reader) => this.#context.find(reader, caller, 'agent.drive', agent_id);
  }

  /**
   * Writes to stdin: committed first, with the answer to its key, then carried to the node's journal in order. Throws
   * `node_unreachable` and keeps nothing when the node does not answer.
   */
  async input(
    caller: Caller,
    agent_id: string,
    data: string,
    eof: boolean,
    idempotency_key: string | null,
  ): Promise<Agent> {
    const { store, outbox, idempotency } = this.#context.options;
    const bytes = Buffer.from(data);
    const { node_id } = await store.read((reader) =>
      this.#context.find(reader, caller, 'agent.drive', agent_id),
    );
    await this.#context.node(node_id).reach();
    const intent_id = await store.write((tx) => {
      const row = this.#context.find(tx, caller, 'agent.drive', agent_id);
      if (row.status !== 'running' || row.session_id === null) throw problems.agentNotRunning();
      if (row.protocol === 'acp') throw problems.agentSpeaksAcp();
      if (row.stdin !== 1) throw problems.agentNoStdin();
      const session = findSession(tx, row.session_id)!;
      if (session.stdin_lost === 1) throw problems.stdinLost();
      updateSession(tx, session.num, { stdin_bytes: session.stdin_bytes + bytes.length });
      this.#audit(tx, caller, 'agent_input_sent', row, { session_id: session.id, bytes: bytes.length, eof });
      if (idempotency_key !== null) {
        const answer = { status: 200, location: null, body: this.#context.record(row) };
        idempotency.keepWith(tx, caller, idempotency_key, answer);
      }
      const payload = { offset: session.stdin_bytes, data: bytes.toString('base64'), eof };
      return outbox.enqueue(tx, row.node_id, session.id, 'input', payload);
    });
    await this.#lifecycle.whileReachable(node_id, outbox.outcome(intent_id)).catch((error: unknown) => {
      // The node fell silent only then. Accepted all the same: it reaches the agent once its node or the next plane is
      // there, and must not be sent again.
      const kept = isOutOfReach(error) || (error instanceof Problem && error.code === 'draining');
      if (!kept) throw error;
    });
    return this.#record(caller, 'agent.drive', agent_id);
  }

  async delete(
    caller: Caller,
    agent_id: string,
    options: { force: boolean; delete_worktree: boolean },
  ): Promise<Deleted> {
    const { store, timers } = this.#context.options;
    const { node_id } = await store.read((reader) =>
      this.#context.find(reader, caller, 'agent.delete', agent_id),
    );
    // Before anything is changed: what is left on a node that is away could not be removed later.
    await this.#context.node(node_id).reach();
    const row = await store.write((tx) => {
      const found = this.#context.find(tx, caller, 'agent.delete', agent_id);
      if (isLive(found) && !options.force) throw problems.agentRunning();
      // Its restart policy must not start it in a folder that is being removed.
      timers.clear(tx, 'agent_restart', agent_id);
      return found;
    });
    if (isLive(row)) {
      const find = (reader: Reader) => this.#context.find(reader, caller, 'agent.delete', agent_id);
      await this.#lifecycle.stop(find, doer(caller), limits.stop_grace_ms).catch(unlessNotRunning);
    }
    const kept = await this.#removeWorktree(row, options.delete_worktree);
    await store.write((tx) => {
      const now = this.#context.find(tx, caller, 'agent.delete', agent_id);
      if (isLive(now)) throw problems.agentRunning();
      removeRecord(this.#context, tx, now);
      this.#audit(tx, caller, 'agent_deleted', now, {
        name: now.name,
        ...(kept && { worktree_kept: kept.reason }),
      });
    });
    return { worktree_kept: kept };
  }

  sessions(caller: Caller, agent_id: string, request: PageRequest): Promise<Page<Session>> {
    const limit = request.limit ?? limits.page_items_default;
    const paged = request.limit !== undefined || request.cursor !== undefined;
    const before_number = readCursor(request.cursor, 'number')?.[0];
    return this.#context.options.store.read((reader) => {
      const row = this.#context.find(reader, caller, 'agent.read', agent_id);
      const rows = sessionsOf(reader, row.num, { before_number, limit: paged ? limit + 1 : undefined });
      return page(
        rows,
        paged ? limit : rows.length,
        (one) => toSession(one, spoolsOf(reader, one.num)),
        (one) => [one.number],
      );
    });
  }

  async changes(caller: Caller, agent_id: string): Promise<Changes> {
    const { folders, request } = await this.#workdir(caller, agent_id);
    return folders.changes(request);
  }

  async change(caller: Caller, agent_id: string, path: string): Promise<FileChange> {
    const { folders, request } = await this.#workdir(caller, agent_id);
    return folders.change(request, path);
  }

  async files(caller: Caller, agent_id: string, words: string): Promise<FoundFiles> {
    const { folders, request } = await this.#workdir(caller, agent_id);
    return folders.files(request.workdir, words);
  }

  /** For streams and pages of the log: throws unless the caller may read the agent; answers who else may. */
  mayRead(caller: Caller, agent_id: string): Promise<Audience> {
    return this.#context.options.store.read((reader) => {
      const { owner_id, team_num } = this.#context.find(reader, caller, 'agent.read', agent_id);
      return { owner_id, team_num, agent_id };
    });
  }

  async #workdir(caller: Caller, agent_id: string): Promise<{ folders: Folders; request: ChangesRequest }> {
    const row = await this.#context.options.store.read((reader) =>
      this.#context.find(reader, caller, 'agent.read', agent_id),
    );
    return {
      folders: this.#context.node(row.node_id).folders,
      request: { workdir: row.workdir, base: row.worktree_base },
    };
  }

  async #removeWorktree(row: AgentRow, force: boolean): Promise<Deleted['worktree_kept']> {
    if (row.worktree_mode !== 'create_worktree') return null;
    const worktree: Worktree = {
      workdir: row.workdir,
      repo: row.worktree_repo,
      branch: row.worktree_branch,
      base: row.worktree_base,
    };
    const { removed, kept_because } = await this.#context
      .node(row.node_id)
      .folders.removeWorktree(worktree, { force });
    return removed ? null : { workdir: row.workdir, reason: kept_because ?? 'it could not be removed' };
  }

  #audit(
    tx: Tx,
    caller: Caller,
    event: Parameters<AgentsContext['options']['audit']['record']>[1]['event'],
    row: AgentRow,
    details: Record<string, unknown>,
  ): void {
    this.#context.options.audit.record(tx, {
      event,
      agent_id: row.id,
      workdir: row.workdir,
      ...doer(caller),
      details,
    });
  }
}

/** `name=value`. */
function pairOf(label: string): [string, string] {
  const at = label.indexOf('=');
  return [label.slice(0, at), label.slice(at + 1)];
}

function doer(caller: Caller): Doer {
  return { user_id: caller.user_id, ip: caller.ip };
}
