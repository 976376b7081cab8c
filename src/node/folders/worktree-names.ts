/** Names of worktree folders and branches. Each is safe as one path segment and as part of a git ref. */
import { invalid } from '../../core/problem.ts';

const NAME_CHARS_MAX = 40;
/** Without `..`, because git could read it as a range of commits. */
const SERVICE_BRANCH = /^svc\/(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]*$/;

/**
 * Returns `<name>-<id>`, where the name contains only ASCII letters, digits, `.`, `_` and `-`. Throws
 * `agent_id_invalid`.
 */
export function folderName(name: string, agent_id: string): string {
  if (!/^[A-Za-z0-9_]{1,64}$/.test(agent_id)) throw invalid('agent_id is not valid', 'agent_id_invalid');
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/-{2,}/g, '-')
    .slice(0, NAME_CHARS_MAX)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
  return `${plain || 'agent'}-${agent_id}`;
}

/** True for names that `folderName` can return. */
export function isFolderName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]*-agt_[A-Za-z0-9_]{1,60}$/.test(name);
}

/** The branch of the worktree in the folder of this name. */
export function branchName(folder_name: string): string {
  return `svc/${folder_name}`;
}

/** True for a branch that this service created. It never deletes any other branch. */
export function isServiceBranch(branch: string): boolean {
  return SERVICE_BRANCH.test(branch);
}
