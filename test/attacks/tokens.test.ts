/**
 * API tokens against the real program: the holder of a token tries to do more than its scopes allow, to access more than it
 * is limited to, and to get a stronger one.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isPublic, pathParams, type Route } from '../../src/api/route.ts';
import { type OperationId, operationIds, routes } from '../../src/api/routes.ts';
import { sleep } from '../../src/base/async.ts';
import { Client } from '../../src/client/client.ts';
import type { Scope } from '../../src/core/grant.ts';
import { scopeOf } from '../../src/core/policy.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import { TestPlane } from '../../src/testing/plane.ts';

const PASSWORD = 'quite a long password';
const QUESTION = [
  process.execPath,
  fileURLToPath(new URL('../../src/testing/acp-agent.ts', import.meta.url)),
  'permission',
];

let plane: TestPlane;
let olga: Client;
/** The records that the limited tokens are for. */
let allowed_agent: Agent;
/** Olga's other records, to which the limited tokens give no access. */
let other: Agent;
let asker: Agent;
let review_id: string;
const team = {} as { id: string; run_id: string; task_id: string; conversation_id: string; mail_id: string };

const as = (token: string) => new Client({ url: plane.url, token });
const tokenOf = async (
  client: Client,
  more: { scopes?: Scope[]; agent_ids?: string[]; team_ids?: string[] } = {},
) => (await client.call('createToken', { body: { name: 'attacker', ...more } })).token;

interface Answer {
  status: number;
  error: string | null;
  text: string;
}

