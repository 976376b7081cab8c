/**
 * Converts between messages of the protocol (`link/proto/node.proto`) and types of the plane and node. Unknown values
 * are rejected or counted.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { limits as sharedLimits } from '../base/limits.ts';
import { cutText } from '../base/text.ts';
import { version } from '../base/version.ts';
import { boundEnd } from '../core/fact-bounds.ts';
import {
  type ChangedFile,
  changeStatuses,
  type FoundRepositories,
  type FoundRepository,
  type ProgramFinding,
  type ProgramQuestion,
  type SessionEnd,
  type SessionFact,
  type SessionView,
  type WarningCode,
} from '../core/node.ts';
import { invalid, Problem, type ProblemKind, problems } from '../core/problem.ts';
import { type BranchRemote, isRemoteName, remoteUrl } from '../core/remote.ts';
import { type Cleanup, cleanups, type EndReason, endReasons } from '../core/session.ts';
import { limits } from './limits.ts';
import {
  type BranchRemoteSchema,
  type ChangedFileSchema,
  FactSchema,
  type FindRepositoriesResponse,
  type ProgramFindingSchema,
  RefusalSchema,
  type RepositorySchema,
  type SessionEndSchema,
  type SessionViewSchema,
  type Speaks,
  type SpeaksSchema,
  type BranchRemote as WireBranchRemote,
  type ChangedFile as WireChangedFile,
  type Fact as WireFact,
  type ProgramFinding as WireProgramFinding,
  type SessionEnd as WireSessionEnd,
  type SessionView as WireSessionView,
} from './proto/node_pb.ts';

/** Header of every command: the position of the link that it belongs to. */
export const LINK_HEADER = 'svc-link';
/** Header of an error response: the node's clock in Unix ms. */
export const TIME_HEADER = 'svc-time';

/** Options for the adapters of the listeners: gRPC only, no other protocol that the library supports. */
export const GRPC_ONLY = { connect: false, grpcWeb: false } as const;

const PROTOCOL = 1;
const PROTOCOL_MIN = 1;

/** The version information that this side sends. */
export function versionInfo(): MessageInitShape<typeof SpeaksSchema> {
  return { protocol: PROTOCOL, protocolMin: PROTOCOL_MIN, version };
}

/** Returns null if both sides are compatible; otherwise the reason, with both versions. */
export function versionMismatch(
  theirs: Speaks | undefined,
  names: { us: string; them: string },
): string | null {
  const { protocol = 0, protocolMin = 0, version: release = 'unknown' } = theirs ?? {};
  const us = `${names.us} (svc ${version}, protocol ${PROTOCOL})`;
  const them = `${names.them} (svc ${release}, protocol ${protocol})`;
  if (protocol < PROTOCOL_MIN) return `${them} is too old for ${us}, which needs protocol ${PROTOCOL_MIN}`;
  if (protocolMin > PROTOCOL) return `${us} is too old for ${them}, which needs protocol ${protocolMin}`;
  return null;
}

/**
 * A link's position in the order of links: a higher incarnation wins, then a higher epoch. When a node joins another
 * plane, the order starts anew.
 */
export interface LinkPosition {
  plane_id: string;
  /** Unix ms at which the plane's database was created or restored. */
  incarnation: number;
  epoch: number;
}

/** True if position `a` comes before `b`. */
export function isBefore(a: LinkPosition, b: LinkPosition): boolean {
  return a.incarnation < b.incarnation || (a.incarnation === b.incarnation && a.epoch < b.epoch);
}

/** The value of `LINK_HEADER`. */
export function formatPosition({ plane_id, incarnation, epoch }: LinkPosition): string {
  return `${plane_id} ${incarnation} ${epoch}`;
}

// --- problems --------------------------------------------------------------------------------------------------------

/** Converts a handler's error to an error that the caller may see. Only a Problem keeps its message. */
export function toConnectError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  const value = refusalToWire(thrown instanceof Problem ? thrown : problems.nodeFailed());
  return new ConnectError(value.message, Code.FailedPrecondition, undefined, [
    { desc: RefusalSchema, value },
  ]);
}

/** Converts a Problem, whose text may come from an agent, to a rejection that fits in trailers and in any message. */
export function refusalToWire({ kind, code, message, allowed_paths = [], refused_path }: Problem) {
  return {
    ...{ kind, code, message: cutText(message, limits.link_text_chars_max) },
    allowedPaths: allowed_paths.slice(0, limits.allowed_paths_max),
    ...(refused_path !== undefined && { refusedPath: cutText(refused_path, sharedLimits.path_bytes_max) }),
  };
}

