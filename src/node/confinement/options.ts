/** What a sandbox is configured with. */
import type { Exec } from '../processes/exec.ts';
import type { RunAs } from './run-as.ts';

export interface SandboxOptions {
  exec: Exec;
  /** The path of bubblewrap; null: not installed. */
  bwrap: string | null;
  unshare: string | null;
  data_dir: string;
  run_as: RunAs | null;
  /** The service's own environment: its HOME, PATH and XDG_CONFIG_HOME determine what a home contains. */
  env: Readonly<Record<string, string | undefined>>;
  /** Folders and files that no agent sees, besides the data directory. */
  hidden: readonly string[];
  /** Where agents may write; read at each launch. */
  writable(): readonly string[];
  /** What agents see of home directories. */
  readable: readonly string[];
  /** Where worktrees are or were created, besides the data directory: each agent sees only its own. */
  worktree_roots(): readonly string[] | Promise<readonly string[]>;
  /** Where the repositories of worktrees may be, besides those. */
  repo_roots(): readonly string[];
}
