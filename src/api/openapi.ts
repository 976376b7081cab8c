/**
 * Generates the API description, OpenAPI 3.1, from the route table. Named schemas become components; every operation lists
 * the exact error messages that it can return. Cached after the first call. A test compares `openapi.json` at the root.
 */
import { z } from 'zod';
import { limits } from '../base/limits.ts';
import { documentedProblems, otherProblems } from '../core/other-problems.ts';
import { scopeOf } from '../core/policy.ts';
import { lacksScope, type ProblemKind, problems } from '../core/problem.ts';
import { pendingKinds } from '../features/agents/rules.ts';
import { sameJson, shareRepeated } from './openapi-shared.ts';
import { isPublic, isRootOnly, isUnlimitedOnly, pathParams, type Route } from './route.ts';
import { operationIds, routes } from './routes.ts';
import { INTERNAL_ERROR, statusOf } from './status.ts';

export const API_VERSION = '0.1.0';

type Json = Record<string, unknown>;

/** The OpenAPI document. */
export function openapi(): Json {
  const schemas = new Schemas();
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of operationIds) {
    const route: Route = routes[operation];
    const path = route.path.replace('*}', '}');
    paths[path] ??= {};
    const described = describe(operation, route, schemas);
    paths[path][route.method.toLowerCase()] = described;
    if (route.raw === 'sse') paths[path].head = probe(described);
  }
  const repeated = shareRepeated(paths, { responses: COMMON_FAILURES, parameters: {}, headers: HEADERS });
  const tags = [...new Set(operationIds.map((operation) => routes[operation].tag))];
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc',
      version: API_VERSION,
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    tags: tags.map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { ...schemas.named(), Error: ERROR },
      ...repeated,
    },
  };
}

const INTRODUCTION = [
  'Runs and supervises agent processes.',
  '',
  'Lists are plain arrays unless `limit` or `cursor` is given, then `{items, next_cursor?}`. Times are RFC 3339 in UTC.',
  'An error is `{"error": "<message>"}`, with a stable code in `X-Error-Code` and the id of the request in `X-Request-Id`.',
  'A missing body counts as `{}`. Unknown fields and query parameters are ignored and named in `X-Ignored-Fields`; ' +
    'requests that create credentials, users or nodes reject unknown fields. ' +
    'A `PATCH` or `PUT` without a known field is 400 `nothing to change`.',
].join('\n');

const ERROR = {
  type: 'object',
  properties: { error: { type: 'string', description: 'Human-readable message, one line.' } },
  required: ['error'],
};

const HEADERS = {
  RequestId: { description: 'The id of the request, also in the log.', schema: { type: 'string' } },
  ErrorCode: { description: 'A stable code for the error.', schema: { type: 'string' } },
  IgnoredFields: {
    description:
      'Unknown body fields, by path, and unknown query parameters (`?name`), separated by commas. The service ignored them. Names are percent-encoded. A final `...` means that there are more.',
    schema: { type: 'string' },
  },
  AllowedPaths: {
    description: 'If a path is rejected: the allowed folders, percent-encoded and separated by commas.',
    schema: { type: 'string' },
  },
  RefusedPath: {
    description: 'If the error is about a path: the path, as it was sent, percent-encoded.',
    schema: { type: 'string' },
  },
  Pending: {
    description:
      'The request, `start`, `stop` or `restart`, is kept and carried out once the node of the agent answers.',
    schema: { enum: [...pendingKinds] },
  },
  TriesLeft: {
    description: 'If the PIN is wrong: how many more can be tried.',
    schema: { type: 'integer' },
  },
  RetryAfter: { description: 'Seconds to wait before retrying.', schema: { type: 'integer' } },
};

function describe(operation: string, route: Route, schemas: Schemas): Json {
  return {
    operationId: operation,
    tags: [route.tag],
    summary: route.summary,
    ...getDescription(route),
    ...(isPublic(route) && { security: [] }),
    ...(isRootOnly(route) && { 'x-root-only': true }),
    parameters: [...pathParameters(route), ...queryParameters(route, schemas), ...headerParameters(route)],
    ...(route.body && {
      requestBody: {
        required: !route.body.safeParse({}).success,
        content: { 'application/json': { schema: schemas.of(route.body, 'input') } },
      },
    }),
    responses: { ...successes(route, schemas), ...failures(route) },
  };
}

function getDescription({ action, description }: Route): { description?: string } {
  const scope = scopeOf(action);
  const needs = scope === null ? [] : [`An API token needs the scope \`${scope}\`.`];
  const texts = [...(description === undefined ? [] : [description]), ...needs];
  return texts.length === 0 ? {} : { description: texts.join('\n\n') };
}

