/** The agents that svc knows by name, and what a node has of them. */
import { z } from 'zod';
import { MAIN_NODE } from '../domain/node.ts';
import { permissionGuarantees, presetProtocols, signIns } from '../domain/preset.ts';
import { nodeId, queryFlag } from './fields.ts';
import { route } from './route.ts';

const presetRecord = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    protocol: z.enum(presetProtocols),
    command: z
      .string()
      .nullable()
      .meta({ description: '`argv` as one line; null where the command is yours to give.' }),
    argv: z.array(z.string()).nullable(),
    installed: z.boolean().nullable().meta({
      description:
        'Found on the PATH of agents there. Null: nothing to look for, or the node is too old to be asked.',
    }),
    path: z.string().nullable(),
    version: z
      .string()
      .nullable()
      .meta({ description: 'The first line of what the program says of itself.' }),
    signed_in: z.enum(signIns).meta({
      description:
        'By the traces that a login or a key leaves there; whether they are still good is not tried. A key in the `env` of an agent is not seen.',
    }),
    sign_in_hint: z.string().nullable(),
    install_hint: z.string().nullable(),
    permission: z.object({
      guarantee: z.enum(permissionGuarantees).meta({
        description:
          '`ask`: with `permission_mode: ask` it asks before it writes, runs or fetches. `none`: nothing is known that makes it ask.',
      }),
      note: z.string(),
    }),
    notes: z.array(z.string()),
  })
  .meta({ id: 'Preset' });

export const presetRoutes = {
  listPresets: route({
    method: 'GET',
    path: '/api/presets',
    action: 'presets.list',
    tag: 'Agents',
    summary: 'The agents that can be made by `preset`, and which of them a node has',
    description: 'What a node answered is kept for a minute.',
    query: z.object({
      node_id: nodeId.default(MAIN_NODE),
      refresh: queryFlag.optional().meta({ description: 'Ask the node again.' }),
    }),
    answers: { 200: z.array(presetRecord) },
    errors: ['nodeNotFound', 'nodeUnreachable', 'internalGrpcUnavailable'],
  }),
};
