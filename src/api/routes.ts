/** The table of all routes. To add one, see `CONTRIBUTING.md#add-an-endpoint`. */
import { accountRoutes } from '../features/accounts/contract/accounts.ts';
import { adminRoutes } from '../features/accounts/contract/admin.ts';
import { agentRoutes } from '../features/agents/contract.ts';
import { clusterRoutes } from '../features/cluster/contract.ts';
import { conversationRoutes } from '../features/conversations/contract.ts';
import { elicitationRoutes } from '../features/elicitations/contract/elicitations.ts';
import { mailRoutes } from '../features/mailbox/contract.ts';
import { nodeRoutes } from '../features/nodes/contract.ts';
import { pushRoutes } from '../features/notifications/contract.ts';
import { passkeyRoutes } from '../features/passkeys/contract.ts';
import { presetRoutes } from '../features/presets/contract.ts';
import { reviewRoutes } from '../features/reviews/contract.ts';
import { runRoutes } from '../features/runs/contract.ts';
import { taskRoutes } from '../features/tasks/contract.ts';
import { teamRoutes } from '../features/teams/contract/teams.ts';
import { worktreeRoutes } from '../features/worktrees/contract.ts';
import { metaRoutes } from './meta.ts';
import type { Route } from './route.ts';

export const routes = {
  ...accountRoutes,
  ...passkeyRoutes,
  ...agentRoutes,
  ...worktreeRoutes,
  ...conversationRoutes,
  ...reviewRoutes,
  ...elicitationRoutes,
  ...taskRoutes,
  ...teamRoutes,
  ...runRoutes,
  ...mailRoutes,
  ...nodeRoutes,
  ...clusterRoutes,
  ...presetRoutes,
  ...pushRoutes,
  ...adminRoutes,
  ...metaRoutes,
} as const satisfies Record<string, Route>;

export type Routes = typeof routes;
/** The stable name of an operation; also its id in the API description. */
export type OperationId = keyof Routes;
export type RouteOf<Op extends OperationId> = Routes[Op];

export const operationIds = Object.keys(routes) as OperationId[];
