/**
 * Keeps a link to every registered node: connects, adopts its sessions, reports how long it has been silent, and
 * reconnects. Silence is a label: it does not change an agent's status, start anything elsewhere or kill anything.
 */
import { Wake } from '../../base/async.ts';
import type { Clock } from '../../base/clock.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import type { Node } from '../../core/node.ts';
import { nodeIdMismatch, Problem, problems } from '../../core/problem.ts';
import type { Ingest } from '../../events/ingest/ingest.ts';
import type { NodeIdentity } from '../../link/plane/attachment.ts';
import { tryPort } from '../../link/plane/connection.ts';
import { askHealth, type RemoteHealth } from '../../link/plane/health.ts';
import { RemoteNode } from '../../link/plane/remote-node.ts';
import { resolveTarget } from '../../link/plane/target.ts';
import { renewNode } from '../../link/trust/join.ts';
import { coversHost } from '../../link/trust/pki.ts';
import { toProblem, versionMismatch } from '../../link/wire.ts';
import type { ActorCall } from '../actors/rules/actor.ts';
import type { SessionReaders } from '../agents/index.ts';
import {
  connect,
  type DialedConnection,
  type DialingDeps,
  dial,
  expectedNames,
  toTarget,
  withTokenRetry,
} from './dialing.ts';
import { type HealthSteps, testNode } from './health.ts';
import { limits } from './limits.ts';
import type { NodeRow } from './queries.ts';
import type { HealthReport, NodeStatus } from './rules.ts';
import type { LinkState, Links, Registry } from './service.ts';

export interface NodeLinksDeps extends Omit<DialingDeps, 'recordJoin'> {
  plane: { plane_id: string; incarnation: number };
  /** Opens the readers of a node's sessions. Called once per registered node. */
  readers(node: Node): SessionReaders;
  /** Handles a call from an actor on a node. */
  upcall(call: ActorCall): Promise<unknown>;
  /** Whether the node has live sessions, according to the database. */
  hasLive(node_id: string): Promise<boolean>;
  /** Called when a node is linked again, so that work that waited for it continues. */
  onUp(node_id: string): void;
  /** `since_ms`: Unix time of the last message of a node that becomes unreachable; null: the node is linked again. */
  onStale(node_id: string, since_ms: number | null): Promise<void>;
  clock: Clock;
  log: Logger;
}

/** The part of the registry that links report to. */
type LinkRegistry = Pick<
  Registry,
  | 'nextEpoch'
  | 'claimDisk'
  | 'recordJoin'
  | 'recordRejection'
  | 'publishLinkState'
  | 'recordNewDisk'
  | 'storeLastSeen'
>;

export class NodeLinks implements Links {
  readonly #deps: NodeLinksDeps;
  readonly #links = new Map<string, NodeLink>();
  readonly #timers: NodeJS.Timeout[];
  #registry: LinkRegistry | null = null;

  constructor(deps: NodeLinksDeps) {
    this.#deps = deps;
    const watch = () => {
      for (const link of this.#links.values()) link.updateStatus();
    };
    const store = () => void this.#storeLastSeen();
    this.#timers = [
      setInterval(watch, limits.link_check_ms).unref(),
      setInterval(store, limits.last_seen_store_ms).unref(),
    ];
  }

  /** Sets the registry that links report to. Must be called before `open`. */
  reportTo(registry: LinkRegistry): void {
    this.#registry = registry;
  }

  /** Null if the node is not registered; so is `ingest`. */
  node(node_id: string): Node | null {
    return this.#links.get(node_id)?.node ?? null;
  }

  ingest(node_id: string): Ingest | null {
    return this.#links.get(node_id)?.ingest ?? null;
  }

