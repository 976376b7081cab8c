/**
 * The type of a route. Routes are data: validation, handler types, the API description, the client and the test of all
 * routes derive from them. A route describes everything about an operation except its implementation.
 */
import type { z } from 'zod';
import { scopes } from '../core/grant.ts';
import type { DocumentedProblem } from '../core/other-problems.ts';
import { type Action, decide } from '../core/policy.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Success statuses and their bodies; null: no body. A `z.ZodType` for `raw` routes only documents the bytes. */
export type Answers =
  | { 200: z.ZodType }
  | { 201: z.ZodType }
  | { 202: z.ZodType }
  | { 204: null }
  | { 204: null; 200: z.ZodType };

/** How to handle fields that the route does not know: name them in `X-Ignored-Fields`, or answer 400. */
export type UnknownFields = 'ignored' | 'refused';

interface RouteForm {
  method: Method;
  /** Path below the base URL, parameters as `{name}`; `{name*}` matches the rest of the path, including slashes. */
  path: `/${string}`;
  /** The action that the policy checks. It determines whether the route needs a token and whether only root may call. */
  action: Action;
  /** Only for callers on this machine. */
  loopback?: boolean;
  tag: string;
  summary: string;
  description?: string;
  query?: z.ZodObject;
  answers: Answers;
  /** Names of the errors of this operation, in addition to those of every route. */
  errors?: readonly DocumentedProblem[];
  /** Response headers of this operation and their descriptions, in addition to those of every route. */
  answer_headers?: Readonly<Record<string, string>>;
  /** If the agent's node does not answer, the request is kept, and the error has the header `X-Pending`. */
  kept?: boolean;
  /** The service limits the rate of an address itself, because it knows whom others there must not hold up. Only without a token. */
  limits_rate?: boolean;
  /** Accepts an `Idempotency-Key`. */
  idempotent?: boolean;
  /** The handler writes the response: an event stream, a range of bytes, or a page. */
  raw?: 'sse' | 'bytes' | 'html';
  /** Another media type that a client can request with `Accept`. The handler writes such a response itself. */
  also?: 'text/x-diff';
}

/**
 * A route with a body must declare how it handles unknown fields. Requests that create credentials, users, nodes, secrets or
 * shares use `refused`, because a misspelt field must not go unnoticed there. Without a body the default is `ignored`.
 */
export type Route = RouteForm &
  ({ body: z.ZodType; unknown_fields: UnknownFields } | { body?: undefined; unknown_fields?: UnknownFields });

/** Checks the type of a route and keeps its literal types. */
export function route<const R extends Route>(definition: R): R {
  return definition;
}

type PathNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Plain}*` ? Plain : Name) | PathNames<Rest>
  : never;

export type Params<R extends Route> = { [Name in PathNames<R['path']>]: string };
export type Query<R extends Route> = R['query'] extends z.ZodType
  ? z.output<R['query']>
  : Record<never, never>;
/** A body as a handler receives it: validated, with defaults. */
export type Body<R extends Route> = R['body'] extends z.ZodType ? z.output<R['body']> : undefined;
/** A body as a client may send it. */
export type SentBody<R extends Route> = R['body'] extends z.ZodType ? z.input<R['body']> : never;

/** The response body that a client receives. */
export type Answer<R extends Route> = R['answers'] extends { 204: null; 200: infer S extends z.ZodType }
  ? z.output<S> | undefined
  : R['answers'] extends { 200: infer S extends z.ZodType }
    ? z.output<S>
    : R['answers'] extends { 201: infer S extends z.ZodType } | { 202: infer S extends z.ZodType }
      ? z.output<S>
      : undefined;

/** Path parameters of a route, in order; `rest`: it matches the rest of the path. */
export function pathParams(path: string): { name: string; rest: boolean }[] {
  return [...path.matchAll(/\{([a-z_]+)(\*?)\}/g)].map(([, name, star]) => ({
    name: name!,
    rest: star === '*',
  }));
}

/** Whether the route can be called without a bearer token. */
export function isPublic(route: Route): boolean {
  return decide(null, route.action) === 'allow';
}

/** Whether only root may call the route. */
export function isRootOnly(route: Route): boolean {
  const nobody = { user_id: '', username: '', role: 'user', token_id: '', grant: null, ip: null } as const;
  return decide(nobody, route.action) === 'root_required';
}

/** Whether the route rejects tokens that are limited to agents or teams. */
export function isUnlimitedOnly(route: Route): boolean {
  const grant = { scopes, limits: { agent_ids: [], team_ids: [] } };
  const limited = { user_id: '', username: '', role: 'root', token_id: '', grant, ip: null } as const;
  return decide(limited, route.action) === 'limited';
}
