import type { StreamName } from './event.ts';
import type { Cleanup, Exit, Launch, Leftover, StreamSizes } from './session.ts';

/** The id of the node that every plane contains. */
export const MAIN_NODE = 'main';
export const NODE_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * A place that executes agents. Three providers, one test suite: `runtime/` (this machine), `link/` (another one),
 * `testing/simulated-node`. It knows files and processes; no teams, no ACP, no users.
 *
 * Every command is idempotent by its own key: start, stop and forget by session id, input by absolute offset,
 * worktrees by agent id. Calls throw `Problem`s (`bad_gateway` when the node cannot be reached).
 */
export interface Node {
  readonly id: string;

  /**
   * Begins the life of a link: calls `sink.snapshot` once with every session on the node's disk, then `fact` and
   * `wake` as things happen. A later attach replaces the one before. Resolves when the snapshot was handed over.
   */
  attach(sink: NodeSink): Promise<void>;
  detach(): Promise<void>;

  /**
   * Resolves when the node has answered just now. Throws `node_unreachable` once it owes an answer for
   * `limits.node_answer_ms`, at once while it still does, and at once where there is no connection.
   */
  reach(): Promise<void>;

  /**
   * Resolves when the process is known to run, or to have ended (a spawn that failed is an end, not a throw). A session
   * that the node does not have yet needs a workdir that `folders.resolve` allows: its Problems are thrown.
   */
  start(launch: Launch): Promise<SessionView>;
  /**
   * TERM and CONT to the tree, KILL after the grace; resolves when two scans found the tree empty, or names survivors.
   * Throws `node_unreachable` when the node closes before: nothing is known of the tree then.
   */
  stop(session_id: string, grace_ms: number): Promise<StopReport>;
  /** Writes stdin bytes at an absolute offset; bytes already there are skipped. Answers the journal's new length. */
  input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number>;
  /**
   * Up to `max` bytes of a spool from `from`; empty at its present end. `output_lost` Problem when the bytes are gone.
   * The answer may be a view of `into`, which must hold `max` bytes.
   */
  read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array>;
  /** Everything before these offsets is committed; the node may give the disk space back. Facts up to `fact` too. */
  committed(session_id: string, offsets: StreamSizes, fact: number): void;
  /**
   * The first `max` bytes of what a session left as the output of its step; null when it left nothing that can be read as a
   * plain file.
   */
  stepOutput(session_id: string, max: number): Promise<Uint8Array | null>;
  /** The final status is committed: the session's directory may go. */
  forget(session_id: string): Promise<void>;

  readonly folders: Folders;
  health(): Promise<NodeHealth>;
  /**
   * What agents would find of each program there, in the order of the questions. It runs `version_argv` where the program
   * is found, as an agent would, and changes nothing itself. Throws `invalid` for a question that cannot be meant.
   */
  probe(programs: readonly ProgramQuestion[]): Promise<ProgramFinding[]>;
}

export interface NodeSink {
  snapshot(sessions: SessionView[]): Promise<void>;
  fact(fact: SessionFact): void;
  /** There may be more to read in this session. Carries no data; a lost one costs latency. */
  wake(session_id: string): void;
}

/** What a node's disk says of a session. */
export interface SessionView {
  session_id: string;
  launch: Omit<Launch, 'env' | 'actor_token' | 'step_input'> & { env_keys: string[] };
  phase: 'starting' | 'running' | 'ended';
  pid: number | null;
  /** Unix ms, by the node's clock; for show only. */
  started_at_ms: number | null;
  /** Present when `phase` is `ended` and both spools are complete. */
  end: SessionEnd | null;
  stdin_bytes: number;
  /** Facts that are still kept, oldest first. */
  facts: SessionFact[];
}

export interface SessionEnd {
  exit: Exit;
  /** Final lengths of both spools: when these are committed, the last byte is. */
  sizes: StreamSizes;
  cleanup: Cleanup | null;
  leftovers: Leftover[];
  ended_at_ms: number;
}

