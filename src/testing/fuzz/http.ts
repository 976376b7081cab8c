/**
 * Fuzzes every route with parameters, queries, headers and bodies that almost match its schema. Each answer must match the
 * contract: a success with the right schema, or an error with a message, but never a server error.
 */
import { Agent as Connections, type IncomingMessage, request } from 'node:http';
import type { z } from 'zod';
import { openapi } from '../../api/openapi.ts';
import { isPublic, pathParams, type Route } from '../../api/route.ts';
import { type OperationId, operationIds, routes } from '../../api/routes.ts';
import type { TestPlane } from '../plane.ts';
import { type EntryPoint, Finding, forEachConcurrently } from './entry-point.ts';
import {
  almostValid,
  anything,
  Fields,
  jsonOf,
  type KnownValues,
  type Malformed,
  Raw,
  type Shape,
  text,
} from './malformed.ts';
import { Rng } from './rng.ts';
import { Watch } from './watch.ts';

const CASES = 300;
const AT_ONCE = 8;
const ANSWER_MS = 90_000;
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const USER = { username: 'eve', password: 'quite a long password' };

/** Operations that would break all other cases, because they revoke the token, change the limits or keep agents from starting. */
const EXCLUDED: readonly OperationId[] = [
  'logout',
  'refreshToken',
  'updateConfig',
  'allowFolder',
  'stopAllAgents',
];
const OPERATIONS = operationIds.filter((operation) => !EXCLUDED.includes(operation));

/** Valid values during a batch, by the names of parameters and fields. */
type Known = Record<string, readonly string[]>;

interface Case {
  operation: OperationId;
  method: string;
  path: string;
  headers: string[];
  body: Buffer | null;
}

interface Answer {
  status: number;
  type: string;
  /** Null if it was not read completely. */
  body: string | null;
}

/** Opens the fuzzer. Nothing else may use the plane. */
export async function openHttpFuzz(plane: TestPlane): Promise<EntryPoint> {
  const { token } = await plane.client.call('createToken', { body: { name: 'fuzz' } });
  await plane.client.call('createUser', { body: { ...USER, role: 'user' } });
  const watch = new Watch(plane, () => plane.client.call('getMe'));
  const connections = new Connections({ keepAlive: true, maxSockets: AT_ONCE });
  const shapes = readShapes();

  const batch = async (seed: number) => {
    const rng = new Rng(seed);
    const known = await prepare(plane);
    const cases = Array.from({ length: CASES }, () => makeCase(rng, shapes, known, token));
    await forEachConcurrently(cases, AT_ONCE, async (one, i) => {
      const fault = await send(plane.url, connections, one).then(
        (answer) => faultOf(one, answer),
        (error: Error) => (plane.isRunning ? error.message : 'the program exited'),
      );
      if (fault !== null) throw new Finding('http', seed, `case ${i}: ${show(one)}\n${fault}`);
    });
    try {
      await watch.check();
      await cleanUp(plane);
      await watch.check();
    } catch (error) {
      throw new Finding('http', seed, (error as Error).message);
    }
    return cases.length;
  };
  return { name: 'http', batch, close: async () => connections.destroy() };
}

/** The schemas of queries and bodies, from the OpenAPI description. */
function readShapes(): Map<OperationId, { query: [name: string, shape: Shape][]; body: Shape | null }> {
  const root = openapi() as { paths: Record<string, Record<string, Described>> };
  const found: ReturnType<typeof readShapes> = new Map();
  for (const path of Object.values(root.paths)) {
    const { head: _, ...methods } = path;
    for (const { operationId, parameters = [], requestBody } of Object.values(methods)) {
      const query = parameters.filter((one) => one.in === 'query');
      found.set(operationId, {
        query: query.map(({ name, schema }) => [name, { root, schema }]),
        body: requestBody ? { root, schema: requestBody.content['application/json'].schema } : null,
      });
    }
  }
  return found;
}

interface Described {
  operationId: OperationId;
  parameters?: { in: string; name: string; schema: unknown }[];
  requestBody?: { content: { 'application/json': { schema: unknown } } };
}

