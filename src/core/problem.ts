/**
 * Errors that a client may see: a stable code, a message and a kind. Any layer can throw one; `api/status.ts` maps the
 * kind to a status. Any other error becomes a 500 without details.
 */
import type { PendingKind } from '../features/agents/rules.ts';

export const problemKinds = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'conflict',
  'too_large',
  'unsupported_media_type',
  'misdirected',
  'rate_limited',
  'bad_gateway',
  'unavailable',
] as const;
export type ProblemKind = (typeof problemKinds)[number];

export interface ProblemOptions {
  retry_after_s?: number;
  allowed_paths?: readonly string[];
  refused_path?: string;
  pending?: PendingKind;
  tries_left?: number;
  is_of_store?: boolean;
}

/** An error with a stable code and a message for the client. */
export class Problem extends Error {
  readonly kind: ProblemKind;
  readonly code: string;
  readonly retry_after_s: number | undefined;
  /** For a rejected path: the allowed folders, absolute; undefined if the caller may not know them. */
  readonly allowed_paths: readonly string[] | undefined;
  /** The rejected path, as the caller sent it. */
  readonly refused_path: string | undefined;
  /** The request that is kept until the agent's node answers; undefined if the request is dropped. */
  readonly pending: PendingKind | undefined;
  /** For a wrong PIN: how many more can be tried. */
  readonly tries_left: number | undefined;
  /** The plane's own database failed. The store has logged the reason, so whoever retries logs nothing. */
  readonly is_of_store: boolean;

  constructor(kind: ProblemKind, code: string, message: string, options: ProblemOptions = {}) {
    super(message);
    this.name = 'Problem';
    this.kind = kind;
    this.code = code;
    this.retry_after_s = options.retry_after_s;
    this.allowed_paths = options.allowed_paths;
    this.refused_path = options.refused_path;
    this.pending = options.pending;
    this.tries_left = options.tries_left;
    this.is_of_store = options.is_of_store ?? false;
  }
}

/**
 * Adds the path to an error that is about one, and the allowed folders if it is not in one of them. Returns any other error
 * unchanged. Callers who may create agents on a node may see its allowed folders.
 */
export function withAllowedPaths(
  error: unknown,
  { safe_paths, repo_roots }: { safe_paths: readonly string[]; repo_roots: readonly string[] },
  { workdir, repo }: { workdir?: string | null; repo?: string | null },
): unknown {
  if (!(error instanceof Problem) || error.allowed_paths !== undefined) return error;
  const { kind, code, message } = error;
  const path = code.startsWith('workdir') ? workdir : /^(worktree_repo|git_refused)/.test(code) ? repo : null;
  const setting = settingForRefusedPath(error);
  if (setting === null && !path) return error;
  const allowed = setting === 'safe_paths' ? safe_paths : [...safe_paths, ...repo_roots];
  return new Problem(kind, code, message, {
    ...(setting !== null && { allowed_paths: [...new Set(allowed)] }),
    ...(path && { refused_path: path }),
  });
}

// Constants, because the web UI uses these codes, but not the table of all problems.
const WORKDIR_NOT_SAFE = 'workdir_not_safe';
const REPO_NOT_SAFE = 'worktree_repo_not_safe';

/** The settings that list allowed folders. */
export const folderSettings = ['safe_paths', 'worktree.repo_roots'] as const;
export type FolderSetting = (typeof folderSettings)[number];

/** The setting that lists the folders in which a rejected path would be allowed; null for any other error. */
export function settingForRefusedPath({ code }: Problem): FolderSetting | null {
  if (code === WORKDIR_NOT_SAFE) return 'safe_paths';
  return code === REPO_NOT_SAFE ? 'worktree.repo_roots' : null;
}

/** How many allowed folders a text names. */
const NAMED_PATHS_MAX = 5;

