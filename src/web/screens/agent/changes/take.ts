/** The texts that take an agent's changes elsewhere (pure). */
import { showArgv } from '../../../../core/argv.ts';
import { isBranchName } from '../../../../core/remote.ts';

/**
 * The command that pushes the agent's branch. With the full name of the branch, git takes it neither for an option nor
 * for a request to overwrite. Null for a malformed name.
 */
export function pushCommand(repository: string, remote: string, branch: string): string | null {
  if (!isBranchName(branch)) return null;
  return showArgv(['git', '-C', repository, 'push', '-u', remote, `refs/heads/${branch}`]);
}

/** The command that merges the agent's branch into what is checked out in its repository. No name is taken for an option. */
export function mergeCommand(repository: string, branch: string): string {
  const dashes = branch.startsWith('-') ? ['--'] : [];
  return showArgv(['git', '-C', repository, 'merge', ...dashes, branch]);
}

/** The patch as text; null if it has bytes that are not UTF-8, which a copied text would not preserve. */
export async function patchText(patch: Blob): Promise<string | null> {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await patch.arrayBuffer());
  } catch {
    return null;
  }
}
