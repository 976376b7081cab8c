/** The route that lists presets, with what is installed on a node. */
import { z } from 'zod';
import { NODE_DEFAULT, nodeId, pageQuery, queryFlag, shortList } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { permissionGuarantees, presetProtocols, signIns } from './rules/preset.ts';

const presetRecord = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    protocol: z.enum(presetProtocols),
    command: z
      .string()
      .nullable()
      .meta({ description: '`argv` as one line; null if you provide the command.' }),
    argv: z.array(z.string()).nullable(),
    installed: z.boolean().nullable().meta({
      description:
        'Whether the program is on the PATH of agents there. Null: there is no program to look for, or the node is too old to tell.',
    }),
    path: z.string().nullable(),
    version: z
      .string()
      .nullable()
      .meta({ description: 'The first line that the program prints as its version.' }),
    signed_in: z.enum(signIns).meta({
      description:
        'Whether there are files or variables of a login or key; svc does not test whether they are still valid. Does not consider keys in the `env` of an agent.',
    }),
    sign_in_hint: z.string().nullable(),
    install_hint: z.string().nullable(),
    permission: z.object({
      guarantee: z.enum(permissionGuarantees).meta({
        description:
          '`ask`: with `permission_mode: ask` it asks before it writes, runs or fetches. `none`: there is no known way to make it ask.',
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
    summary: 'List presets, and which of them a node has',
    description: 'The result of a node is cached for a minute.',
    query: z.object({
      ...pageQuery,
      node_id: nodeId.optional().meta({ description: NODE_DEFAULT }),
      refresh: queryFlag.optional().meta({ description: 'Ask the node again.' }),
    }),
    answers: { 200: shortList(presetRecord) },
    errors: ['nodeNotFound', 'noLocalNode', 'nodeUnreachable', 'internalGrpcUnavailable'],
  }),
};
