/** The routes: every view has a URL, and each screen is loaded when it is first opened. */
import {
  type AnyRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router';
import { type EventType, eventTypes } from '../core/event.ts';
import { queries } from './api/queries.ts';
import type { Part } from './feature.ts';
import { type Features, features } from './features.ts';
import { app, root } from './frame-routes.ts';
import { isMissingScript, reloadIfPossible } from './missing-scripts.ts';
import { loadView } from './screens/agent/views.ts';
import { parseChoice, text } from './search.ts';
import { type AgentsShown, agentsShown } from './ui/agent-state.ts';
import { Failed, GoTo, Skeleton } from './ui/states.tsx';

const join = createRoute({
  getParentRoute: () => root,
  path: '/join',
  component: lazyRouteComponent(() => import('./screens/entry/join.tsx'), 'Join'),
});

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  // Only a path on this origin: a link must not redirect to another site after signing in. The key is always set,
  // because the router keeps a key that is left out.
  validateSearch: (search: Record<string, unknown>): { to?: string | undefined } => ({
    to: typeof search.to === 'string' && /^\/(?![/\\])/.test(search.to) ? search.to : undefined,
  }),
  component: lazyRouteComponent(() => import('./screens/entry/login.tsx'), 'Login'),
});

const home = createRoute({
  getParentRoute: () => app,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/agents' });
  },
});

export interface AgentsSearch {
  show?: AgentsShown | undefined;
  group?: 'repo' | 'node' | 'team' | 'none' | undefined;
  q?: string | undefined;
}

const agents = createRoute({
  getParentRoute: () => app,
  path: '/agents',
  validateSearch: (search: Record<string, unknown>): AgentsSearch => ({
    show: parseChoice(search.show, agentsShown),
    group: parseChoice(search.group, ['repo', 'node', 'team', 'none']),
    q: text(search.q),
  }),
  component: lazyRouteComponent(() => import('./screens/agents/agents.tsx'), 'Agents'),
});

const newAgent = createRoute({
  getParentRoute: () => app,
  path: '/agents/new',
  validateSearch: (search: Record<string, unknown>): { preset?: string | undefined } => ({
    preset: text(search.preset),
  }),
  component: lazyRouteComponent(() => import('./screens/new-agent/new-agent.tsx'), 'NewAgent'),
});

export const agentTabs = ['conversation', 'output', 'changes', 'events', 'timeline'] as const;
export type AgentTab = (typeof agentTabs)[number];

const agent = createRoute({
  getParentRoute: () => app,
  path: '/agents/$agent_id',
  component: lazyRouteComponent(() => import('./screens/agent/agent.tsx'), 'Agent'),
});
/** Redirects to the conversation, or to the output of an agent without one. */
const agentHome = createRoute({
  getParentRoute: () => agent,
  path: '/',
  component: lazyRouteComponent(() => import('./screens/agent/agent.tsx'), 'AgentHome'),
});
const agentTab = createRoute({
  getParentRoute: () => agent,
  path: '/$tab',
  validateSearch: (
    search: Record<string, unknown>,
  ): { file?: string | undefined; q?: string | undefined; type?: EventType | undefined } => ({
    file: text(search.file),
    q: text(search.q),
    type: parseChoice(search.type, eventTypes),
  }),
  loader: async ({ params }) => {
    const tab = parseChoice(params.tab, agentTabs);
    if (tab) await loadView(tab);
  },
  component: lazyRouteComponent(() => import('./screens/agent/agent.tsx'), 'AgentView'),
});

const approvals = createRoute({
  getParentRoute: () => app,
  path: '/approvals',
  validateSearch: (
    search: Record<string, unknown>,
  ): {
    review?: string | undefined;
    elicitation?: string | undefined;
    question?: string | undefined;
    run?: string | undefined;
    sign_in?: string | undefined;
    team?: string | undefined;
    agent?: string | undefined;
    kind?: string | undefined;
  } => ({
    review: text(search.review),
    elicitation: text(search.elicitation),
    question: text(search.question),
    run: text(search.run),
    sign_in: text(search.sign_in),
    team: text(search.team),
    agent: text(search.agent),
    kind: text(search.kind),
  }),
  component: lazyRouteComponent(() => import('./screens/approvals/approvals.tsx'), 'Approvals'),
});

const teams = createRoute({
  getParentRoute: () => app,
  path: '/teams',
  component: lazyRouteComponent(() => import('./screens/teams/teams.tsx'), 'Teams'),
});
const newTeam = createRoute({
  getParentRoute: () => app,
  path: '/teams/new',
  validateSearch: (search: Record<string, unknown>): { template?: string | undefined } => ({
    template: text(search.template),
  }),
  component: lazyRouteComponent(() => import('./screens/teams/edit.tsx'), 'NewTeam'),
});
const team = createRoute({
  getParentRoute: () => app,
  path: '/teams/$team_id',
  component: lazyRouteComponent(() => import('./screens/teams/team.tsx'), 'Team'),
});
const editTeam = createRoute({
  getParentRoute: () => app,
  path: '/teams/$team_id/edit',
  component: lazyRouteComponent(() => import('./screens/teams/edit.tsx'), 'EditTeam'),
});
const runs = createRoute({
  getParentRoute: () => app,
  path: '/runs',
  validateSearch: (search: Record<string, unknown>): { status?: string | undefined } => ({
    status: text(search.status),
  }),
  component: lazyRouteComponent(() => import('./screens/run/runs.tsx'), 'Runs'),
});
const run = createRoute({
  getParentRoute: () => app,
  path: '/teams/$team_id/runs/$run_id',
  validateSearch: (
    search: Record<string, unknown>,
  ): { step?: string | undefined; member?: string | undefined; view?: string | undefined } => ({
    step: text(search.step),
    member: text(search.member),
    view: text(search.view),
  }),
  loader: () => loadAll(features.flatMap(({ run_panel, member_tab }) => [run_panel, member_tab?.part])),
  component: lazyRouteComponent(() => import('./screens/run/run.tsx'), 'Run'),
});

