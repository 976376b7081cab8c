/**
 * ActorService, the same on a plane and on a node: it takes a call with its bearer token and hands it on, to the plane's
 * own services or up the link. It believes nothing of a token and judges none; it bounds what it passes.
 */
import { type ConnectRouter, createContextKey } from '@connectrpc/connect';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { ActorMethod } from '../contract/actor.ts';
import { ActorService } from '../contract/gen/actor_pb.ts';
import { invalid, Problem, problems } from '../domain/problem.ts';
import { toConnectError } from '../link/wire.ts';

/** The address of the caller, where the listener knows it. */
export const callerAddress = createContextKey<string | null>(null);
/** Whether the connection is the operator's, by its certificate: it needs no token. */
export const isOperator = createContextKey(false);

export interface ActorSurface {
  /** `token` is null only on a connection of the operator's. Throws a Problem. */
  call(call: { method: string; params: unknown; token: string | null; ip: string | null }): Promise<unknown>;
  log: Logger;
}

/** The method that the plane answers late where there is nothing to say. */
const WAITS: ActorMethod = 'receive';

/** For the router of a door. */
export function actorRoutes({ call, log }: ActorSurface): (router: ConnectRouter) => void {
  let under_way = 0;
  let waiting = 0;

  /**
   * A place is held until the plane has answered, also for a caller who has gone. Some are kept for those who do not wait:
   * agents that listen for mail must not be in the way of those that have something to say.
   */
  const pass: ActorSurface['call'] = async (asked) => {
    const waits = asked.method === WAITS;
    const full = under_way >= limits.actor_calls_max || (waits && waiting >= limits.actor_receives_max);
    if (full) throw problems.tooManyActorCalls();
    under_way++;
    if (waits) waiting++;
    try {
      return await call(asked);
    } finally {
      under_way--;
      if (waits) waiting--;
    }
  };

  return (router) => {
    router.service(ActorService, {
      call: async ({ method, params }, { requestHeader, values }) => {
        try {
          const authorization = requestHeader.get('authorization');
          const token = authorization === null && values.get(isOperator) ? null : bearerOf(authorization);
          if (method.length > limits.actor_method_chars_max) throw problems.actorCallTooLarge();
          if (Buffer.byteLength(params) > limits.actor_params_bytes_max) throw problems.actorCallTooLarge();
          const result = await pass({ method, params: parse(params), token, ip: values.get(callerAddress) });
          return { result: JSON.stringify(result ?? null) };
        } catch (error) {
          if (error instanceof Problem) throw toConnectError(error);
          log.error({ err: error }, 'a call of an actor failed');
          throw toConnectError(problems.upcallFailed());
        }
      },
    });
  };
}

function bearerOf(authorization: string | null): string {
  const token = /^Bearer ([\w.-]+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined || token.length > limits.link_token_chars_max) throw problems.actorUnauthorized();
  return token;
}

function parse(params: string): unknown {
  try {
    return JSON.parse(params);
  } catch {
    throw invalid('params must be JSON');
  }
}
