/** Every route of the service, joined. To add one, see `docs/adding-an-endpoint.md`. */
import { accountRoutes } from './accounts.ts';
import { adminRoutes } from './admin.ts';
import { agentRoutes } from './agents.ts';
import { conversationRoutes } from './conversations.ts';
import { mailRoutes } from './mail.ts';
import { metaRoutes } from './meta.ts';
import { nodeRoutes } from './nodes.ts';
import { passkeyRoutes } from './passkeys.ts';
import { presetRoutes } from './presets.ts';
import { pushRoutes } from './push.ts';
import { reviewRoutes } from './reviews.ts';
import type { Route } from './route.ts';
import { runRoutes } from './runs.ts';
import { taskRoutes } from './tasks.ts';
import { teamRoutes } from './teams.ts';

export const routes = {
  ...accountRoutes,
  ...passkeyRoutes,
  ...agentRoutes,
  ...conversationRoutes,
  ...reviewRoutes,
  ...taskRoutes,
  ...teamRoutes,
  ...runRoutes,
  ...mailRoutes,
  ...nodeRoutes,
  ...presetRoutes,
  ...pushRoutes,
  ...adminRoutes,
  ...metaRoutes,
} as const satisfies Record<string, Route>;

export type Routes = typeof routes;
/** The stable name of an operation, also in the API description. */
export type OperationId = keyof Routes;
export type RouteOf<Op extends OperationId> = Routes[Op];

export const operationIds = Object.keys(routes) as OperationId[];
