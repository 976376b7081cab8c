/** The queries of all screens. The fleet feed keeps their data current (`fleet.ts`), so it does not become stale with time. */
import { QueryClient, queryOptions } from '@tanstack/react-query';
import { type Answered, all, call, type ItemOf } from './client.ts';
import { keys } from './keys.ts';
import { withAllPending } from './pending.ts';
import { retryDelay, shouldRetry } from './retry.ts';

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The browser's network status says nothing about a service on this machine, and a paused request would surprise the user later.
      networkMode: 'always',
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 10 * 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: true,
      retry: shouldRetry,
      retryDelay,
    },
    mutations: { networkMode: 'always', retry: false },
  },
});

export type AgentRecord = Answered<'getAgent'>;
export type ReviewRecord = Answered<'getReview'>;
export type ElicitationRecord = Answered<'getElicitation'>;
export type WaitingStepRecord = ItemOf<'listWaitingSteps'>;
export type WaitingRunRecord = ItemOf<'listWaitingRuns'>;
export type RunRecord = Answered<'getRun'>;
export type TeamRecord = Answered<'getTeam'>;
export type PresetRecord = Answered<'listPresets'>[number];
export type RepositoryList = Answered<'listRepositories'>;
export type RepositoryRecord = RepositoryList['repositories'][number];

export const agentsQuery = queryOptions({ queryKey: keys.agents, queryFn: () => all('listAgents') });
export const agentQuery = (agent_id: string) =>
  queryOptions({
    queryKey: keys.agent(agent_id),
    queryFn: () => call('getAgent', { params: { agent_id } }),
  });
/** All pending reviews, and the newest of the others. */
export const reviewsQuery = queryOptions({
  queryKey: keys.reviews,
  queryFn: async () =>
    withAllPending((await call('listReviews')) as unknown as ReviewRecord[], () =>
      all('listReviews', { query: { status: 'pending' } }),
    ),
});
/** All pending elicitations, and the newest of the others. */
export const elicitationsQuery = queryOptions({
  queryKey: keys.elicitations,
  queryFn: async () =>
    withAllPending((await call('listElicitations')) as unknown as ElicitationRecord[], () =>
      all('listElicitations', { query: { status: 'pending' } }),
    ),
});
export const elicitationQuery = (elicitation_id: string) =>
  queryOptions({
    queryKey: keys.elicitation(elicitation_id),
    queryFn: () => call('getElicitation', { params: { elicitation_id } }),
  });
/** All steps that wait for an answer, the longest wait first. */
export const waitingStepsQuery = queryOptions({
  queryKey: keys.waiting_steps,
  queryFn: async () => (await call('listWaitingSteps')) as unknown as WaitingStepRecord[],
});
/** All runs that are waiting for a person, but not at any step, the longest wait first. */
export const waitingRunsQuery = queryOptions({
  queryKey: keys.waiting_runs,
  queryFn: async () => (await call('listWaitingRuns')) as unknown as WaitingRunRecord[],
});
/** The sessions of an agent, newest first. */
export const sessionsQuery = (agent_id: string) =>
  queryOptions({
    queryKey: keys.sessions(agent_id),
    queryFn: () => all('listSessions', { params: { agent_id } }),
    staleTime: 0,
  });
/** The changed files in an agent's folder. Screens invalidate it after the agent has worked. */
export const changesQuery = (agent_id: string) =>
  queryOptions({
    queryKey: keys.changes(agent_id),
    queryFn: () => call('getChanges', { params: { agent_id } }),
  });
/** The diff of one file. `context`: unchanged lines around each change. */
export const changeQuery = (agent_id: string, path: string, context: number) =>
  queryOptions({
    queryKey: keys.change(agent_id, path, context),
    queryFn: () => call('getChange', { params: { agent_id, path }, query: { context } }),
  });
/** Files in an agent's folder whose path contains the text. */
export const filesQuery = (agent_id: string, text: string) =>
  queryOptions({
    queryKey: keys.files(agent_id, text),
    queryFn: () => call('findFiles', { params: { agent_id }, query: { q: text } }),
    staleTime: 10_000,
  });
/** The prompt of the current turn, and the queued ones. */
export const promptsQuery = (agent_id: string) =>
  queryOptions({
    queryKey: keys.prompts(agent_id),
    queryFn: () => call('listPrompts', { params: { agent_id } }),
  });
/** Each session of an agent has its own. */
export const agentConfigQuery = ({ id, session_id }: AgentRecord) =>
  queryOptions({
    queryKey: keys.agent_config(id, session_id),
    queryFn: () => call('getAgentConfig', { params: { agent_id: id } }),
  });
