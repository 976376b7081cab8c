/**
 * What an actor may ask the plane for (`svc actor …`), as data: a method's parameters and its result. From it come the
 * plane's checks and the CLI's types. The wire itself, one call for all of them, is `actor.proto`.
 */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { bounded, id } from './fields.ts';

const actorId = bounded(limits.actor_id_chars_max).min(1, { error: 'must not be empty' });

export const actorMethods = {
  /** Whom the plane takes the caller for. */
  whoami: {
    params: z.object({
      /** Whom to act as; absent: the caller's own actor. */
      actor_id: actorId.optional(),
    }),
    result: z.object({
      actor_id: z.string().nullable(),
      agent_id: id.nullable(),
      session_id: id.nullable(),
      node_id: id.nullable(),
      user_id: id.nullable(),
    }),
  },
} as const satisfies Record<string, { params: z.ZodType; result: z.ZodType }>;

export type ActorMethod = keyof typeof actorMethods;
export type ActorParams<M extends ActorMethod> = z.input<(typeof actorMethods)[M]['params']>;
export type ActorRequest<M extends ActorMethod> = z.output<(typeof actorMethods)[M]['params']>;
export type ActorResult<M extends ActorMethod> = z.output<(typeof actorMethods)[M]['result']>;

export function isActorMethod(name: string): name is ActorMethod {
  return Object.hasOwn(actorMethods, name);
}
