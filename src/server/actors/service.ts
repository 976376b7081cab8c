/**
 * ActorService, which is the same on a plane and on a node. It passes a call with its bearer token to the plane's services
 * or up the link. It does not verify tokens; it only limits the number and size of calls, in total and for each token, so that one
 * agent cannot keep out the others.
 */
import { type ConnectRouter, createContextKey } from '@connectrpc/connect';
import type { Connection } from '../../base/connections.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { Problem, problems } from '../../core/problem.ts';
import { callerConnection } from '../../link/callers.ts';
import { ActorService } from '../../link/proto/actor_pb.ts';
import { toConnectError } from '../../link/wire.ts';
import { limits } from './limits.ts';

/** The address of the caller, if the listener knows it. */
export const callerAddress = createContextKey<string | null>(null);
/** Whether the client presented the operator's certificate, so that no token is needed. */
export const isOperator = createContextKey(false);

interface ActorCall {
  method: string;
  /** JSON, at most `limits.actor_params_bytes_max`. Not parsed here: serialized again, it could be several times larger. */
  params: string;
  token: string | null;
  ip: string | null;
}

export interface ActorBackend {
  /** `token` is null only on the operator's connection. Throws a Problem. */
  call(call: ActorCall): Promise<unknown>;
  /** Whether a token is genuine, if that can be told at once. Absent: it is known when a call with it is answered. */
  isGenuine?(token: string): boolean;
  log: Logger;
}

/**
 * The methods whose answer the plane may delay: those with `waits` in the table `actorMethods`. Nodes do not load that table,
 * which takes 64 ms.
 */
export const waitingMethods: readonly string[] = ['receive'];

/** The calls in progress. A slot stays occupied until the plane has answered, even if the caller disconnects. */
class CallSlots {
  #calls = 0;
  #waiting = 0;
  #unproven = 0;
  #unproven_waiting = 0;
  readonly #by_token = new Map<string, { calls: number; waiting: number }>();

  /**
   * Occupies a slot; returns what frees it. Throws `too many calls at once`. Some slots are reserved for calls that do not wait, so
   * that agents waiting for mail cannot block agents that send it, and some for tokens that are `proven`.
   */
  take(token: string | null, { waits, proven }: { waits: boolean; proven: boolean }): () => void {
    const own = (token !== null && this.#by_token.get(token)) || { calls: 0, waiting: 0 };
    const full =
      this.#calls >= limits.actor_calls_max ||
      (waits && this.#waiting >= limits.actor_receives_max) ||
      (!proven && this.#unproven >= limits.actor_calls_unproven_max) ||
      (!proven && waits && this.#unproven_waiting >= limits.actor_receives_unproven_max) ||
      (token !== null && own.calls >= sharedLimits.actor_calls_per_token) ||
      (token !== null && waits && own.waiting >= sharedLimits.actor_receives_per_token);
    if (full) throw problems.tooManyActorCalls();
    const count = (step: 1 | -1) => {
      this.#calls += step;
      own.calls += step;
      if (waits) this.#waiting += step;
      if (waits) own.waiting += step;
      if (!proven) this.#unproven += step;
      if (!proven && waits) this.#unproven_waiting += step;
    };
    count(1);
    if (token !== null) this.#by_token.set(token, own);
    return () => {
      count(-1);
      if (token !== null && own.calls === 0) this.#by_token.delete(token);
    };
  }
}

/** Tokens that were valid when they were last used. The least recently used ones are forgotten. */
class KnownTokens {
  readonly #tokens = new Set<string>();

  has(token: string): boolean {
    return this.#tokens.has(token);
  }

  set(token: string, valid: boolean): void {
    this.#tokens.delete(token);
    if (valid) this.#tokens.add(token);
    if (this.#tokens.size <= limits.actor_tokens_known_max) return;
    for (const oldest of this.#tokens) return void this.#tokens.delete(oldest);
  }
}

/** Adds the service to a listener's router. */
export function actorRoutes({ call, isGenuine, log }: ActorBackend): (router: ConnectRouter) => void {
  const slots = new CallSlots();
  const known = new KnownTokens();

  const pass = async (request: ActorCall, connection: Connection | null): Promise<unknown> => {
    const { method, token } = request;
    const proven = token === null || isGenuine?.(token) === true || known.has(token);
    const free = slots.take(token, { waits: waitingMethods.includes(method), proven });
    if (token !== null && proven) connection?.own(token);
    connection?.begin();
    try {
      const result = await call(request);
      if (token !== null) known.set(token, true);
      if (token !== null) connection?.own(token);
      return result;
    } catch (error) {
      // Only the plane can tell. Without it, nothing is known about the token.
      if (token !== null && isUnauthorized(error)) known.set(token, false);
      throw error;
    } finally {
      free();
      connection?.end();
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
          const request = { method, params, token, ip: values.get(callerAddress) };
          const result = await pass(request, values.get(callerConnection));
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

function isUnauthorized(error: unknown): boolean {
  return error instanceof Problem && error.code === problems.actorUnauthorized().code;
}

function parseBearer(authorization: string | null): string {
  const token = /^Bearer ([\w.-]+)$/i.exec(authorization ?? '')?.[1];
  if (token === undefined || token.length > sharedLimits.link_token_chars_max)
    throw problems.actorUnauthorized();
  return token;
}
