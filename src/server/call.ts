/** The types of what a handler receives and returns, according to the operation's route. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Answer, Body, Params, Query } from '../api/route.ts';
import type { OperationId, RouteOf } from '../api/routes.ts';
import type { Action } from '../core/policy.ts';
import type { Caller } from '../features/accounts/rules.ts';

/** The parts of a request that are known before its body is read. */
export interface EarlyCall<Op extends OperationId> {
  operation: Op;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Null on routes that need no token. */
  caller: Op extends PublicOperation ? null : Caller;
  params: Params<RouteOf<Op>>;
  headers: IncomingHttpHeaders;
  ip: string | null;
  request_id: string;
}

export interface Call<Op extends OperationId> extends EarlyCall<Op> {
  query: Query<RouteOf<Op>>;
  body: Body<RouteOf<Op>>;
  idempotency_key: string | null;
  /** The route's other media type if the client requests it; the handler then writes the response. */
  also: string | null;
  /** Sets `X-Warning`, for a request that is valid but probably unintended. The last call wins. */
  readonly warn: (message: string) => void;
  /** Aborts when the client disconnects, and when the service drains. */
  readonly signal: AbortSignal;
  /** Adds a header to the response, including an error response. `value`: visible ASCII and spaces. */
  setHeader(name: string, value: string): void;
  /**
   * Takes over the response, for `raw` routes. The common headers are already set. An error before this call gets a
   * normal error response; after it, an error only ends the connection.
   */
  hijack(): ServerResponse;
}

type PublicOperation = {
  [Op in OperationId]: RouteOf<Op>['action'] extends 'session.open' ? Op : never;
}[OperationId];

/**
 * 200 and 202: the body. 201: body and location. 204: nothing. Raw routes and other media types write the response
 * themselves.
 */
export type Result<Op extends OperationId> =
  RouteOf<Op> extends { raw: string }
    ? undefined
    : RouteOf<Op>['answers'] extends { 201: unknown }
      ? { location: string; body: Answer<RouteOf<Op>> }
      : Answer<RouteOf<Op>> | (RouteOf<Op> extends { also: string } ? undefined : never);

type Handle<Op extends OperationId> = (call: Call<Op>) => Promise<Result<Op>> | Result<Op>;

/**
 * `before` runs together with authorization, before the body is read. It makes the checks that do not depend on the body.
 */
export type Handler<Op extends OperationId> =
  | Handle<Op>
  | { before: (call: EarlyCall<Op>) => Promise<void> | void; handle: Handle<Op> };

/**
 * By the name of a path parameter: throws unless what it names exists and the caller may take the action on it, like the
 * handlers that have this parameter.
 */
export type ResourceChecks = Readonly<
  Record<
    string,
    (caller: Caller, action: Action, params: Readonly<Record<string, string>>) => Promise<unknown>
  >
>;

/** Handlers for all operations. */
export type Handlers = { [Op in OperationId]: Handler<Op> };
