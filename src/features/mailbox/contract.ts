/** API of actors' mailboxes, and of the triggers that send mail later. */
import { z } from 'zod';
import { bounded, id, list, pageQuery, queryInteger, time } from '../../api/fields.ts';
import { route } from '../../api/route.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { actorName, asActor, inRunParams, nonEmptyName } from '../actors/rules/params.ts';
import { limits } from './limits.ts';
import { type Mail, mailStatuses } from './rules/mail.ts';
import type { Trigger } from './rules/trigger.ts';

const mailHead = z
  .object({
    id: z.int(),
    run_id: id,
    from_actor_id: z.string(),
    to_actor_id: z.string(),
    status: z
      .enum(mailStatuses)
      .meta({ description: '`delivered`: its receiver was notified of it, or listed it.' }),
    reason: z.string().optional().meta({ description: 'Why it is a dead letter.' }),
    created_at: time,
    delivered_at: time.nullable(),
    acknowledged_at: time.nullable(),
  })
  .meta({ id: 'MailHead' });

const mailRecord = mailHead.extend({ payload: z.record(z.string(), z.unknown()) }).meta({ id: 'Mail' });

const triggerRecord = z
  .object({
    id,
    run_id: id,
    actor_id: z.string(),
    at: time.nullable(),
    every_seconds: z.int().nullable(),
    cron: z.string().nullable(),
    timezone: z.string().nullable(),
    payload: z.record(z.string(), z.unknown()),
    next_at: time,
    last_at: time.nullable(),
    fired: z.int().meta({ description: 'How many times it has fired.' }),
    created_by: z.string(),
    created_at: time,
  })
  .meta({ id: 'Trigger' });

const actorId = bounded(sharedLimits.actor_id_chars_max);
const runId = bounded(sharedLimits.actor_id_chars_max);
const payload = z.record(z.string(), z.unknown(), { error: 'must be an object' });
/** When a trigger fires: exactly one of the first three fields is set. */
const triggerTimes = {
  at: z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time' }).optional(),
  every_seconds: z
    .int({ error: 'must be an integer' })
    .min(limits.trigger_every_s_min, { error: `must be at least ${limits.trigger_every_s_min}` })
    .max(limits.trigger_every_s_max, { error: `must be at most ${limits.trigger_every_s_max}` })
    .optional(),
  cron: bounded(limits.trigger_cron_chars_max).optional(),
  timezone: bounded(limits.trigger_zone_chars_max)
    .optional()
    .meta({ description: 'IANA name; only with `cron`.' }),
};

export interface TriggerTimes {
  at?: string | undefined;
  every_seconds?: number | undefined;
  cron?: string | undefined;
  timezone?: string | undefined;
}

/** Adds the rules about several fields of `triggerTimes` to a schema that has them. */
function withTriggerTimes<T extends z.ZodType<TriggerTimes>>(schema: T): T {
  return schema
    .refine(isOneTime, { error: 'must be one of at, every_seconds and cron', path: ['at'] })
    .refine(({ timezone, cron }) => timezone === undefined || cron !== undefined, {
      error: 'needs cron',
      path: ['timezone'],
    });
}

function isOneTime({ at, every_seconds, cron }: TriggerTimes): boolean {
  return [at, every_seconds, cron].filter((item) => item !== undefined).length === 1;
}

const mailbox = '/api/actor/{actor_id}/mailbox' as const;
const message = '/api/actor/mailbox/{message_id}' as const;
const triggers = '/api/actor/{actor_id}/triggers' as const;

const actors =
  'An actor is `<member_id>@<team_id>` or `user:<username>`; with `run_id` also a bare member id, `leader` or `user`.';

