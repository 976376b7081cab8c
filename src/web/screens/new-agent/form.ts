/** The new-agent form as data: its draft, the request that it makes, and the field that an error belongs to. */
import type { PresetRecord } from '../../api/queries.ts';
import type { NewAgentBody } from '../../shell/start-agent.ts';

/** `worktree`: a new worktree of `repo` on a new branch. `folder`: `workdir` unchanged. `empty`: a new empty folder. */
export type Where = 'worktree' | 'folder' | 'empty';

export interface Draft {
  preset: string;
  name: string;
  where: Where;
  repo: string;
  ref: string;
  workdir: string;
  node_id: string;
  permission_mode: 'ask' | 'agent';
  prompt: string;
  command: string;
  /** One `NAME=value` per line. */
  env: string;
  restart: boolean;
  stdin: boolean;
}

export const EMPTY: Draft = {
  preset: 'demo',
  name: '',
  where: 'worktree',
  repo: '',
  ref: '',
  workdir: '',
  node_id: 'main',
  permission_mode: 'ask',
  prompt: '',
  command: '',
  env: '',
  restart: false,
  stdin: false,
};

export type Problems = Partial<Record<keyof Draft | 'form', string>>;

/** Whether the preset has no command, so that the draft must give one. */
export function needsCommand(preset: PresetRecord | undefined): boolean {
  return preset === undefined || preset.argv === null;
}

export function speaksAcp(preset: PresetRecord | undefined): boolean {
  return preset?.protocol === 'acp';
}

/** Suggests a name: the repository, folder or preset, with the first number that is not `taken`. */
export function suggestName(draft: Draft, taken: readonly string[]): string {
  const path = draft.where === 'worktree' ? draft.repo : draft.where === 'folder' ? draft.workdir : '';
  const base = path.split('/').filter(Boolean).at(-1) ?? draft.preset;
  for (let n = 1; ; n++) if (!taken.includes(`${base}-${n}`)) return `${base}-${n}`;
}

/** The folder of the agent, as far as it is known before the agent has an id. Null if the node decides. */
export function derivedFolder(draft: Draft, root: string | null, name: string): string | null {
  if (draft.where === 'folder') return draft.workdir || null;
  if (draft.workdir) return draft.workdir;
  return root === null ? null : `${root}/${name}-…`;
}

export function toBody(
  draft: Draft,
  preset: PresetRecord | undefined,
  name: string,
): { body: NewAgentBody } | { problems: Problems } {
  const env: Record<string, string> = {};
  for (const [at, line] of draft.env.split('\n').entries()) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    if (equals < 1) return { problems: { env: `Line ${at + 1} is not NAME=value` } };
    env[line.slice(0, equals).trim()] = line.slice(equals + 1);
  }
  const command = draft.command.trim();
  return {
    body: {
      name,
      preset: preset?.id ?? null,
      permission_mode: draft.permission_mode,
      command: command || null,
      node_id: draft.node_id,
      worktree_mode: draft.where === 'folder' ? 'use_existing' : 'create_worktree',
      worktree_repo: draft.where === 'worktree' ? draft.repo : null,
      worktree_ref: draft.where === 'worktree' && draft.ref.trim() ? draft.ref.trim() : null,
      workdir: draft.workdir.trim() || null,
      prompt: speaksAcp(preset) && draft.prompt.trim() ? draft.prompt : null,
      env,
      restart_policy: draft.restart ? 'on_failure' : 'never',
      stdin: draft.stdin,
    },
  };
}

const places: readonly [RegExp, keyof Draft][] = [
  [/^worktree_repo/, 'repo'],
  [/^worktree_ref/, 'ref'],
  [/^workdir/, 'workdir'],
  [/^(command|argv|preset)/, 'command'],
  [/^permission_mode/, 'permission_mode'],
  [/^name/, 'name'],
  [/^env/, 'env'],
  [/^prompt/, 'prompt'],
  [/node/, 'node_id'],
];

/** Assigns an error message of the service to the field that it is about. */
export function problemsFrom(message: string): Problems {
  const place = places.find(([pattern]) => pattern.test(message))?.[1] ?? 'form';
  return { [place]: withoutFieldNames(message) };
}

/** The same error in terms of the form, which does not show the names of the API. */
function withoutFieldNames(message: string): string {
  if (message === 'workdir is required') return 'Enter a folder';
  return message
    .replace(/^workdir\b( path)?/, 'This folder')
    .replace(/^worktree_repo\b( path)?/, 'This repository')
    .replace('within allowed safe paths', 'in an allowed folder');
}