/** The message of an error. If it is about a path, also the path; if that is not allowed, the allowed folders and the solution. */
export function explainRefusal(problem: Problem): string {
  const { message, allowed_paths = [], refused_path } = problem;
  const setting = settingForRefusedPath(problem);
  if (refused_path === undefined) return message;
  if (setting === null) return `${message} (${refused_path})`;
  const named = allowed_paths.slice(0, NAMED_PATHS_MAX).join(', ');
  const allowed = named === '' ? 'no folder is allowed' : `allowed: ${named}`;
  return `${message}: ${refused_path} (${allowed}); use an allowed folder, or add this one to ${setting}`;
}

/** The plane's own database failed. `code` and `message`: what clients see. */
export function storeProblem(code: string, message: string): Problem {
  return new Problem('unavailable', code, message, { is_of_store: true });
}

/** The error for a change of a setting that `source`, a flag or a variable, sets. */
export function settingFixed(key: string, source: string | null): Problem {
  return new Problem('conflict', 'setting_fixed', `${key} is fixed by ${source}`);
}

/** Whether the plane itself is at fault: the error is unexpected, or the database failed. It says nothing about the request. */
export function isFault(error: unknown): boolean {
  return !(error instanceof Problem) || error.is_of_store;
}

/** The kinds of problems that may pass. All others say something about the request, so they are its outcome. */
const temporaryKinds: readonly ProblemKind[] = ['unavailable', 'bad_gateway', 'rate_limited'];

/** Whether the same work may succeed later, so that it stays queued. Any other error is its outcome. */
export function isTemporary(error: unknown): boolean {
  return !(error instanceof Problem) || temporaryKinds.includes(error.kind);
}

/** Whether the plane shuts down before accepted work is done. The next one continues it. */
export function isInterrupted(error: unknown): boolean {
  return error instanceof Problem && error.code === problems.shutdownInterrupted().code;
}

/** Whether the node cannot be reached now, or answers wrongly: any bad gateway, or no internal gRPC. */
export function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Problem)) return false;
  return error.kind === 'bad_gateway' || error.code === problems.internalGrpcUnavailable().code;
}

/** A 400 for one field: `<field path> <what is wrong>`. */
export function invalid(message: string, code = 'invalid_request'): Problem {
  return new Problem('invalid', code, message);
}

/** The error for a field that the route does not know, given by its path. For routes that create secrets. */
export function unknownField(path: string): Problem {
  return invalid(`unknown field "${path}"`, 'unknown_field');
}

/** The error for a caller who asked to act as an actor without being allowed to. */
export function notAllowedAs(actor_id: string): Problem {
  return new Problem('forbidden', 'not_allowed', `not allowed to act as ${actor_id}`);
}

/** The error for an API token without the scope that the call needs. */
export function lacksScope(scope: string): Problem {
  return new Problem('forbidden', 'token_lacks_scope', `token lacks scope ${scope}`);
}

// This lets bundlers drop unused problems.
/* @__NO_SIDE_EFFECTS__ */
export function fixed(
  kind: ProblemKind,
  code: string,
  message: string,
): (options?: ProblemOptions) => Problem {
  return (options) => new Problem(kind, code, message, options);
}

