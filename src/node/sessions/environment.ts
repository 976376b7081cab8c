/**
 * The environment of an agent: first the service's variables that agents get, then the agent's own, then those that
 * identify the agent. Variable values are kept in memory only.
 */
import { join } from 'node:path';
import { packageFolder } from '../../base/program-files.ts';
import type { Launch } from '../../core/session.ts';
import type { RunAs } from '../confinement/run-as.ts';

/** The package's `bin`, in the source tree and in the built package. */
export const binFolder = join(packageFolder, 'bin');

/** The settings that apply to the environments of all agents on this machine. */
export interface CommonEnvironment {
  /** The service's own environment. */
  own: Record<string, string | undefined>;
  /** Names of the service's variables that agents get; null: all. Those only for the service, such as `SVC_*`, never. */
  allow: readonly string[] | null;
  run_as: RunAs | null;
  /** Agents run in a sandbox, where home directories contain other files than the service sees. */
  sandboxed: boolean;
  /** The folder with `svc`, which comes first in PATH; null: none. */
  bin_dir: string | null;
}

export interface EnvironmentOptions extends CommonEnvironment {
  /** The address and token for calls to the plane, and the location of the step's data. */
  more: Record<string, string>;
}

/** Variables that name folders of the service's user. */
const XDG_FOLDER = /^XDG_(\w+_HOME|RUNTIME_DIR)$/;

/** The variables of every agent. `more`: an agent's own variables, which take precedence. */
export function commonEnvironment(
  options: CommonEnvironment,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  // Programs then use their defaults below HOME, which agents can write to.
  const is_elsewhere = options.run_as !== null || options.sandboxed;
  for (const [name, value] of Object.entries(omitNpmVariables(options.own))) {
    if (value === undefined || name.startsWith('SVC_')) continue;
    if (options.allow && !options.allow.includes(name)) continue;
    if (is_elsewhere && XDG_FOLDER.test(name)) continue;
    env[name] = value;
  }
  if (options.run_as) {
    const { name, home } = options.run_as;
    Object.assign(env, { HOME: home, USER: name, LOGNAME: name });
  }
  Object.assign(env, more);
  const path = env.PATH || '/usr/local/bin:/usr/bin:/bin';
  env.PATH = options.bin_dir ? `${options.bin_dir}:${path}` : path;
  return env;
}

/**
 * Removes what `npm start` adds for the service. With the PATH of npm, agents would run the Node of this package; with
 * npm's variables, the agents' own npm would use the service's settings.
 */
function omitNpmVariables(own: CommonEnvironment['own']): CommonEnvironment['own'] {
  if (own.npm_lifecycle_event === undefined) return own;
  const kept = Object.entries(own).filter(([name]) => !/^(npm_|INIT_CWD$|NODE$)/.test(name));
  const path = (own.PATH ?? '').split(':');
  const first = path.findIndex((folder) => !/\/(node_modules\/\.bin|node-gyp-bin)$/.test(folder));
  return { ...Object.fromEntries(kept), PATH: path.slice(Math.max(first, 0)).join(':') };
}

/** The complete environment of one agent. */
export function agentEnvironment(launch: Launch, options: EnvironmentOptions): Record<string, string> {
  const env = commonEnvironment(options, launch.env);
  env.SVC_AGENT_ID = launch.agent_id;
  env.SVC_SESSION_ID = launch.session_id;
  return Object.assign(env, options.more);
}
