/** The interface `Node`, which the plane uses to access a machine that runs agents, and the types of its calls. */
import type { StreamName } from './event.ts';
import type { BranchRemote } from './remote.ts';
import type { Cleanup, Exit, Launch, Leftover, StreamSizes } from './session.ts';

/** The id of the node that is part of every plane. */
export const MAIN_NODE = 'main';
/** Clients resolve `.` and `..` in paths, so a node with such an id could not be reached. */
export const NODE_ID = /^(?!\.\.?$)[A-Za-z0-9._-]{1,64}$/;
/** How errors describe `NODE_ID`. */
export const NODE_ID_RULE =
  'must be 1 to 64 characters from A-Z, a-z, 0-9, ".", "_" and "-", but not "." or ".."';

/**
 * A link to a node, carried by everything that the plane decides because of what the node said over it. See
 * `store/links.ts`.
 */
export interface Link {
  readonly node_id: string;
  /** Null: the plane calls the node directly, so no other link can speak for it. */
  readonly position: { readonly incarnation: number; readonly epoch: number } | null;
  /** Ends the link. A new one starts with a snapshot. Idempotent. */
  end(): void;
}

/** The link to a node in this process. */
export function directLink(node_id: string): Link {
  return { node_id, position: null, end: () => {} };
}

/**
 * A machine that runs agents. Three implementations pass the same tests: `node/` (this machine), `link/plane/remote-node.ts`
 * (another machine) and `testing/simulated-node`. A node handles files and processes, and knows no teams, ACP or users.
 *
 * Every command is idempotent by a key: start, stop and forget by session id, input by absolute offset, worktrees by agent
 * id. Calls throw `Problem`s (`bad_gateway` if the node cannot be reached).
 */
export interface Node {
  readonly id: string;
  /** The link that would carry a call to the node now, or null. */
  readonly link: Link | null;

  /**
   * Attaches a sink: calls `sink.snapshot` once with every session on the node's disk, and then `fact` and `wake` when
   * something changes. A later attach replaces the earlier one. Resolves when `snapshot` has received the sessions.
   */
  attach(sink: NodeSink): Promise<void>;
  detach(): Promise<void>;

  /**
   * Resolves when the node has responded. Throws `node_unreachable` if it does not respond within `limits.node_answer_ms`;
   * immediately if an earlier response is overdue or there is no connection.
   */
  reach(): Promise<void>;

  /**
   * Resolves when the process is running or has ended. If that takes long, resolves before with a session that is
   * `starting`, which continues and can be stopped. A failed spawn counts as an end and does not throw. For a session that
   * the node does not have yet, throws the Problems of `folders.resolve` for its workdir.
   */
  start(launch: Launch): Promise<SessionView>;
  /**
   * Sends TERM and CONT to the process tree, and KILL after the grace period. Resolves when two scans found the tree empty,
   * or with the survivors. Throws `node_unreachable` if the node closes first; the state of the tree is then unknown.
   * Throws `session_not_found` if there is no such session; a start that has not created it yet never will.
   */
  stop(session_id: string, grace_ms: number): Promise<StopReport>;
  /**
   * Writes stdin bytes at an absolute offset and skips bytes that are already there. Returns the journal's new length. Throws
   * `input_not_stored` while the node cannot store them, for example because its disk is full.
   */
  input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number>;
  /**
   * Reads up to `max` bytes of a spool from `from`; none at its current end. Throws the `output_lost` Problem if the bytes
   * were deleted. The result may be a view of `into`, which must have space for `max` bytes.
   */
  read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array>;
  /** Everything before these offsets, and all facts up to `fact`, is committed; the node may free the disk space. */
  committed(session_id: string, offsets: StreamSizes, fact: number): void;
  /** Returns the first `max` bytes of a session's step output; null if there is no readable regular file. */
  stepOutput(session_id: string, max: number): Promise<Uint8Array | null>;
  /** Call this when the final status is committed. The node may then delete the session's directory. */
  forget(session_id: string): Promise<void>;
  /**
   * Deletes everything that the node keeps for the agents of a user, or of a team's runs: the private state directories of
   * presets. Idempotent.
   */
  forgetOwner(owner_id: string): Promise<void>;

  readonly folders: Folders;
  health(): Promise<NodeHealth>;
  /**
   * Looks up programs as agents on the node would find them, in the order of the questions. If a program is found, runs
   * `version_argv` as an agent would. Changes nothing itself. Throws `invalid` for an invalid question.
   */
  probe(programs: readonly ProgramQuestion[]): Promise<ProgramFinding[]>;
}