  /** Starts connecting, and keeps trying until the link is closed. */
  open(row: NodeRow): void {
    const link = new NodeLink(this.#deps, this.#registry!, row);
    this.#links.set(row.id, link);
    link.start();
  }

  update(row: NodeRow): void {
    this.#links.get(row.id)?.update(row);
  }

  /** Resolves once the link and its ingest have stopped. The agents of the node keep running. */
  async close(node_id: string): Promise<void> {
    const link = this.#links.get(node_id);
    this.#links.delete(node_id);
    await link?.close();
  }

  state(node_id: string): LinkState {
    const link = this.#links.get(node_id);
    if (link) return link.state();
    return {
      status: 'unreachable',
      version: null,
      last_seen_at_ms: null,
      error: null,
      has_default_root: null,
      worktree_root_problem: null,
      unrecovered_sessions: 0,
    };
  }

  latencies(node_id: string): readonly number[] {
    return this.#links.get(node_id)?.node.latencies_ms ?? [];
  }

  async untilRootChecked(node_id: string): Promise<void> {
    const timeout = AbortSignal.timeout(sharedLimits.node_answer_ms);
    await this.#links.get(node_id)?.untilRootChecked(timeout);
  }

  /** Tests the connection with connections of its own. Never rejects for a failed check, which is part of the report. */
  probe(row: NodeRow): Promise<HealthReport> {
    const steps = probeSteps(this.#deps, row);
    const auth: HealthSteps['auth'] = async (signal) => {
      const health = await steps.auth(signal);
      // The node answers but is rejected, for example because of its disk, or because another plane connected later.
      const refusal = this.#links.get(row.id)?.refusal;
      if (refusal) throw refusal;
      return health;
    };
    return testNode(row.id, { ...steps, auth }, this.#deps.log);
  }

  async #storeLastSeen(): Promise<void> {
    const linked = [...this.#links.values()].flatMap((link) => link.lastSeen());
    try {
      await this.#registry?.storeLastSeen(new Map(linked));
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'cannot store when nodes were last seen');
    }
  }

  /** Ends every link; agents and nodes keep running. */
  async closeAll(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all([...this.#links.keys()].map((node_id) => this.close(node_id)));
  }
}

class NodeLink {
  readonly node: RemoteNode;
  readonly ingest: Ingest;
  readonly #deps: NodeLinksDeps;
  readonly #registry: LinkRegistry;
  readonly #sink: SessionReaders['sink'];
  readonly #stop = new AbortController();
  readonly #wake = new Wake();
  #row: NodeRow;
  #running: Promise<void> | null = null;
  #onLinkDown: (reason: Error) => void = () => {};
  #status: NodeStatus = 'connecting';
  #error: string | null = null;
  #refusal: Problem | null = null;
  #version: string | null = null;
  #has_default_root: boolean | null = null;
  #root_problem: string | null = null;
  /** The registry's root that `#root_problem` refers to. */
  #checked_root: string | null = null;
  readonly #checked = new Wake();
  #unrecovered = 0;
  /** By the plane's clock, for display; silence is measured by the monotonic clock. */
  #last_seen_at_ms: number | null;
  #last_heard_at = performance.now();
  #linked = false;
  #maintained_at = Number.NEGATIVE_INFINITY;
  /** When the certificate was renewed last. The open connection still shows the previous one. */
  #renewed_at_ms = Number.NEGATIVE_INFINITY;
  /** Whether the records of its agents are marked as out of date; null if that is not known. */
  #stale: boolean | null = null;
  #marked: Promise<void> = Promise.resolve();

  constructor(deps: NodeLinksDeps, registry: LinkRegistry, row: NodeRow) {
    this.#registry = registry;
    this.#deps = deps;
    this.#row = row;
    this.#last_seen_at_ms = row.last_seen_at;
    this.node = new RemoteNode({
      id: row.id,
      log: deps.log,
      dial: (signal) =>
        dial({ ...deps, recordJoin: (...args) => registry.recordJoin(...args) }, this.#row, signal),
      nextPosition: async () => ({ ...deps.plane, epoch: await registry.nextEpoch(row.id) }),
      accept: (identity) => this.#accept(identity),
      upcall: (call) => deps.upcall({ ...call, node_id: row.id }),
      worktree_root: () => this.#row.default_worktree_root,
      onDown: (reason) => this.#onLinkDown(reason),
      onBack: () => deps.onUp(row.id),
    });
    const { ingest, sink } = deps.readers(this.node);
    this.ingest = ingest;
    this.#sink = sink;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** A new target or name requires a new connection; agents are not affected. */
  update(row: NodeRow): void {
    const address_changed =
      row.grpc_target !== this.#row.grpc_target || row.tls_server_name !== this.#row.tls_server_name;
    this.#row = row;
    if (this.#checked_root !== row.default_worktree_root) this.#root_problem = null;
    if (address_changed) void this.#logErrors(() => this.#reconnect());
    else if (this.#linked) void this.#logErrors(() => this.#maintain());
  }

  /** While the link is still up, renews the node's certificate for the names of the new target. */
  async #reconnect(): Promise<void> {
    await this.#logErrors(() => this.#renew());
    await this.node.detach();
    this.#onLinkDown(problems.nodeUnreachable());
    this.#wake.notify();
  }

  /** Resolves once the node has reported on the currently registered root, or when the signal aborts. */
  async untilRootChecked(signal: AbortSignal): Promise<void> {
    while (this.#checked_root !== this.#row.default_worktree_root && !signal.aborted) {
      await this.#checked.wait(undefined, signal);
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.node.detach();
    this.#onLinkDown(problems.nodeUnreachable());
    await this.#running;
    await this.ingest.close();
  }

  state(): LinkState {
    return {
      status: this.#status,
      version: this.#version,
      last_seen_at_ms: this.#last_seen_at_ms,
      error: this.#error,
      has_default_root: this.#has_default_root,
      worktree_root_problem: this.#root_problem,
      unrecovered_sessions: this.#unrecovered,
    };
  }

  /** Why a node that answers is not linked; null while it is linked, or does not answer. */
  get refusal(): Problem | null {
    return this.#linked ? null : this.#refusal;
  }

  /** The node's id, and when it was last seen; nothing without a link. */
  lastSeen(): [node_id: string, at_ms: number][] {
    return this.#linked && this.#last_seen_at_ms !== null ? [[this.#row.id, this.#last_seen_at_ms]] : [];
  }

  /** Determines the status from the duration of the silence. */
  updateStatus(): void {
    const { clock } = this.#deps;
    const heard_at = this.node.last_heard_at;
    if (this.#linked && heard_at !== null && heard_at > this.#last_heard_at) {
      this.#last_heard_at = heard_at;
      this.#last_seen_at_ms = Math.round(clock.now() - (performance.now() - heard_at));
    }
    const silent_ms = performance.now() - this.#last_heard_at;
    if (silent_ms >= limits.node_unreachable_ms) {
      this.#setStatus('unreachable');
      void this.#mark(true);
    } else {
      if (silent_ms >= sharedLimits.node_suspect_ms) this.#setStatus('suspect');
      else if (this.#linked) this.#setStatus('connected');
      if (this.#linked) void this.#mark(false);
    }
    if (this.#linked && performance.now() - this.#maintained_at >= limits.node_care_ms) {
      void this.#logErrors(() => this.#maintain());
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let wait_ms = 0;
    while (!signal.aborted) {
      const down = new Promise<Error>((resolve) => {
        this.#onLinkDown = resolve;
      });
      try {
        await this.node.attach(this.#sink);
        wait_ms = 0;
        await this.#up();
        const reason = await down;
        this.#deps.log.warn({ node_id: this.#row.id, err: reason }, 'the link to a node is down');
        this.#error = toProblem(reason).message;
      } catch (error) {
        const problem = toProblem(error);
        const { message } = problem;
        this.#refusal = problem.code === problems.nodeUnreachable().code ? null : problem;
        const { log } = this.#deps;
        if (message !== this.#error) log.warn({ node_id: this.#row.id, err: error }, 'a node is not linked');
        this.#error = message;
      }
      const last_seen = new Map(this.lastSeen());
      this.#linked = false;
      void this.#logErrors(() => this.#registry.storeLastSeen(last_seen));
      if (signal.aborted) return;
      wait_ms = Math.min(Math.max(wait_ms * 2, limits.link_retry_ms), limits.link_retry_ms_max);
      await this.#wake.wait(wait_ms * (0.8 + 0.4 * Math.random()), signal);
    }
  }

  async #up(): Promise<void> {
    const { clock, log, onUp } = this.#deps;
    this.#linked = true;
    this.#last_heard_at = performance.now();
    this.#last_seen_at_ms = clock.now();
    this.#error = null;
    const { version, instance_id } = this.node.identity ?? { version: '', instance_id: '' };
    this.#version = version;
    const changed = this.#unrecovered !== this.#sink.unrecovered;
    this.#unrecovered = this.#sink.unrecovered;
    this.#setStatus('connected', changed);
    log.info({ node_id: this.#row.id, version, instance_id }, 'a node is linked');
    await this.#mark(false);
    onUp(this.#row.id);
    void this.#logErrors(() => this.#maintain());
  }

  /** Marks the records of the node's agents as out of date or current. If that fails, the next look at the status tries again. */
  #mark(is_stale: boolean): Promise<void> {
    if (this.#stale === is_stale) return this.#marked;
    this.#stale = is_stale;
    const since_ms = is_stale ? (this.#last_seen_at_ms ?? this.#row.created_at) : null;
    const write = () =>
      this.#deps.onStale(this.#row.id, since_ms).catch((error: unknown) => {
        if (this.#stale === is_stale) this.#stale = null;
        throw error;
      });
    this.#marked = this.#marked.then(() => this.#logErrors(write));
    return this.#marked;
  }

  /** While linked: reads the state of the worktree root, and renews the certificate if necessary. */
  async #maintain(): Promise<void> {
    this.#maintained_at = performance.now();
    const root = this.#row.default_worktree_root;
    const { has_default_root, worktree_root_problem } = await this.node.health();
    const changed =
      this.#has_default_root !== has_default_root || this.#root_problem !== worktree_root_problem;
    this.#has_default_root = has_default_root;
    this.#root_problem = worktree_root_problem;
    this.#checked_root = root;
    if (changed) await this.#registry.publishLinkState(this.#row.id);
    this.#checked.notify();
    await this.#renew();
  }

  /** Renews the certificate before it expires, and if it does not match the names by which the plane connects. */
  async #renew(): Promise<void> {
    const { trust, clock, log } = this.#deps;
    const { control } = this.node;
    if (trust.origin === 'operator' || !control?.certificate) return;
    const names = expectedNames(this.#row);
    const third_ms = sharedLimits.leaf_lifetime_ms / 3;
    const left_ms = control.certificate.validToDate.getTime() - clock.now();
    const is_valid_long_enough = left_ms > third_ms || clock.now() < this.#renewed_at_ms + third_ms;
    if (is_valid_long_enough && names.every((name) => coversHost(control.certificate!, name))) return;
    await renewNode({ transport: control.transport, node_id: this.#row.id, names, trust });
    this.#renewed_at_ms = clock.now();
    log.info({ node_id: this.#row.id, names }, 'the certificate of a node was renewed');
  }

  /** The node's disk must be the one with the plane's sessions. */
  async #accept({ node_id, disk_id, instance_id }: NodeIdentity): Promise<void> {
    const registry = this.#registry;
    const { id } = this.#row;
    if (node_id !== id) {
      const problem = nodeIdMismatch(id, node_id.slice(0, 64));
      await registry.recordRejection(id, problem.message);
      throw problem;
    }
    const known = await registry.claimDisk(id, disk_id);
    if (known === disk_id) return;
    if (await this.#deps.hasLive(id)) {
      const message = `another process answers for agent node ${id}: its disk is not the one that agents run on`;
      await registry.recordRejection(id, `${message} (instance ${instance_id}, disk ${disk_id})`);
      throw new Problem('bad_gateway', 'node_disk_mismatch', message);
    }
    await registry.recordNewDisk(id, disk_id);
  }

  /** `changed`: whether anything else in the state has changed. */
  #setStatus(status: NodeStatus, changed = false): void {
    if (this.#status === status && !changed) return;
    this.#status = status;
    void this.#logErrors(() => this.#registry.publishLinkState(this.#row.id));
  }

  async #logErrors(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        this.#deps.log.warn({ err: error, node_id: this.#row.id }, 'cannot store the state of a node');
      }
    }
  }
}

/** The steps of the connection test, on a separate connection; an open link is not affected. */
function probeSteps(deps: NodeLinksDeps, row: NodeRow): HealthSteps {
  const { clock } = deps;
  let dialed: DialedConnection | null = null;
  let skew_ms: number | null = null;
  let health: RemoteHealth | null = null;
  return {
    dns: async () => void (await resolveTarget(toTarget(row).host)),
    tcp: async (signal) => {
      const { host, port } = toTarget(row);
      const [address] = await resolveTarget(host);
      await tryPort(address!, port, signal);
    },
    tls: async (signal) => {
      dialed = await connect(deps, row, signal);
    },
    auth: async (signal) => {
      const { transport } = dialed!.connection;
      health = await withTokenRetry(dialed!, () => {
        const request_start_ms = clock.now();
        return askHealth(transport, row.default_worktree_root, { signal }, (time_ms) => {
          skew_ms = time_ms - (request_start_ms + clock.now()) / 2;
        });
      });
      if (health.node_id !== row.id) throw nodeIdMismatch(row.id, health.node_id.slice(0, 64));
      return health;
    },
    version: async () => {
      const wrong = versionMismatch(health?.speaks, { us: 'this plane', them: `node ${row.id}` });
      if (wrong !== null) throw new Problem('bad_gateway', 'version_skew', wrong);
    },
    worktree_root:
      row.default_worktree_root === null
        ? null
        : async () => {
            const wrong = health?.worktree_root_problem;
            if (wrong) throw new Problem('bad_gateway', 'worktree_root', wrong);
          },
    clock_skew_ms: () => skew_ms,
    close: () => dialed?.connection.close(),
  };
}
