/**
 * The methods that actors can call on the plane (`svc actor …`), as data: each method's parameters and result. The
 * plane's validation and the CLI's types derive from it. `actor.proto` defines the single RPC that carries all of
 * them.
 */
import { z } from 'zod';
import { bounded, id } from '../../api/fields.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { isOneTime, severalTimes, triggerTimes } from '../mailbox/contract.ts';
import type { Mail } from '../mailbox/rules/mail.ts';
import type { Trigger } from '../mailbox/rules/trigger.ts';
import { decisions, type Review } from '../reviews/rules.ts';
import type { Run, RunMembers, Step } from '../runs/rules/run.ts';
import { limits } from './limits.ts';
import { type ActorRole, actorRoles } from './rules/rights.ts';

const actorId = bounded(sharedLimits.actor_id_chars_max).min(1, { error: 'must not be empty' });
const given = bounded(sharedLimits.name_chars_max).min(1, { error: 'must not be empty' });
const object = z.record(z.string(), z.unknown());

const as = {
  /** The actor to act as; absent: the caller's own. */
  actor_id: actorId.optional(),
};
const inRun = {
  ...as,
  /** Absent: the run of the caller's session, else the only open one. */
  run_id: given.optional(),
};
const answer = {
  decision: z.enum(decisions).optional(),
  option_id: bounded(sharedLimits.acp_text_chars_max).optional(),
  outcome: z.literal('cancelled', { error: 'must be cancelled' }).optional(),
};

export interface TeamMember {
  actor_id: string;
  member_id: string | null;
  role: ActorRole;
  description: string;
  skills: string[];
}

/** A step without its potentially large fields. */
export type StepHead = Omit<Step, 'input' | 'output' | 'prompt'>;

export const actorMethods = {
  /** The identity of the caller, as the plane sees it. */
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

  /** Everyone who can receive mail. */
  'team-members': { params: z.object(inRun), result: z.custom<{ members: TeamMember[] }>() },
  /** Their state, as in `GET /api/teams/runs/{run_id}/members`. */
  'run-members': { params: z.object(inRun), result: z.custom<RunMembers>() },

  inbox: {
    params: z.object({
      ...inRun,
      limit: z.int().min(1).max(limits.actor_inbox_items_max).optional(),
      status: z.literal('all', { error: 'must be all' }).optional(),
    }),
    result: z.custom<{ messages: Mail[] }>(),
  },
  /** Like `inbox`, but waits for mail if the mailbox is empty. */
  receive: {
    params: z.object({ ...inRun, limit: z.int().min(1).max(limits.actor_inbox_items_max).optional() }),
    result: z.custom<{ messages: Mail[] }>(),
  },
  ack: {
    params: z.object({ ...as, message_id: z.int().min(0) }),
    result: z.custom<Mail>(),
  },
  send: {
    params: z.object({
      ...inRun,
      to: actorId,
      payload: object,
      idempotency_key: bounded(sharedLimits.idempotency_key_chars_max).min(1).optional(),
    }),
    result: z.custom<Mail>(),
  },

  /** With `step_key`, that step with all its fields. */
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
      prompt: bounded(sharedLimits.prompt_chars_max).optional(),
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
  /** The step waits for a person's answer; its agent ends its turn, and gets the answer with a new one. */
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

  'time-trigger-list': { params: z.object(inRun), result: z.custom<{ triggers: Trigger[] }>() },
  /** One of `at` (RFC 3339), `every_seconds` and `cron`. */
  'time-trigger-set': {
    params: z
      .object({
        ...inRun,
        ...triggerTimes,
        payload: object,
      })
      .refine(isOneTime, severalTimes),
    result: z.custom<Trigger>(),
  },
  'time-trigger-cancel': {
    params: z.object({ ...as, trigger_id: given }),
    result: z.custom<Trigger>(),
  },

  /** Reviews that wait for the caller's answer. */
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
