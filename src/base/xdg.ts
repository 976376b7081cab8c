/** Directories of the XDG base directory specification. */
import { isAbsolute, join } from 'node:path';

export interface XdgSources {
  env: Readonly<Record<string, string | undefined>>;
  home: string;
}

/**
 * `$NAME` if it is an absolute path (the XDG specification says to ignore others); otherwise `fallback` below the home
 * folder.
 */
export function xdgFolder({ env, home }: XdgSources, name: string, fallback: string): string {
  const value = env[name];
  return value && isAbsolute(value) ? value : join(home, fallback);
}
