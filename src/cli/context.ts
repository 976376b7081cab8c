/**
 * Everything that a command may touch, handed in: the world outside (so that tests bring their own), and what only the
 * program's own machine offers (`Local`, wired by `main/`).
 */
import type { Readable, Writable } from 'node:stream';
import type { Config, ConfigKey } from '../contract/config.ts';

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
  /** `--config`. */
  file?: string | undefined;
  /** Keys given by flags, as text. */
  values: ReadonlyMap<ConfigKey, { text: string; flag: string }>;
}

/** Who runs a plane on a data directory. */
export interface PlaneHolder {
  pid: number;
  host: string;
  since: string;
  url: string | null;
}

export interface DoctorCheck {
  name: string;
  ok: boolean;
  detail: string;
  /** What to do about it, when it is not ok. */
  hint?: string;
}

/** What works on this machine's data directory, without the API. */
export interface Local {
  version: string;
  /** Where `svc init` writes without `--config`. */
  defaultConfigFile(): string;
  loadConfig(flags: LocalFlags): Config;
  /** Runs the plane until it is told to stop; answers the exit code. */
  serve(flags: LocalFlags): Promise<number>;
  holderOf(data_dir: string): PlaneHolder | null;
  /** Signals the holder, after making sure that the pid still is the holder's. */
  terminate(data_dir: string, signal: 'SIGTERM' | 'SIGKILL'): PlaneHolder;
  backup(data_dir: string, file: string): Promise<{ file: string; bytes: number }>;
  /** Answers where the files that were there before now lie. */
  restore(data_dir: string, file: string): Promise<{ aside: string | null }>;
  doctor(flags: LocalFlags): Promise<DoctorCheck[]>;
  openBrowser(url: string): Promise<boolean>;
}

export interface Context {
  io: Io;
  local: Local;
}