/** For data that is not part of the fleet feed. */
const not_streamed = { staleTime: 10_000, refetchOnWindowFocus: true } as const;
/** The number of the last event that the user has seen, by agent. */
export type Seen = ReadonlyMap<string, number>;
export const seenQuery = queryOptions({
  queryKey: keys.seen,
  queryFn: async (): Promise<Seen> =>
    new Map((await all('listSeen')).map(({ agent_id, last_seen }) => [agent_id, last_seen])),
  ...not_streamed,
});
export const teamsQuery = queryOptions({
  queryKey: keys.teams,
  queryFn: () => all('listTeams'),
  ...not_streamed,
});
export const teamQuery = (team_id: string) =>
  queryOptions({
    queryKey: keys.team(team_id),
    queryFn: () => call('getTeam', { params: { team_id } }),
    ...not_streamed,
  });
/** How many runs of a team are read at a time. Each record contains the whole definition. */
const RUNS_READ = 100;
/** The newest runs of a team. */
export const runsQuery = (team_id: string) =>
  queryOptions({
    queryKey: keys.runs(team_id),
    queryFn: async () => (await readRuns(team_id)).items,
  });
export const runQuery = (run_id: string) =>
  queryOptions({ queryKey: keys.run(run_id), queryFn: () => call('findRun', { params: { run_id } }) });
export const stepsQuery = (team_id: string, run_id: string) =>
  queryOptions({
    queryKey: keys.steps(run_id),
    queryFn: () => call('listSteps', { params: { team_id, run_id } }),
  });
export async function readRuns(team_id: string, cursor?: string) {
  const query = { limit: RUNS_READ, ...(cursor !== undefined && { cursor }) };
  const page = await call('listRuns', { params: { team_id }, query });
  // With a limit it is a page.
  return page as Extract<typeof page, { items: unknown }>;
}
/** The participants of a run are not part of the fleet feed, so they are polled while the run is live. */
export const runMembersQuery = (run_id: string, live: boolean) =>
  queryOptions({
    queryKey: keys.run_members(run_id),
    queryFn: () => call('listRunMembers', { params: { run_id } }),
    refetchInterval: live ? 5000 : false,
    staleTime: 0,
  });
export const nodesQuery = queryOptions({ queryKey: keys.nodes, queryFn: () => all('listNodes') });
export const presetsQuery = (node_id: string) =>
  queryOptions({
    queryKey: keys.presets(node_id),
    queryFn: () => call('listPresets', { query: { node_id } }),
    staleTime: 60_000,
  });

/** The git repositories that agents can use on a node. */
export const repositoriesQuery = (node_id: string) =>
  queryOptions({
    queryKey: keys.repositories(node_id),
    queryFn: () => call('listRepositories', { params: { node_id } }),
    ...not_streamed,
  });
/** Fails with the service's error if no worktree can be made from the repository at this path. */
export const repositoryQuery = (node_id: string, path: string) =>
  queryOptions({
    queryKey: keys.repository(node_id, path),
    queryFn: () => call('listRepositories', { params: { node_id }, query: { path } }),
    staleTime: 0,
  });

export type WorktreeRecord = ItemOf<'listWorktrees'>;
/** The worktrees that outlived their agents, newest first. */
export const keptWorktreesQuery = queryOptions({
  queryKey: keys.worktrees,
  queryFn: () => all('listWorktrees', { query: { state: 'kept' } }),
  ...not_streamed,
});

// Not part of any stream: read again whenever a screen shows it.
export type UserRecord = Answered<'createUser'>;
export type SettingRecord = Answered<'getConfig'>[number];
export type AuditRecord = ItemOf<'listAudit'>;

export const usersQuery = queryOptions({
  queryKey: keys.users,
  queryFn: () => all('listUsers'),
  staleTime: 0,
});
export const signInsQuery = queryOptions({
  queryKey: keys.sign_ins,
  queryFn: () => all('listSignIns'),
  staleTime: 0,
});
export const pushDevicesQuery = queryOptions({
  queryKey: keys.push_devices,
  queryFn: () => all('listPushSubscriptions'),
  staleTime: 0,
});
export const tokensQuery = queryOptions({
  queryKey: keys.tokens,
  queryFn: () => all('listTokens'),
  staleTime: 0,
});
export const configQuery = queryOptions({
  queryKey: keys.config,
  queryFn: () => call('getConfig'),
  staleTime: 0,
});
