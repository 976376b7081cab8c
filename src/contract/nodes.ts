/** The places that execute agents: as every user sees them, and the registry that root keeps. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { healthCheckNames, healthStatuses, nodeStatuses } from '../domain/node-record.ts';
import { leftBehindRecord } from './agents.ts';
import { bounded, list, name, nodeId, pageQuery, queryFlag, time } from './fields.ts';
import { route } from './route.ts';

export const nodeSummary = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(nodeStatuses),
    has_default_root: z.boolean().meta({ description: 'Can make a worktree without being told where.' }),
    folders: z
      .object({
        worktree_root: z.string(),
        safe_paths: z.array(z.string()),
        repo_roots: z.array(z.string()),
      })
      .nullable()
      .meta({ description: 'Where agents may work; null where only the node itself knows it.' }),
  })
  .meta({ id: 'NodeSummary' });

export const nodeRecord = z
  .object({
    id: z.string(),
    name: z.string(),
    grpc_target: z.string().meta({ description: '`https://<host>:<port>`' }),
    tls_server_name: z.string().nullable(),
    default_worktree_root: z.string().nullable(),
    worktree_root_problem: z.string().nullable().meta({
      description:
        'Why no worktree can be made below that root; null when one can, or when it is not known yet.',
    }),
    status: z.enum(nodeStatuses).meta({
      description: '`suspect` after 15 s of silence, `unreachable` after 45 s; agents are not touched by it.',
    }),
    version: z.string().nullable().meta({ description: 'Of the svc there, when it was last heard.' }),
    agents: z.int().meta({ description: 'Agents bound to it, whatever their status.' }),
    last_seen_at: time.nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'AgentNode' });

export const healthReport = z
  .object({
    node_id: z.string(),
    status: z.enum(healthStatuses),
    latency_ms: z.number().nullable(),
    version: z.string().nullable(),
    uptime_seconds: z.number().nullable(),
    agents: z.int().nullable().meta({ description: 'Agents that run there now.' }),
    clock_skew_ms: z.int().nullable().meta({ description: "The node's clock minus the plane's." }),
    disk: z
      .object({
        path: z.string(),
        free_bytes: z.number(),
        total_bytes: z.number(),
        starts_allowed: z.boolean(),
      })
      .nullable(),
    checks: z
      .array(
        z.object({
          name: z.enum(healthCheckNames),
          ok: z.boolean(),
          ms: z.number(),
          error: z.string().optional(),
          hint: z.string().optional(),
        }),
      )
      .meta({ description: 'Step by step; the first that fails is the last.' }),
  })
  .meta({ id: 'NodeHealth' });

const bootstrapToken = z
  .object({
    token: z.string(),
    toml: z.string().meta({ description: "A node's configuration, ready but for its `server.node_id`." }),
    expires_at: time.nullable().meta({ description: 'Null for the token of the configuration.' }),
  })
  .meta({ id: 'BootstrapToken' });

const HOST_NAME = /^[0-9A-Za-z_](?:[0-9A-Za-z._-]*[0-9A-Za-z_])?$/;
const serverName = bounded(limits.host_name_chars_max)
  .regex(HOST_NAME, { error: 'must be a host name' })
  .nullable()
  .meta({ description: 'The name that its certificate must be for; null: the host of `grpc_target`.' });
const root = bounded(limits.path_chars_max)
  .refine((path) => path.startsWith('/'), { error: 'must be an absolute path' })
  .nullable()
  .meta({ description: "Base of derived workdirs there; null: the node's own `worktree.default_root`." });
const target = bounded(limits.path_chars_max);

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
  listAgentNodes: route({
    method: 'GET',
    path: '/api/admin/agent-nodes',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'The registered nodes, newest first',
    query: z.object(pageQuery),
    answers: { 200: list(nodeRecord) },
  }),
  registerAgentNode: route({
    method: 'POST',
    path: '/api/admin/agent-nodes',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Register a node',
    description:
      'The plane connects to it at once and goes on trying. A `default_worktree_root` that the node does not allow is named in the header `X-Warning` where the node says so at once, and in the record from then on. Link-local, metadata, multicast and unspecified addresses are refused; private and loopback ones are not.',
    body: z.object({
      id: nodeId.meta({ description: "Must equal the node's own `server.node_id`." }),
      name,
      grpc_target: target,
      tls_server_name: serverName.default(null),
      default_worktree_root: root.default(null),
    }),
    unknown_fields: 'refused',
    answers: { 201: nodeRecord },
    errors: [
      'nodeIdReserved',
      'grpcTargetInvalid',
      'grpcTargetRefused',
      'nodeExists',
      'internalGrpcUnavailable',
    ],
    idempotent: true,
  }),
  getAgentNode: route({
    method: 'GET',
    path: '/api/admin/agent-nodes/{node_id}',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'One registered node',
    answers: { 200: nodeRecord },
    errors: ['nodeNotFound'],
  }),
  updateAgentNode: route({
    method: 'PUT',
    path: '/api/admin/agent-nodes/{node_id}',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Change a registered node',
    description:
      'Only the given fields change; `id` is ignored, null clears an optional field. A new target or TLS name makes a new connection and touches no agent. A `default_worktree_root` that the node does not allow is named in the header `X-Warning`.',
    body: z.object({
      name: name.optional(),
      grpc_target: target.optional(),
      tls_server_name: serverName.optional(),
      default_worktree_root: root.optional(),
      accept_disk: z
        .boolean()
        .optional()
        .describe(
          'True: the disk that answers next is the node’s, for example after its machine was made anew. Agents whose sessions it lacks end as `session_lost`',
        ),
    }),
    unknown_fields: 'ignored',
    answers: { 200: nodeRecord },
    errors: ['nodeNotFound', 'grpcTargetInvalid', 'grpcTargetRefused', 'nodeExists'],
  }),
  deleteAgentNode: route({
    method: 'DELETE',
    path: '/api/admin/agent-nodes/{node_id}',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Delete a node',
    description:
      'Refused while any agent is bound to it, whatever its status. With `forget` a node whose machine is gone is removed with the records of its agents; the answer lists what they leave there. Sessions of them are ended if the node comes back.',
    query: z.object({
      forget: queryFlag.optional().meta({ description: 'With its agents. The node must be out of reach.' }),
    }),
    answers: {
      204: null,
      200: z
        .object({ id: z.string(), left_behind: z.array(leftBehindRecord) })
        .meta({ id: 'AgentNodeForgotten' }),
    },
    errors: ['nodeNotFound', 'nodeHasAgents', 'nodeAnswers'],
  }),
  getAgentNodeHealth: route({
    method: 'GET',
    path: '/api/admin/agent-nodes/{node_id}/health',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Test the connection to a node, step by step',
    answers: { 200: healthReport },
    errors: ['nodeNotFound', 'internalGrpcUnavailable'],
  }),
  getBootstrapToken: route({
    method: 'GET',
    path: '/api/admin/bootstrap-token',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'The token that a node joins with',
    description:
      'The one of the configuration, for any number of nodes; else one for a single node and an hour: a fresh one when the last is spent or near its end.',
    answers: { 200: bootstrapToken },
    secret_answer: true,
  }),
  rotateBootstrapToken: route({
    method: 'POST',
    path: '/api/admin/bootstrap-token/rotate',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'A fresh bootstrap token; those before it end',
    unknown_fields: 'refused',
    answers: { 200: bootstrapToken },
    errors: ['bootstrapConfigured'],
    secret_answer: true,
  }),
};
