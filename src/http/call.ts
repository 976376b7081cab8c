/** What a handler is given and what it gives back, typed by the operation's route. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Answer, Body, Params, Query } from '../contract/route.ts';
import type { OperationId, RouteOf } from '../contract/routes.ts';
import type { Caller } from '../domain/user.ts';

/** What is known of a request before its body is read. */
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
  /** Says in `X-Warning` what is probably not meant; the last one counts. */
  readonly warn: (message: string) => void;
  /** Aborts when the client is gone, and when the service drains. */
  readonly signal: AbortSignal;
  /** Adds a header to the answer, also to one that refuses. `value`: visible ASCII and spaces. */
  setHeader(name: string, value: string): void;
  /**
   * Takes over the response, for `raw` routes. The common headers are set on it already; errors thrown before this
   * call are answered as usual, after it they only end the connection.
   */
  hijack(): ServerResponse;
}

type PublicOperation = {
  [Op in OperationId]: RouteOf<Op>['action'] extends 'session.open' ? Op : never;
}[OperationId];

/** 200 and 202: the body. 201: body and location. 204: nothing. Raw routes write the response themselves. */
export type Result<Op extends OperationId> =
  RouteOf<Op> extends { raw: string }
    ? undefined
    : RouteOf<Op>['answers'] extends { 201: unknown }
      ? { location: string; body: Answer<RouteOf<Op>> }
      : Answer<RouteOf<Op>>;

type Handle<Op extends OperationId> = (call: Call<Op>) => Promise<Result<Op>> | Result<Op>;

/**
 * `before` runs where authorization does, before the body is read: for refusals that come first whatever the body says.
 */
export type Handler<Op extends OperationId> =
  | Handle<Op>
  | { before: (call: EarlyCall<Op>) => Promise<void> | void; handle: Handle<Op> };

/** One handler for every operation: leaving one out does not compile. */
export type Handlers = { [Op in OperationId]: Handler<Op> };
