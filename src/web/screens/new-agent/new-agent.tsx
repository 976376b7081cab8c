/** The new-agent form: the agent, its folder and its first prompt. Everything else is under Advanced. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { type FormEvent, type KeyboardEvent, useEffect, useState } from 'react';
import { Problem } from '../../../core/problem.ts';
import { errorMessage } from '../../api/client.ts';
import { agentsQuery, nodesQuery, presetsQuery } from '../../api/queries.ts';
import { startNew } from '../../shell/start-agent.ts';
import { Button } from '../../ui/button.tsx';
import { MOD } from '../../ui/keys.ts';
import { Screen } from '../../ui/screen.tsx';
import {
  Advanced,
  AllowedPaths,
  CommandField,
  ConversationFields,
  FolderNote,
  type FormState,
  NodeField,
  WorkdirField,
} from './fields.tsx';
import {
  type Draft,
  needsCommand,
  type Problems,
  problemsFrom,
  speaksAcp,
  suggestName,
  toBody,
} from './form.ts';
import { PresetChoice } from './presets.tsx';
import { useFormDraft } from './remembered.ts';
import { WhereChoice } from './where.tsx';

/** The state of the form, and its submission. */
function useNewAgent() {
  const { preset: preset_id } = useSearch({ from: '/app/agents/new' });
  const navigate = useNavigate();
  const router = useRouter();
  const { data: nodes = [] } = useQuery(nodesQuery);
  const { data: agents = [] } = useQuery(agentsQuery);
  const main = nodes.find(({ id }) => id === 'main');
  const [draft, set, forget] = useFormDraft({
    ...(preset_id !== undefined && { preset: preset_id }),
    repo: main?.folders?.repo_roots[0] ?? '',
    // With no known repository, an empty folder is the choice that always works.
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
  // The agent's screen opens right after the start.
  useEffect(() => {
    const to = { to: '/agents/$agent_id/$tab', params: { agent_id: 'new', tab } } as const;
    void router.preloadRoute(to).catch(() => {});
  }, [router, tab]);
  const create = useMutation({
    mutationFn: startNew,
    onError: (error) => {
      setProblems(problemsFrom(errorMessage(error)));
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
    const result = toBody(draft, preset, name);
    if ('problems' in result) setProblems(result.problems);
    else create.mutate(result.body);
  };
  const form: FormState = { draft, problems, preset, node, name, change };
  return { form, nodes, presets, allowed, submit, isPending: create.isPending };
}

export function NewAgent() {
  const { form, nodes, presets, allowed, submit, isPending } = useNewAgent();
  const { draft, problems, preset, node, change } = form;
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <Screen title="New agent">
      <form onSubmit={submit} onKeyDown={onKey} className="mx-auto flex max-w-2xl flex-col gap-4 p-4">
        <PresetChoice read={presets} chosen={draft.preset} onChoose={(id) => change({ preset: id })} />
        {nodes.length > 1 && <NodeField form={form} nodes={nodes} />}
        <WhereChoice draft={draft} change={change} folders={node?.folders ?? null} error={problems.repo} />
        {draft.where === 'folder' && <WorkdirField form={form} />}
        {allowed.length > 0 && <AllowedPaths form={form} paths={allowed} />}
        {needsCommand(preset) && <CommandField form={form} />}
        {speaksAcp(preset) && <ConversationFields form={form} />}
        <FolderNote form={form} />
        <Advanced form={form} />
        {problems.form && (
          <p role="alert" className="text-failed">
            {problems.form}
          </p>
        )}
        <div className="flex items-center gap-3">
          <Button type="submit" variant="primary" busy={isPending}>
            {isPending ? 'Starting…' : 'Start agent'}
          </Button>
          <span className="hidden text-muted text-sm md:inline">{MOD} ⏎</span>
        </div>
      </form>
    </Screen>
  );
}
