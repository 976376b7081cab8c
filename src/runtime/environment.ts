/** The environment of an agent: ours without any `SVC_*` variable, its own on top, then who it is. Values stay in memory. */
import type { Launch } from '../domain/session.ts';
import type { RunAs } from './run-as.ts';

export interface EnvironmentOptions {
  own: Record<string, string | undefined>;
  /** Names taken from our own environment; null: all but `SVC_*`. */
  allow: readonly string[] | null;
  run_as: RunAs | null;
  /** Folder with `svc`, first on the PATH. */
  bin_dir: string | null;
  /** Where and as whom it calls the plane. */
  actor: Record<string, string>;
}

export function agentEnvironment(launch: Launch, options: EnvironmentOptions): Record<string, string> {
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
  Object.assign(env, launch.env);
  const path = env.PATH || '/usr/local/bin:/usr/bin:/bin';
  env.PATH = options.bin_dir ? `${options.bin_dir}:${path}` : path;
  env.SVC_AGENT_ID = launch.agent_id;
  env.SVC_SESSION_ID = launch.session_id;
  return Object.assign(env, options.actor);
}
