/** Registered nodes as clients see them: the record, what every user may see of it, and the connection test. */
import type { NodeHealth } from './node.ts';

/** The name that the Main Node goes by. */
export const MAIN_NODE_NAME = 'Main Node';

/** `suspect` and `unreachable` are labels for silence; they change no agent. */
export const nodeStatuses = ['connecting', 'connected', 'suspect', 'unreachable'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

export interface NodeRecord {
  id: string;
  name: string;
  /** `https://<host>:<port>` */
  grpc_target: string;
  tls_server_name: string | null;
  default_worktree_root: string | null;
  /** Why agents cannot be put below that root, in the node's words; null when they can, or when it is not known yet. */
  worktree_root_problem: string | null;
  status: NodeStatus;
  /** Of the svc on the node, when it was last heard. */
  version: string | null;
  /** Agent records bound to it, whatever their status. */
  agents: number;
  /** RFC 3339, as all times here. */
  last_seen_at: string | null;
  created_at: string;
  updated_at: string;
}

export interface NodeSummary {
  id: string;
  name: string;
  status: NodeStatus;
  /** Can make a worktree without being told where. */
  has_default_root: boolean;
  /** Where agents may work; null where only the node itself knows it. */
  folders: NodeFolders | null;
}

/** Absolute paths of a node. */
export interface NodeFolders {
  /** Where worktrees come to lie that are not told where. */
  worktree_root: string;
  safe_paths: string[];
  /** Where `worktree_repo` may lie, beside the safe paths. */
  repo_roots: string[];
}

/** The steps of the connection test, in order. */
export const healthCheckNames = ['dns', 'tcp', 'tls', 'auth', 'version', 'worktree_root'] as const;
export type HealthCheckName = (typeof healthCheckNames)[number];

export interface HealthCheck {
  name: HealthCheckName;
  ok: boolean;
  ms: number;
  error?: string | undefined;
  /** What to look at, in plain words. */
  hint?: string | undefined;
}

export const healthStatuses = ['ok', 'degraded', 'unreachable'] as const;

export interface HealthReport {
  node_id: string;
  status: (typeof healthStatuses)[number];
  /** Of one call and its answer; null when none came. */
  latency_ms: number | null;
  version: string | null;
  uptime_seconds: number | null;
  /** Agents that run there now. */
  agents: number | null;
  /** The node's clock minus the plane's. */
  clock_skew_ms: number | null;
  disk: NodeHealth['disk'] | null;
  /** Ends with the first that failed. */
  checks: HealthCheck[];
}
