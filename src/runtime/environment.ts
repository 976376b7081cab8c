/** The environment of an agent: ours without any `SVC_*` variable, its own on top, then who it is. Values stay in memory. */
import { fileURLToPath } from 'node:url';
import type { Launch } from '../domain/session.ts';
import type { RunAs } from './run-as.ts';

/** The package's `bin`, from `src/runtime` and from `dist/runtime` alike. */
export const binFolder = fileURLToPath(new URL('../../bin', import.meta.url));

/** What every agent of this machine gets. */
export interface CommonEnvironment {
  own: Record<string, string | undefined>;
  /** Names taken from our own environment; null: all but `SVC_*`. */
  allow: readonly string[] | null;
  run_as: RunAs | null;
  /** Folder with `svc`, first on the PATH. */
  bin_dir: string | null;
}

export interface EnvironmentOptions extends CommonEnvironment {
  /** Where and as whom it calls the plane, and where the data of its step is. */
  more: Record<string, string>;
}

/** `more`: an agent's own variables, which win. */
export function commonEnvironment(
  options: CommonEnvironment,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(withoutNpm(options.own))) {
    if (value === undefined || name.startsWith('SVC_')) continue;
    if (options.allow && !options.allow.includes(name)) continue;
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
 * Started by `npm start`, what npm adds is ours and not the agents': with its PATH they would run on the Node of this
 * package, and with its variables their own npm would take ours for its settings.
 */
function withoutNpm(own: CommonEnvironment['own']): CommonEnvironment['own'] {
  if (own.npm_lifecycle_event === undefined) return own;
  const kept = Object.entries(own).filter(([name]) => !/^(npm_|INIT_CWD$|NODE$)/.test(name));
  const path = (own.PATH ?? '').split(':');
  const first = path.findIndex((folder) => !/\/(node_modules\/\.bin|node-gyp-bin)$/.test(folder));
  return { ...Object.fromEntries(kept), PATH: path.slice(Math.max(first, 0)).join(':') };
}

export function agentEnvironment(launch: Launch, options: EnvironmentOptions): Record<string, string> {
  const env = commonEnvironment(options, launch.env);
  env.SVC_AGENT_ID = launch.agent_id;
  env.SVC_SESSION_ID = launch.session_id;
  return Object.assign(env, options.more);
}