/** Something that happened to a session. `number` counts from 1 per session; the plane keeps a cursor. */
export interface SessionFact {
  session_id: string;
  number: number;
  at_ms: number;
  body:
    | { kind: 'started'; pid: number; started_at_ms: number }
    | { kind: 'ended'; end: SessionEnd }
    | { kind: 'trouble'; code: TroubleCode; error: string; details: Record<string, unknown> }
    /** Of a node that is newer than we are: counted, and otherwise left alone. */
    | { kind: 'unknown' };
}

export const troubleCodes = [
  'output_paused',
  'output_resumed',
  'output_truncated',
  'pump_restarted',
  'feeder_restarted',
] as const;
export type TroubleCode = (typeof troubleCodes)[number];

export interface StopReport {
  /** Null while something survived. */
  cleanup: Cleanup | null;
  survivors: number[];
}

export interface NodeHealth {
  version: string;
  uptime_seconds: number;
  sessions_live: number;
  disk: { path: string; free_bytes: number; total_bytes: number; starts_allowed: boolean };
}

/** A program that agents may run, and what would show that somebody is signed in to it. */
export interface ProgramQuestion {
  /** A name without a slash, looked for on the PATH that agents get. */
  program: string;
  /** Prints the version as its first line on stdout. */
  version_argv: readonly string[];
  /** Names of variables that agents may get from the node. */
  env: readonly string[];
  /** Files or folders below the HOME of agents. */
  files: readonly string[];
}

export interface ProgramFinding {
  /** Null when it is not there, or not for agents. */
  path: string | null;
  /** Null as well when it did not say, or not in time. */
  version: string | null;
  /** Those of the asked names that have a value. Never the value. */
  env_set: string[];
  /** Those of the asked paths that are there. */
  files_found: string[];
}

/** Workdirs, worktrees and git on a node. Paths come back real and absolute. */
export interface Folders {
  /** Checks a `use_existing` workdir: absolute, inside the safe paths once links are resolved, existing. */
  resolve(workdir: string): Promise<ResolvedWorkdir>;
  /** Makes (or finds again, by `agent_id`) the workdir of a `create_worktree` agent. */
  createWorktree(request: WorktreeRequest): Promise<Worktree>;
  /** Removes a worktree that holds nothing unsaved, or any when `force`; otherwise keeps it and says why. */
  removeWorktree(
    worktree: Worktree,
    options: { force: boolean },
  ): Promise<{ removed: boolean; kept_because: string | null }>;
  changes(worktree: ChangesRequest): Promise<Changes>;
  change(worktree: ChangesRequest, path: string): Promise<FileChange>;
  /** The best matches among the files that git has below a workdir, or would have; the words may come in any order. */
  files(workdir: string, words: string): Promise<FoundFiles>;
}

export interface ResolvedWorkdir {
  path: string;
  /** It lies where this node makes worktrees, so it is some agent's; whether the caller may use it, the plane knows. */
  below_worktree_root: boolean;
}

export interface WorktreeRequest {
  agent_id: string;
  name: string;
  /** Null: derived from the node's default root. */
  workdir: string | null;
  /** Null: an empty folder. */
  repo: string | null;
  /** Commit-ish to start from; null: HEAD. */
  ref: string | null;
  /** Base of derived workdirs that the registry names for this node; absent or null: the node's own. */
  root?: string | null;
}

export interface Worktree {
  workdir: string;
  repo: string | null;
  branch: string | null;
  /** Commit that the branch started from. */
  base: string | null;
}

export interface ChangesRequest {
  workdir: string;
  /** Commit to compare with; null: HEAD. */
  base: string | null;
}

export interface ChangedFile {
  path: string;
  /** Old path of a rename. */
  from: string | null;
  status:
    | 'added'
    | 'modified'
    | 'deleted'
    | 'renamed'
    | 'copied'
    | 'type_changed'
    | 'untracked'
    | 'conflicted';
  /** Null for binary files. */
  additions: number | null;
  deletions: number | null;
}

export interface Changes {
  git: boolean;
  branch: string | null;
  base: string | null;
  head: string | null;
  files: ChangedFile[];
  truncated: boolean;
}

export interface FoundFiles {
  git: boolean;
  /** From the workdir on, the best match first. */
  paths: string[];
  truncated: boolean;
}

export interface FileChange extends ChangedFile {
  /** Unified diff; empty for binary files. */
  diff: string;
  truncated: boolean;
}
