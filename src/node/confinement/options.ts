/** The configuration of a sandbox. */
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
  /** The parts of home directories that agents see. */
  readable: readonly string[];
  /** Folders that contain or contained worktrees, besides the data directory. Each agent sees only its own worktree. */
  worktree_roots(): readonly string[] | Promise<readonly string[]>;
  /** Where repositories may be, besides the folders above. */
  repo_roots(): readonly string[];
}
