/**
 * The form of a route: data that validation, handler types, the API description, the client and the walk of all routes
 * are made from. A route says everything about an operation except what it does.
 */
import type { z } from 'zod';
import { scopes } from '../domain/grant.ts';
import { type Action, decide } from '../domain/policy.ts';
import type { problems } from '../domain/problem.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Success statuses and their bodies; null: no body. A `z.ZodType` for `raw` routes only describes the bytes. */
export type Answers =
  | { 200: z.ZodType }
  | { 201: z.ZodType }
  | { 202: z.ZodType }
  | { 204: null }
  | { 204: null; 200: z.ZodType };

/** What happens to fields that the route does not know: named in `X-Ignored-Fields`, or answered with 400. */
export type UnknownFields = 'ignored' | 'refused';

interface RouteForm {
  method: Method;
  /** Path below the base URL, parameters as `{name}`; `{name*}` takes the rest of the path, slashes included. */
  path: `/${string}`;
  /** What the policy is asked about; it says whether a token is needed and whether only root may call. */
  action: Action;
  /** Answers only callers on this machine. */
  loopback?: boolean;
  tag: string;
  summary: string;
  description?: string;
  query?: z.ZodObject;
  answers: Answers;
  /** Names of the fixed errors that belong to this operation, beyond those that every route can answer. */
  errors?: readonly (keyof typeof problems)[];
  /** Headers of its success beyond those of every route, and what they say. */
  answer_headers?: Readonly<Record<string, string>>;
  /** Takes an `Idempotency-Key`. */
  idempotent?: boolean;
  /** The answer holds a secret that is shown once and never stored. */
  secret_answer?: boolean;
  /** The handler writes the response itself: an event stream, a range of bytes, or a page. */
  raw?: 'sse' | 'bytes' | 'html';
}

/**
 * A route with a body says what it does with unknown fields. `refused` is for requests that create credentials, users,
 * nodes, secrets or shares: there a misspelt field must not go unnoticed. Without a body the default is `ignored`.
 */
export type Route = RouteForm &
  ({ body: z.ZodType; unknown_fields: UnknownFields } | { body?: undefined; unknown_fields?: UnknownFields });

/** Keeps the literal types of a route while checking its form. */
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
/** A body as a handler gets it: validated, defaults filled in. */
export type Body<R extends Route> = R['body'] extends z.ZodType ? z.output<R['body']> : undefined;
/** A body as a client may send it. */
export type SentBody<R extends Route> = R['body'] extends z.ZodType ? z.input<R['body']> : never;

/** What a client gets back. */
export type Answer<R extends Route> = R['answers'] extends { 204: null; 200: infer S extends z.ZodType }
  ? z.output<S> | undefined
  : R['answers'] extends { 200: infer S extends z.ZodType }
    ? z.output<S>
    : R['answers'] extends { 201: infer S extends z.ZodType } | { 202: infer S extends z.ZodType }
      ? z.output<S>
      : undefined;

/** Path parameters of a route, in order, and whether each takes the rest of the path. */
export function pathParams(path: string): { name: string; rest: boolean }[] {
  return [...path.matchAll(/\{([a-z_]+)(\*?)\}/g)].map(([, name, star]) => ({
    name: name!,
    rest: star === '*',
  }));
}

/** Whether the route is called without a bearer token. */
export function isPublic(route: Route): boolean {
  return decide(null, route.action) === 'allow';
}

/** Whether only root may call the route. */
export function isRootOnly(route: Route): boolean {
  const nobody = { user_id: '', username: '', role: 'user', token_id: '', grant: null, ip: null } as const;
  return decide(nobody, route.action) === 'root_required';
}

/** Whether a token that is limited to agents or teams is refused. */
export function isUnlimitedOnly(route: Route): boolean {
  const grant = { scopes, limits: { agent_ids: [], team_ids: [] } };
  const limited = { user_id: '', username: '', role: 'root', token_id: '', grant, ip: null } as const;
  return decide(limited, route.action) === 'limited';
}
