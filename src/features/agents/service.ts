/**
 * Agents as clients use them: list, create, change, start, stop and delete. `lifecycle.ts` has the life cycle of sessions, and
 * `reconciler.ts` applies what nodes report.
 */
import { KeyedQueue } from '../../base/async.ts';
import { idFrom, newId } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { differs } from '../../core/changes.ts';
import type {
  Changes,
  ChangesRequest,
  DiffOptions,
  FileChange,
  Folders,
  FoundFiles,
} from '../../core/node.ts';
import { isPaged, type Page, type PageRequest, page, pageOfRows, readCursor } from '../../core/page.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import { isTemporary, problems } from '../../core/problem.ts';
import type { Session } from '../../core/session.ts';
import type { Audience } from '../../events/feed.ts';
import type { Reader } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { type AgentCore, auditAgent, type Principal } from './core.ts';
import { type AgentRequest, type CreateAgent, fromPreset, insertNew, withDefaults } from './creation.ts';
import { whileStopped } from './deleting.ts';
import { type DeleteOptions, type DeletionPreview, previewDeletion } from './deletion-preview.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { PendingRequests } from './pending.ts';
import { prepareWorkdir, readInWorkdir } from './placement.ts';
import {
  type AgentRow,
  agentsNamed,
  findAgent,
  findNamesakes,
  findSession,
  listAgents,
  listSessions,
  toSession,
  updateAgent,
  updateSession,
} from './queries/agents.ts';
import { isLive } from './records.ts';
import { cancelRestart } from './restarts.ts';
import type { Agent, AgentStatus } from './rules.ts';
import { ignoreNotRunning } from './session-errors.ts';
import { changedColumns, type UpdateAgent } from './updating.ts';
import { type Deleted, type Released, type ReleaseOptions, releaseWorktree } from './worktree-release.ts';

export interface AgentListFilter {
  status?: AgentStatus | undefined;
  node_id?: string | undefined;
  name?: string | undefined;
  /** `name=value`; an agent must have all. */
  label?: readonly string[] | undefined;
  /** Username or id. */
  owner?: string | undefined;
  team_id?: string | undefined;
  run_id?: string | undefined;
  /** The `worktree_repo` of agents. */
  repo?: string | undefined;
  /** Only agents that are archived, or only the others. */
  archived?: boolean | undefined;
  /** Words that all occur in an agent's id, name, command, workdir or labels. */
  q?: string | undefined;
}

export class Agents {
  readonly #core: AgentCore;
  readonly #lifecycle: Lifecycle;
  readonly #pending: PendingRequests;
  /** One deletion at a time per agent. */
  readonly #deletions = new KeyedQueue();

  constructor(core: AgentCore, lifecycle: Lifecycle, pending: PendingRequests) {
    this.#core = core;
    this.#lifecycle = lifecycle;
    this.#pending = pending;
  }

  /** Throws `agent not found`, also for an agent that the caller may not see. This holds for every method with an `agent_id`. */
  async get(caller: Caller, agent_id: string): Promise<Agent> {
    return this.#core.records.read(caller, 'agent.read', agent_id);
  }