async function sendRequest(
  token: string | null,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const stop = new AbortController();
  const response = await fetch(plane.url + path, {
    method,
    signal: stop.signal,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { status } = response;
  if (response.headers.get('content-type') === 'text/event-stream') {
    stop.abort();
    return { status, error: null, text: '' };
  }
  const text = await response.text();
  const error = status >= 400 && text !== '' ? (JSON.parse(text) as { error: string }).error : null;
  return { status, error, text };
}

/** The path of a route with these parameters; unknown parameters become `none`. */
function pathOf(route: Route, params: Record<string, string>): string {
  return pathParams(route.path).reduce(
    (text, { name, rest }) =>
      text.replace(`{${name}${rest ? '*' : ''}}`, encodeURIComponent(params[name] ?? 'none')),
    route.path as string,
  );
}

/** Valid bodies and queries for routes that need one, so that the error is about the resource. */
const bodies: Partial<Record<OperationId, unknown>> = {
  updateAgent: { name: 'taken' },
  sendInput: { data: 'x' },
  promptAgent: { text: 'x' },
  editPrompt: { text: 'x' },
  setAgentConfig: { mode_id: 'x' },
  markSeen: { seq: 1 },
  authenticateAgent: { method_id: 'x' },
  respondReview: { decision: 'allow' },
  routeReview: { to_actor_id: 'user:olga' },
  updateTeam: { name: 'taken', version: 1 },
  createTask: { title: 'x' },
  updateTask: { title: 'x' },
  sendMessage: { route: 'broadcast', text: 'x' },
  failRun: { error_text: 'x' },
  addStep: { step_key: 'x', member_id: 'm' },
  failStep: { error_text: 'x' },
  requireStepInput: { reason: 'x' },
};

/** Routes whose path names one of these parameters. */
function routesOf(...names: string[]): { operation: OperationId; route: Route }[] {
  return operationIds
    .map((operation) => ({ operation, route: routes[operation] as Route }))
    .filter(({ route }) => pathParams(route.path).some(({ name }) => names.includes(name)));
}

beforeAll(async () => {
  plane = await TestPlane.open();
  const user = { username: 'olga', password: PASSWORD };
  await plane.client.call('createUser', { body: user });
  olga = as((await new Client({ url: plane.url, token: null }).call('login', { body: user })).token);
  const make = (more: object) =>
    olga.call('createAgent', { body: { name: 'agent', workdir: plane.work, start: true, ...more } });
  allowed_agent = await make({ name: 'given', command: 'exec sleep 1000' });
  other = await make({ name: 'other', command: 'cat', stdin: true });
  asker = await make({ name: 'asker', argv: QUESTION, protocol: 'acp', prompt: 'Ask.' });
  for (;;) {
    const waiting = (await olga.call('listReviews', { query: {} })) as { id: string }[];
    if (waiting[0]) {
      review_id = waiting[0].id;
      break;
    }
    await sleep(20);
  }
  const spec = { members: [{ member_id: 'm' }], steps: [{ step_key: 'a', member_id: 'm' }] };
  team.id = (await olga.call('createTeam', { body: { name: 'team', spec } })).id;
  const params = { team_id: team.id };
  const task = await olga.call('createTask', { params, body: { title: 'Tidy up' } });
  team.task_id = task.id;
  team.conversation_id = task.conversation_id;
  const of_task = { params: { ...params, task_id: task.id }, body: {} };
  team.run_id = (await olga.call('startTaskRun', of_task)).id;
  const mail = { run_id: team.run_id, from_actor_id: 'user:olga', to_actor_id: 'user:olga' };
  team.mail_id = String((await olga.call('sendMail', { body: { ...mail, payload: { is: 'private' } } })).id);
}, 60_000);
afterAll(() => plane?.close());

test('a token with the scope read changes nothing, by any route', async () => {
  const token = await tokenOf(olga, { scopes: ['read'] });
  const params = { agent_id: other.id, review_id, team_id: team.id, run_id: team.run_id, step_key: 'a' };
  const tried = operationIds.filter((operation) => {
    const route: Route = routes[operation];
    return route.method !== 'GET' && !isPublic(route) && scopeOf(route.action) !== 'admin';
  });
  expect(tried).toEqual(expect.arrayContaining(['startAgent', 'stopAgent', 'respondReview', 'createAgent']));
  for (const operation of tried) {
    const route: Route = routes[operation];
    const { status, error } = await sendRequest(
      token,
      route.method,
      pathOf(route, params),
      bodies[operation],
    );
    expect([operation, status, error]).toEqual([
      operation,
      403,
      `token lacks scope ${scopeOf(route.action)}`,
    ]);
  }
  const now = await olga.call('getAgent', { params: { agent_id: other.id } });
  expect(now).toMatchObject({ status: 'running', session_id: other.session_id, name: 'other' });
  expect(await olga.call('getReview', { params: { review_id } })).toMatchObject({ status: 'pending' });
});

test('a token with the scope read does not mark mail as delivered', async () => {
  const read = as(await tokenOf(olga, { scopes: ['read'] }));
  const inbox = { params: { actor_id: 'user:olga' }, query: {} };
  expect(await read.call('listMail', inbox)).toMatchObject([{ status: 'pending' }]);
  const message = { params: { message_id: team.mail_id } };
  expect(await olga.call('getMail', message)).toMatchObject({ status: 'pending' });
});

test('a token with the scope manage creates no agent that it may not start', async () => {
  const token = await tokenOf(olga, { scopes: ['manage'] });
  const body = { name: 'started', workdir: plane.work, command: 'true', start: true };
  const { status, error } = await sendRequest(token, 'POST', '/api/agents', body);
  expect([status, error]).toEqual([403, 'token lacks scope operate']);
  expect(await olga.call('listAgents', { query: { name: 'started' } })).toEqual([]);
});

test('a token with the scope operate can act on agents, but cannot read records', async () => {
  const token = await tokenOf(olga, { scopes: ['operate'] });
  const sent = await sendRequest(token, 'POST', `/api/agents/${other.id}/input`, { data: 'hello\n' });
  expect(sent.status).toBe(200);
  const { status, error } = await sendRequest(token, 'GET', `/api/agents/${other.id}`);
  expect([status, error]).toEqual([403, 'token lacks scope read']);
});

test('a limited token does not find another agent of its user, by any route', async () => {
  const token = await tokenOf(olga, { agent_ids: [allowed_agent.id] });
  expect((await sendRequest(token, 'GET', `/api/agents/${allowed_agent.id}`)).status).toBe(200);
  const about = routesOf('agent_id');
  expect(about.length).toBeGreaterThan(20);
  for (const { operation, route } of about) {
    for (const { id } of [other, asker]) {
      const query = operation === 'searchLog' ? '?q=x' : '';
      const path = pathOf(route, { agent_id: id }) + query;
      const { status, error } = await sendRequest(token, route.method, path, bodies[operation]);
      expect([operation, status, error]).toEqual([operation, 404, 'agent not found']);
    }
  }
  const now = await olga.call('getAgent', { params: { agent_id: other.id } });
  expect(now).toMatchObject({ status: 'running', session_id: other.session_id, name: 'other' });
});

test('a limited token does not find reviews, teams, runs, tasks and mail outside of its limits', async () => {
  const token = await tokenOf(olga, { agent_ids: [allowed_agent.id] });
  const params = {
    ...{ review_id, team_id: team.id, run_id: team.run_id, task_id: team.task_id, step_key: 'a' },
    ...{ conversation_id: team.conversation_id, message_id: team.mail_id },
  };
  for (const { operation, route } of routesOf('review_id', 'team_id', 'run_id', 'message_id')) {
    const { status, error } = await sendRequest(
      token,
      route.method,
      pathOf(route, params),
      bodies[operation],
    );
    expect([operation, status]).toEqual([operation, 404]);
    expect(error).toMatch(/^(permission review|team|run|message) not found$/);
  }
});

test('lists, mailboxes and the fleet feed contain nothing outside of the limits of a token', async () => {
  const token = await tokenOf(olga, { agent_ids: [allowed_agent.id] });
  const limited = as(token);
  const agents = (await limited.call('listAgents', { query: {} })) as Agent[];
  expect(agents.map(({ id }) => id)).toEqual([allowed_agent.id]);
  expect(await limited.call('listAgents', { query: { name: 'other' } })).toEqual([]);
  expect(await limited.call('listReviews', { query: { agent_id: asker.id } })).toEqual([]);
  expect(await limited.call('listTeams', { query: {} })).toEqual([]);
  const actor = { params: { actor_id: 'user:olga' } };
  expect(await limited.call('listMail', { ...actor, query: {} })).toEqual([]);
  expect(await limited.call('listTriggers', { ...actor, query: {} })).toEqual([]);
  const inbox = await sendRequest(token, 'GET', `/api/actor/user:olga/mailbox?run_id=${team.run_id}`);
  expect([inbox.status, inbox.error]).toEqual([404, 'run not found']);
  const member = await sendRequest(token, 'GET', `/api/actor/m@${team.id}/mailbox`);
  expect([member.status, member.error]).toEqual([400, `unknown actor: m@${team.id}`]);

  // From the start and across a restart: stored events are filtered like live ones.
  await plane.kill();
  await plane.start();
  const last = { labels: { is: 'the-last-change' } };
  await olga.call('updateAgent', { params: { agent_id: allowed_agent.id }, body: last });
  const stop = new AbortController();
  let received = '';
  for await (const { data } of limited.follow('followAll', { query: { after: 0 }, signal: stop.signal })) {
    received += JSON.stringify(data);
    if (received.includes('the-last-change')) stop.abort();
  }
  expect(received).toContain(allowed_agent.id);
  for (const id of [other.id, asker.id, review_id, team.id, team.run_id, team.task_id])
    expect(received).not.toContain(id);
});

test('a token that is limited to a team gives access to what belongs to it, and to no other agent', async () => {
  const token = await tokenOf(olga, { team_ids: [team.id] });
  const limited = as(token);
  const run = { team_id: team.id, run_id: team.run_id };
  expect(await limited.call('getRun', { params: run })).toMatchObject({ id: team.run_id });
  const inbox = { params: { actor_id: 'user:olga' }, query: {} };
  expect(await limited.call('listMail', inbox)).toMatchObject([{ payload: { is: 'private' } }]);
  const { status, error } = await sendRequest(token, 'GET', `/api/agents/${allowed_agent.id}`);
  expect([status, error]).toEqual([404, 'agent not found']);
});

test('a limited token can neither create agents or teams nor change the account', async () => {
  const token = await tokenOf(olga, { agent_ids: [allowed_agent.id] });
  const device = { endpoint: 'https://push.example.org/x', keys: { p256dh: 'x', auth: 'x' } };
  for (const [method, path, body] of [
    ['POST', '/api/agents', { name: 'more', workdir: plane.work, command: 'true' }],
    ['POST', '/api/teams', { name: 'more', spec: { members: [{ member_id: 'm' }] } }],
    ['POST', '/api/tokens', { name: 'more' }],
    ['GET', '/api/tokens', undefined],
    ['GET', '/api/me/sessions', undefined],
    ['POST', '/api/push/subscriptions', device],
    ['POST', '/api/me/password', { current_password: PASSWORD, new_password: 'another long password' }],
  ] as const) {
    const { status, error } = await sendRequest(token, method, path, body);
    expect([path, status, error]).toEqual([path, 403, 'token is limited to certain agents or teams']);
  }
});

test('a limited token gets no response that was stored for another token of its user', async () => {
  const token = await tokenOf(olga, { agent_ids: [allowed_agent.id] });
  const unlimited = await tokenOf(olga);
  const request = ['POST', `/api/agents/${other.id}/input`, { data: 'once\n' }] as const;
  const key = { 'idempotency-key': 'a-key-that-leaked' };
  expect((await sendRequest(unlimited, ...request, key)).status).toBe(200);
  const replayed = await sendRequest(token, ...request, key);
  expect([replayed.status, replayed.error]).toEqual([409, 'idempotency key reused with a different request']);
  expect(replayed.text).not.toContain(other.workdir);
});

test('a token whose agent is deleted gives access to nothing', async () => {
  const brief = await olga.call('createAgent', {
    body: { name: 'brief', workdir: plane.work, command: 'true' },
  });
  const limited = as(await tokenOf(olga, { agent_ids: [brief.id] }));
  await olga.call('deleteAgent', { params: { agent_id: brief.id }, query: {} });
  expect(await limited.call('listAgents', { query: {} })).toEqual([]);
  await expect(limited.call('getAgent', { params: { agent_id: allowed_agent.id } })).rejects.toThrow(
    'agent not found',
  );
});

test('no token can create or refresh a token, or add a passkey, whatever its scopes', async () => {
  const all: Scope[] = ['read', 'operate', 'manage', 'admin', 'metrics'];
  for (const token of [await tokenOf(plane.client, { scopes: all }), await tokenOf(olga)]) {
    for (const [path, body] of [
      ['/api/tokens', { name: 'more', scopes: ['read'] }],
      ['/api/token/refresh', {}],
      ['/api/passkeys/registration/start', {}],
    ] as const) {
      const { status, error } = await sendRequest(token, 'POST', path, body);
      expect([path, status, error]).toEqual([path, 403, 'not allowed']);
    }
  }
});

test('a user gets no token with a scope of root, and none for records of others', async () => {
  const foreign = await plane.create({ name: 'foreign', command: 'true' });
  for (const [body, error] of [
    [{ scopes: ['admin'] }, 'scopes must not contain admin: only root may grant it'],
    [{ scopes: ['read', 'metrics'] }, 'scopes must not contain metrics: only root may grant it'],
    [{ scopes: ['all'] }, 'scopes[] must be one of: read, operate, manage, admin, metrics'],
    [{ scopes: [] }, 'scopes must have at least 1 entries'],
    [{ agent_ids: [] }, 'agent_ids must have at least 1 entries'],
    [{ agent_ids: [foreign.id] }, `agent_ids must name agents that you can see: ${foreign.id} is unknown`],
    [{ team_ids: ['team_none'] }, 'team_ids must name teams that you can see: team_none is unknown'],
  ] as const) {
    const answer = () => olga.call('createToken', { body: { name: 'more', ...body } as never });
    await expect(answer()).rejects.toThrow(error);
  }
});

test('a token of root without the scope admin gives no rights of root', async () => {
  const token = await tokenOf(plane.client);
  const params = { user_id: 'none', node_id: 'none' };
  const tried = operationIds.filter((operation) => scopeOf(routes[operation].action) === 'admin');
  expect(tried.length).toBeGreaterThan(10);
  for (const operation of tried) {
    const route: Route = routes[operation];
    const { status, error } = await sendRequest(token, route.method, pathOf(route, params));
    expect([operation, status, error]).toEqual([operation, 403, 'token lacks scope admin']);
  }
});

test('metrics require a token with the scope metrics, even for local programs and agents', async () => {
  const closed = await sendRequest(null, 'GET', '/metrics');
  expect([closed.status, closed.error]).toEqual([401, 'missing authorization token']);
  const script = `fetch('${plane.url}/metrics').then(async (r) => console.log(r.status, await r.text()))`;
  const agent = await plane.agent([process.execPath, '-e', script]);
  await plane.finished(agent.id);
  expect(String(await plane.output(agent.id))).toBe('401 {"error":"missing authorization token"}\n');
  const all_but: Scope[] = ['read', 'operate', 'manage', 'admin'];
  const without = await sendRequest(await tokenOf(plane.client, { scopes: all_but }), 'GET', '/metrics');
  expect([without.status, without.error]).toEqual([403, 'token lacks scope metrics']);
  const watcher = await tokenOf(plane.client, { scopes: ['metrics'] });
  expect((await sendRequest(watcher, 'GET', '/metrics')).text).toContain('svc_http_requests_total');
  const reading = await sendRequest(watcher, 'GET', '/api/agents');
  expect([reading.status, reading.error]).toEqual([403, 'token lacks scope read']);
});
