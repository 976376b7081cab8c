/** The fields of the new-agent form below the choice of the agent. */
import type { PresetRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { permissionChoices } from '../../ui/permission-mode.tsx';
import { Select } from '../../ui/select.tsx';
import { type Draft, derivedFolder, needsCommand, type Problems } from './form.ts';
import type { NodeChoice } from './where.tsx';

export interface FormState {
  draft: Draft;
  problems: Problems;
  preset: PresetRecord | undefined;
  node: NodeChoice | undefined;
  /** The name from the draft, or the suggested one. */
  name: string;
  change: (fields: Partial<Draft>) => void;
}

function textProps(form: FormState, key: 'name' | 'ref' | 'workdir' | 'command', placeholder?: string) {
  return {
    value: form.draft[key],
    error: form.problems[key],
    placeholder,
    spellCheck: false,
    autoComplete: 'off',
    onText: (typed: string) => form.change({ [key]: typed }),
  };
}

export function NodeField({ form, nodes }: { form: FormState; nodes: readonly NodeChoice[] }) {
  return (
    <Field label="Node" error={form.problems.node_id}>
      {(control) => (
        <Select
          {...control}
          value={form.draft.node_id}
          onChange={(node_id) => form.change({ node_id })}
          choices={nodes.map((node) => ({
            value: node.id,
            label: node.status === 'connected' ? node.name : `${node.name} (${node.status})`,
          }))}
        />
      )}
    </Field>
  );
}

export function WorkdirField({ form }: { form: FormState }) {
  return (
    <TextField
      label="Folder"
      hint="An absolute path on the node."
      {...textProps(form, 'workdir', '/home/ana/code/shop')}
    />
  );
}

/** Shown after the service has refused a folder or repository: where it would be allowed. */
export function AllowedPaths({ form, paths }: { form: FormState; paths: readonly string[] }) {
  const { draft, change } = form;
  return (
    <div className="rounded-md border border-line bg-surface p-3">
      <p>
        {form.problems.repo
          ? 'The repository must be in one of these folders:'
          : 'The folder must be in one of these folders:'}
      </p>
      <ul className="my-1 list-disc pl-5 font-mono text-sm">
        {paths.map((path) => (
          <li key={path} className="break-all">
            {path}
          </li>
        ))}
      </ul>
      {draft.where === 'folder' && (
        <Button onClick={() => change({ where: 'worktree', repo: draft.repo || draft.workdir, workdir: '' })}>
          Use a worktree instead
        </Button>
      )}
    </div>
  );
}

export function CommandField({ form }: { form: FormState }) {
  const { preset } = form;
  return (
    <TextField
      label="Command"
      hint={
        needsCommand(preset)
          ? 'Runs with /bin/sh -c.'
          : `Replaces ${preset?.command ?? 'the preset’s command'}.`
      }
      {...textProps(form, 'command', preset?.command ?? 'npm test')}
      mono
    />
  );
}

/** Permissions and the first prompt, for agents that speak ACP. */
export function ConversationFields({ form }: { form: FormState }) {
  const { draft, problems, preset, change } = form;
  return (
    <>
      <Field label="Permissions" error={problems.permission_mode} hint={preset?.permission.note}>
        {(control) => (
          <Select
            {...control}
            value={draft.permission_mode}
            onChange={(mode) => change({ permission_mode: mode === 'agent' ? 'agent' : 'ask' })}
            choices={permissionChoices}
          />
        )}
      </Field>
      <Field label="Prompt" error={problems.prompt} hint="Optional. Sent as the first prompt.">
        {(control) => (
          <textarea
            {...control}
            rows={4}
            // biome-ignore lint/a11y/noAutofocus: the main field of this screen
            autoFocus
            value={draft.prompt}
            onChange={(event) => change({ prompt: event.target.value })}
            placeholder="Fix the flaky checkout test…"
            className={`${inputClass} text-prose`}
          />
        )}
      </Field>
    </>
  );
}

/** Shows the folder and branch that the agent will use, as far as they are known before it is created. */
export function FolderNote({ form }: { form: FormState }) {
  const { draft, node, name } = form;
  const folder = derivedFolder(draft, node?.folders?.worktree_root ?? null, name);
  return (
    <p className="break-all text-muted text-sm">
      {folder ? (
        <>
          Works in <code className="font-mono">{folder}</code>
        </>
      ) : draft.where === 'folder' ? (
        'Works in the folder that you enter above'
      ) : node?.has_default_root ? (
        'Works in a new folder in the node’s worktree root'
      ) : (
        'This node has no worktree root. Enter a folder that exists on it.'
      )}
      {draft.where === 'worktree' && ` on branch svc/${name}-…`}
    </p>
  );
}

export function Advanced({ form }: { form: FormState }) {
  const { draft, problems, change } = form;
  return (
    <details className="rounded-md border border-line">
      <summary className="tap cursor-pointer px-3 py-1 font-medium">Advanced</summary>
      <div className="flex flex-col gap-3 border-line border-t p-3">
        <TextField label="Name" {...textProps(form, 'name', form.name)} />
        {!needsCommand(form.preset) && <CommandField form={form} />}
        {draft.where === 'worktree' && (
          <TextField label="Branch starts at" {...textProps(form, 'ref', 'HEAD')} />
        )}
        {draft.where !== 'folder' && (
          <TextField
            label="Folder"
            hint="Leave empty for a new folder in the worktree root."
            {...textProps(form, 'workdir')}
          />
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
    </details>
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
