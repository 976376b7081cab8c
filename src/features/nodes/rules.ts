/** Registered nodes as clients see them: the record, the view for every user, and the connection test. */
import { MAIN_NODE, type NodeHealth } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';

/** The name of the main node. */
export const MAIN_NODE_NAME = 'Main Node';

/** `suspect` and `unreachable` are labels for silence. They do not affect agents. */
export const nodeStatuses = ['connecting', 'connected', 'suspect', 'unreachable'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

/** Chooses the node for new work; see `NodeDirectory.choose`. `registered`: the ids of the registered nodes. */
export function chooseNode(
  id: string | undefined,
  { is_local, registered }: { is_local: boolean; registered: readonly string[] },
): string {
  if (is_local) return id ?? MAIN_NODE;
  if (id !== undefined && id !== MAIN_NODE) return id;
  const [only, ...others] = registered;
  if (only === undefined) throw problems.noNodes();
  if (id === MAIN_NODE || others.length > 0) throw problems.noLocalNode();
  return only;
}

export interface NodeRecord {
  id: string;
  name: string;
  /** `https://<host>:<port>` */
  grpc_target: string;
  tls_server_name: string | null;
  default_worktree_root: string | null;
  /** Why agents cannot work below that root, as reported by the node; null if they can, or if it is not known yet. */
  worktree_root_problem: string | null;
  /** Sessions on the node that the plane does not know and has not recovered, because there are too many. */
  unrecovered_sessions: number;
  status: NodeStatus;
  /** Version of svc on the node, as last reported. */
  version: string | null;
  /** Number of agent records bound to it, in any status. */
  agents: number;
  /** RFC 3339, like all times here. */
  last_seen_at: string | null;
  created_at: string;
  updated_at: string;
}

/** What is measured on a node while the service runs. Nothing of it is stored. */
export interface NodeMeasurement {
  node_id: string;
  /**
   * The round trips of the latest heartbeats in ms, oldest first, at most five minutes of them. Empty for the main node, and
   * without a link.
   */
  latencies_ms: number[];
  /** The disk of its data directory; null if the node does not answer, or does not report it. */
  disk: NodeHealth['disk'] | null;
}

export interface NodeSummary {
  id: string;
  name: string;
  status: NodeStatus;
  /** Whether the node can create a worktree if the request names no folder. */
  has_default_root: boolean;
  /** Folders in which agents may work; null if only the node knows them. */
  folders: NodeFolders | null;
  /** Whether its agents can use `svc actor`, for example to talk to the other members of their team. */
  actor_calls: boolean;
}

/** Absolute paths of a node. */
export interface NodeFolders {
  /** Default folder for worktrees. */
  worktree_root: string;
  safe_paths: string[];
  /** Folders that may contain `worktree_repo`, in addition to the safe paths. */
  repo_roots: string[];
}

/** A git repository on a node. */
export interface RepositoryRecord {
  /** Real and absolute. */
  path: string;
  /** The last segment of the path. */
  name: string;
  /** Null if HEAD is detached. */
  branch: string | null;
  /** Whether it has uncommitted changes or new files; null if this could not be found out in time. */
  dirty: boolean | null;
  /** RFC 3339. Considers only agents that the caller may see. */
  last_used_at: string | null;
}

export interface RepositoryList {
  /** Real paths of the searched folders. */
  roots: string[];
  repositories: RepositoryRecord[];
  truncated: boolean;
}

/** The steps of the connection test, in order. */
export const healthCheckNames = ['dns', 'tcp', 'tls', 'auth', 'version', 'worktree_root'] as const;
export type HealthCheckName = (typeof healthCheckNames)[number];

export interface HealthCheck {
  name: HealthCheckName;
  ok: boolean;
  ms: number;
  error?: string | undefined;
  /** What to check, in plain language. */
  hint?: string | undefined;
}

export const healthStatuses = ['ok', 'degraded', 'unreachable'] as const;

export interface HealthReport {
  node_id: string;
  status: (typeof healthStatuses)[number];
  /** Duration of one call; null if there was no answer. */
  latency_ms: number | null;
  version: string | null;
  uptime_seconds: number | null;
  /** Number of agents that are running there now. */
  agents: number | null;
  /** The node's clock minus the plane's. */
  clock_skew_ms: number | null;
  disk: NodeHealth['disk'] | null;
  /** The steps that were run. The first failed step is the last one. */
  checks: HealthCheck[];
}
