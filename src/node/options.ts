/** The configuration of the local node. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Folders } from '../core/node.ts';
import type { RunAs } from './confinement/run-as.ts';
import type { Sandbox } from './confinement/sandbox.ts';
import type { Launcher } from './processes/launcher-client.ts';
import type { Tools } from './processes/tools.ts';
import type { ActorFiles } from './sessions/actor-files.ts';
import type { DiskLimits } from './sessions/disk.ts';

/** Absent options default to the values of `limits`, unless their comment names another default. */
export interface LocalNodeOptions {
  id: string;
  data_dir: string;
  log: Logger;
  clock: Clock;
  folders: Folders;
  /** A launcher to share with other users, such as git. Default: the node starts its own. */
  launcher?: Launcher;
  /** The service's environment, from which the environments of agents are derived. Default: that of this process. */
  env?: Record<string, string | undefined>;
  /** Names of the service's variables that agents get; null: all except `SVC_*`. Default: null. */
  env_allow?: readonly string[] | null;
  run_as?: RunAs | null;
  /** The sandbox around every agent, if any. */
  sandbox?: Sandbox | null;
  /**
   * The folder with the `svc` program, which comes first in the PATH of agents; null: none. Default: that of this
   * package.
   */
  bin_dir?: string | null;
  /** Without this, agents cannot call the plane. */
  actor_files?: ActorFiles | null;
  /** False: uses no cgroups, even if it could. */
  cgroup?: boolean;
  /** False: polls file sizes instead of watching files. */
  watches?: boolean;
  /** Replaces some of the system programs. */
  tools?: Partial<Tools>;
  disk?: Partial<DiskLimits>;
  /** Pumps that lose nothing when the disk is full, but cost more. Default: only on small disks. */
  careful_pumps?: boolean;
  sweep_ms?: number;
  helper_check_ms?: number;
  start_answer_ms?: number;
  tree_read_ms?: number;
  leftover_grace_ms?: number;
  drain_ms?: number;
  spool_keep_bytes?: number;
}
