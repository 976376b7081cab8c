/** Agents over HTTP: parse, call, shape the answer. */
import { limits } from '../base/limits.ts';
import { MAIN_NODE } from '../domain/node.ts';
import type { NodeFolders } from '../domain/node-record.ts';
import { Problem, problems } from '../domain/problem.ts';
import type { Agents } from '../services/agents/agents.ts';
import type { Forgetting } from '../services/agents/forgetting.ts';
import type { AgentWaits } from '../services/agents/waiting.ts';
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

/** `folders`: where agents of the Main Node may work. */
export function agentHandlers(
  agents: Agents,
  waits: Pick<AgentWaits, 'until'>,
  forgetting: Forgetting,
  folders: () => NodeFolders,
): Pick<Handlers, AgentOperations> {
  return {
    listAgents: async (call) => {
      const { caller, query } = call;
      const page = await agents.list(caller, query, query);
      const list = asList(query, page);
      if (Array.isArray(list) && page.next_cursor !== undefined)
        call.setHeader('x-next-cursor', page.next_cursor);
      return list;
    },
    createAgent: async (call) => {
      const { caller, body, query, idempotency_key } = call;
      const options = { replace: query.replace ?? false };
      const agent = await agents.create(caller, body, idempotency_key, options).catch((error: unknown) => {
        throw body.node_id === MAIN_NODE ? withAllowedPaths(error, folders()) : error;
      });
      const namesakes = await agents.namesakes(agent);
      if (namesakes.length > 0) call.setHeader('x-warning', nameWarning(namesakes));
      return { location: `/api/agents/${agent.id}`, body: agent };
    },
    getAgent: ({ caller, params, query, signal }) => {
      const { wait, until } = query;
      if (wait === undefined || until === undefined) return agents.get(caller, params.agent_id);
      return waits.until(caller, params.agent_id, until, wait * 1000, signal);
    },
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

/** A refused path with the paths that are allowed. Every user may know them (`GET /api/nodes`). */
function withAllowedPaths(error: unknown, { safe_paths, repo_roots }: NodeFolders): unknown {
  if (!(error instanceof Problem)) return error;
  const allowed = new Map([
    [problems.workdirNotSafe().code, safe_paths],
    [problems.repoNotSafe().code, [...safe_paths, ...repo_roots]],
  ]).get(error.code);
  if (allowed === undefined) return error;
  return new Problem(error.kind, error.code, error.message, { allowed_paths: [...new Set(allowed)] });
}

function nameWarning(ids: readonly string[]): string {
  const shown = ids.slice(0, limits.warned_ids_max);
  const more = ids.length - shown.length;
  return `the name is used by other agents of this owner: ${shown.join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}
