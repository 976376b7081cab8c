/** Nodes: the registry of remote nodes, the links to them, and the bootstrap tokens with which they join. */

import { MAIN_NODE } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import type { PlaneTrust } from '../../link/trust/plane-trust.ts';
import type { ActorCall } from '../actors/rules/actor.ts';
import type { AgentsFeature } from '../agents/index.ts';
import { liveSessions } from '../agents/queries/agents.ts';
import { markStale } from '../agents/staleness.ts';
import type { Core, Feature } from '../feature.ts';
import { Bootstrap } from './bootstrap.ts';
import { nodeHandlers } from './http.ts';
import { Measurements } from './measurements.ts';
import { isNode } from './queries.ts';
import { Repositories } from './repositories.ts';
import { Registry } from './service.ts';

export interface NodesNeeds {
  agents: AgentsFeature;
  /** Null while the listener is disabled. Nodes are then listed, but never connected. */
  internal_grpc: {
    trust: PlaneTrust;
    /** Handles the calls of agents on nodes. */
    actors: { call(call: ActorCall): Promise<unknown> };
  } | null;
}

/** Loaded on demand, because most planes have no remote nodes. */
export const loadLinks = () => import('./links.ts');

export async function openNodes(core: Core, { agents, internal_grpc }: NodesNeeds): Promise<Feature> {
  const { config, store, clock, log, audit, feed, key, idempotency, outbox, plane_id, incarnation } = core;
  const configured = config.get('internal_grpc.bootstrap.token');
  const bootstrap = new Bootstrap({ store, clock, audit, key, configured });
  const has_mode = config.entry('internal_grpc.security.mode').origin !== 'default';
  const links =
    internal_grpc &&
    new (await loadLinks()).NodeLinks({
      ...{ trust: internal_grpc.trust, bootstrap, clock, log },
      plane: { plane_id, incarnation },
      tokens_first: has_mode && internal_grpc.trust.mode !== 'mtls',
      readers: agents.readSessionsOf,
      upcall: (call) => internal_grpc.actors.call(call),
      hasLive: (node_id) => store.read(async (reader) => (await liveSessions(reader, node_id)).length > 0),
      onUp: (node_id) => outbox.retryNow(node_id),
      onStale: (node_id, since_ms) => markStale(agents.core, node_id, since_ms),
    });
  const registry = new Registry({
    ...{ store, clock, audit, feed, idempotency, links },
    folders: () => core.nodes.main_folders(),
    forgetAgents: (caller, node_id) => agents.forgetting.forgetAll(caller, node_id),
  });
  links?.reportTo(registry);
  const repositories = new Repositories({ store, nodes: core.nodes });
  const measurements = new Measurements({ store, nodes: core.nodes, links, log });
  return {
    name: 'nodes',
    routes: nodeHandlers({ registry, bootstrap, repositories, measurements, links: links !== null }),
    resources: {
      node_id: async (_caller, _action, { node_id }) => {
        if (node_id !== MAIN_NODE && !registry.find(node_id!)) throw problems.nodeNotFound();
      },
    },
    remote_nodes: {
      ids: () => registry.ids(),
      find: (id) => {
        const linked = links?.node(id) ?? null;
        if (linked === null && registry.find(id)) throw problems.internalGrpcUnavailable();
        return linked;
      },
      isRegistered: isNode,
      ingest: (id) => links?.ingest(id) ?? null,
    },
    start: () => registry.open(),
    close: async () => links?.closeAll(),
  };
}
