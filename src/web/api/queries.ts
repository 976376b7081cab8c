/** What screens read, by key. The fleet stream keeps these current (`fleet.ts`), so nothing here grows stale by time. */
import { QueryClient, queryOptions } from '@tanstack/react-query';
import { Problem } from '../../core/problem.ts';
import { type Answered, all, call, type ItemOf } from './client.ts';

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 10 * 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: true,
      // What the server said will not change by asking again; what did not arrive may.
      retry: (failures, error) => !(error instanceof Problem) && failures < 2,
    },
    mutations: { retry: false },
  },
});

export type AgentRecord = Answered<'getAgent'>;
export type ReviewRecord = Answered<'getReview'>;
export type ElicitationRecord = Answered<'getElicitation'>;
export type RunRecord = Answered<'getRun'>;
export type TeamRecord = Answered<'getTeam'>;
export type TaskRecord = Answered<'getTask'>;
export type PresetRecord = Answered<'listPresets'>[number];

export const agentsQuery = queryOptions({ queryKey: ['agents'], queryFn: () => all('listAgents') });
export const agentQuery = (agent_id: string) =>
  queryOptions({
    queryKey: ['agent', agent_id],
    queryFn: () => call('getAgent', { params: { agent_id } }),
  });
/** All that wait, and the newest of the others. */
export const reviewsQuery = queryOptions({
  queryKey: ['reviews'],
  queryFn: async () => (await call('listReviews')) as unknown as ReviewRecord[],
});
export const elicitationsQuery = queryOptions({
  queryKey: ['elicitations'],
  queryFn: async () => (await call('listElicitations')) as unknown as ElicitationRecord[],
});
export const elicitationQuery = (elicitation_id: string) =>
  queryOptions({
    queryKey: ['elicitation', elicitation_id],
    queryFn: () => call('getElicitation', { params: { elicitation_id } }),
  });
/** Every life of its process, newest first. */
export const sessionsQuery = (agent_id: string) =>
  queryOptions({
    queryKey: ['sessions', agent_id],
    queryFn: () => all('listSessions', { params: { agent_id } }),
    staleTime: 0,
  });
/** What differs in its folder; read again when it has worked. */
export const changesQuery = (agent_id: string) =>
  queryOptions({
    queryKey: ['changes', agent_id],
    queryFn: () => call('getChanges', { params: { agent_id } }),
  });
/** The lines of one file that differ. */
export const changeQuery = (agent_id: string, path: string) =>
  queryOptions({
    queryKey: ['change', agent_id, path],
    queryFn: () => call('getChange', { params: { agent_id, path } }),
  });
/** Files of its folder whose path has the words. */
export const filesQuery = (agent_id: string, words: string) =>
  queryOptions({
    queryKey: ['files', agent_id, words],
    queryFn: () => call('findFiles', { params: { agent_id }, query: { q: words } }),
    staleTime: 10_000,
  });
/** The prompt whose turn goes on, and those that wait. */
export const promptsQuery = (agent_id: string) =>
  queryOptions({
    queryKey: ['prompts', agent_id],
    queryFn: () => call('listPrompts', { params: { agent_id } }),
  });
export const agentConfigQuery = (agent_id: string) =>
  queryOptions({
    queryKey: ['agent-config', agent_id],
    queryFn: () => call('getAgentConfig', { params: { agent_id } }),
  });
/** The fleet stream does not tell of teams. */
const untold = { staleTime: 10_000, refetchOnWindowFocus: true } as const;
export const teamsQuery = queryOptions({
  queryKey: ['teams'],
  queryFn: () => all('listTeams'),
  ...untold,
});
export const teamQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['team', team_id],
    queryFn: () => call('getTeam', { params: { team_id } }),
    ...untold,
  });
/** So many of a team's runs, the newest: each has the whole definition in it. */
export const RUNS_READ = 100;
export const runsQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['runs', team_id],
    queryFn: async () => (await readRuns(team_id)).items,
  });
export const runQuery = (run_id: string) =>
  queryOptions({ queryKey: ['run', run_id], queryFn: () => call('findRun', { params: { run_id } }) });
export const stepsQuery = (team_id: string, run_id: string) =>
  queryOptions({
    queryKey: ['steps', run_id],
    queryFn: () => call('listSteps', { params: { team_id, run_id } }),
  });
export const tasksQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['tasks', team_id],
    queryFn: () => all('listTasks', { params: { team_id } }),
  });
export async function readRuns(team_id: string, cursor?: string) {
  const query = { limit: RUNS_READ, ...(cursor !== undefined && { cursor }) };
  const page = await call('listRuns', { params: { team_id }, query });
  // With a limit it is a page.
  return page as Extract<typeof page, { items: unknown }>;
}
/** Who takes part in a run, and its mail: the fleet stream tells nothing of them, so they are read again while it goes on. */
export const runMembersQuery = (run_id: string, live: boolean) =>
  queryOptions({
    queryKey: ['run-members', run_id],
    queryFn: () => call('listRunMembers', { params: { run_id } }),
    refetchInterval: live ? 5000 : false,
    staleTime: 0,
  });
export const runMailQuery = (run_id: string, live: boolean) =>
  queryOptions({
    queryKey: ['run-mail', run_id],
    queryFn: () => all('listRunMail', { params: { run_id } }),
    refetchInterval: live ? 5000 : false,
    staleTime: 0,
  });
export const mailQuery = (message_id: number) =>
  queryOptions({
    queryKey: ['mail', message_id],
    queryFn: () => call('getMail', { params: { message_id: String(message_id) } }),
  });
export const nodesQuery = queryOptions({ queryKey: ['nodes'], queryFn: () => all('listNodes') });
export const presetsQuery = (node_id: string) =>
  queryOptions({
    queryKey: ['presets', node_id],
    queryFn: () => call('listPresets', { query: { node_id } }),
    staleTime: 60_000,
  });

// What no stream carries: read again whenever a screen shows it.
export type UserRecord = Answered<'createUser'>;
export type SettingRecord = Answered<'getConfig'>[number];
export type AuditRecord = ItemOf<'listAudit'>;

export const usersQuery = queryOptions({
  queryKey: ['users'],
  queryFn: () => all('listUsers'),
  staleTime: 0,
});
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => call('getMe'),
  staleTime: 0,
});
/** Where passkeys work. */
export const passkeyPlaceQuery = queryOptions({
  queryKey: ['passkey-place'],
  queryFn: () => call('getRelyingParty'),
});
export const signInsQuery = queryOptions({
  queryKey: ['sign-ins'],
  queryFn: () => all('listSignIns'),
  staleTime: 0,
});
export const pushDevicesQuery = queryOptions({
  queryKey: ['push-devices'],
  queryFn: () => all('listPushSubscriptions'),
  staleTime: 0,
});
export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: () => all('listTokens'),
  staleTime: 0,
});
export const configQuery = queryOptions({
  queryKey: ['config'],
  queryFn: () => call('getConfig'),
  staleTime: 0,
});
