/**
 * The registry of remote nodes: their configuration by root, and the current state of their links. It owns the rows and the
 * rules (ids, names, targets, no deletion while agents are bound). The links are a separate object, which is notified of
 * every new, changed and deleted row, in order for each node.
 */
import { KeyedQueue } from '../../base/async.ts';
import type { Clock } from '../../base/clock.ts';
import { rfc3339, rfc3339OrNull } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import { MAIN_NODE } from '../../core/node.ts';
import { isPaged, type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { problems } from '../../core/problem.ts';
import type { Feed } from '../../events/feed.ts';
import { isAllowedAddress, isHostName, parseTarget } from '../../link/plane/target.ts';
import type { IdempotencyKeys } from '../../server/idempotency.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { LeftBehind } from '../agents/rules.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import type { Audit } from '../audit/service.ts';
import { deleteKeptOf } from '../worktrees/queries.ts';
import {
  countAgents,
  countNodeAgents,
  deleteNode,
  findNode,
  insertNode,
  isNodeTaken,
  listNodes,
  type NodeRow,
  updateLastSeen,
  updateNode,
} from './queries.ts';
import {
  type HealthReport,
  MAIN_NODE_NAME,
  type NodeFolders,
  type NodeRecord,
  type NodeSummary,
} from './rules.ts';

export type { NodeRow };

export interface LinkState
  extends Pick<NodeRecord, 'status' | 'version' | 'worktree_root_problem' | 'unrecovered_sessions'> {
  last_seen_at_ms: number | null;
  error: string | null;
  has_default_root: boolean | null;
}

/** Keeps a connection to every registered node. */
export interface Links {
  open(row: NodeRow): void;
  /** Called for every change, even if only the name changed. */
  update(row: NodeRow): void;
  close(node_id: string): Promise<void>;
  state(node_id: string): LinkState;
  /** The round trips of the link's latest heartbeats in ms, oldest first; none without a link. */
  latencies(node_id: string): readonly number[];
  probe(row: NodeRow): Promise<HealthReport>;
  /** Resolves once the node has reported on the registry's root, or after `limits.node_answer_ms`. */
  untilRootChecked(node_id: string): Promise<void>;
}

export interface RegistryDeps {
  store: Store;
  clock: Clock;
  audit: Audit;
  feed: Feed;
  idempotency: Pick<IdempotencyKeys, 'storeWith'>;
  /** Null if `internal_grpc.enabled` is not set. Nodes are then listed, but never connected. */
  links: Links | null;
  /** The current folders of the main node; null if no agents run there, so that it is not a node for users. */
  folders(): NodeFolders | null;
  /**
   * Removes the records of a node's agents without contacting the node. Throws `agent_node_answers` unless the node is
   * unreachable.
   */
  forgetAgents(caller: Caller, node_id: string): Promise<LeftBehind[]>;
}

export interface RegisterNode {
  id: string;
  name: string;
  grpc_target: string;
  tls_server_name: string | null;
  default_worktree_root: string | null;
}

export type UpdateNode = { [Key in keyof Omit<RegisterNode, 'id'>]?: RegisterNode[Key] | undefined } & {
  /** Accepts the disk that connects next as the node's. */
  accept_disk?: boolean | undefined;
};

const UNKNOWN: LinkState = {
  status: 'unreachable',
  version: null,
  last_seen_at_ms: null,
  error: null,
  has_default_root: null,
  worktree_root_problem: null,
  unrecovered_sessions: 0,
};

export class Registry {
  readonly #deps: RegistryDeps;
  /** The rows as committed. */
  readonly #rows = new Map<string, NodeRow>();
  readonly #linked = new Set<string>();
  readonly #queue = new KeyedQueue();
  readonly #probes = new Map<string, Promise<HealthReport>>();
  /** The last audited rejection of each node. */
  readonly #refusals = new Map<string, string>();

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
  }

  /** Reads the rows and opens a link for each. */
  async open(): Promise<void> {
    for (const row of await this.#deps.store.read((reader) => listNodes(reader))) {
      this.#rows.set(row.id, row);
      this.#link(row);
    }
  }

  /** Null if the id is not registered. The main node is not registered. */
  find(node_id: string): NodeRow | null {
    return this.#rows.get(node_id) ?? null;
  }

  /** The ids of the registered nodes. */
  ids(): string[] {
    return [...this.#rows.keys()];
  }

  /** Registered nodes, newest first. */
  list(request: PageRequest): Promise<Page<NodeRecord>> {
    const { before, limit } = readRequest(request);
    return this.#deps.store.read(async (reader) => {
      const rows = await listNodes(reader, { before, limit: limit + 1 });
      const agents = await countAgents(reader);
      return page(rows, limit, (row) => this.#record(row, agents.get(row.id) ?? 0), positionOf);
    });
  }

  /** The main node if agents run there, followed by the registered ones, newest first. */
  async summaries(request: PageRequest): Promise<Page<NodeSummary>> {
    const { before, limit } = readRequest(request);
    const folders = before === undefined ? this.#deps.folders() : null;
    const main: NodeSummary = {
      id: MAIN_NODE,
      name: MAIN_NODE_NAME,
      status: 'connected',
      has_default_root: true,
      folders,
      actor_calls: this.#deps.links !== null,
    };
    const rows = await this.#deps.store.read((reader) => listNodes(reader, { before, limit: limit + 1 }));
    const nodes = [
      ...(folders === null ? [] : [{ position: BEFORE_ALL, summary: main }]),
      ...rows.map((row) => ({ position: row, summary: this.#summary(row) })),
    ];
    return page(
      nodes,
      limit,
      ({ summary }) => summary,
      ({ position }) => positionOf(position),
    );
  }

  /** Throws `node not found`, also for the main node. */
  get(node_id: string): Promise<NodeRecord> {
    return this.#deps.store.read(async (reader) => {
      const row = await findNode(reader, node_id);
      if (!row) throw problems.nodeNotFound();
      return this.#record(row, await countNodeAgents(reader, node_id));
    });
  }

  /**
   * Waits for the check of the worktree root, if any, for up to `limits.node_answer_ms`; not for the connection. Throws
   * `node already exists` for an id or a name that is in use. `idempotency_key`: a repeated request gets the first response,
   * also if the plane ended during the wait.
   */
  register(
    caller: Caller,
    request: RegisterNode,
    idempotency_key: string | null = null,
  ): Promise<NodeRecord> {
    return this.#queue.run(request.id, async () => {
      if (request.id === MAIN_NODE) throw problems.nodeIdReserved();
      checkTarget(request.grpc_target);
      const { store, clock, idempotency, links } = this.#deps;
      if (links === null) throw problems.internalGrpcUnavailable();
      const { id, name, grpc_target, tls_server_name, default_worktree_root } = request;
      const row = await store.write(async (tx) => {
        if (name === MAIN_NODE_NAME || (await isNodeTaken(tx, id, name))) throw problems.nodeExists();
        const fields = { id, name, grpc_target, tls_server_name, default_worktree_root };
        const created = await insertNode(tx, fields, clock.now());
        await this.#audit(tx, 'node_registered', caller, id, { name, grpc_target });
        const body = this.#record(created, await countNodeAgents(tx, id));
        if (idempotency_key !== null) {
          const answer = { status: 201, location: `/api/admin/agent-nodes/${id}`, body };
          await idempotency.storeWith(tx, caller, idempotency_key, answer);
        }
        await this.#publish(tx, body);
        tx.afterCommit(() => this.#rows.set(id, created));
        return created;
      });
      this.#link(row);
      if (default_worktree_root !== null) await links.untilRootChecked(id);
      return this.get(id);
    });
  }

  /** Changes only the given fields; null clears an optional one. */
  update(caller: Caller, node_id: string, changes: UpdateNode): Promise<NodeRecord> {
    return this.#queue.run(node_id, async () => {
      const { store, clock, links } = this.#deps;
      const { name, grpc_target, tls_server_name, default_worktree_root, accept_disk } = changes;
      if (grpc_target !== undefined) checkTarget(grpc_target);
      const row = await store.write(async (tx) => {
        const before = await findNode(tx, node_id);
        if (!before) throw problems.nodeNotFound();
        if (name !== undefined && name !== before.name) {
          if (name === MAIN_NODE_NAME || (await isNodeTaken(tx, '', name))) throw problems.nodeExists();
        }
        const node_fields = {
          ...(name !== undefined && { name }),
          ...(grpc_target !== undefined && { grpc_target }),
          ...(tls_server_name !== undefined && { tls_server_name }),
          ...(default_worktree_root !== undefined && { default_worktree_root }),
          ...(accept_disk && { disk_id: null }),
        };
        const changed = Object.entries(node_fields).filter(
          ([key, value]) => before[key as keyof NodeRow] !== value,
        );
        if (changed.length === 0) return null;
        const after = { ...before, ...node_fields, updated_at: clock.now() };
        await updateNode(tx, node_id, after);
        await this.#audit(tx, 'node_updated', caller, node_id, { changed: Object.fromEntries(changed) });
        await this.#publish(tx, this.#record(after, await countNodeAgents(tx, node_id)));
        tx.afterCommit(() => this.#rows.set(node_id, after));
        return after;
      });
      if (row !== null) links?.update(row);
      if (row !== null && row.default_worktree_root !== null) await links?.untilRootChecked(node_id);
      return this.get(node_id);
    });
  }

  /** Rejected while any agent record refers to the node, because the agent's work is on that disk. */
  delete(caller: Caller, node_id: string): Promise<void> {
    return this.#queue.run(node_id, () => this.#remove(caller, node_id, 'node_deleted'));
  }

  /**
   * Removes a node whose machine will not come back, and the records of its agents. Returns what the agents leave behind.
   * Rejected while the node responds. If it is interrupted, the records that were already removed stay removed, and the call
   * can be repeated.
   */
  forget(caller: Caller, node_id: string): Promise<LeftBehind[]> {
    return this.#queue.run(node_id, async () => {
      if (!this.#rows.has(node_id)) throw problems.nodeNotFound();
      const left_behind = await this.#deps.forgetAgents(caller, node_id);
      const agents = left_behind.map(({ agent_id }) => agent_id);
      await this.#remove(caller, node_id, 'node_forgotten', { agents });
      return left_behind;
    });
  }

  async #remove(
    caller: Caller,
    node_id: string,
    event: 'node_deleted' | 'node_forgotten',
    details: Record<string, unknown> = {},
  ): Promise<void> {
    const { store, links } = this.#deps;
    await store.write(async (tx) => {
      const row = await findNode(tx, node_id);
      if (!row) throw problems.nodeNotFound();
      if ((await countNodeAgents(tx, node_id)) > 0) throw problems.nodeHasAgents();
      await deleteNode(tx, row);
      await deleteKeptOf(tx, node_id);
      const { name, grpc_target } = row;
      await this.#audit(tx, event, caller, node_id, { name, grpc_target, ...details });
      await this.#publish(tx, { ...this.#record(row, 0), deleted: true });
      tx.afterCommit(() => this.#rows.delete(node_id));
    });
    this.#refusals.delete(node_id);
    this.#linked.delete(node_id);
    await links?.close(node_id);
  }

  /** Tests the connection; concurrent callers get the report of the running test. */
  async health(node_id: string): Promise<HealthReport> {
    const row = this.#rows.get(node_id);
    if (!row) throw problems.nodeNotFound();
    const { links } = this.#deps;
    if (links === null) throw problems.internalGrpcUnavailable();
    let probe = this.#probes.get(node_id);
    if (!probe) {
      probe = links.probe(row).finally(() => this.#probes.delete(node_id));
      this.#probes.set(node_id, probe);
    }
    return probe;
  }

  /** Publishes a change of the link's state on the fleet feed, and stores the parts that must survive a restart. */
  async publishLinkState(node_id: string): Promise<void> {
    if (this.#state(node_id).status === 'connected') this.#refusals.delete(node_id);
    await this.#change(node_id, async (tx, row) => {
      // Read here: a transaction that runs again must not publish an older state after a newer one.
      const state = this.#state(node_id);
      const { version, last_seen_at } = this.#seen(row, state);
      const after = { ...row, version, last_seen_at };
      await updateNode(tx, node_id, { version, last_seen_at });
      await this.#publish(tx, this.#record(after, await countNodeAgents(tx, node_id), state));
      return after;
    });
  }

  /**
   * Stores when these nodes were last seen (Unix ms), so that the next plane knows it. Publishes nothing, because `state` has
   * it already.
   */
  async storeLastSeen(seen: ReadonlyMap<string, number>): Promise<void> {
    const isNew = ([id, at_ms]: [string, number]) => at_ms > (this.#rows.get(id)?.last_seen_at ?? 0);
    const later = new Map([...seen].filter(isNew));
    if (later.size === 0) return;
    await this.#deps.store.write(async (tx) => {
      await updateLastSeen(tx, later);
      tx.afterCommit(() => {
        // Others may have been committed since.
        for (const [id, last_seen_at] of [...later].filter(isNew)) {
          const row = this.#rows.get(id);
          if (row) this.#rows.set(id, { ...row, last_seen_at });
        }
      });
    });
  }

  /** Returns the number of the next link, which is higher than any that this node has seen. Throws for an unknown node. */
  async nextEpoch(node_id: string): Promise<number> {
    const row = await this.#change(node_id, async (tx, before) => {
      const epoch = before.epoch + 1;
      await updateNode(tx, node_id, { epoch });
      return { ...before, epoch };
    });
    if (row === null) throw problems.nodeNotFound();
    return row.epoch;
  }

  /** Returns the node's disk. The first disk that connects is recorded. */
  async claimDisk(node_id: string, disk_id: string): Promise<string> {
    const row = await this.#change(node_id, async (tx, before) => {
      if (before.disk_id !== null) return before;
      await updateNode(tx, node_id, { disk_id });
      return { ...before, disk_id };
    });
    if (row === null) throw problems.nodeNotFound();
    return row.disk_id!;
  }

  /** Records another disk for the node. The previous one had no live sessions. */
  async recordNewDisk(node_id: string, disk_id: string): Promise<void> {
    await this.#change(node_id, async (tx, row) => {
      await updateNode(tx, node_id, { disk_id });
      await this.#audit(tx, 'node_replaced', null, node_id, { disk_id, before: row.disk_id });
      return { ...row, disk_id };
    });
  }

  /** Records that the plane has issued a certificate to the node. */
  async recordJoin(node_id: string, details: Record<string, unknown> = {}): Promise<void> {
    this.#refusals.delete(node_id);
    await this.#change(node_id, async (tx, row) => {
      const joined_at = this.#deps.clock.now();
      await updateNode(tx, node_id, { joined_at });
      await this.#audit(tx, 'node_joined', null, node_id, details);
      return { ...row, joined_at };
    });
  }

  /**
   * Records that a program at the node's target was rejected. Consecutive rejections for the same reason are audited once.
   */
  async recordRejection(node_id: string, reason: string): Promise<void> {
    if (this.#refusals.get(node_id) === reason || !this.#rows.has(node_id)) return;
    this.#refusals.set(node_id, reason);
    await this.#deps.store.write((tx) => this.#audit(tx, 'node_refused', null, node_id, { reason }));
  }

  /** Changes a row; returns null if it was deleted in the meantime. */
  #change(node_id: string, change: (tx: Tx, row: NodeRow) => Promise<NodeRow>): Promise<NodeRow | null> {
    return this.#deps.store.write(async (tx) => {
      const row = await findNode(tx, node_id);
      if (!row) return null;
      const after = await change(tx, row);
      tx.afterCommit(() => this.#rows.set(node_id, after));
      return after;
    });
  }

  #link(row: NodeRow): void {
    const { links } = this.#deps;
    if (links === null) return;
    links.open(row);
    this.#linked.add(row.id);
  }

  #state(node_id: string): LinkState {
    const { links } = this.#deps;
    if (links === null) return UNKNOWN;
    return this.#linked.has(node_id) ? links.state(node_id) : { ...UNKNOWN, status: 'connecting' };
  }

  #seen(row: NodeRow, state: LinkState): { version: string | null; last_seen_at: number | null } {
    const last_seen_at = Math.max(row.last_seen_at ?? 0, state.last_seen_at_ms ?? 0) || null;
    return { version: state.version ?? row.version, last_seen_at };
  }

  #record(row: NodeRow, agents: number, state = this.#state(row.id)): NodeRecord {
    const { id, name, grpc_target, tls_server_name, default_worktree_root } = row;
    const { version, last_seen_at } = this.#seen(row, state);
    return {
      id,
      name,
      grpc_target,
      tls_server_name,
      default_worktree_root,
      worktree_root_problem: state.worktree_root_problem,
      unrecovered_sessions: state.unrecovered_sessions,
      status: state.status,
      version,
      agents,
      last_seen_at: rfc3339OrNull(last_seen_at),
      created_at: rfc3339(row.created_at),
      updated_at: rfc3339(row.updated_at),
    };
  }

  #summary(row: NodeRow): NodeSummary {
    const { status, has_default_root } = this.#state(row.id);
    const rooted = row.default_worktree_root !== null || has_default_root === true;
    const actor_calls = this.#deps.links !== null;
    return { id: row.id, name: row.name, status, has_default_root: rooted, folders: null, actor_calls };
  }

  /** Only root sees the record, because no owner has this id. */
  async #publish(tx: Tx, record: NodeRecord & { deleted?: true }): Promise<void> {
    await this.#deps.feed.append(tx, 'node', '', { ...record });
  }

  async #audit(
    tx: Tx,
    event: AuditEvent,
    caller: Caller | null,
    node_id: string,
    details: Record<string, unknown>,
  ): Promise<void> {
    await this.#deps.audit.record(tx, {
      event,
      user_id: caller?.user_id ?? null,
      ip: caller?.ip ?? null,
      ...(event === 'node_refused' && { level: 'warn' as const }),
      details: { node_id, ...details },
    });
  }
}

/** The position of the main node in lists. */
const BEFORE_ALL = { created_at: Number.MAX_SAFE_INTEGER, id: MAIN_NODE };

function positionOf({ created_at, id }: { created_at: number; id: string }): [number, string] {
  return [created_at, id];
}

/** Without a page request, the limit includes all nodes. */
function readRequest(request: PageRequest): {
  before: { created_at: number; id: string } | undefined;
  limit: number;
} {
  const [created_at, id] = readCursor(request.cursor, 'number', 'string') ?? [];
  const before = created_at !== undefined && id !== undefined ? { created_at, id } : undefined;
  const limit = request.limit ?? limits.page_items_default;
  return { before, limit: isPaged(request) ? limit : Number.MAX_SAFE_INTEGER - 1 };
}

/** Rejects a target with a forbidden address. Host names are checked at every connection instead. */
function checkTarget(text: string): void {
  const target = parseTarget(text);
  if (target === null) throw problems.grpcTargetInvalid();
  if (!isHostName(target.host) && !isAllowedAddress(target.host)) throw problems.grpcTargetRefused();
}