/** Parses the parameters of an actor's call. Throws `invalid`. */
export function paramsFromWire(params: string): unknown {
  try {
    return JSON.parse(params);
  } catch {
    throw invalid('params must be JSON');
  }
}

/**
 * Converts the error of a call to a Problem. Any error that the other side did not send as a Problem becomes a link
 * failure. `kinds`: the kinds that the peer may send. Default: those that a node may send for a command.
 */
export function toProblem(error: unknown, kinds: readonly ProblemKind[] = nodesKinds): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof ConnectError)) return problems.nodeUnreachable();
  const [refusal] = error.findDetails(RefusalSchema);
  if (refusal) return fromRefusal(refusal, kinds);
  if (error.code === Code.Unauthenticated) return problems.nodeUnauthorized();
  if (error.code === Code.Unimplemented) return problems.nodeTooOld();
  return problems.nodeUnreachable();
}

interface WireRefusal {
  kind: string;
  code: string;
  message: string;
  allowedPaths?: readonly string[];
  refusedPath?: string | undefined;
}

/** Converts a rejection to a Problem. A kind that is not in `kinds`, or a malformed code, becomes a link failure. */
export function fromRefusal(
  { kind, code, message, allowedPaths = [], refusedPath = '' }: WireRefusal,
  kinds: readonly ProblemKind[] = nodesKinds,
): Problem {
  const known = kinds.find((each) => each === kind);
  if (!known || !CODE_PATTERN.test(code)) return problems.nodeUnreachable();
  const allowed_paths = allowedPaths.slice(0, limits.allowed_paths_max).filter(isPath);
  return new Problem(known, code, message.slice(0, limits.link_text_chars_max), {
    ...(allowed_paths.length > 0 && { allowed_paths }),
    ...(isPath(refusedPath) && { refused_path: refusedPath }),
  });
}

function isPath(text: string): boolean {
  return text.startsWith('/') && text.length <= sharedLimits.path_bytes_max && !/[\x00-\x1f\x7f]/.test(text);
}

/** The code with which a node rejects a command that arrives after its `not_after_ms`. */
export const COMMAND_EXPIRED = 'command_expired';

/** The kinds that a node may send for a command. A node does not decide about authentication and rate limits. */
const nodesKinds = [
  'invalid',
  'not_found',
  'conflict',
  'too_large',
  'bad_gateway',
  'unavailable',
] as const satisfies readonly ProblemKind[];
/** The format of a code, and of the name of a detail. */
const CODE_PATTERN = /^[a-z][a-z0-9_]{0,63}$/;
/** The format of the plane's ids. Other text might not be safe in a URL path. */
const SESSION_ID = /^ses_\w{1,60}$/;
const AGENT_ID = /^agt_\w{1,60}$/;

/** Thrown if a peer violates the protocol. The link ends, and a new one starts from the state on disk. */
export class ProtocolError extends Error {}

// --- sessions --------------------------------------------------------------------------------------------------------

export function viewToWire(view: SessionView): MessageInitShape<typeof SessionViewSchema> {
  const { launch } = view;
  return {
    sessionId: view.session_id,
    launch: {
      planeId: launch.plane_id,
      agentId: launch.agent_id,
      agentName: launch.agent_name,
      ownerId: launch.owner_id,
      workdir: launch.workdir,
      argv: launch.argv,
      envKeys: launch.env_keys,
      stdin: launch.stdin,
      onExit: launch.on_exit,
    },
    phase: view.phase,
    ...(view.pid !== null && { pid: BigInt(view.pid) }),
    ...(view.started_at_ms !== null && { startedAtMs: BigInt(view.started_at_ms) }),
    ...(view.end && { end: endToWire(view.end) }),
    stdinBytes: BigInt(view.stdin_bytes),
    facts: view.facts.map((fact) => create(FactSchema, factToWire(fact))),
  };
}

/** Throws a ProtocolError if the message is malformed. */
export function viewFromWire(view: WireSessionView): SessionView {
  const { launch, phase } = view;
  if (!launch || (phase !== 'starting' && phase !== 'running' && phase !== 'ended')) {
    throw new ProtocolError(`session ${view.sessionId} has an unknown form`);
  }
  if (!SESSION_ID.test(view.sessionId) || !AGENT_ID.test(launch.agentId))
    throw new ProtocolError('a session with malformed ids');
  if (launch.agentName.length > sharedLimits.name_chars_max)
    throw new ProtocolError('the agent name is too long');
  return {
    session_id: view.sessionId,
    launch: {
      session_id: view.sessionId,
      plane_id: launch.planeId,
      agent_id: launch.agentId,
      agent_name: launch.agentName,
      owner_id: launch.ownerId,
      workdir: absolutePath(launch.workdir),
      argv: launch.argv,
      env_keys: launch.envKeys,
      stdin: launch.stdin,
      on_exit: launch.onExit === 'keep' ? 'keep' : 'kill',
    },
    phase,
    pid: safeIntegerOrNull(view.pid),
    started_at_ms: view.startedAtMs === undefined ? null : timeMs(view.startedAtMs),
    end: view.end ? endFromWire(view.end) : null,
    stdin_bytes: safeInteger(view.stdinBytes),
    facts: view.facts.map(factFromWire),
  };
}

