/** A new agent: what it is, where it works, what it is asked first. Everything else is folded away. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { type FormEvent, type KeyboardEvent, useEffect, useState } from 'react';
import { Problem } from '../../../core/problem.ts';
import { wordsOf } from '../../api/client.ts';
import { agentsQuery, nodesQuery, presetsQuery } from '../../api/queries.ts';
import { startNew } from '../../shell/start-agent.ts';
import { Button } from '../../ui/button.tsx';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { MOD } from '../../ui/keys.ts';
import { permissionChoices } from '../../ui/permission-mode.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import {
  bodyOf,
  type Draft,
  derivedFolder,
  needsCommand,
  type Problems,
  placed,
  speaksAcp,
  suggestName,
} from './form.ts';
import { PresetChoice } from './presets.tsx';
import { useFormDraft } from './remembered.ts';
import { WhereChoice } from './where.tsx';

export function NewAgent() {
  const { preset: wanted } = useSearch({ from: '/app/agents/new' });
  const navigate = useNavigate();
  const router = useRouter();
  const { data: nodes = [] } = useQuery(nodesQuery);
  const { data: agents = [] } = useQuery(agentsQuery);
  const main = nodes.find(({ id }) => id === 'main');
  const [draft, set, forget] = useFormDraft({
    ...(wanted !== undefined && { preset: wanted }),
    repo: main?.folders?.repo_roots[0] ?? '',
    // Without a repository at hand, a folder that nothing can go wrong in.
    where: main?.folders?.repo_roots.length === 0 ? 'empty' : 'worktree',
  });
  const node = nodes.find(({ id }) => id === draft.node_id);
  const presets = useQuery(presetsQuery(draft.node_id));
  const preset = presets.data?.find(({ id }) => id === draft.preset);
  const name =
    draft.name.trim() ||
    suggestName(
      draft,
      agents.map((agent) => agent.name),
    );
  const [problems, setProblems] = useState<Problems>({});
  const [allowed, setAllowed] = useState<readonly string[]>([]);
  const tab = speaksAcp(preset) ? 'conversation' : 'output';
  // It is about to be opened.
  useEffect(() => {
    const to = { to: '/agents/$agent_id/$tab', params: { agent_id: 'new', tab } } as const;
    void router.preloadRoute(to).catch(() => {});
  }, [router, tab]);
  const create = useMutation({
    mutationFn: startNew,
    onError: (error) => {
      setProblems(placed(wordsOf(error)));
      setAllowed((error instanceof Problem && error.allowed_paths) || []);
    },
    onSuccess: (agent_id) => {
      forget();
      void navigate({ to: '/agents/$agent_id/$tab', params: { agent_id, tab } });
    },
  });
  const change = (fields: Partial<Draft>) => {
    setProblems({});
    setAllowed([]);
    set({ ...draft, ...fields });
  };
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (create.isPending) return;
    const made = bodyOf(draft, preset, name);
    if ('problems' in made) setProblems(made.problems);
    else create.mutate(made.body);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      submit();
    }
  };
  const root = node?.folders?.worktree_root ?? null;
  const folder = derivedFolder(draft, root, name);
  const command_needed = needsCommand(preset);
  const text = (key: 'name' | 'ref' | 'workdir' | 'command', placeholder?: string) => ({
    value: draft[key],
    placeholder,
    spellCheck: false,
    autoComplete: 'off',
    onText: (typed: string) => change({ [key]: typed }),
  });
  const command = (
    <TextField
      label="Command"
      error={problems.command}
      hint={command_needed ? 'run by /bin/sh -c' : `instead of ${preset?.command ?? 'the preset’s'}`}
      {...text('command', preset?.command ?? 'npm test')}
      mono
    />
  );
  return (
    <Screen title="New agent">
      <form onSubmit={submit} onKeyDown={onKey} className="mx-auto flex max-w-2xl flex-col gap-4 p-4">
        <PresetChoice read={presets} chosen={draft.preset} onChoose={(id) => change({ preset: id })} />
        {nodes.length > 1 && (
          <Field label="Node" error={problems.node_id}>
            {(control) => (
              <Select
                {...control}
                value={draft.node_id}
                onChange={(node_id) => change({ node_id })}
                choices={nodes.map((each) => ({
                  value: each.id,
                  label: each.status === 'connected' ? each.name : `${each.name} (${each.status})`,
                }))}
              />
            )}
          </Field>
        )}
        <WhereChoice draft={draft} change={change} folders={node?.folders ?? null} error={problems.repo} />
        {draft.where === 'folder' && (
          <TextField
            label="Workdir"
            error={problems.workdir}
            hint="an absolute path on the node"
            {...text('workdir', '/home/ana/code/shop')}
          />
        )}
        {allowed.length > 0 && (
          <div className="rounded-md border border-line bg-surface p-3">
            <p>{problems.repo ? 'Repositories may lie in:' : 'Agents may work in:'}</p>
            <ul className="my-1 list-disc pl-5 font-mono text-sm">
              {allowed.map((path) => (
                <li key={path} className="break-all">
                  {path}
                </li>
              ))}
            </ul>
            {draft.where === 'folder' && (
              <Button
                onClick={() => change({ where: 'worktree', repo: draft.repo || draft.workdir, workdir: '' })}
              >
                Use a worktree instead
              </Button>
            )}
          </div>
        )}
        {command_needed && command}
        {speaksAcp(preset) && (
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
        )}
        {speaksAcp(preset) && (
          <Field label="Task" error={problems.prompt} hint="Said first. You can also start without one.">
            {(control) => (
              <textarea
                {...control}
                rows={4}
                // biome-ignore lint/a11y/noAutofocus: what a person came here to write
                autoFocus
                value={draft.prompt}
                onChange={(event) => change({ prompt: event.target.value })}
                placeholder="Fix the flaky checkout test…"
                className={`${inputClass} text-prose`}
              />
            )}
          </Field>
        )}
        <p className="break-all text-muted text-sm">
          {folder ? (
            <>
              works in <code className="font-mono">{folder}</code>
            </>
          ) : node?.has_default_root ? (
            'works in a new folder below the node’s worktree root'
          ) : (
            'this node has no worktree root: give a workdir that exists there'
          )}
          {draft.where === 'worktree' && ` on branch svc/${name}-…`}
        </p>
        <details className="rounded-md border border-line">
          <summary className="tap cursor-pointer px-3 py-1 font-medium">Advanced</summary>
          <div className="flex flex-col gap-3 border-line border-t p-3">
            <TextField label="Name" error={problems.name} {...text('name', name)} />
            {!command_needed && command}
            {draft.where === 'worktree' && (
              <TextField label="Branch starts at" error={problems.ref} {...text('ref', 'HEAD')} />
            )}
            {draft.where !== 'folder' && (
              <TextField
                label="Folder"
                error={problems.workdir}
                hint="empty: a new one below the worktree root"
                {...text('workdir')}
              />
            )}
            <Field
              label="Environment"
              error={problems.env}
              hint="NAME=value, one a line. Values are never shown again."
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
              Start again when it fails
            </Toggle>
            <Toggle checked={draft.stdin} onChange={(stdin) => change({ stdin })}>
              Keep stdin open
            </Toggle>
          </div>
        </details>
        {problems.form && (
          <p role="alert" className="text-failed">
            {problems.form}
          </p>
        )}
        <div className="flex items-center gap-3">
          <Button type="submit" look="primary" busy={create.isPending}>
            {create.isPending ? 'Starting…' : 'Start agent'}
          </Button>
          <span className="hidden text-muted text-sm md:inline">{MOD} ⏎</span>
        </div>
      </form>
    </Screen>
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
