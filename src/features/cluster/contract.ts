/** The route that lists the control planes of a database. */
import { z } from 'zod';
import { pageQuery, shortList, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { planeStates } from './rules.ts';

const planeRecord = z
  .object({
    id: z.string().meta({ description: 'Id of this run of the control plane.' }),
    name: z.string(),
    state: z.enum(planeStates).meta({
      description:
        '`active`: it serves all requests and is linked to the nodes. `standby`: it forwards requests, and takes over when needed. `silent`: it was replaced, or has sent no heartbeat for 10 seconds. It is listed for an hour, unless it was started again.',
    }),
    version: z.string(),
    address: z.string().nullable().meta({
      description: 'Where the active control plane accepts forwarded requests (`host:port`).',
    }),
    started_at: time,
    last_seen_at: time,
  })
  .meta({ id: 'ControlPlane' });

export const clusterRoutes = {
  listPlanes: route({
    method: 'GET',
    path: '/api/admin/planes',
    action: 'cluster.read',
    tag: 'Administration',
    summary: 'List the control planes that share the database',
    description:
      'Times are those of the database. Empty if this control plane does not share its database (`cluster.listen`).',
    query: z.object(pageQuery),
    answers: { 200: shortList(planeRecord) },
  }),
};