/** Creates records of every kind; returns their ids and other valid values. */
async function prepare(plane: TestPlane): Promise<Known> {
  const { client, work } = plane;
  const agents = await Promise.all([
    client.call('createAgent', { body: { name: 'still', workdir: work, command: 'echo hello' } }),
    client.call('createAgent', {
      body: { name: 'ran', workdir: work, command: 'cat', stdin: true, start: true },
    }),
  ]);
  const spec = {
    leader_member_id: 'lead',
    members: [{ member_id: 'lead' }, { member_id: 'dev' }],
    steps: [{ step_key: 'a' }],
  };
  const team = await client.call('createTeam', { body: { name: `team ${agents[0].id}`, spec } });
  const params = { team_id: team.id };
  const run = await client.call('createRun', { params });
  const task = await client.call('createTask', { params, body: { title: 'Tidy up' } });
  const about = { ...params, task_id: task.id };
  const message = await client.call('sendMessage', {
    params: about,
    body: { route: 'broadcast', text: 'hello' },
  });
  const spare = await client.call('createToken', { body: { name: 'spare' } });
  const users = (await client.call('listUsers')) as { id: string; username: string }[];
  const eve = users.find(({ username }) => username === USER.username);
  if (!eve) await client.call('createUser', { body: { ...USER, role: 'user' } });
  const actors = ['lead', 'dev', `lead@${team.id}`, `user:${USER.username}`, 'user', 'leader'];
  return {
    agent_id: agents.map(({ id }) => id),
    team_id: [team.id],
    run_id: [run.id],
    task_id: [task.id],
    conversation_id: [task.conversation_id],
    message_id: [String(message.id), '1', '2'],
    step_key: ['a', 'b', 'c'],
    member_id: ['lead', 'dev'],
    assignee_member_id: ['dev'],
    leader_member_id: ['lead', 'dev'],
    actor_id: actors,
    from_actor_id: actors,
    to_actor_id: actors,
    user_id: eve ? [eve.id] : ['usr_none'],
    username: [USER.username, 'tim', 'Ada'],
    current_password: [USER.password],
    token_id: [spare.id],
    workdir: [work, `${work}/none`],
    // These commands are executed, so they are harmless.
    command: ['true', 'exit 3', 'echo hi'],
    name: ['team', 'still', 'x'],
    version: ['1', '2'],
    grpc_target: ['https://127.0.0.1:1', 'https://127.0.0.1:2'],
    node_id: ['main', 'box'],
    id: ['box'],
    depends_on: ['a', 'b'],
    worktree_repo: [work],
    preset: ['demo', 'none'],
    at: ['2099-01-01T00:00:00Z'],
    timezone: ['Europe/Berlin', 'UTC'],
    cron: ['* * * * *'],
  };
}

/** Deletes everything that a batch created, so that every batch starts with the same state. */
async function cleanUp(plane: TestPlane): Promise<void> {
  const { client } = plane;
  const deletions: Promise<unknown>[] = [];
  for await (const team of client.all('listTeams')) {
    const params = { team_id: team.id };
    for await (const run of client.all('listRuns', { params })) {
      if (['completed', 'failed', 'cancelled'].includes(run.status)) continue;
      await client.call('cancelRun', { params: { ...params, run_id: run.id } }).catch(() => {});
    }
    deletions.push(client.call('deleteTeam', { params }).catch(() => {}));
  }
  await Promise.all(deletions);
  const agents: string[] = [];
  for await (const agent of client.all('listAgents')) agents.push(agent.id);
  await forEachConcurrently(agents, AT_ONCE, async (agent_id) => {
    const query = { force: true, delete_worktree: true };
    await client.call('deleteAgent', { params: { agent_id }, query }).catch(() => {});
  });
  for (const node of (await client.call('listAgentNodes')) as { id: string }[]) {
    await client.call('deleteAgentNode', { params: { node_id: node.id } }).catch(() => {});
  }
}

