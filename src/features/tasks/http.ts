/** HTTP handlers for tasks and their threads: parse, call, shape the response. */
import { parsePosition } from '../../events/position.ts';
import type { Handlers } from '../../server/call.ts';
import { asCappedList, asList } from '../../server/list.ts';
import { lastEventId, type Streams } from '../../server/sse.ts';
import type { Tokens } from '../tokens/service.ts';
import { type Messages, messagePath } from './messages.ts';
import { type Tasks, taskPath } from './service.ts';

type TaskOperations =
  | 'listTasks'
  | 'createTask'
  | 'getTask'
  | 'updateTask'
  | 'startTaskRun'
  | 'listMessages'
  | 'sendMessage'
  | 'followMessages'
  | 'getMessage'
  | 'getConversation'
  | 'listConversation';

export function taskHandlers(deps: {
  tasks: Tasks;
  messages: Messages;
  tokens: Pick<Tokens, 'isLive'>;
  streams: Streams;
}): Pick<Handlers, TaskOperations> {
  const { tasks, messages, tokens, streams } = deps;
  return {
    listTasks: async ({ caller, params, query }) =>
      asList(query, await tasks.list(caller, params.team_id, query, query)),
    createTask: async ({ caller, params, body, idempotency_key }) => {
      const task = await tasks.create(caller, params.team_id, body, idempotency_key);
      return { location: taskPath(task), body: task };
    },
    getTask: ({ caller, params }) => tasks.get(caller, params.team_id, params.task_id),
    updateTask: ({ caller, params, body }) => tasks.update(caller, params.team_id, params.task_id, body),
    startTaskRun: async ({ caller, params, body, idempotency_key }) => {
      const { team_id, task_id } = params;
      const run = await tasks.startRun(caller, team_id, task_id, body.input, idempotency_key);
      return { location: `/api/teams/${team_id}/runs/${run.id}`, body: run };
    },
    listMessages: async (call) => {
      const { caller, params, query } = call;
      return asCappedList(call, await messages.list(caller, params, query, query));
    },
    sendMessage: async ({ caller, params, body, idempotency_key }) => {
      const message = await messages.send(caller, params.team_id, params.task_id, body, idempotency_key);
      return { location: messagePath(message), body: message };
    },
    followMessages: async (call) => {
      const { caller, params, query } = call;
      const task_num = await messages.authorizeRead(caller, params);
      const position = parsePosition({ last_event_id: lastEventId(call), ...query });
      await streams.serve(
        call,
        (signal) => messages.follow(task_num, position, signal),
        async () => {
          await messages.authorizeRead(caller, params);
          return tokens.isLive(caller.token_id);
        },
      );
    },
    getMessage: ({ caller, params }) => messages.get(caller, params, params.message_id),
    getConversation: ({ caller, params }) =>
      messages.conversation(caller, params.team_id, params.conversation_id),
    listConversation: async (call) => {
      const { caller, params, query } = call;
      return asCappedList(call, await messages.list(caller, params, query, query));
    },
  };
}
