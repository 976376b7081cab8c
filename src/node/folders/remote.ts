/** Finds the remote that a branch is pushed to. Reads only the repository, and never connects to the remote. */
import { Problem } from '../../core/problem.ts';
import { type BranchRemote, isRemoteName, remoteUrl } from '../../core/remote.ts';
import { limits } from '../limits.ts';
import type { Git } from './git.ts';
import { commitOrNull } from './repository.ts';

/**
 * The remote that `git push` uses for the branch, else `origin`, else the only remote; null if there is none, or if
 * `branch` is not at `head`.
 */
export async function remoteOf(
  git: Git,
  workdir: string,
  { branch, head }: { branch: string; head: string },
): Promise<BranchRemote | null> {
  const format = '--format=%(objectname) %(push:remotename)';
  const [configured, names] = await Promise.all([
    git.lineOrNull(workdir, ['for-each-ref', '--count=1', format, `refs/heads/${branch}`]),
    remoteNames(git, workdir),
  ]);
  const [commit, own] = configured?.split(' ') ?? [];
  // Git shortens a branch with the name of a tag to `heads/<name>`, which is no branch.
  if (commit !== head) return null;
  const only = names.length === 1 ? names[0] : undefined;
  const name = [own, 'origin', only].find((each) => each !== undefined && names.includes(each));
  if (name === undefined || !isRemoteName(name)) return null;

  const [address, tip] = await Promise.all([
    git.lineOrNull(workdir, ['remote', 'get-url', '--push', name]),
    commitOrNull(git, workdir, `refs/remotes/${name}/${branch}`),
  ]);
  const pushed = tip !== null && (tip === head || (await isAncestor(git, workdir, head, tip)));
  return { name, url: address === null ? null : remoteUrl(address), pushed };
}

async function remoteNames(git: Git, workdir: string): Promise<string[]> {
  const { code, stdout } = await git.run(workdir, ['remote'], {
    filters_off: false,
    timeout_ms: limits.git_lookup_timeout_ms,
  });
  return code === 0 ? stdout.toString().split('\n').slice(0, -1) : [];
}

/** False also if git does not find out in time. */
async function isAncestor(git: Git, workdir: string, commit: string, tip: string): Promise<boolean> {
  const call = { filters_off: false, timeout_ms: limits.git_lookup_timeout_ms };
  try {
    return (await git.run(workdir, ['merge-base', '--is-ancestor', commit, tip], call)).code === 0;
  } catch (error) {
    if (error instanceof Problem && error.code === 'git_timeout') return false;
    throw error;
  }
}
