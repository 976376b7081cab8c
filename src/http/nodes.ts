/** Nodes over HTTP: what every user sees of them, root's registry, and the tokens that nodes join with. */
import type { Bootstrap } from '../services/nodes/bootstrap.ts';
import type { Registry } from '../services/nodes/registry.ts';
import type { Handlers } from './call.ts';
import { asList } from './list.ts';

type NodeOperations =
  | 'listNodes'
  | 'listAgentNodes'
  | 'registerAgentNode'
  | 'getAgentNode'
  | 'updateAgentNode'
  | 'deleteAgentNode'
  | 'getAgentNodeHealth'
  | 'getBootstrapToken'
  | 'rotateBootstrapToken';

export function nodeHandlers(registry: Registry, bootstrap: Bootstrap): Pick<Handlers, NodeOperations> {
  return {
    listNodes: async ({ query }) => asList(query, await registry.summaries(query)),
    listAgentNodes: async ({ query }) => asList(query, await registry.list(query)),
    registerAgentNode: async ({ caller, body }) => {
      const node = await registry.register(caller, body);
      return { location: `/api/admin/agent-nodes/${node.id}`, body: node };
    },
    getAgentNode: ({ params }) => registry.get(params.node_id),
    updateAgentNode: ({ caller, params, body }) => registry.update(caller, params.node_id, body),
    deleteAgentNode: async ({ caller, params }) => {
      await registry.delete(caller, params.node_id);
    },
    getAgentNodeHealth: ({ params }) => registry.health(params.node_id),
    getBootstrapToken: ({ caller }) => bootstrap.show(caller),
    rotateBootstrapToken: ({ caller }) => bootstrap.rotate(caller),
  };
}
