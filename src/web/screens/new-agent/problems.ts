/** Assigns errors of the service to the fields of the form, in the terms of the form. */
import { Problem } from '../../../core/problem.ts';
import { escapeHidden } from '../../../core/visible.ts';
import { errorMessage } from '../../api/client.ts';
import type { Draft, Problems } from './form.ts';

/** The paths that the request has. */
export type Paths = Pick<Draft, 'where' | 'repo' | 'ref' | 'workdir'>;

const fields: readonly [RegExp, keyof Draft][] = [
  [/^worktree_repo/, 'repo'],
  [/^worktree_ref/, 'ref'],
  [/^workdir/, 'workdir'],
  [/preset/, 'preset'],
  [/^(command|argv)/, 'command'],
  [/^permission_mode/, 'permission_mode'],
  [/^name/, 'name'],
  [/^env/, 'env'],
  [/^prompt/, 'prompt'],
  [/node/, 'node_id'],
];

/** `repositories`: the ones that the form offers. */
export function problemsFrom(
  error: unknown,
  paths: Paths,
  repositories: readonly { path: string; name: string }[],
): Problems {
  const message = errorMessage(error);
  const from_git = error instanceof Problem && error.code === 'git_refused';
  const field = fields.find(([pattern]) => pattern.test(message))?.[1];
  if (field === undefined && !(from_git && paths.where === 'worktree')) return { form: message };
  switch (field) {
    case undefined:
    case 'repo':
      return { repo: aboutRepository(message, withoutSlash(paths.repo), repositories) };
    case 'ref':
      return { ref: `${paths.ref.trim() || 'HEAD'} is not a commit, branch or tag of this repository.` };
    case 'workdir':
      return { workdir: aboutFolder(message, withoutSlash(paths.workdir)) };
    default:
      return { [field]: message };
  }
}

function aboutRepository(
  message: string,
  path: string,
  repositories: readonly { path: string; name: string }[],
): string {
  if (/not a git repository/.test(message))
    return `${path} is not a git repository.${choices(path, repositories)}`;
  if (/has no commits/.test(message)) return `${path} has no commits yet. Commit something first.`;
  const described = aboutPath(message, path);
  return described ?? `git cannot use ${path}: ${message.replace(/^(fatal|error): /, '')}`;
}

function aboutFolder(message: string, path: string): string {
  if (message === 'workdir is required')
    return 'This node has no folder for worktrees. Enter a folder that exists on it.';
  return aboutPath(message, path) ?? message.replace(/^workdir/, path || 'The folder');
}

function aboutPath(message: string, path: string): string | null {
  if (/must be within allowed safe paths$/.test(message)) return `${path} is not in an allowed folder.`;
  if (/must be absolute$/.test(message)) return `${path} is not an absolute path. Begin with a slash.`;
  if (/does not exist$/.test(message)) return `${path} does not exist on this node.`;
  if (/is not a directory$/.test(message)) return `${path} is not a folder.`;
  return null;
}

/** Which repository to choose instead of a folder. */
function choices(folder: string, repositories: readonly { path: string; name: string }[]): string {
  const below = repositories.filter(({ path }) => path.startsWith(`${folder}/`));
  if (below.length === 0) return repositories.length > 0 ? ' Choose one from the list.' : '';
  const names = below.slice(0, 3).map(({ name }) => escapeHidden(name));
  if (below.length > 3) names.push('another one');
  const last = names.pop()!;
  return ` Choose ${names.length > 0 ? `${names.join(', ')} or ${last}` : last} below it.`;
}

function withoutSlash(path: string): string {
  return path.trim().replace(/(?<=.)\/+$/, '');
}
