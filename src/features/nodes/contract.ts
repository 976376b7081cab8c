/** API of the nodes that run agents: the view for every user, and root's registry. */
import { z } from 'zod';
import { bounded, list, name, nodeId, pageQuery, queryFlag, shortList, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits } from '../../base/limits.ts';
import { leftBehindRecord } from '../agents/contract.ts';
import { healthCheckNames, healthStatuses, nodeStatuses } from './rules.ts';

export const nodeSummary = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(nodeStatuses),
    has_default_root: z
      .boolean()
      .meta({ description: 'Whether it can make a worktree without a given folder.' }),
    folders: z
      .object({
        worktree_root: z.string(),
        safe_paths: z.array(z.string()),
        repo_roots: z.array(z.string()),
      })
      .nullable()
      .meta({ description: 'Folders in which agents may work; null if only the node knows them.' }),
    actor_calls: z.boolean().meta({
      description:
        'Whether agents there can use `svc actor` (`internal_grpc.enabled`). If not, members of a team cannot write to each other, and leaders cannot add steps.',
    }),
  })
  .meta({ id: 'NodeSummary' });

export const repositoryRecord = z
  .object({
    path: z.string().meta({ description: 'Absolute; a `worktree_repo` for new agents.' }),
    name: z.string().meta({ description: 'The last segment of the path.' }),
    branch: z.string().nullable().meta({ description: 'The current branch; null if HEAD is detached.' }),
    dirty: z.boolean().nullable().meta({
      description:
        'Whether it has uncommitted changes or new files; null if this could not be found out in time.',
    }),
    last_used_at: time.nullable().meta({
      description: 'When an agent that the caller may see was last created or started in it.',
    }),
  })
  .meta({ id: 'Repository' });

export const repositoryList = z
  .object({
    roots: z.array(z.string()).meta({ description: 'The folders that were searched.' }),
    repositories: z.array(repositoryRecord),
    truncated: z.boolean().meta({ description: 'There may be more repositories.' }),
  })
  .meta({ id: 'RepositoryList' });

export const nodeRecord = z
  .object({
    id: z.string(),
    name: z.string(),
    grpc_target: z.string().meta({ description: '`https://<host>:<port>`' }),
    tls_server_name: z.string().nullable(),
    default_worktree_root: z.string().nullable(),
    worktree_root_problem: z.string().nullable().meta({
      description:
        'Why no worktree can be made below that root; null if one can, or if this is not known yet.',
    }),
    unrecovered_sessions: z.int().meta({
      description:
        'Number of sessions on it that the plane does not know and has not recovered, because too many agents were recovered from this node. They keep running there. Delete some of those agents, then let the node connect again.',
    }),
    status: z.enum(nodeStatuses).meta({
      description: '`suspect` after 15 s of silence, `unreachable` after 45 s; neither affects its agents.',
    }),
    version: z.string().nullable().meta({ description: 'Version of svc on the node, as last reported.' }),
    agents: z.int().meta({ description: 'Number of agents bound to it, in any status.' }),
    last_seen_at: time.nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'AgentNode' });

const disk = z.object({
  path: z.string(),
  free_bytes: z.number(),
  total_bytes: z.number(),
  starts_allowed: z.boolean(),
});

export const nodeMeasurement = z
  .object({
    node_id: z.string(),
    latencies_ms: z.array(z.number()).meta({
      description:
        "Round trips of the link's heartbeats in the last five minutes, oldest first. Empty for the main node, and without a link.",
    }),
    disk: disk.nullable().meta({
      description: 'The disk of its data directory; null if the node does not answer, or does not report it.',
    }),
  })
  .meta({ id: 'NodeMeasurement' });

export const healthReport = z
  .object({
    node_id: z.string(),
    status: z.enum(healthStatuses),
    latency_ms: z.number().nullable(),
    version: z.string().nullable(),
    uptime_seconds: z.number().nullable(),
    agents: z.int().nullable().meta({ description: 'Number of agents that run there now.' }),
    clock_skew_ms: z.int().nullable().meta({ description: "The node's clock minus the plane's." }),
    disk: disk.nullable(),
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
      .meta({ description: 'The steps in order, up to the first failure.' }),
  })
  .meta({ id: 'NodeHealth' });

const bootstrapToken = z
  .object({
    token: z.string(),
    toml: z.string().meta({ description: "A node's configuration, complete except for `server.node_id`." }),
    expires_at: time.nullable().meta({ description: 'Null for the configured token.' }),
  })
  .meta({ id: 'BootstrapToken' });

