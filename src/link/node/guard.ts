/** What happens around every call of the node's gRPC listener: authorization before it, and the errors that the caller gets. */
import type { Socket } from 'node:net';
import { Code, ConnectError, createContextKey, type Interceptor } from '@connectrpc/connect';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { Problem } from '../../core/problem.ts';
import { callerConnection } from '../callers.ts';
import { ActorService } from '../proto/actor_pb.ts';
import { ProtocolError, TIME_HEADER, toConnectError } from '../wire.ts';

/** Throws a ConnectError if the caller is not allowed; `service` is the name of the called service. */
export type Authorize = (call: {
  socket: Socket;
  authorization: string | null;
  service: string;
}) => Promise<void>;

interface GuardOptions {
  authorize: Authorize;
  clock: Clock;
  log: Logger;
}

/** The socket of a call. */
export const callerSocket = createContextKey<Socket | null>(null);

/**
 * Authorizes every call before its handler runs. Converts what a handler throws, at once or during a stream, to an
 * error of the protocol.
 */
export function guard({ authorize, clock, log }: GuardOptions): Interceptor {
  const refusal = (error: unknown, method: string): ConnectError => {
    const is_protocol_error = error instanceof ProtocolError;
    if (is_protocol_error) {
      log.warn({ reason: error.message, method }, 'plane breaks the protocol');
    } else if (!(error instanceof ConnectError) && !(error instanceof Problem) && !isHungUp(error)) {
      log.error({ err: error, method }, 'a call of the plane failed');
    }
    const refused = is_protocol_error
      ? new ConnectError(error.message, Code.InvalidArgument)
      : toConnectError(error);
    refused.metadata.set(TIME_HEADER, String(clock.now()));
    return refused;
  };
  async function* guarded<T>(messages: AsyncIterable<T>, method: string): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (error) {
      throw refusal(error, method);
    }
  }
  return (next) => async (request) => {
    const method = request.method.name;
    try {
      const authorization = request.header.get('authorization');
      const socket = request.contextValues.get(callerSocket);
      if (!socket) throw new ConnectError('unauthorized', Code.Unauthenticated);
      const service = request.service.typeName;
      await authorize({ socket, authorization, service });
      // The plane's connections have as many places as they need. The plane verifies the tokens of actors.
      if (service !== ActorService.typeName) request.contextValues.get(callerConnection)?.release();
      const response = await next(request);
      return response.stream ? { ...response, message: guarded(response.message, method) } : response;
    } catch (error) {
      throw refusal(error, method);
    }
  };
}

/** Whether the caller has disconnected, which the link itself reports. */
function isHungUp(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return /^(ERR_STREAM_|ERR_HTTP2_|ECONNRESET|EPIPE)/.test(code);
}