const nodes = createRoute({
  getParentRoute: () => app,
  path: '/nodes',
  validateSearch: (
    search: Record<string, unknown>,
  ): { node?: string | undefined; register?: true | string | undefined } => ({
    node: text(search.node),
    ...(search.register ? { register: text(search.register) ?? (true as const) } : {}),
  }),
  component: lazyRouteComponent(() => import('./screens/nodes/nodes.tsx'), 'Nodes'),
});
const worktrees = createRoute({
  getParentRoute: () => app,
  path: '/worktrees',
  validateSearch: (
    search: Record<string, unknown>,
  ): { node?: string | undefined; worktree?: string | undefined } => ({
    node: text(search.node),
    worktree: text(search.worktree),
  }),
  component: lazyRouteComponent(() => import('./screens/worktrees/worktrees.tsx'), 'Worktrees'),
});
const users = createRoute({
  getParentRoute: () => app,
  path: '/users',
  component: lazyRouteComponent(() => import('./screens/users/users.tsx'), 'Users'),
});
const audit = createRoute({
  getParentRoute: () => app,
  path: '/audit',
  validateSearch: (
    search: Record<string, unknown>,
  ): {
    event?: string | undefined;
    user_id?: string | undefined;
    agent_id?: string | undefined;
    last?: string | undefined;
    since?: string | undefined;
    until?: string | undefined;
  } => ({
    event: text(search.event),
    user_id: text(search.user_id),
    agent_id: text(search.agent_id),
    last: text(search.last),
    since: text(search.since),
    until: text(search.until),
  }),
  component: lazyRouteComponent(() => import('./screens/audit/audit.tsx'), 'Audit'),
});

const settings = createRoute({
  getParentRoute: () => app,
  path: '/settings',
  beforeLoad: () => {
    throw redirect({ to: '/settings/$tab', params: { tab: 'account' } });
  },
});
const settingsTab = createRoute({
  getParentRoute: () => app,
  path: '/settings/$tab',
  loader: ({ params: { tab } }) => loadAll(features.map(({ settings }) => settings?.[tab]?.part)),
  component: lazyRouteComponent(() => import('./screens/settings/settings.tsx'), 'Settings'),
});
interface ExplorerSearch {
  operation?: string | undefined;
  q?: string | undefined;
}

const explorerSearch = (search: Record<string, unknown>): ExplorerSearch => ({
  operation: text(search.operation),
  q: text(search.q),
});
const docs = createRoute({
  getParentRoute: () => app,
  path: '/docs',
  validateSearch: explorerSearch,
  component: lazyRouteComponent(() => import('./screens/api-explorer/page.tsx'), 'ApiDocs'),
});
/** Served by the API itself, with the description in the page. It needs no session. */
const embeddedDocs = createRoute({
  getParentRoute: () => root,
  path: '/api/openapi/docs',
  validateSearch: explorerSearch,
  component: lazyRouteComponent(() => import('./screens/api-explorer/page.tsx'), 'EmbeddedApiDocs'),
});

async function loadAll(parts: readonly (Pick<Part<never>, 'load'> | undefined)[]): Promise<void> {
  await Promise.all(parts.map((part) => part?.load()));
}

type RoutesOf<F extends readonly unknown[]> = F extends readonly [infer First, ...infer Rest]
  ? [...(First extends { routes: infer R extends readonly AnyRoute[] } ? R : []), ...RoutesOf<Rest>]
  : [];

/** Their exact types, which links and search parameters are checked against. */
const featureRoutes = features.flatMap(({ routes = [] }) => routes) as unknown as RoutesOf<Features>;

export const router = createRouter({
  routeTree: root.addChildren([
    join,
    login,
    embeddedDocs,
    app.addChildren([
      home,
      agents,
      newAgent,
      agent.addChildren([agentHome, agentTab]),
      approvals,
      teams,
      newTeam,
      team,
      editTeam,
      runs,
      run,
      ...featureRoutes,
      nodes,
      worktrees,
      users,
      audit,
      settings,
      settingsTab,
      docs,
    ]),
  ]),
  context: { queries },
  defaultPreload: 'intent',
  // A page with a link to an event scrolls to it itself.
  scrollRestoration: ({ location }) => !/^e\d/.test(location.hash),
  defaultPendingMs: 200,
  // The default is half a second, for which a slow phone would show a skeleton instead of data that it has.
  defaultPendingMinMs: 0,
  defaultPendingComponent: Skeleton,
  defaultErrorComponent: ({ error, reset }) => (
    <Failed error={error} retry={isMissingScript(error) ? () => void reloadIfPossible() : reset} />
  ),
  defaultNotFoundComponent: () => (
    <Failed error={new Error('This page does not exist.')}>
      <GoTo to="/agents" label="agents" />
    </Failed>
  ),
});

let preloads = 0;
const { preloadRoute } = router;
router.preloadRoute = async (options) => {
  preloads++;
  try {
    return await preloadRoute(options);
  } finally {
    preloads--;
  }
};

/** Whether a route is loaded for a click that may come, and none for one that came. */
export function isOnlyPreloading(): boolean {
  return preloads > 0 && router.state.status !== 'pending';
}

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
