/**
 * The methods that actors can call on the plane (`svc actor …`), as data: each method's parameters and result. The
 * plane's validation, the CLI's types and the tools of `svc mcp --actor` derive from it.
 * `actor.proto` defines the single RPC that carries all of them.
 */
import { z } from 'zod';
import { bounded, id } from '../../api/fields.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { mailActorMethods } from '../mailbox/contract.ts';
import { decisions, type Review } from '../reviews/rules.ts';
import type { Run, RunMembers, Step } from '../runs/rules/run.ts';
import { stepKey } from '../teams/contract/spec.ts';
import { limits } from './limits.ts';
import { asActor, inRunParams, nonEmptyName } from './rules/params.ts';
import { type ActorRole, actorRoles } from './rules/rights.ts';

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

interface ActorMethodEntry {
  params: z.ZodObject;
  result: z.ZodType;
  /** What a model reads about the method. */
  tool: string;
  /** The plane may delay its answer until there is something to report. */
  waits?: true;
}

export const actorMethods = {
  /** The identity of the caller, as the plane sees it. */
  whoami: {
    tool: 'Who you are: your actor id, your role in the team, the team and the run.',
    params: z.object(asActor),
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
  'team-members': {
    tool: 'Who is in your team: actor ids, roles, descriptions and skills.',
    params: z.object(inRunParams),
    result: z.custom<{ members: TeamMember[] }>(),
  },
  /** Their state, as in `GET /api/teams/runs/{run_id}/members`. */
  'run-members': {
    tool: 'How the members of your run are doing.',
    params: z.object(inRunParams),
    result: z.custom<RunMembers>(),
  },

  ...mailActorMethods,

  /** With `step_key`, that step with all its fields. */
  'step-list': {
    tool: 'The steps of your run. With step_key: that one with its prompt, input and output.',
    params: z.object({ ...inRunParams, step_key: nonEmptyName.optional() }),
    result: z.custom<{ steps: (StepHead | Step)[] }>(),
  },
  'step-add': {
    tool: 'Leaders: add a step for a member. It starts when the steps in depends_on are done.',
    params: z.object({
      ...inRunParams,
      step_key: stepKey,
      member_id: nonEmptyName,
      depends_on: z.array(nonEmptyName).max(limits.actor_needs_max).optional(),
      prompt: bounded(sharedLimits.prompt_chars_max).optional(),
      input: z.unknown().optional(),
    }),
    result: z.custom<Step>(),
  },
  'step-complete': {
    tool: 'Complete one of your steps, with its output.',
    params: z.object({ ...inRunParams, step_key: nonEmptyName, output: z.unknown().optional() }),
    result: z.custom<Step>(),
  },
  'step-fail': {
    tool: 'Fail one of your steps, with the reason.',
    params: z.object({
      ...inRunParams,
      step_key: nonEmptyName,
      error_text: bounded(limits.actor_error_chars_max),
    }),
    result: z.custom<Step>(),
  },
  /** The step waits for a person's answer; its agent ends its turn, and gets the answer with a new one. */
  'step-input-required': {
    tool: 'Ask a person for what one of your steps needs, then end your turn. The answer starts a new turn.',
    params: z.object({
      ...inRunParams,
      step_key: nonEmptyName,
      reason: bounded(limits.actor_error_chars_max).refine((text) => text.trim() !== '', {
        error: 'is required',
      }),
    }),
    result: z.custom<Step>(),
  },
  'run-complete': {
    tool: 'Leaders: complete the run with its result.',
    params: z.object({ ...inRunParams, output: z.unknown().optional() }),
    result: z.custom<Run>(),
  },
  'run-fail': {
    tool: 'Leaders: fail the run, with the reason.',
    params: z.object({ ...inRunParams, error_text: bounded(limits.actor_error_chars_max) }),
    result: z.custom<Run>(),
  },

  /** Reviews that wait for the caller's answer. */
  'permission-review-list': {
    tool: 'Leaders: permission requests of workers that wait for your answer.',
    params: z.object(asActor),
    result: z.custom<{ reviews: Review[] }>(),
  },
  /** By one of `decision`, `option_id` and `outcome`. */
  'permission-review-respond': {
    tool: 'Leaders: answer a permission review by decision (allow or deny, once), by option_id, or by outcome cancelled.',
    params: z.object({ ...asActor, review_id: nonEmptyName, ...answer }),
    result: z.custom<Review>(),
  },
} as const satisfies Record<string, ActorMethodEntry>;

export type ActorMethod = keyof typeof actorMethods;
export type ActorParams<M extends ActorMethod> = z.input<(typeof actorMethods)[M]['params']>;
export type ActorRequest<M extends ActorMethod> = z.output<(typeof actorMethods)[M]['params']>;
export type ActorResult<M extends ActorMethod> = z.output<(typeof actorMethods)[M]['result']>;

export function isActorMethod(name: string): name is ActorMethod {
  return Object.hasOwn(actorMethods, name);
}
