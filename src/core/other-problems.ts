/**
 * The errors that `problems` does not have, as documentation shows them: those whose message contains values, with placeholders
 * such as `<reason>`, and those that one place raises. `test/architecture/docs.test.ts` compares them with the code.
 */
import { limits } from '../base/limits.ts';
import { fixed, problems } from './problem.ts';

export const otherProblems = {
  invalidField: fixed('invalid', 'invalid_request', '<field> <what is wrong>'),
  unknownField: fixed('invalid', 'unknown_field', 'unknown field "<name>"'),
  bodyIncomplete: fixed('invalid', 'incomplete_body', 'request body is incomplete'),
  bodyTooDeep: fixed(
    'invalid',
    'body_too_deep',
    `request body is nested more than ${limits.json_depth_max} levels deep`,
  ),
  forbiddenKey: fixed('invalid', 'forbidden_key', '__proto__ is not allowed'),
  forbiddenHeader: fixed('invalid', 'forbidden_header', '__proto__ is not allowed'),
  invalidTarget: fixed('invalid', 'invalid_target', 'request target must be a path'),
  invalidPath: fixed('invalid', 'invalid_path', 'request path is not valid'),
  missingHost: fixed('invalid', 'missing_host', 'missing host header'),
  duplicateHost: fixed('invalid', 'duplicate_host', 'duplicate host header'),
  invalidIdempotencyKey: fixed(
    'invalid',
    'invalid_idempotency_key',
    `Idempotency-Key must be 1 to ${limits.idempotency_key_chars_max} visible ASCII characters`,
  ),
  passwordTooShort: fixed('invalid', 'password_too_short', 'password must be at least <n> characters'),
  passwordTooLong: fixed(
    'invalid',
    'password_too_long',
    `password must be at most ${limits.password_chars_max} characters`,
  ),
  passwordNeedsSpecial: fixed(
    'invalid',
    'password_needs_special',
    'password must contain a special character',
  ),
  passwordTooCommon: fixed('invalid', 'password_too_common', 'password is too common'),
  noPasskeys: fixed('invalid', 'no_passkeys_here', '<reason>'),
  passkeysElsewhere: fixed('invalid', 'no_passkeys_here', 'passkeys work at <origin> only'),
  unknownUser: fixed('invalid', 'unknown_user', 'unknown user: <username>'),
  unknownActor: fixed('invalid', 'unknown_actor', 'unknown actor: <actor>'),
  actorIdRequired: fixed('invalid', 'actor_id_required', 'actor_id is required'),
  runIdRequired: fixed('invalid', 'run_id_required', 'run_id is required: <reason>'),
  unknownPreset: fixed('invalid', 'unknown_preset', 'unknown preset: <preset>'),
  unknownMode: fixed('invalid', 'unknown_mode', 'the agent does not offer the mode <mode>'),
  contentNotTaken: fixed('invalid', 'content_not_taken', 'content of type <type> is not taken by this agent'),
  workdirNotEmpty: fixed('invalid', 'workdir_not_empty', 'workdir is not empty'),
  workdirNotAFolder: fixed('invalid', 'workdir_not_a_directory', 'workdir is not a directory'),
  workdirNotMade: fixed('invalid', 'workdir_not_made', 'workdir cannot be created: <code>'),
  worktreeRefInvalid: fixed('invalid', 'worktree_ref_invalid', 'worktree_ref is not a valid ref'),
  worktreeRootNotSafe: fixed(
    'invalid',
    'worktree_root_not_safe',
    'default_worktree_root <path> of agent node <node> must be within the safe_paths of that node',
  ),
  worktreeRootNotWritable: fixed(
    'invalid',
    'worktree_root_not_writable',
    'default_worktree_root: <path> cannot be written to',
  ),
  worktreeRootShared: fixed(
    'invalid',
    'worktree_root_shared',
    'worktrees below <path> would be visible to other agents: with agents.sandbox, they must be in a folder outside safe_paths; set worktree.default_root on that machine',
  ),
  gitConfigUnreadable: fixed('invalid', 'git_refused', "the repository's git configuration cannot be read"),
  indexTooLarge: fixed('invalid', 'git_refused', 'the index of the repository is too large'),
  gitRefused: fixed('invalid', 'git_refused', '<first line of the error of git>'),

  lacksScope: fixed('forbidden', 'token_lacks_scope', 'token lacks scope <scope>'),
  notAllowedAs: fixed('forbidden', 'not_allowed', 'not allowed to act as <actor>'),
  unknownMethod: fixed('not_found', 'unknown_method', 'this plane does not know the command'),

  settingFixed: fixed('conflict', 'setting_fixed', '<key> is fixed by <source>'),
  stepStatus: fixed('conflict', 'step_status', 'step is <status>'),
  runStatus: fixed('conflict', 'run_status', 'run is <status>'),
  attemptOver: fixed('conflict', 'attempt_over', 'attempt <n> of the <run or step> is over'),
  reviewAnswered: fixed('conflict', 'review_over', 'permission review is already answered by <who>'),
  elicitationAnswered: fixed('conflict', 'elicitation_over', 'elicitation is already answered by <who>'),
  agentProcessesSurvived: fixed('conflict', 'agent_processes_survived', 'agent processes survived: <pids>'),
  agentRefused: fixed('conflict', 'agent_refused', 'the agent refused: <reason>'),
  workdirNotRemoved: fixed('conflict', 'workdir_not_removed', '<reason>'),

  contentEncoding: fixed(
    'unsupported_media_type',
    'content_encoding_refused',
    'content encoding is not supported',
  ),
  testInProgress: fixed('rate_limited', 'rate_limited', 'a test is in progress'),

  nodeIdMismatch: fixed('bad_gateway', 'node_id_mismatch', 'node id mismatch: registered <a>, node says <b>'),
  nodeDiskMismatch: fixed('bad_gateway', 'node_disk_mismatch', '<reason>'),
  versionSkew: fixed('bad_gateway', 'version_skew', '<reason>'),
  worktreeRoot: fixed('bad_gateway', 'worktree_root', '<reason>'),

  storageFailed: fixed('unavailable', 'storage_failed', 'storage does not answer'),
  storageDamaged: fixed('unavailable', 'storage_damaged', 'storage is damaged'),
  claimLost: fixed('unavailable', 'claim_lost', '<reason>'),
  gitMissing: fixed('unavailable', 'git_missing', 'git is not installed'),
  gitTimeout: fixed('unavailable', 'git_timeout', 'git did not finish in time'),
  noStepFolder: fixed('unavailable', 'no_step_folder', 'no folder for step data: <reason>'),
  gitInterrupted: fixed('unavailable', 'git_interrupted', 'git ended with <signal>'),
  folderJobFailed: fixed(
    'unavailable',
    'folder_worker_failed',
    "a job in the agent's folder failed: <reason>",
  ),
  sandboxUnavailable: fixed('unavailable', 'sandbox_unavailable', 'agents.sandbox does not work: <reason>'),
} as const;

/** All errors that clients of the API may see. */
export const documentedProblems = { ...problems, ...otherProblems } as const;
export type DocumentedProblem = keyof typeof documentedProblems;