export interface NodeSink {
  /**
   * `link`: the one over which the snapshot came. `unreadable`: ids of sessions that exist, but whose files the node cannot
   * read at the moment, or that are about to exist because their start has begun. Once it can, it reports all their facts.
   * Until then, their calls throw `session_unreadable`, except that a stop cancels a start that has begun.
   */
  snapshot(sessions: SessionView[], link: Link, unreadable: readonly string[]): Promise<void>;
  fact(fact: SessionFact): void;
  /**
   * There may be more to read in this session; `stream`: only in this stream. A wake carries no data, and a lost one only
   * costs latency.
   */
  wake(session_id: string, stream?: StreamName): void;
}

/** The state of a session on a node's disk. */
export interface SessionView {
  session_id: string;
  launch: Omit<Launch, 'env' | 'actor_token' | 'step_input'> & { env_keys: string[] };
  phase: 'starting' | 'running' | 'ended';
  pid: number | null;
  /** Unix milliseconds by the node's clock; for display only. */
  started_at_ms: number | null;
  /** Present when `phase` is `ended` and both spools are complete. */
  end: SessionEnd | null;
  stdin_bytes: number;
  /** Facts that have not been committed yet, oldest first. */
  facts: SessionFact[];
}

export interface SessionEnd {
  exit: Exit;
  /** Final lengths of both spools. When these are committed, the last byte is committed. */
  sizes: StreamSizes;
  cleanup: Cleanup | null;
  leftovers: Leftover[];
  ended_at_ms: number;
}

/** A report about a session; not a fact of `work/facts.ts`. `number` counts from 1 per session; the plane keeps a cursor. */
export interface SessionFact {
  session_id: string;
  number: number;
  at_ms: number;
  body:
    | { kind: 'started'; pid: number; started_at_ms: number }
    | { kind: 'ended'; end: SessionEnd }
    /** A warning. The name of the kind is part of session folders and of the link protocol. */
    | { kind: 'trouble'; code: WarningCode; error: string; details: Record<string, unknown> }
    /** A fact from a node that is newer than the plane. It is counted and otherwise ignored. */
    | { kind: 'unknown' };
}

export const warningCodes = [
  'output_paused',
  'output_resumed',
  'output_truncated',
  'pump_restarted',
  'feeder_restarted',
] as const;
export type WarningCode = (typeof warningCodes)[number];

export interface StopReport {
  /** Null while a process survives. */
  cleanup: Cleanup | null;
  survivors: number[];
}

export interface NodeHealth {
  version: string;
  uptime_seconds: number;
  sessions_live: number;
  disk: { path: string; free_bytes: number; total_bytes: number; starts_allowed: boolean };
}

/** A program that agents may run, and the signs that someone is signed in to it. */
export interface ProgramQuestion {
  /** A name without a slash, looked up on the PATH of agents. */
  program: string;
  /** Command that prints the version as its first line on stdout. */
  version_argv: readonly string[];
  /** Names of variables that agents may get from the node. */
  env: readonly string[];
  /** Files or folders below the HOME of agents. */
  files: readonly string[];
}

export interface ProgramFinding {
  /** Null if it does not exist or agents may not run it. */
  path: string | null;
  /** Null also if the program printed no version in time. */
  version: string | null;
  /** The requested names that have a value. Never the value. */
  env_set: string[];
  /** The requested paths that exist. */
  files_found: string[];
}

/** Workdirs, worktrees and git on a node. Returned paths are real and absolute. */
export interface Folders {
  /**
   * Checks a `use_existing` workdir: it must be absolute, exist, and be inside the safe paths after resolving links. With
   * `to_create`, returns the path where a new worktree would be created; the folder may be missing, and creating it may
   * still fail.
   */
  resolve(workdir: string, options?: { to_create?: boolean }): Promise<ResolvedWorkdir>;
  /** Creates the workdir of a `create_worktree` agent, or finds it again by `agent_id`. */
  createWorktree(request: WorktreeRequest): Promise<Worktree>;
  /** Removes a worktree without unsaved work, or any worktree with `force`; otherwise keeps it and returns the reason. */
  removeWorktree(worktree: Worktree, options: { force: boolean } & QueueOwner): Promise<WorktreeRemoval>;
  /** Returns why `removeWorktree` without `force` would keep a worktree; null if it would remove it. Removes nothing. */
  whyKept(worktree: Worktree, turn?: QueueOwner): Promise<string | null>;
  /** The files that differ from the base commit. */
  changes(worktree: ChangesListRequest): Promise<Changes>;
  /**
   * The diff of one changed file; `path` is relative to the worktree. `context`: unchanged lines around each change, at most
   * `limits.diff_context_lines_max`; without it, or if the node is too old, as git is configured.
   */
  change(worktree: ChangesRequest, path: string, options?: DiffOptions): Promise<FileChange>;
  /** All changes as a patch for `git apply`. Throws `patch_too_large` above `limits.patch_bytes_max`. */
  patch(worktree: ChangesRequest): Promise<Uint8Array>;
  /**
   * The best matches for a search among the files below a workdir that git tracks or would track. The order of words does
   * not matter.
   */
  files(workdir: string, query: string, turn?: QueueOwner): Promise<FoundFiles>;
  /**
   * The git repositories at and one level below the allowed folders, without those in worktree roots. Takes a few seconds at
   * most; what is not known by then is reported as unknown. With `path`, throws the Problem that `createWorktree` would throw
   * if no worktree can be made from the repository there.
   */
  repositories(request: RepositoriesRequest): Promise<FoundRepositories>;
}

