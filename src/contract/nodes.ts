/** The places that execute agents, as every user sees them. */
import { z } from 'zod';
import { list, pageQuery } from './fields.ts';
import { route } from './route.ts';

const nodeSummary = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(['connecting', 'connected', 'suspect', 'unreachable']),
    has_default_root: z.boolean().meta({ description: 'Can make a worktree without being told where.' }),
  })
  .meta({ id: 'NodeSummary' });

export const nodeRoutes = {
  listNodes: route({
    method: 'GET',
    path: '/api/nodes',
    action: 'nodes.list',
    tag: 'Nodes',
    summary: 'The nodes that agents can run on, the Main Node included',
    query: z.object(pageQuery),
    answers: { 200: list(nodeSummary) },
  }),
};