  /** Newest first. Without a page request, at most `plain_list_items_max`, with a cursor for the rest. */
  list(caller: Caller, filter: AgentListFilter, request: PageRequest): Promise<Page<Agent>> {
    authorize(caller, 'agents.list');
    const paged = isPaged(request);
    const { page_items_default, plain_list_items_max } = sharedLimits;
    const limit = request.limit ?? (paged ? page_items_default : plain_list_items_max);
    const { label = [], q = '', ...exact } = filter;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#core.store.read(async (reader) => {
      const rows = await listAgents(reader, {
        view: viewOf(caller),
        ...exact,
        labels: label.map(splitLabel),
        words: q.split(/\s+/).filter((word) => word !== ''),
        before_num,
        limit: limit + 1,
      });
      return page(
        rows,
        limit,
        (row) => this.#core.records.toAgent(row),
        (row) => [row.num],
      );
    });
  }

  /**
   * Idempotent by key. `replace`: deletes the caller's agents of the same name first; worktrees with unsaved work are kept.
   * Throws `agent is running`, and changes nothing, if one of them runs.
   */
  async create(
    caller: Caller,
    input: AgentRequest,
    idempotency_key: string | null,
    { replace = false } = {},
  ): Promise<Agent> {
    authorize(caller, 'agents.create');
    // Before anything is created, because a token may lack the scope for the start.
    if (input.start) authorize(caller, 'agent.drive');
    const request = fromPreset(withDefaults(this.#core, input));
    if (request.prompt !== null && request.protocol !== 'acp') throw problems.promptNeedsAcp();
    const node = this.#core.nodes.get(request.node_id);
    const [id_of_key, earlier] = this.#idsOf(caller, idempotency_key);
    const known = await this.#core.store.read(
      async (reader) =>
        (await findAgent(reader, id_of_key)) ?? (earlier && (await findAgent(reader, earlier))),
    );
    // The same request was made within the key's lifetime, and its start failed or its response was lost.
    const is_repeat = known && known.created_at > this.#core.clock.now() - sharedLimits.idempotency_keep_ms;
    if (is_repeat && known.name !== request.name) throw problems.idempotencyReused();
    const id = is_repeat ? known.id : known ? newId('agt') : id_of_key;
    if (!is_repeat) {
      await node.reach();
      const replaced = replace ? await this.#replaceable(caller, request.name) : [];
      await this.#place(caller, id, request, async () => {
        for (const row of replaced)
          await this.delete(caller, row.id, { force: false, delete_worktree: false });
      });
    }
    // The agent stays if its start fails, and a different request must not start it.
    if (idempotency_key) this.#core.idempotency.reserve(caller, idempotency_key);
    if (request.start) await this.start(caller, id, idempotency_key);
    return this.#core.records.read(caller, 'agent.change', id);
  }

  /** The id of a new agent for a key, and the id that an earlier release derived from it. */
  #idsOf(caller: Caller, key: string | null): [string, string?] {
    if (!key) return [newId('agt')];
    const { idempotency } = this.#core;
    return [idempotency.agentId(caller, key), idFrom('agt', caller.user_id, 'create', key)];
  }

  /** How many other agents of the owner have the same name and are visible to the caller, and the ids of the newest. */
  namesakes(caller: Caller, agent: Agent, limit: number): Promise<{ ids: string[]; count: number }> {
    return this.#core.store.read((reader) => findNamesakes(reader, agent, viewOf(caller), limit));
  }

  /**
   * Creates the folder and the record of a new agent. Calls `deleteNamesakes` as late as possible, so that nothing has changed
   * if the folder is rejected; but before a worktree is created at a given path, which an agent to be replaced may occupy.
   */
  async #place(
    caller: Caller,
    agent_id: string,
    request: CreateAgent,
    deleteNamesakes: () => Promise<void>,
  ): Promise<void> {
    const may_be_taken = request.worktree_mode === 'create_worktree' && request.workdir !== null;
    if (may_be_taken) await deleteNamesakes();
    const rights = {
      owner: caller.user_id,
      may_use_all: caller.role === 'root',
      mayOperate: (reader: Reader, row: AgentRow) =>
        this.#core.records.may(reader, caller, 'agent.change', row),
      shares: () => false,
    };
    const owner = { user_id: caller.user_id, principal: toPrincipal(caller) };
    const ids = { agent_id, worktree_id: agent_id };
    await prepareWorkdir(this.#core, ids, request, rights, async (worktree) => {
      if (!may_be_taken) await deleteNamesakes();
      await this.#core.store.write((tx) => insertNew(this.#core, tx, agent_id, owner, request, worktree));
    });
  }

  /** The agents that a new one of this name replaces. Archived ones are kept, and so are those of runs, as part of their history. */
  async #replaceable(caller: Caller, name: string): Promise<AgentRow[]> {
    const rows = await this.#core.store.read(async (reader) =>
      (await agentsNamed(reader, caller.user_id, name)).filter(
        ({ team_num, archived_at }) => team_num === null && archived_at === null,
      ),
    );
    if (rows.some(isLive)) throw problems.agentRunning();
    return rows;
  }

  /** Ignores unchanged values and does not audit them. Throws `agent is running` for fields that need a stopped agent. */
  async update(caller: Caller, agent_id: string, changes: UpdateAgent): Promise<Agent> {
    await this.#core.store.write(async (tx) => {
      const row = await this.#core.records.find(tx, caller, 'agent.change', agent_id);
      const now = this.#core.clock.now();
      const values = changedColumns(row, changes, now);
      if (!differs(row, values)) return;
      updateAgent(tx, row.num, { ...values, updated_at: now });
      if (changes.restart_policy === 'never' || changes.archived)
        await this.#core.timers.clear(tx, 'agent_restart', agent_id);
      const changed = Object.keys(changes).filter((key) => changes[key as keyof UpdateAgent] !== undefined);
      await auditAgent(this.#core, tx, 'agent_updated', row, caller, { changed });
      await this.#core.records.publish(tx, agent_id);
    });
    return this.#core.records.read(caller, 'agent.change', agent_id);
  }

  /**
   * Starts the agent and waits for its process; see `Lifecycle.startAndWait`. Idempotent by key. If the node does not answer,
   * keeps the request and throws `node_unreachable`.
   */
  async start(caller: Caller, agent_id: string, idempotency_key: string | null): Promise<Agent> {
    const session_id = idempotency_key ? idFrom('ses', caller.user_id, agent_id, idempotency_key) : undefined;
    const find = this.#findOperable(caller, agent_id);
    const request = { kind: 'start', principal: toPrincipal(caller), grace_ms: 0, session_id } as const;
    await this.#pending.request(find, request, () =>
      this.#lifecycle.startAndWait(find, request.principal, session_id),
    );
    return this.#core.records.read(caller, 'agent.drive', agent_id);
  }

  /**
   * Stops the agent and waits for its end, or cancels the restart that is scheduled after a failure. `grace_ms`: between TERM
   * and KILL. Throws `agent is not running`, and `agent_processes_survived`. If the node does not answer, keeps the request and
   * throws `node_unreachable`.
   */
  async stop(caller: Caller, agent_id: string, grace_ms: number): Promise<Agent> {
    const find = this.#findOperable(caller, agent_id);
    const request = { kind: 'stop', principal: toPrincipal(caller), grace_ms } as const;
    if (!(await cancelRestart(this.#core, find, request.principal)))
      await this.#pending.request(find, request, () =>
        this.#lifecycle.stopAndWait(find, request.principal, grace_ms),
      );
    return this.#core.records.read(caller, 'agent.drive', agent_id);
  }

  /** Stops the agent if it runs, then starts it. Idempotent by key: a repetition stops nothing. `grace_ms`: see `stop`. */
  async restart(
    caller: Caller,
    agent_id: string,
    grace_ms: number,
    idempotency_key: string | null,
  ): Promise<Agent> {
    const session_id = idempotency_key ? idFrom('ses', caller.user_id, agent_id, idempotency_key) : undefined;
    const find = this.#findOperable(caller, agent_id);
    const request = { kind: 'restart', principal: toPrincipal(caller), grace_ms, session_id } as const;
    await this.#pending.request(find, request, () => this.#pending.restartAndWait(find, request));
    return this.#core.records.read(caller, 'agent.drive', agent_id);
  }

  /** Withdraws the request that is kept until the agent's node answers. Idempotent. */
  withdraw(caller: Caller, agent_id: string): Promise<void> {
    return this.#pending.withdraw(this.#findOperable(caller, agent_id), toPrincipal(caller));
  }

  #findOperable(caller: Caller, agent_id: string): (reader: Reader) => Promise<AgentRow> {
    return (reader) => this.#core.records.find(reader, caller, 'agent.drive', agent_id);
  }

  /**
   * Writes to stdin. The input is committed first, together with the response for its key, and then sent to the node in order.
   * Throws `node_unreachable`, and keeps nothing, if the node does not answer.
   */
  async input(
    caller: Caller,
    agent_id: string,
    data: string,
    eof: boolean,
    idempotency_key: string | null,
  ): Promise<Agent> {
    const { store, outbox, idempotency } = this.#core;
    const bytes = Buffer.from(data);
    const { node_id } = await store.read((reader) =>
      this.#core.records.find(reader, caller, 'agent.drive', agent_id),
    );
    await this.#core.nodes.get(node_id).reach();
    const intent_id = await store.write(async (tx) => {
      const row = await this.#core.records.find(tx, caller, 'agent.drive', agent_id);
      if (row.status !== 'running' || row.session_id === null) throw problems.agentNotRunning();
      if (row.protocol === 'acp') throw problems.agentSpeaksAcp();
      if (row.stdin !== 1) throw problems.agentNoStdin();
      const session = (await findSession(tx, row.session_id))!;
      if (session.stdin_lost === 1) throw problems.stdinLost();
      updateSession(tx, session.num, { stdin_bytes: session.stdin_bytes + bytes.length });
      await auditAgent(this.#core, tx, 'agent_input_sent', row, caller, {
        session_id: session.id,
        bytes: bytes.length,
        eof,
      });
      if (idempotency_key !== null) {
        const answer = { status: 200, location: null, body: this.#core.records.toAgent(row) };
        await idempotency.storeWith(tx, caller, idempotency_key, answer);
      }
      const payload = { offset: session.stdin_bytes, data: bytes.toString('base64'), eof };
      return outbox.enqueue(tx, row.node_id, session.id, 'input', payload);
    });
    await this.#lifecycle.whileReachable(node_id, outbox.outcome(intent_id)).catch((error: unknown) => {
      // The input is accepted: it reaches the agent later, and the client must not send it again.
      if (!isTemporary(error)) throw error;
    });
    return this.#core.records.read(caller, 'agent.drive', agent_id);
  }

  /**
   * `force`: stops a running agent first; without it, throws `agent is running`. `delete_worktree`: removes the worktree even if
   * it has unsaved work. Throws `node_unreachable`, and changes nothing, if the node does not answer.
   */
  async delete(caller: Caller, agent_id: string, options: DeleteOptions): Promise<Deleted> {
    const { store, timers } = this.#core;
    const find = (reader: Reader) => this.#core.records.find(reader, caller, 'agent.delete', agent_id);
    const { node_id } = await store.read(find);
    // Before anything changes, because files on an unreachable node could not be removed later.
    await this.#core.nodes.get(node_id).reach();
    const row = await store.write(async (tx) => {
      const found = await find(tx);
      if (isLive(found) && !options.force) throw problems.agentRunning();
      // The restart policy must not start it while its folder is removed.
      if (found.restart_at !== null) {
        await timers.clear(tx, 'agent_restart', agent_id);
        updateAgent(tx, found.num, { updated_at: this.#core.clock.now() });
        await this.#core.records.publish(tx, agent_id);
      }
      return found;
    });
    const principal = toPrincipal(caller);
    if (isLive(row)) {
      await this.#lifecycle.stopAndWait(find, principal, sharedLimits.stop_grace_ms).catch(ignoreNotRunning);
    }
    return this.#deleteStopped(find, principal, { discard_unsaved: options.delete_worktree });
  }

  /** Reports what `delete` would do; see `previewDeletion`. */
  previewDeletion(caller: Caller, agent_id: string, options: DeleteOptions): Promise<DeletionPreview> {
    return previewDeletion(this.#core, caller, agent_id, options);
  }

  /** Deletes an agent without a permission check. Throws `agent is running`. */
  deleteUnchecked(agent_id: string, principal: Principal, options: ReleaseOptions): Promise<Released> {
    const find = (reader: Reader) => this.#core.records.mustFind(reader, agent_id);
    return this.#deleteStopped(find, principal, options);
  }

  /**
   * Deletes agents of one folder one after the other. Once the record is gone, the folder may be another agent's, so no second
   * deletion may touch it; and of the agents that share a worktree, the last one decides about it.
   */
  async #deleteStopped(
    find: (reader: Reader) => Promise<AgentRow>,
    principal: Principal,
    options: ReleaseOptions,
  ): Promise<Released> {
    const { node_id, workdir } = await this.#core.store.read(find);
    return this.#deletions.run(`${node_id} ${workdir}`, () =>
      whileStopped(this.#core, find, (row) => this.#remove(row, find, principal, options)),
    );
  }

  async #remove(
    row: AgentRow,
    find: (reader: Reader) => Promise<AgentRow>,
    principal: Principal,
    options: ReleaseOptions,
  ): Promise<Released> {
    const released = await releaseWorktree(this.#core, row, options);
    const { worktree_kept, branch_kept, leftovers, was_last } = released;
    if (worktree_kept && was_last) await this.#core.summaries.measureNow(row.id);
    await this.#core.store.write(async (tx) => {
      const now = await find(tx);
      if (isLive(now)) throw problems.agentRunning();
      await this.#core.records.remove(tx, now);
      if (was_last) await this.#core.extensions.onWorktreeReleased(tx, now, worktree_kept?.reason ?? null);
      await auditAgent(this.#core, tx, 'agent_deleted', now, principal, {
        name: now.name,
        ...(worktree_kept && { worktree_kept: worktree_kept.reason }),
        ...(branch_kept && { branch_kept: branch_kept.reason }),
        // Without the command lines, which may contain secrets: audit records cannot be deleted.
        ...(leftovers.length > 0 && { leftovers: leftovers.map(({ pid }) => pid) }),
      });
    });
    return released;
  }

  /** Newest first. Without a page request: all of them. */
  sessions(caller: Caller, agent_id: string, request: PageRequest): Promise<Page<Session>> {
    const limit = request.limit ?? sharedLimits.page_items_default;
    const paged = isPaged(request);
    const before_number = readCursor(request.cursor, 'number')?.[0];
    return this.#core.store.read(async (reader) => {
      const row = await this.#core.records.find(reader, caller, 'agent.read', agent_id);
      const read_max = paged ? limit + 1 : undefined;
      const rows = await listSessions(reader, row.num, { before_number, limit: read_max });
      const { items, ...rest } = pageOfRows(rows, paged ? limit : rows.length, (item) => [item.number]);
      const sessions: Session[] = [];
      for (const item of items) sessions.push(await toSession(reader, item));
      return { items: sessions, ...rest };
    });
  }

  /** The changed files of the workdir, compared with the base of its worktree. */
  changes(caller: Caller, agent_id: string): Promise<Changes> {
    return this.#readFolder(caller, agent_id, (folders, request) => folders.changes(request));
  }

  /** The changes of one file. `path`: relative to the workdir. `options`: see `Folders.change`. */
  change(caller: Caller, agent_id: string, path: string, options: DiffOptions): Promise<FileChange> {
    return this.#readFolder(caller, agent_id, (folders, request) => folders.change(request, path, options));
  }

  /** All changes as a patch for `git apply`. Throws `patch_too_large` above `limits.patch_bytes_max`. */
  patch(caller: Caller, agent_id: string): Promise<Uint8Array> {
    return this.#readFolder(caller, agent_id, (folders, request) => folders.patch(request));
  }

  /** The best matches of a search among the files of the workdir. */
  files(caller: Caller, agent_id: string, query: string): Promise<FoundFiles> {
    return this.#readFolder(caller, agent_id, (folders, request) =>
      folders.files(request.workdir, query, request),
    );
  }

  /** Throws unless the caller may read the agent. Returns who may, for streams and pages of the log. */
  authorizeRead(caller: Caller, agent_id: string): Promise<Audience> {
    return this.#core.store.read(async (reader) => {
      const { owner_id, team_num } = await this.#core.records.find(reader, caller, 'agent.read', agent_id);
      return { owner_id, team_num, agent_id };
    });
  }

  /** Reads an agent's workdir, if the agent may still work there. */
  async #readFolder<T>(
    caller: Caller,
    agent_id: string,
    read: (folders: Folders, request: ChangesRequest) => Promise<T>,
  ): Promise<T> {
    const row = await this.#core.store.read((reader) =>
      this.#core.records.find(reader, caller, 'agent.read', agent_id),
    );
    const { folders } = this.#core.nodes.get(row.node_id);
    const request = { workdir: row.workdir, base: row.worktree_base, owner: row.owner_id };
    return readInWorkdir(this.#core, row, () => read(folders, request));
  }
}

/** `name=value`. */
function splitLabel(label: string): [string, string] {
  const at = label.indexOf('=');
  return [label.slice(0, at), label.slice(at + 1)];
}

function toPrincipal(caller: Caller): Principal {
  return { user_id: caller.user_id, ip: caller.ip };
}