/** `HEAD` of a stream: checks whether it can be opened, with the headers of `GET` and no body. */
function probe(stream: Json): Json {
  const responses = Object.entries(stream.responses as Record<string, Json>).map(([status, response]) => {
    const { content: _, ...rest } = response;
    return [status, status === '200' ? { ...rest, description: 'The stream can be opened.' } : rest];
  });
  return {
    ...stream,
    operationId: `${stream.operationId}Head`,
    summary: 'Check whether the stream can be opened',
    description:
      'Has the headers of `GET` and no body. Opens no stream and does not count towards the limits on open streams. Errors have no body; `X-Error-Code` has the code.',
    responses: Object.fromEntries(responses),
  };
}

function pathParameters(route: Route): Json[] {
  return pathParams(route.path).map(({ name, rest }) => ({
    name,
    in: 'path',
    required: true,
    ...(rest && { description: 'Slashes may be written literally or as `%2F`.' }),
    schema: { type: 'string' },
  }));
}

function queryParameters(route: Route, schemas: Schemas): Json[] {
  if (!route.query) return [];
  const { properties, required } = schemas.of(route.query, 'input') as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties ?? {}).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required?.includes(name) ?? false,
    ...(description !== undefined && { description }),
    schema,
  }));
}

function headerParameters(route: Route): Json[] {
  const parameters: Json[] = [];
  if (route.idempotent) {
    parameters.push({
      name: 'Idempotency-Key',
      in: 'header',
      description: 'For a day, the same key with the same request returns the first response.',
      schema: { type: 'string', maxLength: limits.idempotency_key_chars_max },
    });
  }
  if (route.raw === 'sse') {
    parameters.push({
      name: 'Last-Event-ID',
      in: 'header',
      description:
        'The id of the last event that the client received. The stream begins with the events after it.',
      schema: { type: 'integer', minimum: 0 },
    });
  }
  if (route.raw === 'bytes') {
    parameters.push({
      name: 'Range',
      in: 'header',
      description: 'One range of bytes.',
      schema: { type: 'string' },
    });
  }
  return parameters;
}

const STREAM_HEADERS = Object.fromEntries(
  Object.entries({
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-cache',
    'X-Accel-Buffering': 'no',
  }).map(([name, value]) => [name, { schema: { type: 'string', const: value } }]),
);

const DESCRIPTIONS: Record<string, string> = { 201: 'Created.', 202: 'Accepted.' };
const RAW_TYPES = { sse: 'text/event-stream', bytes: 'application/octet-stream', html: 'text/html' } as const;

function successes(route: Route, schemas: Schemas): Json {
  const responses: Json = {};
  for (const [status, answer] of Object.entries(route.answers) as [string, z.ZodType | null][]) {
    const headers: Json = {
      'X-Request-Id': { $ref: '#/components/headers/RequestId' },
      'X-Ignored-Fields': { $ref: '#/components/headers/IgnoredFields' },
    };
    for (const [name, description] of Object.entries(route.answer_headers ?? {}))
      headers[name] = { description, schema: { type: 'string' } };
    if (status === '201')
      headers.Location = { description: 'Path of the new resource.', schema: { type: 'string' } };
    if (answer === null) {
      responses[status] = { description: 'Done.', headers };
    } else if (route.raw === 'sse') {
      Object.assign(headers, STREAM_HEADERS);
      const schema = { type: 'string', description: 'Each `data:` line is a JSON object.' };
      const content = { 'text/event-stream': { schema, 'x-data-schema': schemas.of(answer, 'output') } };
      responses[status] = { description: 'A stream that stays open.', headers, content };
    } else {
      const type = route.raw ? RAW_TYPES[route.raw] : 'application/json';
      const content = {
        [type]: { schema: schemas.of(answer, 'output') },
        ...(route.also && { [route.also]: { schema: { type: 'string', format: 'binary' } } }),
      };
      responses[status] = { description: DESCRIPTIONS[status] ?? 'Done.', headers, content };
      if (route.raw === 'bytes') {
        responses[206] = { description: 'The requested range.', headers, content };
        responses[416] = { description: 'The range is not satisfiable.', headers };
      }
    }
  }
  return responses;
}

/** Errors that an operation can return, by status, with the exact messages of the contract. */
function failures(route: Route): Json {
  const messages = new Map<number, Set<string>>();
  const add = (kind: ProblemKind, message?: string) => {
    const known = messages.get(statusOf[kind]) ?? new Set();
    messages.set(statusOf[kind], message === undefined ? known : known.add(message));
  };
  const addFixed = (make: () => { kind: ProblemKind; message: string }) => add(make().kind, make().message);
  if (!isPublic(route)) {
    addFixed(problems.missingToken);
    addFixed(problems.invalidToken);
  }
  if (isRootOnly(route)) addFixed(problems.rootRequired);
  const scope = scopeOf(route.action);
  if (scope !== null) addFixed(() => lacksScope(scope));
  if (isUnlimitedOnly(route)) addFixed(problems.tokenLimited);
  if (route.query || route.body) add('invalid');
  if (route.query && 'limit' in route.query.shape) {
    addFixed(problems.invalidLimit);
    addFixed(problems.invalidCursor);
  }
  if (route.method !== 'GET') {
    addFixed(problems.unsupportedMediaType);
    addFixed(problems.bodyTooLarge);
  }
  if (route.body) addFixed(problems.bodyNotJson);
  if (route.unknown_fields === 'refused') addFixed(otherProblems.unknownField);
  if (route.body && (route.method === 'PATCH' || route.method === 'PUT')) addFixed(problems.nothingToChange);
  if (route.idempotent) addFixed(problems.idempotencyReused);
  for (const name of route.errors ?? []) addFixed(documentedProblems[name]);
  if (route.raw === 'sse') {
    addFixed(problems.tooManyStreams);
    addFixed(problems.tooManyStreamsInTotal);
  }
  addFixed(problems.tooManyRequests);
  addFixed(problems.draining);

  const responses: Json = {};
  for (const status of [...messages.keys()].sort((a, b) => a - b)) {
    responses[status] = failure(status, [...messages.get(status)!], route);
  }
  responses[500] = failure(500, [INTERNAL_ERROR.message]);
  return responses;
}

