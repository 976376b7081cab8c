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
  /** Where and as whom it calls the plane. */
  actor: Record<string, string>;
}

/** `more`: an agent's own variables, which win. */
export function commonEnvironment(
  options: CommonEnvironment,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.own)) {
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

export function agentEnvironment(launch: Launch, options: EnvironmentOptions): Record<string, string> {
  const env = commonEnvironment(options, launch.env);
  env.SVC_AGENT_ID = launch.agent_id;
  env.SVC_SESSION_ID = launch.session_id;
  return Object.assign(env, options.actor);
}
