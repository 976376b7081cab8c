/**
 * Everything that a command may touch, passed as an argument: input, output and environment (so that tests can supply
 * their own), and the operations on the local machine (`LocalOperations`, implemented in `main/`).
 */
import type { Readable, Writable } from 'node:stream';
import type { Config, ConfigKey } from '../core/config.ts';
import type { FolderSetting } from '../core/problem.ts';

export interface Io {
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  home: string;
  stdin: Readable & { isTTY?: boolean; setRawMode?: (on: boolean) => unknown };
  stdout: Writable & { isTTY?: boolean; columns?: number; rows?: number };
  stderr: Writable & { isTTY?: boolean };
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
}

export interface LocalFlags {
  /** From `--config`. */
  file?: string | undefined;
  /** Configuration keys given by flags, as text. */
  values: ReadonlyMap<ConfigKey, { text: string; flag: string }>;
}

/** The process that runs a plane on a data directory. */
export interface PlaneHolder {
  pid: number;
  host: string;
  since: string;
  url: string | null;
  /** The certificate at this URL, PEM; null for plain HTTP. */
  certificate: string | null;
}

export interface DoctorCheck {
  name: string;
  ok: boolean;
  detail: string;
  /** How to fix it, if it is not ok. */
  hint?: string;
}

export function passed(name: string, detail: string): DoctorCheck {
  return { name, ok: true, detail };
}

export function failed(name: string, detail: string, hint?: string): DoctorCheck {
  return { name, ok: false, detail, ...(hint !== undefined && { hint }) };
}

/** The names of the checks of allowed folders. */
export const folderNames: Record<FolderSetting, string> = {
  safe_paths: 'safe path',
  'worktree.repo_roots': 'repository root',
};

export interface DoctorOptions {
  skip_folders?: boolean;
}

export interface MoveOptions {
  to: 'postgres' | 'embedded';
  /** `checking`: the copy is being compared with the original. */
  onProgress(progress: { table: string; rows: number; checking: boolean }): void;
}

export interface Moved {
  data_dir: string;
  /** The PostgreSQL database, without the password. */
  database: string;
  /** How many rows were copied. */
  rows: number;
  /** The folder with the files of an older embedded database that was replaced; null if there was none. */
  aside: string | null;
}

/** Operations on this machine's data directory that do not need the API. */
export interface LocalOperations {
  version: string;
  /** The file that `svc init` writes without `--config`. */
  defaultConfigFile(): string;
  loadConfig(flags: LocalFlags): Promise<Config>;
  /** Runs the plane, or the node, until it is stopped; returns the exit code. */
  serve(flags: LocalFlags): Promise<number>;
  holderOf(data_dir: string): Promise<PlaneHolder | null>;
  /** Signals the process that holds the data directory, after checking that the pid still belongs to it. */
  terminate(data_dir: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<PlaneHolder>;
  /** Throws a Problem if the data is on a database server, as `restore` does. Ctrl-C ends it and removes the unfinished file. */
  backup(config: Config, file: string): Promise<{ file: string; bytes: number }>;
  /** Returns the folder to which the previous files were moved. */
  restore(config: Config, file: string): Promise<{ aside: string | null }>;
  /** Moves the data to the other kind of database. Throws a Problem if that is not possible, and changes nothing then. */
  moveDatabase(config: Config, options: MoveOptions): Promise<Moved>;
  doctor(flags: LocalFlags, options?: DoctorOptions): Promise<DoctorCheck[]>;
  openBrowser(url: string): Promise<boolean>;
}

export interface Context {
  io: Io;
  local: LocalOperations;
}
