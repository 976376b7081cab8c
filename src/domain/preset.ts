/** An agent that svc knows by name: what a node is asked about it, and what clients see of it. `presets.ts` lists them. */
import { showArgv } from './command.ts';
import type { ProgramFinding, ProgramQuestion } from './node.ts';

export const presetProtocols = ['acp', 'plain'] as const;
export const signIns = ['yes', 'no', 'unknown'] as const;
export const permissionGuarantees = ['ask', 'none'] as const;
export type SignedIn = (typeof signIns)[number];

export interface Preset {
  id: string;
  name: string;
  description: string;
  protocol: (typeof presetProtocols)[number];
  /** Null: the user brings the command. */
  program: {
    argv: readonly [string, ...string[]];
    version_argv: readonly [string, ...string[]];
    /** In the words of a shell or of a person; null for what comes with svc. */
    install_hint: string | null;
    /** Null: there is nothing to sign in to. */
    sign_in: SignIn | null;
  } | null;
  /** Set for the agent unless its own `env` has it. */
  env: Readonly<Record<string, string>>;
  permission: PresetPermission;
  /** The directories below HOME in which it keeps its settings, logins and sessions; it cannot work without writing them. */
  state_dirs: readonly string[];
  notes: readonly string[];
}

/** Whether an agent asks before it writes, runs or fetches something, and what makes it. */
export interface PresetPermission {
  /** `ask`: it does, with `apply` applied. `none`: nothing is known that makes it ask. */
  guarantee: (typeof permissionGuarantees)[number];
  /** Applied to each new and resumed session of an agent whose `permission_mode` is `ask`, before its first prompt. */
  apply: readonly PermissionStep[];
  /** Modes, as the agent reports them, in which it acts without asking. */
  acting_modes: readonly string[];
  /** For people: what the guarantee covers, or why the preset gives no guarantee. */
  note: string;
}

/**
 * `session_mode`: by `session/set_mode`, or by the option that takes its place. `env`: as variables of the process, unless
 * the agent's own `env` has them.
 */
export type PermissionStep = { session_mode: string } | { env: Readonly<Record<string, string>> };

/** Any of these shows that somebody is signed in; none of them shows whether what is there is still good. */
interface SignIn {
  env: readonly string[];
  /** Below HOME. */
  files: readonly string[];
  /** What it means when nothing is found: a keychain, or a key of another provider, is not seen. */
  otherwise: Exclude<SignedIn, 'yes'>;
  hint: string;
}

/** A preset as clients see it, with what a node was found to have of it. */
export interface PresetRecord {
  id: string;
  name: string;
  description: string;
  protocol: Preset['protocol'];
  /** `argv` as one line, for show; null where the user brings the command. */
  command: string | null;
  argv: string[] | null;
  /** Null where there is nothing to look for, or the node is too old to be asked. */
  installed: boolean | null;
  path: string | null;
  version: string | null;
  signed_in: SignedIn;
  sign_in_hint: string | null;
  install_hint: string | null;
  permission: { guarantee: PresetPermission['guarantee']; note: string };
  notes: string[];
}

/** What a node is asked about a preset; null where there is nothing to look for. */
export function questionOf({ program }: Preset): ProgramQuestion | null {
  if (!program) return null;
  const { argv, version_argv, sign_in } = program;
  return { program: argv[0], version_argv, env: sign_in?.env ?? [], files: sign_in?.files ?? [] };
}

/** `found`: what the node answered; null where it was not asked. */
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
    signed_in: signedIn(preset, found),
    sign_in_hint: program?.sign_in?.hint ?? null,
    install_hint: program?.install_hint ?? null,
    permission: { guarantee: permission.guarantee, note: permission.note },
    notes: [...notes],
  };
}

function signedIn({ program }: Preset, found: ProgramFinding | null): SignedIn {
  if (!program) return 'unknown';
  if (!program.sign_in) return 'yes';
  if (!found) return 'unknown';
  const signs = found.env_set.length + found.files_found.length;
  return signs > 0 ? 'yes' : program.sign_in.otherwise;
}

/** The variables by which the agent is made to ask. */
export function permissionEnv({ permission }: Preset): Record<string, string> {
  return Object.assign({}, ...permission.apply.map((step) => ('env' in step ? step.env : {})));
}

/** The session modes by which the agent is made to ask. */
export function permissionSessionModes({ permission }: Preset): string[] {
  return permission.apply.flatMap((step) => ('session_mode' in step ? step.session_mode : []));
}
