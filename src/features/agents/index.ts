/** Agents: their records and sessions, on the main node and on the nodes that the `nodes` feature links. */
import { MAIN_NODE, type Node } from '../../core/node.ts';
import { Ingest } from '../../events/ingest/ingest.ts';
import type { Core, Feature } from '../feature.ts';
import { ActivityFeed } from './activity.ts';
import { type AdoptingSink, nodeSink } from './adoption.ts';
import { type AgentCore, agentCore } from './core.ts';
import { Forgetting } from './forgetting.ts';
import { agentHandlers } from './http/agents.ts';
import { logHandlers } from './http/log.ts';
import { seenHandlers } from './http/seen.ts';
import { Lifecycle } from './lifecycle.ts';
import { PendingRequests } from './pending.ts';
import { Reconciler } from './reconciler.ts';
import { capRestarts, restartFacts, restartTimers } from './restarts.ts';
import type { Secrets } from './secrets.ts';
import { SeenMarks } from './seen.ts';
import { Agents } from './service.ts';
import { SessionDispatch } from './session-dispatch.ts';
import { stopAllAgents } from './stopping-all.ts';
import { worktreeIntents } from './unused-worktrees.ts';
import { AgentWaits } from './waiting.ts';

/** The readers of one node's sessions. */
export interface SessionReaders {
  ingest: Ingest;
  sink: AdoptingSink;
}

export interface AgentsFeature extends Feature {
  /** For the features that work with agents. */
  core: AgentCore;
  agents: Agents;
  lifecycle: Lifecycle;
  forgetting: Forgetting;
  /** Call it once for each node. */
  readSessionsOf(node: Node): SessionReaders;
}

export function openAgents(core: Core, main: Node, secrets: Secrets): AgentsFeature {
  const own = agentCore(core, secrets);
  const reconciler = new Reconciler(own);
  const createSessionReader = (node: Node) => {
    const ingest = new Ingest({
      node,
      store: core.store,
      clock: core.clock,
      log: core.log,
      load: (session_id) => reconciler.load(session_id, node.id),
      handleFact: (session_id, fact) => reconciler.reconcile(session_id, fact),
      frames: (batch) => core.session.onFrames(batch),
      rebase: (session_id, loss) => reconciler.rebase(session_id, loss),
    });
    return { ingest, sink: nodeSink(own, reconciler, node.id, ingest) };
  };
  const { ingest, sink } = createSessionReader(main);
  const ingestOf = (id: string) => (id === MAIN_NODE ? ingest : core.nodes.remoteIngest(id));
  const lifecycle = new Lifecycle(own);
  const dispatch = new SessionDispatch(own, lifecycle, reconciler, ingestOf);
  const pending = new PendingRequests(own, lifecycle);
  const forgetting = new Forgetting(own, reconciler, ingestOf);
  const agents = new Agents(own, lifecycle, pending);
  const activity = new ActivityFeed(core);
  return {
    name: 'agents',
    core: own,
    ...{ agents, lifecycle, forgetting, readSessionsOf: createSessionReader },
    routes: {
      ...agentHandlers(agents, new AgentWaits(agents, core), forgetting, () => core.nodes.main_folders()),
      stopAllAgents: ({ caller, body }) => stopAllAgents(own, agents, caller, body.grace_seconds * 1000),
      ...seenHandlers(new SeenMarks(own)),
      ...logHandlers({ agents, log: core.events }),
    },
    resources: {
      agent_id: (caller, action, { agent_id }) =>
        core.store.read((reader) => own.records.find(reader, caller, action, agent_id!)),
    },
    facts: { 'agent-restarts': restartFacts(own) },
    timers: restartTimers(own, lifecycle),
    intents: {
      ...dispatch.intentHandlers(),
      ...pending.intentHandlers(),
      ...forgetting.intentHandlers(),
      ...worktreeIntents(own),
    },
    sweep: () => capRestarts(own),
    start: async () => {
      await pending.resumeRestarts();
      await main.attach(sink);
    },
    close: async () => {
      activity.close();
      own.summaries.close();
      await main.detach();
      await ingest.close();
    },
  };
}
