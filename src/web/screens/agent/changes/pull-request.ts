/** The page of a forge that opens a pull request for a branch (pure). */
import { isBranchName } from '../../../../core/remote.ts';
import { table } from '../../../table.ts';

export interface PullRequestPage {
  href: string;
  /** With the port, if the URL has one. */
  host: string;
  /** What the forge calls it. */
  noun: 'pull request' | 'merge request';
}

/**
 * The page for a remote's URL (`BranchRemote.url`), always with `https:`; null for an unknown forge or a malformed name.
 * The agent can set the URL, so the caller shows the host.
 */
export function pullRequestPage(remote_url: string, branch: string): PullRequestPage | null {
  if (!isBranchName(branch)) return null;
  const { protocol, hostname, port, pathname } = new URL(remote_url);
  // The port of an http, ssh or git server says nothing about that of its pages.
  if (protocol === 'http:' && port !== '') return null;
  const name = SSH_HOSTS[hostname] ?? hostname;
  const host = protocol === 'https:' && port !== '' ? `${name}:${port}` : name;
  const forge = FORGES.find(({ hosts }) => hosts.test(name));
  const path = pathname.replace(/^\/+|(\.git)?\/*$/g, '');
  if (!forge?.path.test(path) || path.split('/').some((part) => /^\.+$/.test(part))) return null;
  return { href: `https://${host}/${path}${forge.page(branch)}`, host, noun: forge.noun };
}

/** Hosts that accept ssh on port 443, and the hosts of their pages. */
const SSH_HOSTS = table({
  'ssh.github.com': 'github.com',
  'altssh.gitlab.com': 'gitlab.com',
  'altssh.bitbucket.org': 'bitbucket.org',
});

interface Forge {
  hosts: RegExp;
  /** Its paths of repositories. */
  path: RegExp;
  noun: PullRequestPage['noun'];
  /** The part of the address after the repository. The forge compares with its default branch. */
  page: (branch: string) => string;
}

const OWNER_AND_NAME = /^[\w.~-]+\/[\w.~-]+$/;

/** Self-hosted forges are known by the first part of their name. */
const FORGES: readonly Forge[] = [
  {
    hosts: /^github\.(?!com\.)|\.ghe\.com$/,
    path: OWNER_AND_NAME,
    noun: 'pull request',
    page: (branch) => `/compare/${segments(branch)}?expand=1`,
  },
  {
    hosts: /^gitlab\.(?!com\.)/,
    // Groups have subgroups.
    path: /^[\w.~-]+(\/[\w.~-]+)+$/,
    noun: 'merge request',
    page: (branch) =>
      `/-/merge_requests/new?${new URLSearchParams({ 'merge_request[source_branch]': branch })}`,
  },
  {
    hosts: /^bitbucket\.org$/,
    path: OWNER_AND_NAME,
    noun: 'pull request',
    page: (branch) => `/pull-requests/new?${new URLSearchParams({ source: branch })}`,
  },
  {
    hosts: /^codeberg\.org$|^(gitea|forgejo)\./,
    path: OWNER_AND_NAME,
    noun: 'pull request',
    page: (branch) => `/compare/${segments(branch)}`,
  },
];

/** Slashes stay, and everything else that is not part of a name is encoded. */
function segments(branch: string): string {
  return branch.split('/').map(encodeURIComponent).join('/');
}