function makeCase(rng: Rng, shapes: ReturnType<typeof readShapes>, known: Known, token: string): Case {
  const operation = rng.pick(OPERATIONS);
  const route: Route = routes[operation];
  const shape = shapes.get(operation)!;
  // Some cases are valid, some have one wrong part, and some have many.
  const error_rate = rng.pick([0, 0.02, 0.1, 0.4]);
  const values: KnownValues = (name, at) => knownValue(name, at, known);
  const path = pathParams(route.path).reduce(
    (made, { name, rest }) =>
      made.replace(`{${name}${rest ? '*' : ''}}`, () =>
        encoded(rng.chance(error_rate) ? text(rng) : parameter(name, rng, known)),
      ),
    route.path as string,
  );
  const query = shape.query.flatMap(([name, schema]): string[] => {
    if (!rng.chance(0.4)) return [];
    const value = almostValid(rng, schema, values, error_rate);
    const times = rng.chance(error_rate) ? 2 : 1;
    return Array<string>(times).fill(`${name}=${encoded(typeof value === 'string' ? value : jsonOf(value))}`);
  });
  if (rng.chance(error_rate)) query.push(`${encoded(text(rng))}=${encoded(text(rng))}`);
  const body =
    route.method === 'GET' && !rng.chance(error_rate) ? null : bodyOf(rng, shape.body, values, error_rate);
  return {
    operation,
    method: rng.chance(0.02)
      ? rng.pick(['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'])
      : route.method,
    path: query.length > 0 ? `${path}?${query.join('&')}` : path,
    headers: headersOf(rng, route, token, body, error_rate),
    body,
  };
}

function bodyOf(rng: Rng, shape: Shape | null, values: KnownValues, error_rate: number): Buffer | null {
  if (shape === null && !rng.chance(error_rate)) return null;
  const value: Malformed =
    shape === null || rng.chance(error_rate / 4)
      ? anything(rng)
      : almostValid(rng, shape, values, error_rate);
  const bytes = Buffer.from(jsonOf(value));
  if (!rng.chance(error_rate / 4)) return bytes;
  const at = rng.below(bytes.length + 1);
  return rng.chance(0.5)
    ? bytes.subarray(0, at)
    : Buffer.concat([bytes.subarray(0, at), rng.bytes(3), bytes.subarray(at)]);
}

const TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/jsonx',
  'APPLICATION/JSON;charset="utf-8"',
  '',
];

function headersOf(rng: Rng, route: Route, token: string, body: Buffer | null, error_rate: number): string[] {
  const headers: string[] = [];
  if (!isPublic(route) || rng.chance(0.1)) {
    const odd = [`Bearer ${'x'.repeat(600)}`, 'Bearer', `Basic ${token}`, `bearer  ${token}`, `${token}`];
    if (!rng.chance(0.03))
      headers.push('authorization', rng.chance(error_rate / 4) ? rng.pick(odd) : `Bearer ${token}`);
  }
  if (body !== null) {
    headers.push('content-length', String(body.length));
    if (!rng.chance(error_rate / 4))
      headers.push('content-type', rng.chance(error_rate / 4) ? rng.pick(TYPES) : 'application/json');
    if (rng.chance(error_rate / 8))
      headers.push('content-encoding', rng.pick(['gzip', 'br', 'identity', 'deflate, gzip']));
  }
  if (rng.chance(error_rate))
    headers.push('idempotency-key', rng.pick(['k1', 'k2', 'k3', '', 'x'.repeat(256), 'a b', 'é']));
  if (rng.chance(error_rate))
    headers.push('if-match', rng.pick(['"1"', '1', '*', 'W/"1"', '"', `"${'9'.repeat(40)}"`]));
  if (rng.chance(error_rate))
    headers.push('last-event-id', rng.pick(['0', '-1', 'x', '9'.repeat(30), '1.5', '']));
  if (rng.chance(error_rate))
    headers.push(
      'range',
      rng.pick(['bytes=0-', 'bytes=5-1', 'bytes=-0', `bytes=0-${'9'.repeat(30)}`, 'bytes=0-0,1-1', 'x']),
    );
  if (rng.chance(error_rate / 4))
    headers.push(
      rng.pick(['__proto__', 'constructor', 'x-forwarded-for', 'forwarded', 'via']),
      rng.pick(['x', '127.0.0.1', '::1', '']),
    );
  return headers;
}

