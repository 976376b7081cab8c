/** The new-agent form as data: its draft, the request that it makes, and the same request as a command. */
import { showArgv } from '../../../core/argv.ts';
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
  /** The program of a preset that has none. */
  command: string;
  /** Replaces the program of a preset that has one. Apart from `command`, so that neither becomes the other with the preset. */
  own_command: string;
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
  own_command: '',
  env: '',
  restart: false,
  stdin: false,
};

export type Problems = Partial<Record<keyof Draft | 'form', string>>;

/** What decides which fields the form has. It is remembered, so that the form is complete before the presets are loaded. */
export interface PresetShape {
  /** The agent speaks ACP, so it takes a prompt. */
  acp: boolean;
  /** The preset has no command, so the draft must give one. */
  needs_command: boolean;
}

export function shapeOf(preset: Pick<PresetRecord, 'protocol' | 'argv'>): PresetShape {
  return { acp: preset.protocol === 'acp', needs_command: preset.argv === null };
}

/** The field of the draft with the command. */
export function commandKey({ needs_command }: PresetShape): 'command' | 'own_command' {
  return needs_command ? 'command' : 'own_command';
}

/** Suggests a name: the repository, folder or preset, with the first number that is not `taken`. */
export function suggestName(draft: Draft, taken: readonly string[]): string {
  const path = draft.where === 'worktree' ? draft.repo : draft.where === 'folder' ? draft.workdir : '';
  const base = path.split('/').filter(Boolean).at(-1) ?? draft.preset;
  for (let n = 1; ; n++) if (!taken.includes(`${base}-${n}`)) return `${base}-${n}`;
}

export function toBody(
  draft: Draft,
  shape: PresetShape,
  name: string,
): { body: NewAgentBody } | { problems: Problems } {
  const env: Record<string, string> = {};
  for (const [at, line] of draft.env.split('\n').entries()) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    if (equals < 1) return { problems: { env: `Line ${at + 1} is not NAME=value` } };
    env[line.slice(0, equals).trim()] = line.slice(equals + 1);
  }
  const { where } = draft;
  const repo = draft.repo.trim();
  const workdir = draft.workdir.trim();
  if (where === 'worktree' && repo === '')
    return { problems: { repo: 'Choose a repository, or enter its path.' } };
  if (where === 'folder' && workdir === '')
    return { problems: { workdir: 'Choose a folder, or enter its path.' } };
  return {
    body: {
      name,
      preset: draft.preset,
      permission_mode: draft.permission_mode,
      command: draft[commandKey(shape)].trim() || null,
      node_id: draft.node_id,
      worktree_mode: where === 'folder' ? 'use_existing' : 'create_worktree',
      worktree_repo: where === 'worktree' ? repo : null,
      worktree_ref: where === 'worktree' && draft.ref.trim() ? draft.ref.trim() : null,
      workdir: workdir || null,
      prompt: shape.acp && draft.prompt.trim() ? draft.prompt : null,
      env,
      restart_policy: draft.restart ? 'on_failure' : 'never',
      stdin: draft.stdin,
    },
  };
}

/**
 * The command that does the same. Values of variables may be secrets, so it copies them from the shell. A repository or folder
 * that is not known yet has a placeholder: without the option, the command would do something else.
 */
export function toCommand(draft: Draft, shape: PresetShape, name: string): string {
  const option = (flag: string, value: string) => (value.trim() ? [flag, value.trim()] : []);
  const { where } = draft;
  const workdir = draft.workdir.trim() || (where === 'folder' ? 'FOLDER' : '');
  const names = draft.env.split('\n').flatMap((line) => /^\s*([^=\s]+)=/.exec(line)?.[1] ?? []);
  return showArgv([
    ...['svc', 'agents', 'create', name, '--preset', draft.preset],
    ...option('--command', draft[commandKey(shape)]),
    ...(where === 'worktree'
      ? ['--repo', draft.repo.trim() || 'REPOSITORY', ...option('--ref', draft.ref)]
      : []),
    ...option('--workdir', workdir),
    ...(draft.node_id === 'main' ? [] : option('--node', draft.node_id)),
    ...(draft.permission_mode === 'agent' ? ['--permission-mode', 'agent'] : []),
    ...names.flatMap((variable) => option('--env', variable)),
    ...(draft.restart ? ['--restart', 'on_failure'] : []),
    ...(draft.stdin ? ['--stdin'] : []),
    ...(shape.acp ? option('--prompt', draft.prompt) : []),
    '--start',
  ]);
}
