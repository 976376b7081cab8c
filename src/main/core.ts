/** Opens the core of a plane: the services that its features share, and the main node. */
import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { loadSecretKey } from '../base/secret-key.ts';
import type { Config, Settings } from '../core/config.ts';
import { MAIN_NODE, type Node } from '../core/node.ts';
import { problems } from '../core/problem.ts';
import { Feed } from '../events/feed.ts';
import { openEventLog } from '../events/log.ts';
import type { Retention } from '../events/maintenance.ts';
import { SessionTokens } from '../features/actors/session-tokens.ts';
import { liveSessions } from '../features/agents/queries/agents.ts';
import { Secrets } from '../features/agents/secrets.ts';
import { Audit } from '../features/audit/service.ts';
import type { Core, NodeDirectory } from '../features/feature.ts';
import type { FeatureSet } from '../features/feature-set.ts';
import { chooseNode, type NodeFolders } from '../features/nodes/rules.ts';
import { type LiveSettings, openSettings } from '../features/settings/service.ts';
import { WorktreeRoots } from '../node/folders/worktree-roots.ts';
import { IdempotencyKeys } from '../server/idempotency.ts';
import { Metrics } from '../server/metrics.ts';
import { Streams } from '../server/sse.ts';
import { planeIdentity } from '../store/plane-id.ts';
import type { Store } from '../store/store.ts';
import { Facts } from '../work/facts.ts';
import { Outbox } from '../work/outbox.ts';
import { Timers } from '../work/timers.ts';
import type { Cluster } from './cluster.ts';
import { openConfiguredLog } from './configured-log.ts';
import { removeAbandonedRestores } from './data-dir.ts';
import { openDatabase } from './database.ts';
import { registerDatabaseMetrics } from './database-metrics.ts';
import { registerDiskMetrics } from './machine-metrics.ts';
import { type OpenedNode, openNode } from './open-node.ts';
import { refuseLiveSessions } from './refuse-live-sessions.ts';
import { sandboxConflict, sandboxPaths } from './sandbox-paths.ts';
import type { StartContext } from './start.ts';

export interface PlaneContext extends StartContext {
  /** Ends the wait of a plane that stands by. */
  signal: AbortSignal;
  /** Called once if another plane of the same database is active, with the URL of this one's listener. */
  onStandby(url: string): void;
  /** Registers what a reload of the service does (SIGHUP). */
  onReload(reload: () => void): void;
}

export interface OpenedCore {
  core: Core;
  main_node: OpenedNode;
  secrets: Secrets;
  session_tokens: SessionTokens;
  /** Null unless this plane shares its database with others. */
  cluster: Cluster | null;
  /** Sets the URL of the HTTP listener for the features. */
  setListeningUrl(url: string): void;
}

/**
 * Adds everything that must be closed to `context.opened`. Waits while another plane of the same database is active. Throws a
 * Problem if the configuration or the database is not usable.
 */
export async function openCore(
  config: Config,
  env: NodeJS.ProcessEnv,
  context: PlaneContext,
  features: FeatureSet,
): Promise<OpenedCore> {
  const { data_dir, opened, fail } = context;
  const clock = systemClock;
  const log_file = openConfiguredLog(config);
  const { log } = log_file;
  context.onReload(() => log_file.reopen());
  await removeAbandonedRestores(data_dir, log);
  const key = await loadSecretKey(join(data_dir, 'secret.key'));
  const cluster = await openCluster({ config, key, clock, log }, context);
  const member = cluster?.member ?? null;
  const store = await openDatabase({ config, data_dir, key, clock, log, onLost: fail, member });
  opened.push(() => store.close());
  const common = { store, clock, log };
  const identity = await planeIdentity(store, clock);
  const audit = new Audit(common);
  const roots = await WorktreeRoots.open(data_dir);
  const conflict = async (changed: Pick<Settings, 'get'>, before: Pick<Settings, 'get'>) =>
    (await settingsConflict(config, env, roots, changed)) ??
    (await rootConflict({ config, store, roots, before, changed }));
  const settings = await openSettings({ ...common, config, audit, conflict });
  const session_tokens = new SessionTokens(key);
  const actor_calls = config.get('internal_grpc.enabled');
  const secrets = new Secrets({
    redact_env: () => settings.get('events.redact_env'),
    actorToken: (session_id) => (actor_calls ? session_tokens.of(session_id) : null),
  });
  const events = openEventLog({
    ...{ ...common, data_dir },
    retention: () => retention(settings),
    redactor: (reader, session_id) => secrets.redactor(reader, session_id),
  });
  opened.push(() => events.close());
  const feed = new Feed({ store, clock });
  opened.push(() => feed.close());
  const runs_agents = config.get('server.local_node');
  const folders = () => mainFolders(settings, data_dir);
  const main_node = await openNode(
    {
      ...{ id: MAIN_NODE, runs_agents, config, data_dir, env, clock, log, roots },
      safe_paths: () => folders().safe_paths,
      repo_roots: () => folders().repo_roots,
      worktree_root: () => folders().worktree_root,
    },
    opened,
  );
  if (!runs_agents) await refuseLiveSessions(store, main_node.node);
  let listening_url = '';
  const core: Core = {
    ...{ ...common, ...identity, config, settings, data_dir, key, events, feed, audit, actor_calls },
    facts: new Facts(common),
    outbox: new Outbox(common),
    timers: new Timers(common),
    idempotency: new IdempotencyKeys({ store, clock, key }),
    nodes: nodeDirectory(main_node.node, () => (runs_agents ? folders() : null), features),
    ...openMetrics({ settings, store, data_dir, log }),
    session: features.session,
    extensions: features.extensions,
    listening_url: () => listening_url,
  };
  return {
    ...{ core, main_node, secrets, session_tokens, cluster },
    setListeningUrl: (url) => {
      listening_url = url;
    },
  };
}

