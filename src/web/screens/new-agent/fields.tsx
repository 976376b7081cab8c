/** The other fields of the new-agent form. */
import { useEffect, useRef } from 'react';
import type { Answered } from '../../api/client.ts';
import type { PresetRecord, RepositoryRecord } from '../../api/queries.ts';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { permissionChoices } from '../../ui/permission-mode.tsx';
import { Select } from '../../ui/select.tsx';
import { AllowedPaths } from './allowed-paths.tsx';
import { commandKey, type Draft, type PresetShape, type Problems, type Where } from './form.ts';
import type { Written } from './remembered.ts';

export type NodeChoice =
  Answered<'listNodes'> extends infer A ? (A extends { items: (infer N)[] } ? N : never) : never;

export interface FormState {
  draft: Draft;
  problems: Problems;
  /** The allowed folders, after the service has refused a path. */
  allowed: readonly string[];
  /** The service has refused the path, because it is not in an allowed folder. */
  is_refused: boolean;
  /** Undefined until the presets are loaded. */
  preset: PresetRecord | undefined;
  shape: PresetShape;
  node: NodeChoice | undefined;
  /** The name from the draft, or the suggested one. */
  name: string;
  repositories: readonly RepositoryRecord[];
  /** Shown if there are none. */
  repositories_note: string;
  /** Whether the repository can be the workdir of an agent. */
  isWorkdir: (repository: RepositoryRecord) => boolean;
  change: (fields: Written) => void;
  /** Asks the service whether an agent can use a repository that is not in the list. */
  check: (path: string) => void;
}

type TextKey = 'name' | 'ref' | 'workdir' | 'command' | 'own_command';

function textProps(form: FormState, key: TextKey, placeholder?: string) {
  return {
    value: form.draft[key],
    error: form.problems[key],
    placeholder,
    spellCheck: false,
    autoComplete: 'off',
    onText: (typed: string) => form.change({ [key]: typed }),
  };
}

/** The first field: the prompt, or the command of an agent that takes no prompt. Both have the same size. */
export function MainField({ form }: { form: FormState }) {
  const { draft, problems, change } = form;
  const key = form.shape.acp ? 'prompt' : commandKey(form.shape);
  return (
    <Field
      label={form.shape.acp ? 'Prompt' : 'Command'}
      error={form.shape.acp ? problems.prompt : problems.command}
    >
      {(control) => (
        <textarea
          {...control}
          rows={4}
          // biome-ignore lint/a11y/noAutofocus: the main field of this screen
          autoFocus
          value={draft[key]}
          spellCheck={form.shape.acp}
          onChange={(event) => change({ [key]: event.target.value })}
          placeholder={form.shape.acp ? 'Fix the flaky checkout test…' : 'npm test'}
          className={`${inputClass} text-[15px] leading-[22px] ${form.shape.acp ? '' : 'font-mono'}`}
        />
      )}
    </Field>
  );
}

export function BranchField({ form }: { form: FormState }) {
  const { draft } = form;
  const current = form.repositories.find(({ path }) => path === draft.repo.trim())?.branch ?? 'HEAD';
  return (
    <TextField
      label="Branch"
      title="The branch, tag or commit that the new branch starts from"
      {...textProps(form, 'ref', draft.where === 'worktree' ? current : 'None')}
      value={draft.where === 'worktree' ? draft.ref : ''}
      disabled={draft.where !== 'worktree'}
    />
  );
}

const places: readonly { value: Where; label: string }[] = [
  { value: 'worktree', label: 'New worktree' },
  { value: 'folder', label: 'Existing folder' },
  { value: 'empty', label: 'Empty folder' },
];

export function WhereField({ form }: { form: FormState }) {
  const { draft, node, name, change } = form;
  const choose = (where: string) => {
    const repo = form.repositories.find(({ path }) => path === draft.repo);
    const workdir = where === 'folder' && repo && form.isWorkdir(repo) ? repo.path : '';
    change({ where: where as Where, workdir });
  };
  const root = node?.folders?.worktree_root;
  const needs_folder = node !== undefined && !node.has_default_root && draft.where !== 'folder';
  return (
    <Field
      label="Where"
      hint={
        needs_folder && !draft.workdir ? (
          <span className="text-warning">This node has no worktree root. Enter a folder under Advanced.</span>
        ) : (
          <span
            className="block truncate"
            title={
              root && draft.where !== 'folder' ? `In ${draft.workdir || `${root}/${name}-…`}` : undefined
            }
          >
            {draft.where === 'worktree' ? `New branch svc/${name}-…` : '\u00a0'}
          </span>
        )
      }
    >
      {(control) => <Select {...control} value={draft.where} onChange={choose} choices={places} />}
    </Field>
  );
}

