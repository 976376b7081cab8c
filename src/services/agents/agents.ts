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
import { type Action, authorize } from '../../domain/policy.ts';
import { isOutOfReach, Problem, problems } from '../../domain/problem.ts';
import type { Session } from '../../domain/session.ts';
import type { Caller } from '../../domain/user.ts';
import type { Audience } from '../../events/feed.ts';
import {
  type AgentRow,
  deleteAgent,
  findAgent,
  findSession,
  listAgents,
  sessionsOf,
  spoolsOf,
  toSession,
  updateAgent,
  updateSession,
} from '../../store/agents.ts';
import type { Tx } from '../../store/store.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import type { AgentsContext, Doer } from './context.ts';
import { type CreateAgent, fromPreset, insertNew, place, withPreset } from './creation.ts';
import type { Lifecycle } from './lifecycle.ts';

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
}

export interface Deleted {
  /** Null when no worktree was left behind. */
  worktree_kept: { workdir: string; reason: string } | null;
}

export class Agents {
  readonly #context: AgentsContext;
  readonly #lifecycle: Lifecycle;

  constructor(context: AgentsContext, lifecycle: Lifecycle) {
    this.#context = context;
    this.#lifecycle = lifecycle;
  }

  get(caller: Caller, agent_id: string): Promise<Agent> {
    return this.#context.options.store.read((reader) =>
      this.#context.record(this.#context.find(reader, caller, 'agent.read', agent_id)),
    );
  }

  list(caller: Caller, filter: AgentListFilter, request: PageRequest): Promise<Page<Agent>> {
    authorize(caller, 'agents.list');
    const limit = request.limit ?? limits.page_items_default;
    const paged = request.limit !== undefined || request.cursor !== undefined;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#context.options.store.read((reader) => {
      const rows = listAgents(reader, {
        user_id: caller.role === 'root' ? null : caller.user_id,
        ...filter,
        before_num,
        limit: paged ? limit + 1 : undefined,
      });
      return page(
        rows,
        paged ? limit : rows.length,
        (row) => this.#context.record(row),
        (row) => [row.num],
      );
    });
  }

  async create(caller: Caller, asked: CreateAgent, idempotency_key: string | null): Promise<Agent> {
    authorize(caller, 'agents.create');
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
      const worktree = await place(node.folders, id, request);
      await this.#context.options.store.write((tx) =>
        insertNew(this.#context, tx, id, { user_id: caller.user_id, doer: doer(caller) }, request, worktree),
      );
    }
    if (request.start) await this.start(caller, id, idempotency_key);
    return this.get(caller, id);
  }

  async update(caller: Caller, agent_id: string, changes: UpdateAgent): Promise<Agent> {
    await this.#context.options.store.write((tx) => {
      const row = this.#context.find(tx, caller, 'agent.change', agent_id);
      const { name, labels, command, argv, env, restart_policy, permission_mode } = changes;
      const needs_rest = [command, argv, env, restart_policy, permission_mode].some(
        (value) => value !== undefined,
      );
      if (needs_rest && isLive(row)) throw problems.agentRunning();
      if (argv === null && command === undefined && row.argv !== null) throw problems.commandRequired();
      updateAgent(tx, row.num, {
        ...(name !== undefined && { name }),
        ...(labels !== undefined && { labels: JSON.stringify(labels) }),
        ...(command !== undefined && { command, argv: null }),
        ...(argv && { command: showArgv(argv), argv: JSON.stringify(argv) }),
        ...(env !== undefined && { env: JSON.stringify(withPreset(row.preset, env)) }),
        ...(restart_policy !== undefined && { restart_policy }),
        ...(permission_mode !== undefined && { permission_mode }),
        updated_at: this.#context.now(),
      });
      if (restart_policy === 'never') this.#context.options.timers.clear(tx, 'agent_restart', agent_id);
      const changed = Object.keys(changes).filter((key) => changes[key as keyof UpdateAgent] !== undefined);
      this.#audit(tx, caller, 'agent_updated', row, { changed });
      this.#context.publish(tx, agent_id);
    });
    return this.get(caller, agent_id);
  }

  async start(caller: Caller, agent_id: string, idempotency_key: string | null): Promise<Agent> {
    const session_id = idempotency_key ? idFrom('ses', caller.user_id, agent_id, idempotency_key) : undefined;
    await this.#lifecycle.start(
      (reader) => this.#context.find(reader, caller, 'agent.drive', agent_id),
      doer(caller),
      session_id,
    );
    return this.get(caller, agent_id);
  }

  async stop(caller: Caller, agent_id: string, grace_ms: number): Promise<Agent> {
    await this.#lifecycle.stop(
      (reader) => this.#context.find(reader, caller, 'agent.drive', agent_id),
      doer(caller),
      grace_ms,
    );
    return this.get(caller, agent_id);
  }

  async restart(
    caller: Caller,
    agent_id: string,
    grace_ms: number,
    idempotency_key: string | null,
  ): Promise<Agent> {
    const session_id = idempotency_key ? idFrom('ses', caller.user_id, agent_id, idempotency_key) : undefined;
    const rests = await this.#context.options.store.read((reader) => {
      const row = this.#context.find(reader, caller, 'agent.drive', agent_id);
      return !isLive(row) || (session_id !== undefined && this.#lifecycle.isRepeated(reader, session_id));
    });
    if (!rests) await this.#end(caller, 'agent.drive', agent_id, grace_ms);
    return this.start(caller, agent_id, idempotency_key);
  }

  /** Stops an agent that was running; one that ended by itself meanwhile is as good. */
  async #end(caller: Caller, action: Action, agent_id: string, grace_ms: number): Promise<void> {
    try {
      await this.#lifecycle.stop(
        (reader) => this.#context.find(reader, caller, action, agent_id),
        doer(caller),
        grace_ms,
      );
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'agent_not_running') throw error;
    }
  }

  /** Writes to stdin: committed first, with the answer to its key, then carried to the node's journal in order. */
  async input(
    caller: Caller,
    agent_id: string,
    data: string,
    eof: boolean,
    idempotency_key: string | null,
  ): Promise<Agent> {
    const { store, outbox, idempotency } = this.#context.options;
    const bytes = Buffer.from(data);
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
    await outbox.outcome(intent_id).catch((error: unknown) => {
      // Accepted all the same: it reaches the agent once its node or the next plane is there, and must not be sent again.
      const kept = isOutOfReach(error) || (error instanceof Problem && error.code === 'draining');
      if (!kept) throw error;
    });
    return this.get(caller, agent_id);
  }

  async delete(
    caller: Caller,
    agent_id: string,
    options: { force: boolean; delete_worktree: boolean },
  ): Promise<Deleted> {
    const { store, timers } = this.#context.options;
    const row = await store.write((tx) => {
      const found = this.#context.find(tx, caller, 'agent.delete', agent_id);
      if (isLive(found) && !options.force) throw problems.agentRunning();
      // Its restart policy must not start it in a folder that is being removed.
      timers.clear(tx, 'agent_restart', agent_id);
      return found;
    });
    if (isLive(row)) await this.#end(caller, 'agent.delete', agent_id, limits.stop_grace_ms);
    const kept = await this.#removeWorktree(row, options.delete_worktree);
    await store.write((tx) => {
      const now = this.#context.find(tx, caller, 'agent.delete', agent_id);
      if (isLive(now)) throw problems.agentRunning();
      const record = this.#context.record(now);
      timers.clear(tx, 'agent_restart', agent_id);
      this.#context.options.log.drop(tx, now.num);
      deleteAgent(tx, now.num);
      this.#audit(tx, caller, 'agent_deleted', now, {
        name: now.name,
        ...(kept && { worktree_kept: kept.reason }),
      });
      this.#context.options.feed.append(
        tx,
        'agent',
        now.owner_id,
        { ...record, deleted: true },
        now.team_num,
      );
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
      return { owner_id, team_num };
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

function isLive(row: AgentRow): boolean {
  return row.session_state === 'starting' || row.session_state === 'running';
}

function doer(caller: Caller): Doer {
  return { user_id: caller.user_id, ip: caller.ip };
}
