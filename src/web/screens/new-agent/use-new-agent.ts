/** The state of the new-agent form, and its submission. */
import { type UseQueryResult, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { Problem, settingForRefusedPath } from '../../../core/problem.ts';
import { errorMessage, newKey } from '../../api/client.ts';
import { defaultNode } from '../../api/default-node.ts';
import {
  agentsQuery,
  nodesQuery,
  presetsQuery,
  type RepositoryList,
  type RepositoryRecord,
  repositoriesQuery,
  repositoryQuery,
} from '../../api/queries.ts';
import { startNew } from '../../shell/start-agent.ts';
import { useIsHere } from '../../ui/here.ts';
import { showToast } from '../../ui/toast.tsx';
import type { FormState, NodeChoice } from './fields.tsx';
import { type Draft, EMPTY, type PresetShape, type Problems, shapeOf, suggestName, toBody } from './form.ts';
import { problemsFrom } from './problems.ts';
import { type Remembered, useStoredDraft, type Written } from './remembered.ts';

/** Thrown if the form cannot be sent as it is. */
class Incomplete extends Error {
  readonly problems: Problems;

  constructor(problems: Problems) {
    super('the form is not complete');
    this.problems = problems;
  }
}

export function useNewAgent() {
  const { preset: linked_preset } = useSearch({ from: '/app/agents/new' });
  const navigate = useNavigate();
  const isHere = useIsHere();
  const client = useQueryClient();
  const listed_nodes = useQuery(nodesQuery);
  const nodes = listed_nodes.data ?? [];
  const { data: agents = [] } = useQuery(agentsQuery);
  const { written, remembered, last_attempt, write, finish } = useStoredDraft();
  const { shape: _, preset_name, ...last } = remembered;
  const linked = linked_preset === undefined ? {} : { preset: linked_preset };
  // A node may have been removed.
  const node_id = defaultNode(nodes, written.node_id ?? last.node_id);
  const chosen: Written = { ...last, ...linked, ...written, node_id };
  const preset_id = chosen.preset ?? EMPTY.preset;
  const presets = useQuery(presetsQuery(node_id));
  const listed = useQuery(repositoriesQuery(node_id));
  const draft = complete(written, chosen, listed.data);
  const waits_for = whatIsMissing(listed_nodes, listed, draft, written);
  const preset = presets.data?.find(({ id }) => id === preset_id);
  const shape = preset ? shapeOf(preset) : assumedShape(remembered, preset_id, presets.data !== undefined);
  const nameOf = (one: Draft) =>
    one.name.trim() ||
    suggestName(
      one,
      agents.map((agent) => agent.name),
    );
  const { show, clear, ...shown } = useProblems();
  const repositories = listed.data?.repositories ?? [];
  const tab = shape.acp ? 'conversation' : 'output';
  usePreloadedAgent(tab);
  const create = useMutation({
    mutationFn: async () => {
      const result = toBody(draft, shape, draft.name.trim());
      if ('problems' in result) throw new Incomplete(result.problems);
      // If the response to the first attempt was lost, the list has an agent of the suggested name. Another attempt must not suggest
      // another one: it would create a second agent.
      const { name, key } = last_attempt.of(result.body, () => ({ name: nameOf(draft), key: newKey() }));
      const agent_id = await startNew({ ...result.body, name }, key);
      return { agent_id, name, sent: draft };
    },
    onError: (error) => show(error, draft, repositories),
    onSuccess: async ({ agent_id, name, sent }) => {
      // First: the page may be reloaded as soon as the agent's screen appears.
      const { preset: id, where, repo } = sent;
      finish({ preset: id, where, repo, node_id, shape, preset_name: preset?.name ?? id });
      // A worktree can take a while.
      if (!isHere()) showToast(name, 'The agent was created and is starting');
      else await navigate({ to: '/agents/$agent_id/$tab', params: { agent_id, tab } });
      // Last, so that the agent's screen does not wait for this form, which would be rendered once more.
      void client.invalidateQueries({ queryKey: repositoriesQuery(node_id).queryKey });
    },
  });
  const change = (fields: Written) => {
    clear();
    write({ ...written, ...fields });
  };
  const check = useCheck(draft, repositories, show);
  const node = nodes.find(({ id }) => id === node_id);
  const form: FormState = {
    ...{ ...shown, draft, preset, shape, node, name: nameOf(draft), change, check, repositories },
    repositories_note: noteOf(listed.data, listed.failureReason),
    isWorkdir: (repository) => isWorkdir(repository, node),
  };
  return {
    ...{ form, nodes, presets },
    has_no_nodes: listed_nodes.data?.length === 0,
    assumed_name: remembered.preset === preset_id ? (preset_name ?? preset_id) : nameOfPreset(preset_id),
    submit: () => {
      if (!create.isPending && waits_for === null) create.mutate();
    },
    isPending: create.isPending,
    waits_for,
  };
}

/** Which list has to be known before the start; null: neither. */
function whatIsMissing(
  nodes: UseQueryResult,
  repositories: UseQueryResult,
  draft: Draft,
  written: Written,
): 'nodes' | 'repositories' | null {
  if (isLoading(nodes) && written.node_id === undefined) return 'nodes';
  return isLoading(repositories) && dependsOnList(draft, written) ? 'repositories' : null;
}

/** Before the first answer. After a failure, other attempts may take minutes, and the user can enter a path. */
function isLoading({ isPending, failureReason, errorUpdateCount }: UseQueryResult): boolean {
  return isPending && failureReason === null && errorUpdateCount === 0;
}

/** Whether the list of repositories decides where the agent works. */
function dependsOnList({ where }: Draft, written: Written): boolean {
  if (where === 'worktree') return !written.repo;
  return where === 'folder' && written.where === undefined && !written.workdir;
}

/** The agent's screen opens right after the start. */
function usePreloadedAgent(tab: 'conversation' | 'output'): void {
  const router = useRouter();
  useEffect(() => {
    const to = { to: '/agents/$agent_id/$tab', params: { agent_id: 'new', tab } } as const;
    void router.preloadRoute(to).catch(() => {});
  }, [router, tab]);
}

/** Returns a function that asks the service about a path, and shows its error while the path is still in the form. */
function useCheck(
  draft: Draft,
  repositories: readonly RepositoryRecord[],
  show: (error: unknown, draft: Draft, repositories: readonly RepositoryRecord[]) => void,
): (path: string) => void {
  const client = useQueryClient();
  const latest = useRef(draft);
  latest.current = draft;
  return (typed) => {
    const { node_id } = draft;
    const path = typed.trim();
    if (path === '' || repositories.some((one) => one.path === path)) return;
    client.fetchQuery(repositoryQuery(node_id, path)).catch((error: unknown) => {
      const now = latest.current;
      const is_current = now.where === 'worktree' && now.repo.trim() === path && now.node_id === node_id;
      // Other errors do not say anything about the path.
      if (is_current && error instanceof Problem && error.kind === 'invalid') show(error, now, repositories);
    });
  };
}

/** The errors at the fields, and the allowed folders if a path was refused. */
function useProblems() {
  const [shown, setShown] = useState(NO_PROBLEMS);
  return {
    ...shown,
    show: (error: unknown, draft: Draft, repositories: readonly RepositoryRecord[]) => {
      setShown({
        problems: error instanceof Incomplete ? error.problems : problemsFrom(error, draft, repositories),
        allowed: (error instanceof Problem && error.allowed_paths) || [],
        is_refused: error instanceof Problem && settingForRefusedPath(error) !== null,
      });
    },
    clear: () => setShown(NO_PROBLEMS),
  };
}

const NO_PROBLEMS: Pick<FormState, 'problems' | 'allowed' | 'is_refused'> = {
  problems: {},
  allowed: [],
  is_refused: false,
};

/**
 * The draft with defaults for what the user has not chosen. The default repository is always one that the node has listed:
 * the one of the last start, or the one that was used last.
 */
function complete(written: Written, chosen: Written, listed: RepositoryList | undefined): Draft {
  const known = listed?.repositories ?? [];
  const { repo, where, ...rest } = { ...EMPTY, ...withoutUndefined(chosen) };
  const last = known.find(({ path }) => path === chosen.repo) ?? known[0];
  // A path that is being entered stays.
  const is_entered = written.repo !== undefined || (chosen.where === 'folder' && Boolean(written.workdir));
  // With no repository, an empty folder is the choice that always works.
  const none = listed !== undefined && known.length === 0 && !is_entered;
  return {
    ...rest,
    repo: written.repo ?? last?.path ?? '',
    where: written.where ?? (none ? 'empty' : (chosen.where ?? where)),
  };
}

function withoutUndefined(fields: Written): Partial<Draft> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The shape of the preset before the presets are loaded, or if there is no such preset. */
function assumedShape({ preset, shape }: Remembered, preset_id: string, is_loaded: boolean): PresetShape {
  if (is_loaded) return { acp: false, needs_command: true };
  if (preset === preset_id && shape) return shape;
  const has_no_program = preset_id === 'plain' || preset_id === 'acp';
  return { acp: preset_id !== 'plain', needs_command: has_no_program };
}

function nameOfPreset(preset_id: string): string {
  return preset_id === EMPTY.preset ? 'Demo agent' : preset_id;
}

/** The plane knows only the folders of the main node. */
function isWorkdir({ path }: RepositoryRecord, node: NodeChoice | undefined): boolean {
  const safe = node?.folders?.safe_paths;
  return safe === undefined || safe.some((root) => path === root || path.startsWith(`${root}/`));
}

function noteOf(listed: RepositoryList | undefined, error: Error | null): string {
  if (error) return `The repositories cannot be listed: ${errorMessage(error)}. Enter a path.`;
  if (!listed) return 'Searching for repositories…';
  if (listed.roots.length === 0) return 'No folder is allowed yet. A root user can add one to safe_paths.';
  return `No repositories in ${listed.roots.join(', ')}. Enter a path.`;
}