export function factToWire({
  session_id,
  number,
  at_ms,
  body,
}: SessionFact): MessageInitShape<typeof FactSchema> {
  const fact = { sessionId: session_id, number: BigInt(number), atMs: BigInt(at_ms) };
  switch (body.kind) {
    case 'started': {
      const value = { pid: BigInt(body.pid), startedAtMs: BigInt(body.started_at_ms) };
      return { ...fact, body: { case: 'started', value } };
    }
    case 'ended':
      return { ...fact, body: { case: 'ended', value: endToWire(body.end) } };
    case 'trouble': {
      const { code, error, details } = body;
      return { ...fact, body: { case: 'trouble', value: { code, error, details: JSON.stringify(details) } } };
    }
    case 'unknown':
      return fact;
  }
}

/** Throws a ProtocolError if the message is malformed. A fact of an unknown kind is kept as `unknown`. */
export function factFromWire(fact: WireFact): SessionFact {
  return {
    session_id: fact.sessionId,
    number: safeInteger(fact.number),
    at_ms: timeMs(fact.atMs),
    body: factBody(fact.body),
  };
}

function factBody(body: WireFact['body']): SessionFact['body'] {
  switch (body.case) {
    case 'started':
      return {
        kind: 'started',
        pid: safeInteger(body.value.pid),
        started_at_ms: timeMs(body.value.startedAtMs),
      };
    case 'ended':
      return { kind: 'ended', end: endFromWire(body.value) };
    case 'trouble': {
      const { code, error, details } = body.value;
      if (!CODE_PATTERN.test(code)) throw new ProtocolError('a warning with a malformed code');
      return {
        kind: 'trouble',
        code: code as WarningCode,
        error: error.slice(0, limits.link_text_chars_max),
        details: parseDetails(details),
      };
    }
    case undefined:
      return { kind: 'unknown' };
  }
}

function endToWire(end: SessionEnd): MessageInitShape<typeof SessionEndSchema> {
  const { exit } = end;
  return {
    ...withoutNulls({
      exitCode: exit.exit_code,
      exitSignal: exit.exit_signal,
      reason: exit.reason,
      message: exit.message,
      cleanup: end.cleanup,
    }),
    stdoutBytes: BigInt(end.sizes.stdout),
    stderrBytes: BigInt(end.sizes.stderr),
    leftovers: end.leftovers.map(({ pid, command }) => ({ pid: BigInt(pid), command })),
    endedAtMs: BigInt(end.ended_at_ms),
  };
}

function endFromWire(end: WireSessionEnd): SessionEnd {
  const reason = endReasons.find((known) => known === end.reason) ?? null;
  if (reason === null && end.reason !== undefined) throw new ProtocolError('an unknown end reason');
  return boundEnd({
    exit: {
      exit_code: end.exitCode ?? null,
      exit_signal: end.exitSignal ?? null,
      reason: reason satisfies EndReason | null,
      message: end.message ?? null,
    },
    sizes: { stdout: safeInteger(end.stdoutBytes), stderr: safeInteger(end.stderrBytes) },
    cleanup: cleanupFromWire(end.cleanup),
    leftovers: end.leftovers.map(({ pid, command }) => ({ pid: safeInteger(pid), command })),
    ended_at_ms: timeMs(end.endedAtMs),
  });
}

/** Null if the value is absent or unknown. */
export function cleanupFromWire(cleanup: string | undefined): Cleanup | null {
  return cleanups.find((known) => known === cleanup) ?? null;
}

function parseDetails(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      return Object.fromEntries(Object.entries(value).filter(isDetail).slice(0, limits.link_details_max));
    }
  } catch {
    // Details that are not JSON are ignored.
  }
  return {};
}

/** Fields that every event has. A detail never overwrites them. */
const reserved = new Set(['type', 'agent_id', 'session_id', 'seq', 'ts', 'code', 'error']);

function isDetail([name, value]: [string, unknown]): boolean {
  if (!CODE_PATTERN.test(name) || reserved.has(name)) return false;
  if (typeof value === 'string') return value.length <= limits.link_text_chars_max;
  return value === null || typeof value === 'boolean' || typeof value === 'number';
}

// --- changes ---------------------------------------------------------------------------------------------------------

