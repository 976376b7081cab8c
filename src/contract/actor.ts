/**
 * What an actor may ask the plane for (`svc actor …`), as data: a method's parameters and its result. From it come the
 * plane's checks and the CLI's types. The wire itself, one call for all of them, is `actor.proto`.
 */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { type ActorRole, actorRoles } from '../domain/actor-rights.ts';
import { decisions, type Review } from '../domain/review.ts';
import type { Run, Step } from '../domain/run.ts';
import { bounded, id } from './fields.ts';
import { isOneTime, severalTimes, triggerTimes } from './mail.ts';

const actorId = bounded(limits.actor_id_chars_max).min(1, { error: 'must not be empty' });
const given = bounded(limits.name_chars_max).min(1, { error: 'must not be empty' });
const object = z.record(z.string(), z.unknown());

const as = {
  /** Whom to act as; absent: the caller's own actor. */
  actor_id: actorId.optional(),
};
const inRun = {
  ...as,
  /** Absent: the run of the caller's session, else the only one that is open. */
  run_id: given.optional(),
};
const answer = {
  decision: z.enum(decisions).optional(),
  option_id: bounded(limits.acp_text_chars_max).optional(),
  outcome: z.literal('cancelled', { error: 'must be cancelled' }).optional(),
};

export interface TeamMember {
  actor_id: string;
  member_id: string | null;
  role: ActorRole;
  description: string;
  skills: string[];
}

/** A step without what may be large. */
export type StepHead = Omit<Step, 'input' | 'output' | 'prompt'>;

/** As the mailbox has it. */
export interface MailRecord {
  id: number;
}

/** As the triggers have it. */
export interface TriggerRecord {
  id: string;
}

export const actorMethods = {
  /** Whom the plane takes the caller for. */
  whoami: {
    params: z.object(as),
    result: z.object({
      actor_id: z.string().nullable(),
      agent_id: id.nullable(),
      session_id: id.nullable(),
      node_id: id.nullable(),
      user_id: id.nullable(),
      team_id: id.nullable(),
      run_id: id.nullable(),
      role: z.enum(actorRoles).nullable(),
    }),
  },

  /** Who can be written to. */
  'team-members': { params: z.object(inRun), result: z.custom<{ members: TeamMember[] }>() },
  /** How they do, as `GET /api/teams/runs/{run_id}/members`. */
  'run-members': { params: z.object(inRun), result: z.custom<object>() },

  inbox: {
    params: z.object({
      ...inRun,
      limit: z.int().min(1).max(limits.actor_inbox_items_max).optional(),
      status: z.literal('all', { error: 'must be all' }).optional(),
    }),
    result: z.custom<{ messages: MailRecord[] }>(),
  },
  /** As `inbox`; waits for mail where there is none. */
  receive: {
    params: z.object({ ...inRun, limit: z.int().min(1).max(limits.actor_inbox_items_max).optional() }),
    result: z.custom<{ messages: MailRecord[] }>(),
  },
  ack: {
    params: z.object({ ...as, message_id: z.int().min(0) }),
    result: z.custom<MailRecord>(),
  },
  send: {
    params: z.object({
      ...inRun,
      to: actorId,
      payload: object,
      idempotency_key: bounded(limits.idempotency_key_chars_max).min(1).optional(),
    }),
    result: z.custom<MailRecord>(),
  },

  /** With `step_key` the one step whole. */
  'step-list': {
    params: z.object({ ...inRun, step_key: given.optional() }),
    result: z.custom<{ steps: (StepHead | Step)[] }>(),
  },
  'step-add': {
    params: z.object({
      ...inRun,
      step_key: given,
      member_id: given,
      depends_on: z.array(given).max(limits.actor_needs_max).optional(),
      prompt: bounded(limits.prompt_chars_max).optional(),
      input: z.unknown().optional(),
    }),
    result: z.custom<Step>(),
  },
  'step-complete': {
    params: z.object({ ...inRun, step_key: given, output: z.unknown().optional() }),
    result: z.custom<Step>(),
  },
  'step-fail': {
    params: z.object({ ...inRun, step_key: given, error_text: bounded(limits.actor_error_chars_max) }),
    result: z.custom<Step>(),
  },
  /** The step waits for somebody's word; its agent ends its turn, and gets the answer with a new one. */
  'step-input-required': {
    params: z.object({
      ...inRun,
      step_key: given,
      reason: bounded(limits.actor_error_chars_max).refine((text) => text.trim() !== '', {
        error: 'is required',
      }),
    }),
    result: z.custom<Step>(),
  },
  'run-complete': {
    params: z.object({ ...inRun, output: z.unknown().optional() }),
    result: z.custom<Run>(),
  },
  'run-fail': {
    params: z.object({ ...inRun, error_text: bounded(limits.actor_error_chars_max) }),
    result: z.custom<Run>(),
  },

  'time-trigger-list': { params: z.object(inRun), result: z.custom<{ triggers: TriggerRecord[] }>() },
  /** One of `at` (RFC 3339), `every_seconds` and `cron`. */
  'time-trigger-set': {
    params: z
      .object({
        ...inRun,
        ...triggerTimes,
        payload: object,
      })
      .refine(isOneTime, severalTimes),
    result: z.custom<TriggerRecord>(),
  },
  'time-trigger-cancel': {
    params: z.object({ ...as, trigger_id: given }),
    result: z.custom<TriggerRecord>(),
  },

  /** What waits for the caller's answer. */
  'permission-review-list': { params: z.object(as), result: z.custom<{ reviews: Review[] }>() },
  /** By one of `decision`, `option_id` and `outcome`. */
  'permission-review-respond': {
    params: z.object({ ...as, review_id: given, ...answer }),
    result: z.custom<Review>(),
  },
} as const satisfies Record<string, { params: z.ZodObject; result: z.ZodType }>;

export type ActorMethod = keyof typeof actorMethods;
export type ActorParams<M extends ActorMethod> = z.input<(typeof actorMethods)[M]['params']>;
export type ActorRequest<M extends ActorMethod> = z.output<(typeof actorMethods)[M]['params']>;
export type ActorResult<M extends ActorMethod> = z.output<(typeof actorMethods)[M]['result']>;

export function isActorMethod(name: string): name is ActorMethod {
  return Object.hasOwn(actorMethods, name);
}