/** A valid value for a field or parameter; undefined if the schema is sufficient. */
function knownValue(name: string, rng: Rng, known: Known): Malformed | undefined {
  if (name === 'argv') return rng.pick([['true'], ['echo', 'x'], ['/no/such/program'], ['', '-x']]);
  if (name === 'env' || name === 'labels') return rng.chance(0.5) ? new Fields([['A_B', 'c']]) : undefined;
  if (name === 'restart_policy') return 'never';
  if (name === 'grace_seconds') return 0;
  const candidates = known[name];
  if (candidates === undefined || (rng.chance(0.2) && name !== 'command')) return undefined;
  const value = rng.pick(candidates);
  return name === 'version' || name === 'message_id' ? new Raw(value) : value;
}

function parameter(name: string, rng: Rng, known: Known): string {
  return known[name] ? rng.pick(known[name]) : rng.pick(['none', 'a', '1']);
}

/** Percent-encodes a text, which may contain unpaired surrogates. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function send(url: string, agent: Connections, one: Case): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const headers = ['host', `${hostname}:${port}`, ...one.headers];
    const outgoing = request(
      { hostname, port, agent, method: one.method, path: one.path, headers },
      (response) => {
        readAnswer(response).then(resolve, reject);
      },
    );
    outgoing.setTimeout(ANSWER_MS, () => outgoing.destroy(new Error(`no answer in ${ANSWER_MS / 1000} s`)));
    outgoing.on('error', reject);
    outgoing.end(one.body ?? undefined);
  });
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const answer: Answer = {
    status: response.statusCode ?? 0,
    type: response.headers['content-type'] ?? '',
    body: null,
  };
  if (answer.type.startsWith('text/event-stream')) {
    response.destroy();
    return answer;
  }
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response) {
    parts.push(part);
    bytes += part.length;
    if (bytes > ANSWER_BYTES_MAX) {
      response.destroy();
      return answer;
    }
  }
  return { ...answer, body: Buffer.concat(parts).toString() };
}

/** How an answer violates the contract; null if it does not. */
function faultOf(one: Case, { status, type, body }: Answer): string | null {
  const details = `${status} ${body?.slice(0, 500) ?? ''}`;
  if (status >= 500 && status !== 502 && status !== 503) return `a server error: ${details}`;
  if (body === null || one.method === 'HEAD' || one.method === 'OPTIONS') return null;
  if (status >= 400) {
    const parsed = json(body) as { error?: unknown } | undefined;
    const fine = typeof parsed?.error === 'string' && Object.keys(parsed).length === 1;
    return fine ? null : `an error without a message: ${details}`;
  }
  const route: Route = routes[one.operation];
  if (route.raw || one.method !== route.method) return null;
  const answers = route.answers as Record<number, z.ZodType | null>;
  if (!(status in answers)) return `a success status that the contract does not define: ${details}`;
  const schema = answers[status];
  if (!schema) return body === '' ? null : `an unexpected body: ${details}`;
  if (!type.startsWith('application/json')) return `an unexpected content type ${type}: ${details}`;
  const checked = schema.safeParse(json(body));
  return checked.success
    ? null
    : `an answer that does not match the schema, ${checked.error.message}: ${details}`;
}

function json(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function show({ operation, method, path, headers, body }: Case): string {
  const lines = [`${operation}: ${method} ${path.slice(0, 500)}`];
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i] === 'authorization' ? '…' : headers[i + 1]!.slice(0, 100);
    lines.push(`${headers[i]}: ${value}`);
  }
  if (body !== null) lines.push(JSON.stringify(body.toString('latin1').slice(0, 1_000)));
  return lines.join('\n');
}
