import { isAbsolute, join } from 'node:path';

export interface XdgSources {
  env: Readonly<Record<string, string | undefined>>;
  home: string;
}

/** `$NAME` when it is an absolute path (the XDG specification says to ignore others), else `fallback` below home. */
export function xdg({ env, home }: XdgSources, name: string, fallback: string): string {
  const value = env[name];
  return value && isAbsolute(value) ? value : join(home, fallback);
}