export const mailRoutes = {
  sendMail: route({
    method: 'POST',
    path: '/api/actor/mailbox/send',
    action: 'mailbox.use',
    tag: 'Mailbox',
    summary: 'Send a message to an actor of a run',
    description: `${actors} People send as themselves and as members without an agent, root as anyone. What cannot be delivered is kept as a \`dead_letter\`, with the reason.`,
    body: z.object({ run_id: runId, from_actor_id: actorId, to_actor_id: actorId, payload }),
    unknown_fields: 'ignored',
    answers: { 201: mailRecord },
    errors: ['runNotFound', 'payloadTooLarge', 'tooMuchMail'],
    idempotent: true,
  }),
  listMail: route({
    method: 'GET',
    path: mailbox,
    action: 'mailbox.read',
    tag: 'Mailbox',
    summary: "List an actor's inbox, oldest first",
    description: `${actors} Lists unacknowledged mail, unless \`status\` says otherwise. Listing by its owner marks it as delivered.`,
    query: z.object({
      run_id: runId.optional(),
      limit: queryInteger(1, sharedLimits.page_items_max)
        .optional()
        .meta({
          description: `Maximum number, by default ${limits.mail_inbox_items}. There are no further pages: acknowledge messages to see more.`,
        }),
      status: z.enum(['all', ...mailStatuses]).optional(),
      wait: queryInteger(0, limits.mail_wait_s_max)
        .optional()
        .meta({ description: 'Seconds to wait for mail that its owner has not been notified of yet.' }),
    }),
    answers: { 200: z.array(mailRecord) },
    errors: ['runNotFound', 'tooManyWaiting'],
  }),
  getMail: route({
    method: 'GET',
    path: message,
    action: 'mailbox.read',
    tag: 'Mailbox',
    summary: 'Get a message',
    answers: { 200: mailRecord },
    errors: ['messageNotFound'],
  }),
  ackMail: route({
    method: 'POST',
    path: `${message}/ack`,
    action: 'mailbox.use',
    tag: 'Mailbox',
    summary: 'Acknowledge a message, which removes it from the inbox',
    description: 'Idempotent.',
    answers: { 200: mailRecord },
    errors: ['messageNotFound'],
  }),
  listRunMail: route({
    method: 'GET',
    path: '/api/teams/runs/{run_id}/mail',
    action: 'team.read',
    tag: 'Mailbox',
    summary: 'List all mail of a run, oldest first, without payloads',
    query: z.object(pageQuery),
    answers: { 200: list(mailHead) },
    errors: ['runNotFound'],
  }),
  listRunTriggers: route({
    method: 'GET',
    path: '/api/teams/runs/{run_id}/triggers',
    action: 'team.read',
    tag: 'Mailbox',
    summary: 'List the time triggers of all actors of a run, newest first',
    query: z.object(pageQuery),
    answers: { 200: list(triggerRecord) },
    errors: ['runNotFound'],
  }),
  listTriggers: route({
    method: 'GET',
    path: triggers,
    action: 'mailbox.read',
    tag: 'Mailbox',
    summary: "List an actor's time triggers, newest first",
    description: actors,
    query: z.object({ ...pageQuery, run_id: runId.optional() }),
    answers: { 200: list(triggerRecord) },
    errors: ['runNotFound'],
  }),
  setTrigger: route({
    method: 'POST',
    path: triggers,
    action: 'mailbox.use',
    tag: 'Mailbox',
    summary: 'Schedule mail from an actor to itself',
    description:
      'Once (`at`), at an interval, or by a cron pattern of five fields in a time zone (default: UTC). If times were missed, the trigger fires once. It ends with the run.',
    body: withTriggerTimes(z.object({ run_id: runId, ...triggerTimes, payload })),
    unknown_fields: 'ignored',
    answers: { 201: triggerRecord },
    errors: ['runNotFound', 'runOver', 'payloadTooLarge', 'tooManyTriggers'],
    idempotent: true,
  }),
  deleteTrigger: route({
    method: 'DELETE',
    path: `${triggers}/{trigger_id}`,
    action: 'mailbox.use',
    tag: 'Mailbox',
    summary: 'Delete a time trigger',
    answers: { 204: null },
    errors: ['triggerNotFound', 'runNotFound'],
  }),
};

/** Methods of actors (`svc actor`) about mail and triggers. */
export const mailActorMethods = {
  inbox: {
    tool: 'Your messages that you have not acknowledged, oldest first.',
    params: z.object({
      ...inRunParams,
      limit: z.int().min(1).max(limits.actor_inbox_items_max).optional(),
      status: z.literal('all', { error: 'must be all' }).optional(),
    }),
    result: z.custom<{ messages: Mail[] }>(),
  },
  /** Like `inbox`, but waits for mail if the mailbox is empty. */
  receive: {
    tool: 'Your messages; waits a few seconds if the mailbox is empty.',
    waits: true,
    params: z.object({ ...inRunParams, limit: z.int().min(1).max(limits.actor_inbox_items_max).optional() }),
    result: z.custom<{ messages: Mail[] }>(),
  },
  ack: {
    tool: 'Acknowledge a message once you have dealt with it; until then it stays in your inbox.',
    params: z.object({ ...asActor, message_id: z.int().min(0) }),
    result: z.custom<Mail>(),
  },
  send: {
    tool: 'Write to a member (its member_id), to `leader`, or to `user`. The payload is a JSON object, for example {"text": "…"}.',
    params: z.object({
      ...inRunParams,
      to: actorName,
      payload,
      idempotency_key: bounded(sharedLimits.idempotency_key_chars_max).min(1).optional(),
    }),
    result: z.custom<Mail>(),
  },

  'time-trigger-list': {
    tool: 'Your time triggers.',
    params: z.object(inRunParams),
    result: z.custom<{ triggers: Trigger[] }>(),
  },
  /** One of `at` (RFC 3339), `every_seconds` and `cron`. */
  'time-trigger-set': {
    tool: 'Schedule a message to yourself: one of at (RFC 3339), every_seconds and cron.',
    params: withTriggerTimes(z.object({ ...inRunParams, ...triggerTimes, payload })),
    result: z.custom<Trigger>(),
  },
  'time-trigger-cancel': {
    tool: 'Cancel a time trigger.',
    params: z.object({ ...asActor, trigger_id: nonEmptyName }),
    result: z.custom<Trigger>(),
  },
} as const;