/** Null unless this plane shares its database with others. */
async function openCluster(
  core: Pick<Core, 'config' | 'key' | 'clock' | 'log'>,
  { opened, ...context }: PlaneContext,
): Promise<Cluster | null> {
  if (core.config.get('cluster.listen') === null) return null;
  // Loaded on demand, because most planes are alone.
  const { Cluster } = await import('./cluster.ts');
  return Cluster.open({ ...core, ...context }, opened);
}

/** Why these live settings are invalid in combination with the sandbox; null if they are valid. */
async function settingsConflict(
  config: Config,
  env: NodeJS.ProcessEnv,
  roots: WorktreeRoots,
  { get }: Pick<Settings, 'get'>,
): Promise<string | null> {
  const root = get('worktree.default_root');
  if (root !== null) await roots.recordIfUsed(root, get('safe_paths'));
  if (!sandboxesAgents(config)) return null;
  const worktree_roots = [root ?? [], await roots.inUse()].flat();
  const live = { safe_paths: get('safe_paths'), repo_roots: get('worktree.repo_roots'), worktree_roots };
  return sandboxConflict(await sandboxPaths(config, env, live));
}

/** Whether agents run in a sandbox on this machine. */
function sandboxesAgents(config: Config): boolean {
  return config.get('agents.sandbox') !== 'none' && config.get('server.local_node');
}

/** Checks for running agents in a sandbox that could see folders which did not have to be hidden when they started. */
async function rootConflict(options: {
  config: Config;
  store: Store;
  roots: WorktreeRoots;
  before: Pick<Settings, 'get'>;
  changed: Pick<Settings, 'get'>;
}): Promise<string | null> {
  const { config, store, roots, before, changed } = options;
  const root = changed.get('worktree.default_root');
  if (root === null || root === before.get('worktree.default_root')) return null;
  if (!sandboxesAgents(config) || (await roots.wasUsed(root))) return null;
  const { length } = await store.read((reader) => liveSessions(reader, MAIN_NODE));
  return length === 0
    ? null
    : `worktree.default_root cannot change while agents run in the sandbox (${length}), which could read worktrees there; stop them first`;
}

function retention(settings: Settings): Partial<Retention> {
  const bytes_total = settings.get('retention.bytes_total');
  return {
    days: settings.get('retention.days'),
    bytes_per_agent: settings.get('retention.bytes_per_agent'),
    ...(bytes_total !== null && { bytes_total }),
  };
}

function mainFolders(settings: LiveSettings, data_dir: string): NodeFolders {
  return {
    worktree_root: settings.get('worktree.default_root') ?? join(data_dir, 'worktrees'),
    safe_paths: [...settings.get('safe_paths')],
    repo_roots: [...settings.get('worktree.repo_roots')],
  };
}

function nodeDirectory(
  main: Node,
  main_folders: () => NodeFolders | null,
  features: FeatureSet,
): NodeDirectory {
  const { remote_nodes } = features;
  const find = (id: string) => (id === MAIN_NODE ? main : remote_nodes.find(id));
  return {
    main_folders,
    find,
    get: (id) => {
      const node = find(id);
      if (!node) throw problems.nodeNotFound();
      return node;
    },
    choose: (id) => chooseNode(id, { is_local: main_folders() !== null, registered: remote_nodes.ids() }),
    isRegistered: async (reader, id) => id === MAIN_NODE || (await remote_nodes.isRegistered(reader, id)),
    remoteIngest: (id) => remote_nodes.ingest(id),
  };
}

function openMetrics({
  settings,
  store,
  data_dir,
  log,
}: {
  settings: LiveSettings;
  store: Store;
  data_dir: string;
  log: Logger;
}): Pick<Core, 'metrics' | 'streams'> {
  const metrics = new Metrics(log);
  registerDatabaseMetrics(metrics, store);
  registerDiskMetrics(metrics, data_dir);
  const bounds = () => ({
    per_user: settings.get('limits.streams_per_user'),
    total: settings.get('limits.streams_total'),
  });
  const streams = new Streams(store.wakes, { bounds });
  metrics.gauge('svc_streams_open', 'Open event streams.', () => streams.open);
  return { metrics, streams };
}