/** Fixed messages, each defined once. `core/other-problems.ts` has the others, for documentation. */
export const problems = {
  missingToken: fixed('unauthenticated', 'missing_authorization_token', 'missing authorization token'),
  invalidToken: fixed('unauthenticated', 'invalid_token', 'invalid token'),
  rootRequired: fixed('unauthenticated', 'root_required', 'root required'),
  rootAlreadyInitialized: fixed('unauthenticated', 'root_already_initialized', 'root already initialized'),
  invalidJoinToken: fixed('unauthenticated', 'invalid_join_token', 'invalid join token'),
  joinTokenExpired: fixed('unauthenticated', 'join_token_expired', 'join token expired'),
  invalidPin: fixed('unauthenticated', 'invalid_pin', 'invalid pin'),
  invalidLogin: fixed('unauthenticated', 'invalid_login', 'invalid username or password'),
  invalidPasskey: fixed('unauthenticated', 'invalid_passkey', 'passkey was not accepted'),
  passwordRequired: fixed('forbidden', 'password_required', 'current password is required'),
  notAllowed: fixed('forbidden', 'not_allowed', 'not allowed'),
  originNotAllowed: fixed('forbidden', 'origin_not_allowed', 'origin not allowed'),
  tokenLimited: fixed('forbidden', 'token_limited', 'token is limited to certain agents or teams'),
  actorUnauthorized: fixed('unauthenticated', 'unauthorized', 'unauthorized'),

  notFound: fixed('not_found', 'not_found', 'not found'),
  agentNotFound: fixed('not_found', 'agent_not_found', 'agent not found'),
  worktreeNotFound: fixed('not_found', 'worktree_not_found', 'worktree not found'),
  teamNotFound: fixed('not_found', 'team_not_found', 'team not found'),
  runNotFound: fixed('not_found', 'run_not_found', 'run not found'),
  stepNotFound: fixed('not_found', 'step_not_found', 'step not found'),
  taskNotFound: fixed('not_found', 'task_not_found', 'task not found'),
  conversationNotFound: fixed('not_found', 'conversation_not_found', 'conversation not found'),
  triggerNotFound: fixed('not_found', 'trigger_not_found', 'trigger not found'),
  messageNotFound: fixed('not_found', 'message_not_found', 'message not found'),
  promptNotFound: fixed('not_found', 'prompt_not_found', 'prompt not found'),
  reviewNotFound: fixed('not_found', 'permission_review_not_found', 'permission review not found'),
  elicitationNotFound: fixed('not_found', 'elicitation_not_found', 'elicitation not found'),
  sessionNotFound: fixed('not_found', 'session_not_found', 'session not found'),
  userNotFound: fixed('not_found', 'user_not_found', 'user not found'),
  tokenNotFound: fixed('not_found', 'token_not_found', 'token not found'),
  passkeyNotFound: fixed('not_found', 'passkey_not_found', 'passkey not found'),
  nodeNotFound: fixed('not_found', 'agent_node_not_found', 'agent node not found'),
  pushNotFound: fixed('not_found', 'push_subscription_not_found', 'push subscription not found'),
  outputLost: fixed('not_found', 'output_lost', 'output is no longer kept'),
  fileNotFound: fixed('not_found', 'file_not_found', 'file not found'),

  patchTooLarge: fixed('too_large', 'patch_too_large', 'patch is too large; fetch the changes in git'),

  bodyNotJson: fixed('invalid', 'invalid_json', 'request body is not valid JSON'),
  nothingToChange: fixed('invalid', 'nothing_to_change', 'nothing to change'),
  invalidCursor: fixed('invalid', 'invalid_cursor', 'invalid cursor'),
  invalidLimit: fixed('invalid', 'invalid_limit', 'limit must be an integer from 1 to 200'),
  rangeNotSatisfiable: fixed('invalid', 'range_not_satisfiable', 'range is not satisfiable'),
  invalidLastEventId: fixed('invalid', 'invalid_last_event_id', 'invalid last event id'),
  nameRequired: fixed('invalid', 'name_required', 'name is required'),
  titleRequired: fixed('invalid', 'title_required', 'title is required'),
  textRequired: fixed('invalid', 'text_required', 'text is required'),
  textOrPayload: fixed('invalid', 'text_or_payload', 'text and payload must not both be given'),
  routeInvalid: fixed('invalid', 'route_invalid', 'route must be one of: broadcast, to_leader, to_member'),
  leaderRequired: fixed(
    'invalid',
    'leader_required',
    'route=to_leader requires a leader member in spec.members',
  ),
  recipientRequired: fixed('invalid', 'to_actor_id_required', 'to_actor_id is required when route=to_member'),
  replyElsewhere: fixed('invalid', 'reply_elsewhere', 'reply_to must be a message of the conversation'),
  assigneeUnknown: fixed('invalid', 'assignee_unknown', 'assignee_member_id must reference a defined member'),
  commandRequired: fixed('invalid', 'command_required', 'command is required'),
  promptNeedsAcp: fixed('invalid', 'prompt_needs_acp', 'prompt needs an agent that speaks ACP'),
  agentNotAcp: fixed('invalid', 'agent_not_acp', 'agent does not speak ACP'),
  agentSpeaksAcp: fixed('invalid', 'agent_speaks_acp', 'agent speaks ACP; send it a prompt instead'),
  optionIdRequired: fixed('invalid', 'option_id_required', 'option_id is required'),
  unknownOption: fixed('invalid', 'unknown_option_id', 'unknown option_id'),
  workerReviewToWorker: fixed(
    'invalid',
    'worker_review_to_worker',
    'worker-originated permission review cannot route to worker',
  ),
  leaderCannotAnswer: fixed(
    'invalid',
    'leader_cannot_answer',
    'the leader is an agent, which cannot answer without internal_grpc.enabled; route the review to a person',
  ),
  ownReview: fixed('invalid', 'own_review', 'a leader cannot answer its own permission review'),
  optionMismatch: fixed('invalid', 'option_id_mismatch', 'option_id does not match the decision'),
  unknownAuthMethod: fixed('invalid', 'unknown_method_id', 'unknown method_id'),
  workdirRequired: fixed('invalid', 'workdir_required', 'workdir is required'),
  workdirNotAbsolute: fixed('invalid', 'workdir_not_absolute', 'workdir must be absolute'),
  workdirNotSafe: fixed('invalid', WORKDIR_NOT_SAFE, 'workdir path must be within allowed safe paths'),
  workdirMissing: fixed('invalid', 'workdir_missing', 'workdir does not exist'),
  repoNotSafe: fixed('invalid', REPO_NOT_SAFE, 'worktree_repo must be within allowed safe paths'),
  expiryPassed: fixed('invalid', 'expiry_passed', 'expires_at must be in the future'),
  passkeyNotValid: fixed('invalid', 'passkey_not_valid', 'passkey is not valid'),
  usernameInvalid: fixed(
    'invalid',
    'username_invalid',
    'username must be 1 to 64 characters from a-z, 0-9, ".", "_" and "-"',
  ),
  teamNameRequired: fixed('invalid', 'team_name_required', 'team name is required'),
  versionRequired: fixed('invalid', 'version_required', 'version is required'),
  specNotObject: fixed('invalid', 'spec_invalid', 'spec must be an object'),
  membersNotArray: fixed('invalid', 'spec_invalid', 'spec.members must be an array'),
  membersEmpty: fixed('invalid', 'spec_invalid', 'spec.members must not be empty'),
  specMemberIdRequired: fixed('invalid', 'spec_invalid', 'spec.members[].member_id is required'),
  leaderUndefined: fixed('invalid', 'spec_invalid', 'spec.leader_member_id must reference a defined member'),
  needsEmpty: fixed('invalid', 'spec_invalid', 'spec.steps[].depends_on entries must be non-empty strings'),
  needsUndefined: fixed('invalid', 'spec_invalid', 'spec.steps[].depends_on must reference a defined step'),
  stepCycle: fixed('invalid', 'spec_invalid', 'spec.steps must not contain a dependency cycle'),
  stepKeyRequired: fixed('invalid', 'step_key_required', 'step_key is required'),
  memberIdRequired: fixed('invalid', 'member_id_required', 'member_id is required'),
  memberUndefined: fixed('invalid', 'member_undefined', 'member_id must reference a defined member'),
  stepNeedsUndefined: fixed('invalid', 'depends_on_undefined', 'depends_on must reference a defined step'),
  errorTextRequired: fixed('invalid', 'error_text_required', 'error_text is required'),
  pushEndpointInvalid: fixed('invalid', 'push_endpoint_invalid', 'endpoint must be an https URL'),
  pushEndpointRefused: fixed('invalid', 'push_endpoint_refused', 'endpoint address is not allowed'),
  pushKeysInvalid: fixed(
    'invalid',
    'push_keys_invalid',
    'keys must be a P-256 public key and a 16-byte secret',
  ),
  nodeIdReserved: fixed('invalid', 'node_id_reserved', 'agent node id is reserved'),
  grpcTargetInvalid: fixed('invalid', 'grpc_target_invalid', 'grpc_target must be https://<host>:<port>'),
  grpcTargetRefused: fixed('invalid', 'grpc_target_refused', 'grpc_target address is not allowed'),

  taskChanged: fixed('conflict', 'task_changed', 'task changed concurrently; reload and retry'),
  stepChanged: fixed('conflict', 'step_changed', 'step changed concurrently; reload and retry'),
  taskHasRun: fixed('conflict', 'task_has_run', 'task has an active run'),
  tooManyMessages: fixed('conflict', 'too_many_messages', 'too many messages in the conversation'),
  noLocalNode: fixed('conflict', 'no_local_node', 'this control plane runs no agents itself: choose a node'),
  noNodes: fixed(
    'conflict',
    'no_local_node',
    'this control plane runs no agents itself and has no nodes: register one with svc nodes register',
  ),
  agentAlreadyRunning: fixed('conflict', 'agent_already_running', 'agent is already running'),
  agentBeingDeleted: fixed('conflict', 'agent_being_deleted', 'agent is being deleted'),
  agentNotRunning: fixed('conflict', 'agent_not_running', 'agent is not running'),
  agentRunning: fixed('conflict', 'agent_running', 'agent is running'),
  baseMissing: fixed(
    'conflict',
    'base_missing',
    "the workdir's repository does not have the commit that the worktree was made from: its .git was replaced or removed",
  ),
  agentNoStdin: fixed('conflict', 'agent_no_stdin', 'agent has no stdin'),
  stdinLost: fixed('conflict', 'stdin_lost', 'input state was lost in a restore; restart the agent'),
  tooMuchMail: fixed('conflict', 'too_much_mail', 'too many mailbox messages in the run'),
  tooManyTriggers: fixed('conflict', 'too_many_triggers', 'too many triggers in the run'),
  runOver: fixed('conflict', 'run_over', 'run is over'),
  tooManyPrompts: fixed('conflict', 'too_many_prompts', 'too many prompts are waiting'),
  promptSent: fixed('conflict', 'prompt_sent', 'prompt was already sent'),
  noTurn: fixed('conflict', 'no_turn', 'no turn is running'),
  acpNotReady: fixed('conflict', 'acp_not_ready', 'agent is not ready yet'),
  acpSilent: fixed('conflict', 'acp_silent', 'agent has not answered yet'),
  acpFailed: fixed(
    'conflict',
    'acp_failed',
    'conversation with the agent has failed; see the error in its log',
  ),
  noSignIn: fixed('conflict', 'no_sign_in', 'agent is not waiting for a sign-in'),
  reviewCancelled: fixed('conflict', 'review_over', 'permission review is already cancelled'),
  elicitationCancelled: fixed('conflict', 'elicitation_over', 'elicitation is already cancelled'),
  userHasAgents: fixed('conflict', 'user_has_agents', 'user has agents'),
  userHasTeams: fixed('conflict', 'user_has_teams', 'user has teams'),
  worktreeInUse: fixed('conflict', 'worktree_in_use', 'worktree is in use; delete its agent instead'),
  teamExists: fixed('conflict', 'team_name_exists', 'team name already exists'),
  teamKeyExists: fixed('conflict', 'team_key_exists', 'team key already exists'),
  teamKeysTaken: fixed('conflict', 'team_keys_taken', 'no team key for this name is free; choose one'),
  teamChanged: fixed('conflict', 'team_changed', 'team definition changed concurrently; reload and retry'),
  teamHasRuns: fixed('conflict', 'team_has_active_runs', 'team has active runs'),
  runBeingDeleted: fixed('conflict', 'run_being_deleted', 'run is being deleted'),
  runNotEnded: fixed('conflict', 'run_not_ended', 'run has not ended; cancel it first'),
  runChanged: fixed('conflict', 'run_changed', 'run changed concurrently; reload and retry'),
  runCompleted: fixed('conflict', 'run_completed', 'completed run cannot be resumed; use restart'),
  stepExists: fixed('conflict', 'step_exists', 'step already exists for run'),
  tooManySteps: fixed('conflict', 'too_many_steps', 'run has too many steps'),
  nodeExists: fixed('conflict', 'agent_node_exists', 'agent node id or name already exists'),
  nodeAnswers: fixed(
    'conflict',
    'agent_node_answers',
    'agent node answers; delete it without forget to stop its agents',
  ),
  nodeHasAgents: fixed('conflict', 'agent_node_has_agents', 'agent node has active agents'),
  bootstrapConfigured: fixed(
    'conflict',
    'bootstrap_token_configured',
    'bootstrap token is set in the configuration',
  ),
  pushKeyChanged: fixed('conflict', 'push_key_changed', 'push keys have changed; subscribe again'),
  pushTaken: fixed('conflict', 'push_taken', 'push subscription belongs to another user'),
  tooManyPush: fixed('conflict', 'too_many_push_subscriptions', 'too many push subscriptions'),
  passkeyRegistrationOver: fixed(
    'conflict',
    'passkey_registration_over',
    'passkey registration has ended; start again',
  ),
  tooManyPasskeys: fixed('conflict', 'too_many_passkeys', 'too many passkeys'),
  tooManyTokens: fixed('conflict', 'too_many_tokens', 'too many tokens'),
  usernameTaken: fixed('conflict', 'username_taken', 'username already exists'),
  lastRoot: fixed('conflict', 'last_root', 'the last root user can be neither deleted nor demoted'),
  idempotencyReused: fixed(
    'conflict',
    'idempotency_key_reused',
    'idempotency key reused with a different request',
  ),

  actorCallTooLarge: fixed('too_large', 'actor_call_too_large', 'the call is too large'),
  actorResultTooLarge: fixed('too_large', 'actor_result_too_large', 'the result is too large'),
  payloadTooLarge: fixed('too_large', 'payload_too_large', 'payload is too large'),
  bodyTooLarge: fixed('too_large', 'body_too_large', 'request body is too large'),
  unsupportedMediaType: fixed(
    'unsupported_media_type',
    'unsupported_media_type',
    'content type must be application/json',
  ),
  methodNotAllowed: fixed('method_not_allowed', 'method_not_allowed', 'method not allowed'),
  unknownHost: fixed('misdirected', 'unknown_host', 'unknown host'),
  stepInputTooLarge: fixed('invalid', 'step_input_too_large', 'the input of the step is over 3 MiB'),
  outputsTooLarge: fixed('too_large', 'outputs_too_large', 'the outputs of the run are over 32 MiB'),
  /** Temporary: whoever reads output tries again after a pause. */
  outputUnreadable: fixed('unavailable', 'output_unreadable', 'output cannot be read at the moment'),
  diskSpace: fixed('unavailable', 'disk_space', 'not enough disk space'),
  processNotStarted: fixed(
    'unavailable',
    'process_not_started',
    'the system cannot start another process at the moment; see the log of the node',
  ),
  tooManyRequests: fixed('rate_limited', 'rate_limited', 'too many requests'),
  tooManyAttempts: fixed('rate_limited', 'too_many_attempts', 'too many attempts; try again later'),
  tooManyStreams: fixed('rate_limited', 'too_many_streams', 'too many open streams'),
  tooManyStreamsInTotal: fixed('unavailable', 'too_many_streams', 'too many open streams'),
  tooManyWaiting: fixed('rate_limited', 'too_many_waiting', 'too many callers are waiting for mail'),
  tooManyAgentWaits: fixed('rate_limited', 'too_many_agent_waits', 'too many callers are waiting for agents'),
  tooManyActorCalls: fixed('rate_limited', 'too_many_actor_calls', 'too many calls at once'),
  tooManyFolderJobs: fixed(
    'unavailable',
    'too_many_folder_jobs',
    "too many requests are waiting for agents' folders; try again later",
  ),
  tooManyPatches: fixed(
    'rate_limited',
    'too_many_patches',
    'too many patches are being sent; try again later',
  ),
  tooManySearches: fixed('rate_limited', 'too_many_searches', 'too many searches are waiting'),
  /** While the service starts. */
  notReady: fixed('unavailable', 'not_ready', 'service is not ready'),
  draining: fixed('unavailable', 'draining', 'service is shutting down'),
  /** Unlike `draining`, for work that is stored and continues at the next start. So clients must not send the request again. */
  shutdownInterrupted: fixed('unavailable', 'shutdown_interrupted', 'service is shutting down'),
  agentsStopping: fixed('unavailable', 'agents_stopping', 'all agents are being stopped; try again later'),
  noActivePlane: () =>
    new Problem('unavailable', 'no_active_plane', 'no control plane is active; try again later', {
      retry_after_s: 1,
    }),
  forwardFailed: fixed(
    'bad_gateway',
    'forward_failed',
    'the connection to the active control plane broke, so the request may have been carried out; repeat it with the same Idempotency-Key',
  ),
  newerIntent: fixed(
    'unavailable',
    'newer_version_required',
    'a newer version of svc stored work that must be done first; upgrade svc',
  ),
  internalGrpcUnavailable: fixed(
    'unavailable',
    'internal_grpc_unavailable',
    'internal grpc client not available',
  ),
  nodeUnreachable: fixed('bad_gateway', 'node_unreachable', 'failed to connect to remote node'),
  /** Like a node that does not answer, but because of an unexpected error. */
  nodeFailed: fixed('bad_gateway', 'node_failed', 'unexpected error of the node; see its log'),
  nodeUnauthorized: fixed('bad_gateway', 'unauthorized', 'unauthorized'),
  upcallFailed: fixed('unavailable', 'upcall_failed', 'internal server error'),
  /** Like a node that does not answer, but for one session. */
  sessionUnreadable: fixed(
    'bad_gateway',
    'session_unreadable',
    'the files of the session cannot be read at the moment; see the log of its node',
  ),
  /** Temporary: the input stays queued, unless the session is being stopped. */
  inputNotStored: fixed(
    'bad_gateway',
    'input_not_stored',
    'the input cannot be stored at the moment; see the log of its node',
  ),
  targetRefused: fixed('bad_gateway', 'grpc_target_refused', 'grpc_target address is not allowed'),
  nodeTooOld: fixed('bad_gateway', 'version_skew', 'the node does not support this call; upgrade svc on it'),
  certificateVerifyFailed: fixed('bad_gateway', 'certificate_verify_failed', 'certificate verify failed'),
} as const;

/** The error if the node does not allow the worktree root that the registry sets. */
export function worktreeRootNotSafe(root: string, node_id: string): Problem {
  const message = `default_worktree_root ${root} of agent node ${node_id} must be within the safe_paths of that node`;
  return invalid(message, 'worktree_root_not_safe');
}

/** The error if a stop left processes running. */
export function agentProcessesSurvived(pids: readonly number[]): Problem {
  return new Problem('conflict', 'agent_processes_survived', `agent processes survived: ${pids.join(', ')}`);
}

/** The error if the node at the target has another id than the registry expects. */
export function nodeIdMismatch(registered: string, reported: string): Problem {
  return new Problem(
    'bad_gateway',
    'node_id_mismatch',
    `node id mismatch: registered ${registered}, node says ${reported}`,
  );
}

/** `not enough disk space` for an error of the file system that says so; any other error unchanged. */
export function asDiskSpaceProblem(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT' ? problems.diskSpace() : error;
}

/**
 * The level for a line about work that failed and will be repeated. While the database fails, all work fails, and the store has
 * logged the reason.
 */
export function retryLevel<Level extends 'warn' | 'error'>(error: unknown, level: Level): Level | 'debug' {
  return error instanceof Problem && error.is_of_store ? 'debug' : level;
}