const HOST_NAME = /^[0-9A-Za-z_](?:[0-9A-Za-z._-]*[0-9A-Za-z_])?$/;
const serverName = bounded(limits.host_name_chars_max)
  .regex(HOST_NAME, { error: 'must be a host name' })
  .nullable()
  .meta({ description: 'The name that its certificate must contain; null: the host of `grpc_target`.' });
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
    summary: 'List the nodes that agents can run on',
    description:
      'The main node first, unless `server.local_node` is false; then the registered nodes, newest first.',
    query: z.object(pageQuery),
    answers: { 200: list(nodeSummary) },
  }),
  listRepositories: route({
    method: 'GET',
    path: '/api/nodes/{node_id}/repositories',
    action: 'repositories.list',
    tag: 'Nodes',
    summary: 'List the git repositories that agents can use on a node',
    description: `The repositories at and one level below each folder in the \`safe_paths\` and \`worktree.repo_roots\` of the node, and deeper ones that agents have used. Last used first, then by name, at most ${limits.found_repositories_max}. Links are not followed. Hidden folders, linked worktrees, folders with worktrees of agents, and repositories without a commit are omitted. The search takes a few seconds at most.`,
    query: z.object({
      path: bounded(limits.path_chars_max).optional().meta({
        description:
          'Also check whether a worktree can be made from the repository at this path. If not, the response is the error of `POST /api/agents` for this `worktree_repo`.',
      }),
    }),
    answers: { 200: repositoryList },
    errors: [
      'repoNotSafe',
      'nodeNotFound',
      'noLocalNode',
      'nodeUnreachable',
      'nodeTooOld',
      'internalGrpcUnavailable',
      'tooManyFolderJobs',
    ],
  }),
  listAgentNodes: route({
    method: 'GET',
    path: '/api/admin/agent-nodes',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'List the registered nodes, newest first',
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
      'The plane connects to it at once and keeps trying. If the node does not allow the `default_worktree_root`, the record says so, and if the node answers in time, the header `X-Warning` too. Link-local, metadata, multicast and unspecified addresses are rejected; private and loopback addresses are allowed.',
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
  measureNodes: route({
    method: 'GET',
    path: '/api/admin/node-measurements',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Measure the latency and the free disk space of all nodes',
    description: 'The main node is first. Nodes that do not answer are included, without their disk.',
    query: z.object(pageQuery),
    answers: { 200: shortList(nodeMeasurement) },
  }),
  getAgentNode: route({
    method: 'GET',
    path: '/api/admin/agent-nodes/{node_id}',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Get a registered node',
    answers: { 200: nodeRecord },
    errors: ['nodeNotFound'],
  }),
  updateAgentNode: route({
    method: 'PUT',
    path: '/api/admin/agent-nodes/{node_id}',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Update a registered node',
    description:
      'Only the given fields change; `id` is ignored, null clears an optional field. A new target or TLS name opens a new connection and does not affect agents. If the node does not allow the `default_worktree_root`, the header `X-Warning` says so.',
    body: z.object({
      name: name.optional(),
      grpc_target: target.optional(),
      tls_server_name: serverName.optional(),
      default_worktree_root: root.optional(),
      accept_disk: z
        .boolean()
        .optional()
        .describe(
          'True: accept the disk of the node that connects next, for example after its machine was reinstalled. Agents whose sessions are not on it end as `session_lost`',
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
      'Rejected while any agent is bound to it, in any status. With `forget`, a node whose machine is gone is removed with the records of its agents; the response lists what they leave behind. If the node comes back, their sessions are ended.',
    query: z.object({
      forget: queryFlag
        .optional()
        .meta({ description: 'Also delete the records of its agents. The node must be unreachable.' }),
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
    summary: 'Get the bootstrap token',
    description:
      'The configured token, valid for any number of nodes. Without one, a token valid for one node and one hour; a new one is created when the last one is used or about to expire. If no node can join, because `internal_grpc.enabled` is not set, the header `X-Warning` says so.',
    answers: { 200: bootstrapToken },
  }),
  rotateBootstrapToken: route({
    method: 'POST',
    path: '/api/admin/bootstrap-token/rotate',
    action: 'nodes.manage',
    tag: 'Nodes',
    summary: 'Create a new bootstrap token and revoke earlier ones',
    unknown_fields: 'refused',
    answers: { 200: bootstrapToken },
    errors: ['bootstrapConfigured'],
    idempotent: true,
  }),
};
