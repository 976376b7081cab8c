/** Tasks of a team, and the conversations about them. */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { type MessageRoute, messageOrders, messageRoutes } from '../domain/message.ts';
import { problems } from '../domain/problem.ts';
import { taskStatuses } from '../domain/task.ts';
import { bounded, id, list, name, pageQuery, position, queryInteger, time } from './fields.ts';
import { route } from './route.ts';
import { runRecord } from './runs.ts';

const taskRecord = z
  .object({
    id,
    number: z.int().meta({ description: "Counts the team's tasks." }),
    team_id: id,
    title: z.string(),
    description: z.string(),
    status: z.enum(taskStatuses),
    assignee_member_id: z.string().nullable(),
    conversation_id: id,
    run_id: id.nullable().meta({ description: 'Its newest run.' }),
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
    run_id: id
      .nullable()
      .meta({ description: "The run that it was delivered in; null: it waits for the task's next one." }),
    from_actor_id: z.string(),
    route: z.enum(messageRoutes),
    to_actor_id: z.string().nullable(),
    payload: z.record(z.string(), z.unknown()),
    text: z.string().nullable().meta({ description: '`payload.text`, where that is a string.' }),
    reply_to: z.int().nullable(),
    thread: z.int().meta({ description: 'The message that its thread began with.' }),
    created_at: time,
  })
  .meta({ id: 'Message' });

const conversationRecord = z
  .object({
    id,
    team_id: id,
    task_id: id,
    title: z.string(),
    messages: z.int().meta({ description: 'How many there are.' }),
    last_message_id: z.int().nullable(),
    created_at: time,
  })
  .meta({ id: 'Conversation' });

const title = name.meta({ description: 'One line.' });
const description = bounded(limits.task_description_chars_max);
const assignee = bounded(limits.actor_id_chars_max).nullable().meta({ description: 'A member of the team.' });

/** One message is taken for all that is wrong with it, also where it is absent. */
const messageRoute = z
  .unknown()
  .refine((value) => messageRoutes.includes(value as MessageRoute), {
    error: problems.routeInvalid().message,
  })
  .transform((value) => value as MessageRoute)
  .meta({ wire: { type: 'string', enum: [...messageRoutes] } });

const messageQuery = z.object({
  ...pageQuery,
  q: bounded(limits.search_chars_max)
    .optional()
    .meta({ description: 'Words, and phrases in quotation marks; all must occur.' }),
  thread: queryInteger(1).optional().meta({ description: 'Only the thread of this message.' }),
  order: z.enum(messageOrders).optional().meta({ description: 'Which come first: `oldest` unless given.' }),
});

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
    summary: "A team's tasks, newest first",
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
    summary: 'Ask a team to do something',
    description: 'Nothing begins before a run is started for it.',
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
    summary: 'One task',
    answers: { 200: taskRecord },
    errors: ['teamNotFound', 'taskNotFound'],
  }),
  updateTask: route({
    method: 'PATCH',
    path: one,
    action: 'task.change',
    tag: 'Tasks',
    summary: 'Change a task, or say how it stands',
    description:
      'Any status may follow any other. A run that begins makes it `in_progress`; one that completes `in_review`, one that fails or is cancelled `open`, unless somebody set it meanwhile.',
    body: z.object({
      title: title.optional(),
      description: description.optional(),
      status: z.enum(taskStatuses).optional(),
      assignee_member_id: assignee.optional(),
      version: z.int().optional().meta({ description: 'Refused when it is no longer this one.' }),
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
      "The run's input gets `task` and `conversation` (the newest messages, oldest first) beside what is given, where it has no such keys of its own.",
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
    summary: "Messages of a task's conversation, oldest first unless asked otherwise",
    query: messageQuery,
    answers: { 200: list(messageRecord) },
    errors: ['teamNotFound', 'taskNotFound'],
  }),
  sendMessage: route({
    method: 'POST',
    path: `${one}/messages`,
    action: 'team.work',
    tag: 'Tasks',
    summary: 'Say something in the conversation of a task',
    description:
      "Each receiver gets it as mail in the task's open run. Without an open run the message waits, and the next run of the task delivers it.",
    body: z.object({
      route: messageRoute,
      to_actor_id: bounded(limits.actor_id_chars_max)
        .optional()
        .meta({ description: 'With `to_member`: an actor id, a bare member id, `leader` or `user`.' }),
      text: bounded(limits.message_bytes_max).optional().meta({ description: 'Short for `{"text": …}`.' }),
      payload: z.record(z.string(), z.unknown()).optional(),
      reply_to: z.int().optional().meta({ description: 'A message of the same conversation.' }),
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
    summary: 'A conversation as a stream, from where the client was, then live',
    description:
      'Server-Sent Events: `message` frames whose `id` is the id of the message and whose `record` is the message as it was when it was read. Without a position the whole conversation comes first.',
    query: z.object({ after: position.optional().meta({ description: 'Go on after this message.' }) }),
    answers: { 200: z.looseObject({ type: z.string() }) },
    errors: ['teamNotFound', 'taskNotFound', 'invalidLastEventId'],
    raw: 'sse',
  }),
  getMessage: route({
    method: 'GET',
    path: `${one}/messages/{message_id}`,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'One message',
    answers: { 200: messageRecord },
    errors: ['teamNotFound', 'taskNotFound', 'messageNotFound'],
  }),
  getConversation: route({
    method: 'GET',
    path: conversation,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'One conversation',
    answers: { 200: conversationRecord },
    errors: ['teamNotFound', 'conversationNotFound'],
  }),
  listConversation: route({
    method: 'GET',
    path: `${conversation}/messages`,
    action: 'team.read',
    tag: 'Tasks',
    summary: 'Messages of a conversation, oldest first unless asked otherwise',
    query: messageQuery,
    answers: { 200: list(messageRecord) },
    errors: ['teamNotFound', 'conversationNotFound'],
  }),
};