export interface ResolvedWorkdir {
  path: string;
  /**
   * The workdir is below this node's worktree root, so it belongs to an agent. The plane decides whether the caller may use
   * it.
   */
  below_worktree_root: boolean;
  /** The id of the agent for which the node created the folder; null if there is none or it is unknown. */
  claimed_by: string | null;
}

/** Each user has separate turns on a node, so that one user's slow folders do not delay others. */
export interface QueueOwner {
  /** The id of the agent's owner. Without it, the folder has separate turns. */
  owner?: string | undefined;
}

export interface WorktreeRequest extends QueueOwner {
  agent_id: string;
  name: string;
  /** Null: the workdir is derived from the node's default root. */
  workdir: string | null;
  /** Null: the workdir is an empty folder. */
  repo: string | null;
  /** Commit-ish to start from; null: HEAD. */
  ref: string | null;
  /** The folder for derived workdirs that the registry sets for this node. Without it, the node uses its own. */
  root?: string | null;
  /** The plane's database already records `workdir` as this agent's worktree. */
  recorded?: boolean | undefined;
}

export interface Worktree {
  workdir: string;
  repo: string | null;
  branch: string | null;
  /** Commit that the branch started from. */
  base: string | null;
}

export interface WorktreeRemoval {
  removed: boolean;
  /** If the worktree was removed: why its branch was kept; null if the branch was deleted too. */
  kept_because: string | null;
}

export interface ChangesRequest extends QueueOwner {
  workdir: string;
  /** Commit to compare with; null: HEAD. */
  base: string | null;
}

export interface ChangesListRequest extends ChangesRequest {
  /** True: `remote` is not needed. Saves its git processes, except on nodes of an earlier release. */
  skip_remote?: boolean | undefined;
}

export interface DiffOptions {
  context?: number | undefined;
}

export const changeStatuses = [
  'added',
  'modified',
  'deleted',
  'renamed',
  'copied',
  'type_changed',
  'untracked',
  'conflicted',
] as const;

export interface ChangedFile {
  path: string;
  /** Old path of a rename. */
  from: string | null;
  status: (typeof changeStatuses)[number];
  /** Null for binary files. */
  additions: number | null;
  deletions: number | null;
  /** Changes whenever the file does. Null if the file does not exist, and from nodes of an earlier release. */
  version: string | null;
}

export interface Changes {
  git: boolean;
  branch: string | null;
  base: string | null;
  head: string | null;
  /** Null without `base` in the request or with `skip_remote`, without a remote, and from nodes of an earlier release. */
  remote: BranchRemote | null;
  files: ChangedFile[];
  truncated: boolean;
}

export interface FoundFiles {
  git: boolean;
  /** Relative to the workdir, best match first. */
  paths: string[];
  truncated: boolean;
}

export interface RepositoriesRequest extends QueueOwner {
  /** Paths anywhere below the allowed folders, to be examined first, at most `limits.used_repositories_max`. */
  first: readonly string[];
  /** A `worktree_repo` to check; null: none. It is examined before those of `first`. */
  path?: string | null;
}

export interface FoundRepository {
  /** Real and absolute. */
  path: string;
  /** Null if HEAD is detached. */
  branch: string | null;
  /** Whether it has uncommitted changes or new files; null if that was not known in time. */
  dirty: boolean | null;
}

export interface FoundRepositories {
  /** Real paths of the searched folders. */
  roots: string[];
  /** Those of `first`, then the others by root and name. */
  repositories: FoundRepository[];
  truncated: boolean;
}

export interface FileChange extends ChangedFile {
  /** Unified diff; empty for binary files. */
  diff: string;
  truncated: boolean;
}
