/** Agents over HTTP: parse, call, shape the answer. */
import type { Agents } from '../services/agents/agents.ts';
import type { Forgetting } from '../services/agents/forgetting.ts';
import type { Handlers } from './call.ts';
import { asList } from './list.ts';

type AgentOperations =
  | 'listAgents'
  | 'createAgent'
  | 'getAgent'
  | 'updateAgent'
  | 'deleteAgent'
  | 'startAgent'
  | 'stopAgent'
  | 'restartAgent'
  | 'withdrawPending'
  | 'sendInput'
  | 'listSessions'
  | 'getChanges'
  | 'getChange'
  | 'findFiles';

export function agentHandlers(agents: Agents, forgetting: Forgetting): Pick<Handlers, AgentOperations> {
  return {
    listAgents: async ({ caller, query }) => asList(query, await agents.list(caller, query, query)),
    createAgent: async ({ caller, body, idempotency_key }) => {
      const agent = await agents.create(caller, body, idempotency_key);
      return { location: `/api/agents/${agent.id}`, body: agent };
    },
    getAgent: ({ caller, params }) => agents.get(caller, params.agent_id),
    updateAgent: ({ caller, params, body }) => agents.update(caller, params.agent_id, body),
    deleteAgent: async ({ caller, params, query }) => {
      if (query.forget) {
        return { id: params.agent_id, left_behind: await forgetting.forget(caller, params.agent_id) };
      }
      const { worktree_kept } = await agents.delete(caller, params.agent_id, {
        force: query.force ?? false,
        delete_worktree: query.delete_worktree ?? false,
      });
      return worktree_kept ? { id: params.agent_id, worktree_kept } : undefined;
    },
    startAgent: ({ caller, params, idempotency_key }) =>
      agents.start(caller, params.agent_id, idempotency_key),
    stopAgent: ({ caller, params, body }) => agents.stop(caller, params.agent_id, body.grace_seconds * 1000),
    restartAgent: ({ caller, params, body, idempotency_key }) =>
      agents.restart(caller, params.agent_id, body.grace_seconds * 1000, idempotency_key),
    withdrawPending: async ({ caller, params }) => {
      await agents.withdraw(caller, params.agent_id);
    },
    sendInput: ({ caller, params, body, idempotency_key }) =>
      agents.input(caller, params.agent_id, body.data, body.eof, idempotency_key),
    listSessions: async ({ caller, params, query }) =>
      asList(query, await agents.sessions(caller, params.agent_id, query)),
    getChanges: ({ caller, params }) => agents.changes(caller, params.agent_id),
    getChange: ({ caller, params }) => agents.change(caller, params.agent_id, params.path),
    findFiles: ({ caller, params, query }) => agents.files(caller, params.agent_id, query.q ?? ''),
  };
}
