/** HTTP handlers for nodes: the view for every user, root's registry, and bootstrap tokens. */

import type { Handlers } from '../../server/call.ts';
import { asList, asShortList } from '../../server/list.ts';
import type { Bootstrap } from './bootstrap.ts';
import type { Measurements } from './measurements.ts';
import type { Repositories } from './repositories.ts';
import type { NodeRecord } from './rules.ts';
import type { Registry } from './service.ts';

type NodeOperations =
  | 'listNodes'
  | 'listRepositories'
  | 'listAgentNodes'
  | 'registerAgentNode'
  | 'measureNodes'
  | 'getAgentNode'
  | 'updateAgentNode'
  | 'deleteAgentNode'
  | 'getAgentNodeHealth'
  | 'getBootstrapToken'
  | 'rotateBootstrapToken';

/** `links`: whether the plane connects to nodes at all (`internal_grpc.enabled`). */
export function nodeHandlers({
  registry,
  bootstrap,
  repositories,
  measurements,
  links,
}: {
  registry: Registry;
  bootstrap: Bootstrap;
  repositories: Repositories;
  measurements: Measurements;
  links: boolean;
}): Pick<Handlers, NodeOperations> {
  const warnOfNoLinks = (warn: (message: string) => void) => {
    if (!links) warn('no node can join: set internal_grpc.enabled = true and restart the control plane');
  };
  return {
    listNodes: async ({ query }) => asList(query, await registry.summaries(query)),
    listRepositories: ({ caller, params, query }) =>
      repositories.list(caller, params.node_id, query.path ?? null),
    listAgentNodes: async ({ query }) => asList(query, await registry.list(query)),
    registerAgentNode: async ({ caller, body, idempotency_key, warn }) => {
      const node = await registry.register(caller, body, idempotency_key);
      warnOfRoot(node, warn);
      return { location: `/api/admin/agent-nodes/${node.id}`, body: node };
    },
    measureNodes: async ({ query }) => asShortList(query, await measurements.list()),
    getAgentNode: ({ params }) => registry.get(params.node_id),
    updateAgentNode: async ({ caller, params, body, warn }) => {
      const node = await registry.update(caller, params.node_id, body);
      warnOfRoot(node, warn);
      return node;
    },
    deleteAgentNode: async ({ caller, params: { node_id }, query }) => {
      if (query.forget) return { id: node_id, left_behind: await registry.forget(caller, node_id) };
      await registry.delete(caller, node_id);
      return undefined;
    },
    getAgentNodeHealth: ({ params }) => registry.health(params.node_id),
    getBootstrapToken: ({ caller, warn }) => {
      warnOfNoLinks(warn);
      return bootstrap.show(caller);
    },
    rotateBootstrapToken: ({ caller, warn }) => {
      warnOfNoLinks(warn);
      return bootstrap.rotate(caller);
    },
  };
}

function warnOfRoot(node: NodeRecord, warn: (message: string) => void): void {
  const { id, default_worktree_root, worktree_root_problem } = node;
  if (worktree_root_problem === null) return;
  warn(
    `agents cannot work below default_worktree_root ${default_worktree_root} of node ${id}: ${worktree_root_problem}`,
  );
}