export function NodeField({ form, nodes }: { form: FormState; nodes: readonly NodeChoice[] }) {
  const { node_id } = form.draft;
  const choices = nodes.map((node) => ({
    value: node.id,
    label: node.status === 'connected' ? node.name : `${node.name} (${node.status})`,
  }));
  if (!choices.some(({ value }) => value === node_id)) {
    // Until the nodes are loaded, it is not known whether there is a main node.
    choices.push({ value: node_id, label: node_id === 'main' ? '…' : node_id });
  }
  return (
    <Field label="Node" error={form.problems.node_id}>
      {(control) => (
        <Select
          {...control}
          value={node_id}
          // Paths belong to a node.
          onChange={(id) => form.change({ node_id: id, repo: undefined, workdir: '' })}
          choices={choices}
        />
      )}
    </Field>
  );
}

/** Only agents that speak ACP ask for permissions. */
export function PermissionField({ form, className }: { form: FormState; className?: string }) {
  const { draft, problems, preset, shape, change } = form;
  const none = preset?.permission.guarantee === 'none' && draft.permission_mode === 'ask';
  return (
    <Field
      label="Permissions"
      className={className}
      error={problems.permission_mode}
      hint={none && <span className="text-warning">{preset.permission.note}</span>}
    >
      {(control) => (
        <Select
          {...control}
          title={shape.acp ? preset?.permission.note : undefined}
          disabled={!shape.acp}
          value={shape.acp ? draft.permission_mode : 'agent'}
          onChange={(mode) => change({ permission_mode: mode === 'agent' ? 'agent' : 'ask' })}
          choices={permissionChoices}
        />
      )}
    </Field>
  );
}

export function CommandField({ form }: { form: FormState }) {
  const { preset, shape } = form;
  return (
    <TextField
      label="Command"
      hint={
        shape.needs_command
          ? 'Runs with /bin/sh -c.'
          : `Replaces ${preset?.command ?? 'the preset’s command'}.`
      }
      {...textProps(form, commandKey(shape), preset?.command ?? 'my-agent --acp')}
      error={form.problems.command}
      mono
    />
  );
}

export function Advanced({ form }: { form: FormState }) {
  const { draft, problems, shape, change } = form;
  const details = useRef<HTMLDetailsElement>(null);
  const has_command = shape.acp && !shape.needs_command;
  const has_problem =
    problems.name ??
    problems.env ??
    (draft.where === 'folder' ? undefined : problems.workdir) ??
    (has_command ? problems.command : undefined);
  // Nobody should start a command that they do not see.
  const replaces_command = has_command && draft.own_command !== '';
  useEffect(() => {
    if ((has_problem || replaces_command) && details.current) details.current.open = true;
  }, [has_problem, replaces_command]);
  return (
    <Disclosure
      ref={details}
      summary="Advanced"
      className="rounded-lg border border-line"
      summaryClass="w-full px-3 py-1 font-medium"
    >
      <div className="flex flex-col gap-3 border-line border-t p-3">
        <TextField label="Name" {...textProps(form, 'name', form.name)} />
        {has_command && <CommandField form={form} />}
        {draft.where !== 'folder' && (
          <div>
            <TextField
              label="Worktree folder"
              hint="Leave empty for a new folder in the worktree root."
              {...textProps(form, 'workdir')}
            />
            {problems.workdir && <AllowedPaths form={form} />}
          </div>
        )}
        <Field
          label="Environment"
          error={problems.env}
          hint="One NAME=value per line. Values are never shown again."
        >
          {(control) => (
            <textarea
              {...control}
              rows={2}
              spellCheck={false}
              value={draft.env}
              onChange={(event) => change({ env: event.target.value })}
              className={`${inputClass} font-mono`}
            />
          )}
        </Field>
        <Toggle checked={draft.restart} onChange={(restart) => change({ restart })}>
          Restart on failure
        </Toggle>
        <Toggle checked={draft.stdin} onChange={(stdin) => change({ stdin })}>
          Keep stdin open
        </Toggle>
      </div>
    </Disclosure>
  );
}

function Toggle({
  checked,
  onChange,
  children,
}: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: string;
}) {
  return (
    <label className="tap flex items-center gap-2">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
        className="size-4 accent-accent"
      />
      {children}
    </label>
  );
}