function failure(status: number, messages: string[], route?: Route): Json {
  return {
    description: (messages.length > 0 ? messages : [otherProblems.invalidField().message])
      .map((text) => `\`${text}\``)
      .join(', '),
    headers: {
      'X-Request-Id': { $ref: '#/components/headers/RequestId' },
      'X-Error-Code': { $ref: '#/components/headers/ErrorCode' },
      ...(messages.some((text) => PATH_REFUSALS.includes(text)) && {
        'X-Allowed-Paths': { $ref: '#/components/headers/AllowedPaths' },
        'X-Refused-Path': { $ref: '#/components/headers/RefusedPath' },
      }),
      ...(route?.kept &&
        messages.some((text) => KEPT_AFTER.includes(text)) && {
          'X-Pending': { $ref: '#/components/headers/Pending' },
        }),
      ...(messages.includes(problems.invalidPin().message) && {
        'X-Tries-Left': { $ref: '#/components/headers/TriesLeft' },
      }),
      ...((status === 429 || messages.includes(problems.tooManyStreams().message)) && {
        'Retry-After': { $ref: '#/components/headers/RetryAfter' },
      }),
    },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  };
}

/** The errors after which a request to start or stop an agent may be kept. */
const KEPT_AFTER = [problems.nodeUnreachable().message, problems.internalGrpcUnavailable().message];
const PATH_REFUSALS = [problems.workdirNotSafe().message, problems.repoNotSafe().message];

/** Error responses that have names which their messages do not give them. */
const COMMON_FAILURES: Record<string, Json> = {
  InvalidInput: failure(400, []),
  InvalidPage: failure(400, [problems.invalidLimit().message, problems.invalidCursor().message]),
  InvalidBody: failure(400, [problems.bodyNotJson().message]),
  Unauthenticated: failure(401, [problems.missingToken().message, problems.invalidToken().message]),
  RootRequired: failure(401, [
    problems.missingToken().message,
    problems.invalidToken().message,
    problems.rootRequired().message,
  ]),
  AgentNotFound: failure(404, [problems.agentNotFound().message]),
  BodyTooLarge: failure(413, [problems.bodyTooLarge().message]),
  UnsupportedMediaType: failure(415, [problems.unsupportedMediaType().message]),
  TooManyRequests: failure(429, [problems.tooManyRequests().message]),
  InternalError: failure(500, [INTERNAL_ERROR.message]),
  Draining: failure(503, [problems.draining().message]),
};

/** Converts Zod schemas to JSON schemas; collects those with an id as named components. */
class Schemas {
  readonly #named = new Map<string, Json>();

  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const { $defs, properties } = z.toJSONSchema(z.object({ it: schema }), {
      io,
      override: tidy,
    }) as unknown as {
      $defs?: Record<string, Json>;
      properties: { it: Json };
    };
    for (const [name, definition] of Object.entries($defs ?? {})) {
      const known = this.#named.get(name);
      const { id: _id, ...rest } = relink(definition) as Json;
      if (known && !sameJson(known, rest)) {
        throw new Error(`two schemas are named ${name}`);
      }
      this.#named.set(name, rest);
    }
    return relink(properties.it) as Json;
  }

  named(): Json {
    return Object.fromEntries([...this.#named].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Allows additional properties, since fields may be added later. Shows query strings as the type that they encode. */
function tidy({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  const schema = jsonSchema as Json;
  delete schema.foreign;
  if (schema.additionalProperties === false) delete schema.additionalProperties;
  if (schema.format === 'date-time') delete schema.pattern;
  if (schema.wire) {
    const { wire, description, default: fallback } = schema;
    for (const key of Object.keys(schema)) delete schema[key];
    Object.assign(
      schema,
      wire,
      description !== undefined && { description },
      fallback !== undefined && { default: fallback },
    );
  }
}

function relink(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(relink);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) =>
      key === '$ref' && typeof item === 'string'
        ? [key, item.replace('#/$defs/', '#/components/schemas/')]
        : [key, relink(item)],
    ),
  );
}
