/**
 * ActorService, which is the same on a plane and on a node. It passes a call with its bearer token to the plane's services
 * or up the link. It does not verify tokens; it only limits the number and size of calls.
 */
import { type ConnectRouter, createContextKey } from '@connectrpc/connect';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { invalid, Problem, problems } from '../../core/problem.ts';
import { ActorService } from '../../link/proto/actor_pb.ts';
import { toConnectError } from '../../link/wire.ts';
import { limits } from './limits.ts';

/** The address of the caller, if the listener knows it. */
export const callerAddress = createContextKey<string | null>(null);
/** Whether the client presented the operator's certificate, so that no token is needed. */
export const isOperator = createContextKey(false);

export interface ActorBackend {
  /** `token` is null only on the operator's connection. Throws a Problem. */
  call(call: { method: string; params: unknown; token: string | null; ip: string | null }): Promise<unknown>;
  log: Logger;
}

/**
 * The methods whose answer the plane may delay: those with `waits` in the table `actorMethods`. Nodes do not load that table,
 * which takes 64 ms.
 */
export const waitingMethods: readonly string[] = ['receive'];

/** Adds the service to a listener's router. */
export function actorRoutes({ call, log }: ActorBackend): (router: ConnectRouter) => void {
  let active_calls = 0;
  let waiting = 0;

  /**
   * A slot stays occupied until the plane has answered, even if the caller disconnects. Some slots are reserved for calls
   * that do not wait, so that agents waiting for mail cannot block agents that send it.
   */
  const pass: ActorBackend['call'] = async (request) => {
    const waits = waitingMethods.includes(request.method);
    const full = active_calls >= limits.actor_calls_max || (waits && waiting >= limits.actor_receives_max);
    if (full) throw problems.tooManyActorCalls();
    active_calls++;
    if (waits) waiting++;
    try {
      return await call(request);
    } finally {
      active_calls--;
      if (waits) waiting--;
    }
  };

  return (router) => {
    router.service(ActorService, {
      call: async ({ method, params }, { requestHeader, values }) => {
        try {
          const authorization = requestHeader.get('authorization');
          const token = authorization === null && values.get(isOperator) ? null : parseBearer(authorization);
          if (method.length > limits.actor_method_chars_max) throw problems.actorCallTooLarge();
          if (Buffer.byteLength(params) > limits.actor_params_bytes_max) throw problems.actorCallTooLarge();
          const result = await pass({ method, params: parse(params), token, ip: values.get(callerAddress) });
          return { result: JSON.stringify(result ?? null) };
        } catch (error) {
          if (error instanceof Problem) throw toConnectError(error);
          log.error({ err: error }, 'an actor call failed');
          throw toConnectError(problems.upcallFailed());
        }
      },
    });
  };
}

function parseBearer(authorization: string | null): string {
  const token = /^Bearer ([\w.-]+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined || token.length > sharedLimits.link_token_chars_max)
    throw problems.actorUnauthorized();
  return token;
}

function parse(params: string): unknown {
  try {
    return JSON.parse(params);
  } catch {
    throw invalid('params must be JSON');
  }
}