export function changedFileToWire(file: ChangedFile): MessageInitShape<typeof ChangedFileSchema> {
  const { path, from, status, additions, deletions, version } = file;
  return { path, status, ...withoutNulls({ from, additions, deletions, version }) };
}

/** Throws a ProtocolError for an unknown status. */
export function changedFileFromWire(file: WireChangedFile): ChangedFile {
  const status = changeStatuses.find((known) => known === file.status);
  if (!status) throw new ProtocolError('an unknown change status');
  return {
    path: file.path,
    from: file.from ?? null,
    status,
    additions: file.additions ?? null,
    deletions: file.deletions ?? null,
    version: file.version ?? null,
  };
}

export function remoteToWire({
  name,
  url,
  pushed,
}: BranchRemote): MessageInitShape<typeof BranchRemoteSchema> {
  return { name, pushed, ...withoutNulls({ url }) };
}

/** Null for a name that git could take for something else. */
export function remoteFromWire(remote: WireBranchRemote | undefined): BranchRemote | null {
  if (!remote || !isRemoteName(remote.name)) return null;
  const { name, url, pushed } = remote;
  return { name, url: url === undefined ? null : remoteUrl(url), pushed };
}

// --- repositories ----------------------------------------------------------------------------------------------------

export function repositoryToWire({
  path,
  branch,
  dirty,
}: FoundRepository): MessageInitShape<typeof RepositorySchema> {
  return { path, ...withoutNulls({ branch, dirty }) };
}

/** Omits what could not be a path. */
export function repositoriesFromWire({
  roots,
  repositories,
  truncated,
}: Pick<FindRepositoriesResponse, 'roots' | 'repositories' | 'truncated'>): FoundRepositories {
  const usable = repositories.filter(({ path }) => isPath(path));
  return {
    roots: roots.slice(0, limits.allowed_paths_max).filter(isPath),
    repositories: usable.slice(0, sharedLimits.found_repositories_max).map(({ path, branch, dirty }) => ({
      path,
      branch: truncatedOrNull(branch),
      dirty: dirty ?? null,
    })),
    truncated: truncated || usable.length > sharedLimits.found_repositories_max,
  };
}

// --- programs --------------------------------------------------------------------------------------------------------

export function findingToWire({
  path,
  version,
  env_set,
  files_found,
}: ProgramFinding): MessageInitShape<typeof ProgramFindingSchema> {
  return { envSet: env_set, filesFound: files_found, ...withoutNulls({ path, version }) };
}

/** Converts a node's findings. Throws a ProtocolError unless there is exactly one for each question. */
export function findingsFromWire(
  findings: readonly WireProgramFinding[],
  questions: readonly ProgramQuestion[],
): ProgramFinding[] {
  if (findings.length !== questions.length)
    throw new ProtocolError('the number of findings does not match the questions');
  return questions.map((question, at) => {
    const { path, version, envSet, filesFound } = findings[at]!;
    return {
      path: path?.slice(0, sharedLimits.path_chars_max) ?? null,
      version: version?.slice(0, sharedLimits.probe_version_chars_max) ?? null,
      env_set: question.env.filter((name) => envSet.includes(name)),
      files_found: question.files.filter((file) => filesFound.includes(file)),
    };
  });
}

// --- values ----------------------------------------------------------------------------------------------------------

/** Removes null fields, which are absent in the protocol. */
export function withoutNulls<T extends Record<string, unknown>>(
  values: T,
): { [K in keyof T]?: Exclude<T[K], null | undefined> } {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== null && value !== undefined),
  ) as never;
}

/** Converts a size, offset or time to a number. Throws a ProtocolError if it does not fit a double exactly. */
export function safeInteger(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new ProtocolError('a number out of range');
  return number;
}

/** Checks that the path is absolute and within the system's length limit. Throws a ProtocolError. */
export function absolutePath(path: string): string {
  if (!path.startsWith('/') || Buffer.byteLength(path) > sharedLimits.path_bytes_max)
    throw new ProtocolError('a malformed folder path');
  return path;
}

/** Truncates text to `limits.link_text_chars_max`; null if it is absent. */
export function truncatedOrNull(text: string | undefined): string | null {
  return text?.slice(0, limits.link_text_chars_max) ?? null;
}

/** Checks that the time can be formatted as a date. */
function timeMs(value: bigint): number {
  const at_ms = safeInteger(value);
  if (at_ms < 0 || at_ms > TIME_MS_MAX) throw new ProtocolError('a time out of range');
  return at_ms;
}
/** The last day of the year 9999. */
const TIME_MS_MAX = 253_402_214_400_000;

function safeIntegerOrNull(value: bigint | undefined): number | null {
  return value === undefined ? null : safeInteger(value);
}
