/** API of a team's tasks and their threads. */
import { z } from 'zod';
import {
  bounded,
  id,
  list,
  name,
  pageQuery,
  position,
  queryInteger,
  SEARCH_TEXT,
  searchText,
  time,
} from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import { runRecord } from '../runs/contract.ts';
import { limits } from './limits.ts';
import { type MessageRoute, messageOrders, messageRoutes } from './rules/message.ts';
import { taskStatuses } from './rules/task.ts';

const taskRecord = z
  .object({
    id,
    number: z.int().meta({ description: 'Sequential number within the team.' }),
    key: z.string().meta({ description: "The team's `key` and the number: `DEM-1`." }),
    team_id: id,
    title: z.string(),
    description: z.string(),
    status: z.enum(taskStatuses),
    assignee_member_id: z.string().nullable(),
    conversation_id: id,
    run_id: id.nullable().meta({ description: 'Its newest run.' }),
    run_steps: z
      .object({ completed: z.int(), total: z.int() })
      .meta({ description: 'The number of steps of its newest run.' }),
    version: z.int(),
    created_by: id,
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Task' });

const messageRecord = z
  .object({
    id: z.int(),
    team_id: id,
    task_id: id,
    conversation_id: id,
    run_id: id.nullable().meta({
      description:
        'The run in which it was delivered; null if none has delivered it, or if that run was deleted.',
    }),
    delivered: z.boolean().meta({ description: "False: it waits for the task's next run." }),
    from_actor_id: z.string(),
    route: z.enum(messageRoutes),
    to_actor_id: z.string().nullable(),
    payload: z.record(z.string(), z.unknown()),
    text: z.string().nullable().meta({ description: '`payload.text`, if that is a string.' }),
    reply_to: z.int().nullable(),
    thread: z.int().meta({ description: 'The first message of its reply thread.' }),
    created_at: time,
  })
  .meta({ id: 'Message' });

const conversationRecord = z
  .object({
    id,
    team_id: id,
    task_id: id,
    title: z.string(),
    messages: z.int().meta({ description: 'Number of messages.' }),
    last_message_id: z.int().nullable(),
    created_at: time,
  })
  .meta({ id: 'Conversation' });

const title = name.meta({ description: 'One line.' });
const description = bounded(limits.task_description_chars_max);
const assignee = bounded(sharedLimits.actor_id_chars_max)
  .nullable()
  .meta({ description: 'A member of the team.' });

/** The same error message for every invalid value, including a missing one. */
const messageRoute = z
  .unknown()
  .refine((value) => messageRoutes.includes(value as MessageRoute), {
    error: problems.routeInvalid().message,
  })
  .transform((value) => value as MessageRoute)
  .meta({ wire: { type: 'string', enum: [...messageRoutes] } });

const messageQuery = z.object({
  ...pageQuery,
  q: searchText().optional().meta({ description: SEARCH_TEXT }),
  thread: queryInteger(1).optional().meta({ description: 'Only the reply thread of this message.' }),
  order: z.enum(messageOrders).optional().meta({ description: 'Sort order; default: `oldest`.' }),
});

const messages_max = `A plain array has at most ${sharedLimits.plain_list_items_max} messages; if there are more, \`X-Next-Cursor\` has the cursor of the next page.`;
const next_cursor = { 'X-Next-Cursor': 'If a plain array is incomplete: the cursor of the next page.' };

const team = '/api/teams/{team_id}' as const;
const tasks = `${team}/tasks` as const;
const one = `${tasks}/{task_id}` as const;
const conversation = `${team}/conversations/{conversation_id}` as const;

export const taskRoutes = {
  listTasks: route({
    method: 'GET',
    path: tasks,
    action: 'team.read',
    tag: 'Tasks',
    summary: "List a team's tasks, newest first",
    query: z.object({
      ...pageQuery,
      status: z.enum(taskStatuses).optional(),
      assignee_member_id: z.string().optional(),
    }),
    answers: { 200: list(taskRecord) },
    errors: ['teamNotFound'],
  }),
  createTask: route({
    method: 'POST',
    path: tasks,
    action: 'task.change',
    tag: 'Tasks',
    summary: 'Create a task for a team',
    description: 'Work starts only when you start a run for it.',
    body: z.object({
      title,
      description: description.default(''),
      assignee_member_id: assignee.default(null),
    }),
    unknown_fields: 'ignored',
    answers: { 201: taskRecord },
    errors: ['teamNotFound', 'titleRequired', 'assigneeUnknown'],
    idempotent: true,
  }),
  getTask: route({
    method: 'GET',
    path: one,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'Get a task',
    answers: { 200: taskRecord },
    errors: ['teamNotFound', 'taskNotFound'],
  }),
  updateTask: route({
    method: 'PATCH',
    path: one,
    action: 'task.change',
    tag: 'Tasks',
    summary: 'Update a task or its status',
    description:
      'Any status may follow any other. A run sets it to `in_progress` when it starts, to `in_review` when it completes, and to `open` when it fails or is cancelled, unless someone has changed it in the meantime.',
    body: z.object({
      title: title.optional(),
      description: description.optional(),
      status: z.enum(taskStatuses).optional(),
      assignee_member_id: assignee.optional(),
      version: z.int().optional().meta({ description: 'Rejected if this is no longer the current version.' }),
    }),
    unknown_fields: 'ignored',
    answers: { 200: taskRecord },
    errors: ['teamNotFound', 'taskNotFound', 'titleRequired', 'assigneeUnknown', 'taskChanged'],
  }),
  startTaskRun: route({
    method: 'POST',
    path: `${one}/runs`,
    action: 'team.work',
    tag: 'Tasks',
    summary: 'Start a run for a task',
    description:
      "The run's input gets `task` and `conversation` (the newest messages, oldest first) in addition to the given input, unless that has these keys.",
    body: z.object({ input: z.record(z.string(), z.unknown()).default({}) }),
    unknown_fields: 'ignored',
    answers: { 201: runRecord },
    errors: ['teamNotFound', 'taskNotFound', 'taskHasRun'],
    idempotent: true,
  }),
  listMessages: route({
    method: 'GET',
    path: `${one}/messages`,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'List the messages of a task, by default oldest first',
    description: messages_max,
    answer_headers: next_cursor,
    query: messageQuery,
    answers: { 200: list(messageRecord) },
    errors: ['teamNotFound', 'taskNotFound'],
  }),
  sendMessage: route({
    method: 'POST',
    path: `${one}/messages`,
    action: 'team.work',
    tag: 'Tasks',
    summary: 'Send a message to the thread of a task',
    description:
      "Each receiver gets it as mail in the task's open run. Without an open run the message waits, and the next run of the task delivers it.",
    body: z.object({
      route: messageRoute,
      to_actor_id: bounded(sharedLimits.actor_id_chars_max)
        .nullish()
        .meta({ description: 'With `to_member`: an actor id, a bare member id, `leader` or `user`.' }),
      text: bounded(limits.message_bytes_max)
        .optional()
        .meta({ description: 'Shorthand for `{"text": …}`.' }),
      payload: z.record(z.string(), z.unknown()).optional(),
      reply_to: z.int().optional().meta({ description: 'A message of the same task.' }),
    }),
    unknown_fields: 'ignored',
    answers: { 201: messageRecord },
    errors: [
      'teamNotFound',
      'taskNotFound',
      'routeInvalid',
      'leaderRequired',
      'recipientRequired',
      'textRequired',
      'textOrPayload',
      'replyElsewhere',
      'tooManyMessages',
    ],
    idempotent: true,
  }),
  followMessages: route({
    method: 'GET',
    path: `${one}/messages/events`,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'Stream the messages of a task thread',
    description:
      'Server-Sent Events: `message` frames whose `id` is the id of the message and whose `record` is the message when it was read. The stream starts after the given position, or with the whole thread, and continues with new messages.',
    query: z.object({ after: position.optional().meta({ description: 'Start after this message.' }) }),
    answers: { 200: z.looseObject({ type: z.string() }) },
    errors: ['teamNotFound', 'taskNotFound', 'invalidLastEventId'],
    raw: 'sse',
  }),
  getMessage: route({
    method: 'GET',
    path: `${one}/messages/{message_id}`,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'Get a message',
    answers: { 200: messageRecord },
    errors: ['teamNotFound', 'taskNotFound', 'messageNotFound'],
  }),
  getConversation: route({
    method: 'GET',
    path: conversation,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'Get a conversation',
    answers: { 200: conversationRecord },
    errors: ['teamNotFound', 'conversationNotFound'],
  }),
  listConversation: route({
    method: 'GET',
    path: `${conversation}/messages`,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'List the messages of a task thread, by default oldest first',
    description: messages_max,
    answer_headers: next_cursor,
    query: messageQuery,
    answers: { 200: list(messageRecord) },
    errors: ['teamNotFound', 'conversationNotFound'],
  }),
};
