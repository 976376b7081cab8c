/** HTTP handlers for agents: parse, call, shape the response. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FairQueue } from '../../../base/fair-queue.ts';
import { limits as sharedLimits } from '../../../base/limits.ts';
import { MAIN_NODE } from '../../../core/node.ts';
import { problems, withAllowedPaths } from '../../../core/problem.ts';
import type { Call, Handlers } from '../../../server/call.ts';
import { asCappedList, asList } from '../../../server/list.ts';
import type { NodeFolders } from '../../nodes/rules.ts';
import type { Forgetting } from '../forgetting.ts';
import { limits } from '../limits.ts';
import type { Agents } from '../service.ts';
import type { AgentWaits } from '../waiting.ts';

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

/** `folders`: folders in which agents of the main node may work; null if none run there. `patch_send_ms`: time limit for sending a patch. */
export function agentHandlers(
  agents: Agents,
  waits: Pick<AgentWaits, 'until'>,
  forgetting: Forgetting,
  folders: () => NodeFolders | null,
  { patch_send_ms = limits.patch_send_ms as number } = {},
): Pick<Handlers, AgentOperations> {
  // A patch is in memory until its last byte is sent. The queue is fair, so slow clients do not block those of other users.
  const sending = new FairQueue(limits.patches_sent, problems.tooManyPatches);
  return {
    listAgents: async (call) => {
      const { caller, query } = call;
      return asCappedList(call, await agents.list(caller, query, query));
    },
    createAgent: async (call) => {
      const { caller, body, query, idempotency_key } = call;
      const options = { replace: query.replace ?? false };
      const agent = await agents.create(caller, body, idempotency_key, options).catch((error: unknown) => {
        const main_folders = (body.node_id ?? MAIN_NODE) === MAIN_NODE ? folders() : null;
        throw main_folders === null
          ? error
          : withAllowedPaths(error, main_folders, { workdir: body.workdir, repo: body.worktree_repo });
      });
      const namesakes = await agents.namesakes(caller, agent, limits.warned_ids_max);
      if (namesakes.count > 0) call.setHeader('x-warning', nameWarning(namesakes));
      return { location: `/api/agents/${agent.id}`, body: agent };
    },
    getAgent: (call) => {
      const { caller, params } = call;
      const { wait, until } = call.query;
      if (wait === undefined || until === undefined) return agents.get(caller, params.agent_id);
      // Only a wait needs the signal, which is created on first use.
      return waits.until(caller, params.agent_id, until, wait * 1000, call.signal);
    },
    updateAgent: ({ caller, params, body }) => agents.update(caller, params.agent_id, body),
    deleteAgent: async ({ caller, params, query }) => {
      const { agent_id: id } = params;
      const { force = false, delete_worktree = false, forget = false, dry_run = false } = query;
      if (forget) return { id, left_behind: await forgetting.forget(caller, id, { dry_run }) };
      if (dry_run) return { id, ...(await agents.previewDeletion(caller, id, { force, delete_worktree })) };
      const options = { force, delete_worktree };
      const { worktree_kept, branch_kept, leftovers } = await agents.delete(caller, id, options);
      if (!worktree_kept && !branch_kept && leftovers.length === 0) return undefined;
      return {
        id,
        ...(worktree_kept && { worktree_kept }),
        ...(branch_kept && { branch_kept }),
        ...(leftovers.length > 0 && { leftovers }),
      };
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
    getChanges: (call) =>
      call.also === null
        ? agents.changes(call.caller, call.params.agent_id)
        : sending.run({ owner: call.caller.user_id, resource: call.caller.user_id }, () =>
            sendPatch(agents, call, patch_send_ms),
          ),
    getChange: ({ caller, params, query }) => agents.change(caller, params.agent_id, params.path, query),
    findFiles: ({ caller, params, query }) => agents.files(caller, params.agent_id, query.q ?? ''),
  };
}

async function sendPatch(agents: Agents, call: Call<'getChanges'>, send_ms: number): Promise<undefined> {
  // The client may have disconnected while the request waited.
  if (call.signal.aborted) {
    call.hijack().destroy();
    return;
  }
  const patch = await agents.patch(call.caller, call.params.agent_id);
  const response = call.hijack();
  response.setHeader('content-type', call.also!);
  response.setHeader('content-length', String(patch.length));
  if (call.method === 'HEAD') {
    response.end();
    return;
  }
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(send_ms)]);
  await pipeline(Readable.from(pieces(patch), { objectMode: false }), response, { signal }).catch((error) => {
    if (!signal.aborted) throw error;
  });
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  const size = sharedLimits.patch_piece_bytes;
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function nameWarning({ ids, count }: { ids: readonly string[]; count: number }): string {
  const more = count - ids.length;
  return `the name is used by other agents of this owner: ${ids.join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}
