/** The type of a preset, the question to a node about it, and the record for clients. `catalog.ts` lists the presets. */
import { showArgv } from '../../../core/argv.ts';
import type { ProgramFinding, ProgramQuestion } from '../../../core/node.ts';

export const presetProtocols = ['acp', 'plain'] as const;
export const signIns = ['yes', 'no', 'unknown'] as const;
export const permissionGuarantees = ['ask', 'none'] as const;
export type SignedIn = (typeof signIns)[number];

export interface Preset {
  id: string;
  name: string;
  description: string;
  protocol: (typeof presetProtocols)[number];
  /** Null: the user provides the command. */
  program: {
    argv: readonly [string, ...string[]];
    version_argv: readonly [string, ...string[]];
    /** A shell command or an instruction; null for programs that come with svc. */
    install_hint: string | null;
    /** Null: the program needs no sign-in. */
    sign_in: SignIn | null;
  } | null;
  /** Variables that are set for the agent unless its own `env` contains them. */
  env: Readonly<Record<string, string>>;
  permission: PresetPermission;
  /** Directories below HOME for its settings, logins and sessions. The agent must be able to write to them. */
  state_dirs: readonly string[];
  notes: readonly string[];
}

/** Whether an agent asks before it writes, runs or fetches, and how to make it ask. */
export interface PresetPermission {
  /** `ask`: the agent asks if `apply` is applied. `none`: there is no known way to make it ask. */
  guarantee: (typeof permissionGuarantees)[number];
  /** Applied to each new and resumed session of an agent whose `permission_mode` is `ask`, before its first prompt. */
  apply: readonly PermissionStep[];
  /** Modes reported by the agent in which it acts without asking. */
  acting_modes: readonly string[];
  /** For users: what the guarantee covers, or why there is none. */
  note: string;
}

/**
 * `session_mode`: the mode to set with `session/set_mode`, or with the option that replaces it. `env`: variables for the
 * process, unless the agent's own `env` contains them.
 */
export type PermissionStep = { session_mode: string } | { env: Readonly<Record<string, string>> };

/** Any of these shows that someone has signed in, but not that the login is still valid. */
interface SignIn {
  env: readonly string[];
  /** Paths below HOME. */
  files: readonly string[];
  /** The result if nothing is found. svc cannot see a keychain, or a key of another provider. */
  otherwise: Exclude<SignedIn, 'yes'>;
  hint: string;
}

/** A preset in the form for clients, with what was found on a node. */
export interface PresetRecord {
  id: string;
  name: string;
  description: string;
  protocol: Preset['protocol'];
  /** `argv` as one line, for display; null if the user provides the command. */
  command: string | null;
  argv: string[] | null;
  /** Null if there is no program to look for, or the node is too old to report it. */
  installed: boolean | null;
  path: string | null;
  version: string | null;
  signed_in: SignedIn;
  sign_in_hint: string | null;
  install_hint: string | null;
  permission: { guarantee: PresetPermission['guarantee']; note: string };
  notes: string[];
}

/** The question to a node about a preset; null if there is no program to look for. */
export function toProgramQuestion({ program }: Preset): ProgramQuestion | null {
  if (!program) return null;
  const { argv, version_argv, sign_in } = program;
  return { program: argv[0], version_argv, env: sign_in?.env ?? [], files: sign_in?.files ?? [] };
}

/** `found`: the node's finding, or null. */
export function presetRecord(preset: Preset, found: ProgramFinding | null): PresetRecord {
  const { id, name, description, protocol, program, permission, notes } = preset;
  const argv = program ? [...program.argv] : null;
  return {
    id,
    name,
    description,
    protocol,
    command: argv && showArgv(argv),
    argv,
    installed: found && found.path !== null,
    path: found?.path ?? null,
    version: found?.version ?? null,
    signed_in: signInState(preset, found),
    sign_in_hint: program?.sign_in?.hint ?? null,
    install_hint: program?.install_hint ?? null,
    permission: { guarantee: permission.guarantee, note: permission.note },
    notes: [...notes],
  };
}

function signInState({ program }: Preset, found: ProgramFinding | null): SignedIn {
  if (!program) return 'unknown';
  if (!program.sign_in) return 'yes';
  if (!found) return 'unknown';
  const signs = found.env_set.length + found.files_found.length;
  return signs > 0 ? 'yes' : program.sign_in.otherwise;
}

/** The variables that make the agent ask. */
export function permissionEnv({ permission }: Preset): Record<string, string> {
  return Object.assign({}, ...permission.apply.map((step) => ('env' in step ? step.env : {})));
}

/** The session modes that make the agent ask. */
export function permissionSessionModes({ permission }: Preset): string[] {
  return permission.apply.flatMap((step) => ('session_mode' in step ? step.session_mode : []));
}
