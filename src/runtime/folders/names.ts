/** Names of worktree folders and branches: made here alone, safe as one path segment and as part of a git ref. */
import { invalid } from '../../domain/problem.ts';

const NAME_CHARS_MAX = 40;
const OUR_BRANCH = /^svc\/[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** `<name>-<id>`, with everything but ASCII letters, digits, `.`, `_` and `-` replaced. */
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

export function branchName(folder_name: string): string {
  return `svc/${folder_name}`;
}

/** True for a branch that this service made; no other one is ever deleted. */
export function isOurBranch(branch: string): boolean {
  return OUR_BRANCH.test(branch);
}
