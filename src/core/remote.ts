/**
 * The remote that a branch is pushed to. It comes from the configuration of a repository that agents can write to, so
 * every side that receives it checks it again.
 */
import { limits } from '../base/limits.ts';

export interface BranchRemote {
  name: string;
  /** Its address as a URL without credentials; null if it is not an http, https, ssh or git address. */
  url: string | null;
  /** As far as the repository knows, the branch on the remote contains HEAD. */
  pushed: boolean;
}

/** Whether git takes the name neither for an option nor for an address. */
export function isRemoteName(name: string): boolean {
  return name.length <= limits.remote_name_chars_max && /^\w[\w./-]*$/.test(name);
}

/** Whether git and JavaScript accept the name of a branch in a reference and in a URL. */
export function isBranchName(name: string): boolean {
  return name !== '' && !/[\x00-\x20\x7f~^:?*[\\]|\p{Cs}/u.test(name);
}

/**
 * The URL to show for a configured address: printable ASCII, at most `limits.remote_url_chars_max`, without
 * credentials, query and fragment. `git@host:path` becomes `ssh://host/path`. Null for all other addresses.
 */
export function remoteUrl(address: string): string | null {
  // The URL parser would drop line breaks and tabs.
  if (address.length > limits.remote_url_chars_max || /[\p{C}\p{Z}]/u.test(address)) return null;
  const text = address.includes('://') ? address : scpToUrl(address);
  if (text === null || !URL.canParse(text)) return null;
  const { protocol, hostname, port, pathname } = new URL(text);
  if (!PROTOCOLS.has(protocol) || !/^\w[\w.-]*$/.test(hostname)) return null;
  // After a password with an unescaped slash, the parser takes the rest of the password for the path.
  if (pathname.length < 2 || pathname.includes('@')) return null;
  const url = `${protocol}//${hostname.toLowerCase()}${port && `:${port}`}${pathname}`;
  return url.length <= limits.remote_url_chars_max ? url : null;
}

const PROTOCOLS = new Set(['http:', 'https:', 'ssh:', 'git:']);

/** Two colons name a remote helper, which is a program. */
function scpToUrl(address: string): string | null {
  const [, host, path] = /^(?:[^/:@]+@)?([^/:@]+):\/*([^/:].*)$/.exec(address) ?? [];
  return host === undefined ? null : `ssh://${host}/${path}`;
}
