/** What a node of this machine is configured with. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Folders } from '../core/node.ts';
import type { RunAs } from './confinement/run-as.ts';
import type { Sandbox } from './confinement/sandbox.ts';
import type { Launcher } from './processes/launcher-client.ts';
import type { Tools } from './processes/tools.ts';
import type { ActorFiles } from './sessions/actor-files.ts';
import type { DiskLimits } from './sessions/disk.ts';

/** Options that are absent have the values of `limits`, unless they say otherwise. */
export interface LocalNodeOptions {
  id: string;
  data_dir: string;
  log: Logger;
  clock: Clock;
  folders: Folders;
  /** A launcher that is shared with others (git runs through it too); absent: the node has its own. */
  launcher?: Launcher;
  /** The service's environment, from which those of agents derive; absent: that of this process. */
  env?: Record<string, string | undefined>;
  /** Names of the service's variables that agents get; null or absent: all but `SVC_*`. */
  env_allow?: readonly string[] | null;
  run_as?: RunAs | null;
  /** Around every agent; null or absent: none. */
  sandbox?: Sandbox | null;
  /** Folder with the `svc` program, first on the PATH of agents; absent: that of this package; null: none. */
  bin_dir?: string | null;
  /** Null or absent: agents cannot call the plane. */
  actor_files?: ActorFiles | null;
  /** False: uses no cgroups, even if it could. */
  cgroup?: boolean;
  /** False: uses no watches and polls file sizes. */
  watches?: boolean;
  /** Replaces some of the system's programs. */
  tools?: Partial<Tools>;
  disk?: Partial<DiskLimits>;
  /** Pumps that lose nothing on a full disk, but cost more; absent: only on small disks. */
  careful_pumps?: boolean;
  sweep_ms?: number;
  helper_check_ms?: number;
  tree_look_ms?: number;
  leftover_grace_ms?: number;
  drain_ms?: number;
  spool_keep_bytes?: number;
}
