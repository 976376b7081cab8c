/**
 * Calls every method on the actor listener of a real plane, over TLS, with session tokens, with tokens made from the shared
 * secret, and with other credentials, as the caller itself and as other actors. The expected result follows from the
 * credential, the actor's role and `src/features/actors/rules/rights.ts`. `svc actor` and `svc mcp --actor` use this listener
 * and no other.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { type Clock, systemClock } from '../src/base/clock.ts';
import { Client } from '../src/client/client.ts';
import { scopes } from '../src/core/grant.ts';
import { notAllowedAs, problemKinds, problems } from '../src/core/problem.ts';
import { type ActorMethod, actorMethods } from '../src/features/actors/contract.ts';
import { type ActorAction, type ActorRole, authorizeAction } from '../src/features/actors/rules/rights.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import type { Run, Step } from '../src/features/runs/rules/run.ts';
import { type Connection, openConnection } from '../src/link/plane/connection.ts';
import { ActorService } from '../src/link/proto/actor_pb.ts';
import { mintToken, type TokenSettings } from '../src/link/trust/tokens.ts';
import { toProblem } from '../src/link/wire.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { ASKER } from '../src/testing/conversation.ts';
import { is_long } from '../src/testing/long.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

const PASSWORD = 'quite a long password';
const settings: TokenSettings = {
  shared_secret: 'a shared secret of more than 32 bytes',
  issuer: 'svc',
  audience: 'svc-internal',
};

let plane: TestPlane;
let listener: Connection;
/** A run of each of two similar teams: Olga's, with Hugo as a human member, and Sven's. */
const runs: Record<'a' | 'b', Run> = {} as never;
const tokens: Record<string, string> = {};
let review_id: string;
let mail_id: number;

/** An actor: `<member>@a`, `<member>@b`, or a human (`user:<name>`). */
type Actor = string;
const idOf = (who: Actor) => who.replace(/@([ab])$/, (_, name: 'a' | 'b') => `@${runs[name].team_id}`);
const teamOf = (who: Actor) => /@([ab])$/.exec(who)?.[1] as 'a' | 'b' | undefined;
const roles: Record<Actor, ActorRole> = { 'lead@a': 'leader', 'lead@b': 'leader' };
const roleOf = (who: Actor): ActorRole => (who.startsWith('user:') ? 'human' : (roles[who] ?? 'worker'));
/** The teams in whose runs each human may act. */
const humans: Record<Actor, ('a' | 'b')[]> = {
  'user:ana': ['a', 'b'],
  'user:olga': ['a'],
  'user:hugo': ['a'],
  'user:sven': ['b'],
};

beforeAll(async () => {
  plane = await TestPlane.open({
    env: {
      ...WITH_NODES,
      SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: settings.shared_secret,
      SVC_REVIEWS_LEADER_TIMEOUT_SECONDS: '3600',
    },
  });
  const clients = new Map<string, Client>();
  for (const username of ['olga', 'hugo', 'sven']) {
    const body = { username, password: PASSWORD };
    await plane.client.call('createUser', { body });
    const { token } = await new Client({ url: plane.url }).call('login', { body });
    clients.set(username, new Client({ url: plane.url, token }));
  }
  const workdir = plane.work;
  const long_running = { command: 'exec sleep 1000', workdir };
  const brief = { command: 'cat "$SVC_ACTOR_TOKEN_FILE"', workdir };
  const spec = {
    leader_member_id: 'lead',
    review_route: 'leader',
    members: [
      { member_id: 'lead', agent: long_running },
      { member_id: 'hand', agent: long_running },
      { member_id: 'brief', agent: brief },
      { member_id: 'asker', agent: { argv: ASKER, protocol: 'acp', workdir } },
      { member_id: 'guest' },
    ],
    steps: [
      { step_key: 'lead', member_id: 'lead' },
      { step_key: 'hand', member_id: 'hand' },
      { step_key: 'brief', member_id: 'brief' },
      { step_key: 'ask', member_id: 'asker', prompt: 'Ask.' },
      // These steps never start: callers that may end them get `step is pending`.
      { step_key: 'hand-later', member_id: 'hand', depends_on: ['lead'] },
      { step_key: 'guest-later', member_id: 'guest', depends_on: ['lead'] },
    ],
  };
  for (const [name, owner, human_members] of [
    ['a', 'olga', ['hugo']],
    ['b', 'sven', []],
  ] as const) {
    const client = clients.get(owner)!;
    const body = { name, human_members: [...human_members], spec: spec as never };
    const { id: team_id } = await client.call('createTeam', { body });
    runs[name] = await client.call('createRun', { params: { team_id }, body: {} });
    for (const step_key of ['lead', 'hand'])
      tokens[`${step_key}@${name}`] = await tokenOf(await agentOf(runs[name], step_key));
  }
  tokens['brief@a'] = String((await stepWhen(runs.a, 'brief', 'completed')).output).trim();
  const solo = await plane.agent('exec sleep 1000');
  tokens.solo = await tokenOf(solo);
  await stepWhen(runs.a, 'ask', 'running');
  for (;;) {
    const waiting = (await plane.client.call('listReviews', { query: {} })) as {
      id: string;
      run_id: string;
    }[];
    const own = waiting.find(({ run_id }) => run_id === runs.a.id);
    if (own) {
      review_id = own.id;
      break;
    }
    await sleep(20);
  }

  const dir = join(plane.data_dir, 'actor');
  const { endpoint } = JSON.parse(await readFile(join(dir, 'actor.json'), 'utf8')) as { endpoint: string };
  const { hostname: host, port } = new URL(endpoint);
  const tls = { ca: await readFile(join(dir, 'ca.pem'), 'utf8') };
  listener = await openConnection({ host, port: Number(port), servername: host, tls });

  // A message for every mailbox, so that `receive` returns at once, and one message to acknowledge.
  for (const name of ['a', 'b'] as const) {
    for (const to of ['lead', 'hand', 'guest', 'user:ana', name === 'a' ? 'user:olga' : 'user:sven'])
      await call('send', { to, payload: {}, run_id: runs[name].id }, await mint({ as: `lead@${name}` }));
  }
  await call('send', { to: 'user:hugo', payload: {}, run_id: runs.a.id }, await mint({ as: 'lead@a' }));
  const sent = await call(
    'send',
    { to: 'lead', payload: { n: 1 }, run_id: runs.a.id },
    await mint({ as: 'hand@a' }),
  );
  mail_id = (sent as { id: number }).id;
}, 60_000);
afterAll(async () => {
  listener?.close();
  await plane?.close();
});

async function stepWhen(run: Run, key: string, status: Step['status']): Promise<Step> {
  for (;;) {
    const params = { team_id: run.team_id, run_id: run.id };
    const step = (await plane.client.call('listSteps', { params })).find(({ step_key }) => step_key === key)!;
    if (step.status === status) return step;
    await sleep(20);
  }
}

async function agentOf(run: Run, step_key: string): Promise<Agent> {
  const { agent_id } = await stepWhen(run, step_key, 'running');
  return plane.until(agent_id!, ['running']);
}

async function tokenOf({ session_id }: Agent): Promise<string> {
  return (await readFile(join(plane.data_dir, 'actor', `${session_id}.token`), 'utf8')).trim();
}

/** Makes a token from the shared secret that names an actor. Each token is valid once. */
function mint({ as = '' as Actor, clock = systemClock as Clock, changed = {} as Partial<TokenSettings> }) {
  return mintToken({ ...settings, ...changed }, as && idOf(as), clock, { kind: 'actor' });
}

/** Returns the result, or the message of the error. */
async function call(method: string, params: object, token: string | null): Promise<unknown> {
  try {
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    const request = { method, params: JSON.stringify(params) };
    return JSON.parse(
      (await createClient(ActorService, listener.transport).call(request, { headers })).result,
    );
  } catch (error) {
    return toProblem(error, problemKinds).message;
  }
}

// --- methods ----------------------------------------------------------------------------------------------------------

interface Row {
  /** Null: every role may call the method. */
  action: ActorAction | null;
  /** The member of the step in `params`, who needs only `own_step.end`. Others need `action`. */
  own?: Actor;
  params?: () => object;
  /** The call does not name a run. */
  runless?: true;
  /** The error for callers with the right. Absent or null: they get a result. */
  passes?: string | ((as: Actor) => string | null);
}

const reviewers = (as: Actor): string => {
  if (teamOf(as) === 'b' || as === 'user:sven') return 'permission review not found';
  if (roleOf(as) === 'worker') return problems.workerReviewToWorker().message;
  return 'unknown option_id';
};

const rows: Record<ActorMethod, Row> = {
  whoami: { action: null, runless: true },
  'team-members': { action: 'team.see' },
  'run-members': { action: 'team.see' },
  inbox: { action: 'mail.use' },
  receive: { action: 'mail.use' },
  ack: {
    action: 'mail.use',
    runless: true,
    params: () => ({ message_id: mail_id }),
    passes: (as) => (as === 'lead@a' ? null : 'message not found'),
  },
  send: { action: 'mail.use', params: () => ({ to: 'guest', payload: {} }) },
  'step-list': { action: 'steps.see' },
  'step-add': {
    action: 'steps.add',
    params: () => ({ step_key: 'more', member_id: 'none' }),
    passes: 'member_id must reference a defined member',
  },
  'step-complete': {
    action: 'steps.end',
    own: 'guest',
    params: () => ({ step_key: 'guest-later' }),
    passes: 'step is pending',
  },
  'step-fail': {
    action: 'steps.end',
    own: 'hand',
    params: () => ({ step_key: 'hand-later', error_text: 'x' }),
    passes: 'step is pending',
  },
  'step-input-required': {
    action: 'steps.end',
    own: 'hand',
    params: () => ({ step_key: 'hand-later', reason: 'x' }),
    passes: 'step is pending',
  },
  // Called last, because sessions end with their run.
  'run-complete': { action: 'run.end' },
  'run-fail': { action: 'run.end', params: () => ({ error_text: ' ' }), passes: 'error_text is required' },
  'time-trigger-list': { action: 'triggers.use' },
  'time-trigger-set': {
    action: 'triggers.use',
    params: () => ({ every_seconds: 86_400, payload: {} }),
  },
  'time-trigger-cancel': {
    action: 'triggers.use',
    runless: true,
    params: () => ({ trigger_id: 'none' }),
    passes: 'trigger not found',
  },
  'permission-review-list': { action: null, runless: true },
  'permission-review-respond': {
    action: null,
    runless: true,
    params: () => ({ review_id, option_id: 'none' }),
    passes: reviewers,
  },
};

// --- credentials ------------------------------------------------------------------------------------------------------

interface Credential {
  name: string;
  kind: 'session' | 'secret' | 'nobody';
  /** The actor that the credential names. Null: none. */
  as: Actor | null;
  token: () => Promise<string | null> | string | null;
}

const session = (as: Actor): Credential => ({
  name: `${as}, with its session token`,
  kind: 'session',
  as,
  token: () => tokens[as]!,
});
const holder = (as: Actor | null): Credential => ({
  name: `a holder of the shared secret, as ${as ?? 'nobody'}`,
  kind: 'secret',
  as,
  token: () => mint({ as: as ?? '' }),
});
const nobody = (name: string, token: Credential['token']): Credential => ({
  name,
  kind: 'nobody',
  as: null,
  token,
});
const HOUR_MS = 3_600_000;
const at = (offset_ms: number): Clock => ({ now: () => Date.now() + offset_ms });
const forged = (alg: string, secret = settings.shared_secret) =>
  new SignJWT({ jti: 'x' })
    .setProtectedHeader({ alg, typ: 'svc-actor+jwt' })
    .setIssuer('svc')
    .setAudience('svc-internal')
    .setSubject('user:ana')
    .setIssuedAt()
    .setNotBefore('0s')
    .setExpirationTime('1m')
    .sign(new TextEncoder().encode(secret.padEnd(64, '.')));

let every_scope: Promise<{ token: string }> | undefined;
const withEveryScope = async () => {
  const body = { name: 'every scope', scopes: [...scopes] };
  every_scope ??= plane.client.call('createToken', { body });
  return (await every_scope).token;
};

const credentials: Credential[] = [
  session('lead@a'),
  session('hand@a'),
  session('lead@b'),
  session('hand@b'),
  { ...session('solo'), as: null },
  holder(null),
  ...['lead@a', 'hand@a', 'guest@a', 'hand@b', 'user:ana', 'user:olga', 'user:hugo', 'user:sven'].map(holder),
  nobody('a caller without a token', () => null),
  nobody('an agent whose session has ended', () => tokens['brief@a']!),
  nobody('an agent with the session id of another agent', () => {
    const [, mac] = tokens['hand@a']!.split('.');
    return `${tokens['lead@a']!.split('.')[0]}.${mac}`;
  }),
  nobody('root, with a sign-in token', () => plane.token),
  nobody('root, with an API token for every scope', withEveryScope),
  nobody(
    'a node, with the bootstrap token',
    async () => (await plane.client.call('getBootstrapToken')).token,
  ),
  nobody('a plane, with a link token', () => mintToken(settings, 'pln_x', systemClock)),
  nobody('a token made from another secret', () =>
    mint({ as: 'user:ana', changed: { shared_secret: 'x'.repeat(40) } }),
  ),
  nobody('a token of another issuer', () => mint({ as: 'user:ana', changed: { issuer: 'other' } })),
  nobody('a token for another audience', () => mint({ as: 'user:ana', changed: { audience: 'other' } })),
  nobody('an expired token', () => mint({ as: 'user:ana', clock: at(-HOUR_MS) })),
  nobody('a token that is not valid yet', () => mint({ as: 'user:ana', clock: at(HOUR_MS) })),
  nobody('an unsigned token', () => new UnsecuredJWT({ sub: 'user:ana' }).encode()),
  nobody('a token with another algorithm', () => forged('HS512')),
];

/** The actors that each caller acts as. Undefined: itself. */
const acted_as: (Actor | undefined)[] = [
  undefined,
  ...['lead@a', 'hand@a', 'guest@a', 'hand@b', 'user:ana', 'user:olga', 'user:sven'],
];

/** The run that the call names. A session needs none. */
function runFor({ kind }: Credential, who: Actor | null): 'a' | 'b' | undefined {
  return kind === 'session' || who === null ? undefined : (teamOf(who) ?? humans[who]![0]);
}

function refusalOf(method: ActorMethod, { kind, as }: Credential, act_as: Actor | undefined): string | null {
  const { action, own, passes } = rows[method];
  if (kind === 'nobody') return 'unauthorized';
  const who = act_as ?? as;
  if (kind === 'session' && act_as !== undefined && act_as !== as) return notAllowedAs(idOf(act_as)).message;
  if (who === null && kind === 'secret' && method.startsWith('permission-review-'))
    return refusalOf(method, { ...holder('user:ana') }, undefined);
  if (who === null) return method === 'whoami' ? null : 'actor_id is required';
  const right = own !== undefined && who.startsWith(`${own}@`) ? 'own_step.end' : action;
  try {
    if (right !== null) authorizeAction(roleOf(who), right);
  } catch (error) {
    return (error as Error).message;
  }
  return typeof passes === 'function' ? passes(who) : (passes ?? null);
}

test('the table has a row for every method', () => {
  expect(Object.keys(rows).toSorted()).toEqual(Object.keys(actorMethods).toSorted());
});

async function cell(
  method: ActorMethod,
  credential: Credential,
  act_as: Actor | undefined,
): Promise<string | null> {
  const who = act_as ?? credential.as;
  const run = rows[method].runless ? undefined : runFor(credential, who);
  const got = await call(
    method,
    {
      ...rows[method].params?.(),
      ...(act_as !== undefined && { actor_id: idOf(act_as) }),
      ...(run !== undefined && { run_id: runs[run].id }),
    },
    await credential.token(),
  );
  return typeof got === 'string' ? got : null;
}

test('every method allows exactly what the credential, role and step of the caller permit', {
  timeout: 120_000,
}, async () => {
  const wrong: unknown[] = [];
  let cells = 0;
  const check = async (
    method: ActorMethod,
    credential: Credential,
    act_as: Actor | undefined,
    expected: string | null,
  ) => {
    const got = await cell(method, credential, act_as);
    cells++;
    if (got !== expected)
      wrong.push([`${method} by ${credential.name} as ${act_as ?? 'itself'}`, { got, wants: expected }]);
  };
  const ending: [Credential, Actor | undefined][] = [];
  for (const [row, method] of (Object.keys(rows) as ActorMethod[]).entries()) {
    for (const [column, credential] of credentials.entries()) {
      for (const [at, act_as] of acted_as.entries()) {
        // In `npm test`, an invalid credential acts as two of the eight actors, and as other ones in the next method.
        if (credential.kind === 'nobody' && (row + column + at) % 4 !== 0 && !is_long) continue;
        const expected_result = refusalOf(method, credential, act_as);
        if (method === 'run-complete' && expected_result === null) ending.push([credential, act_as]);
        else await check(method, credential, act_as, expected_result);
      }
    }
  }
  // The first caller that may end a run ends it. Later ones get `run is completed`, and sessions of the run `unauthorized`.
  const over = new Set<string>();
  for (const [credential, act_as] of ending) {
    const run = teamOf(act_as ?? credential.as!) ?? humans[act_as ?? credential.as!]![0]!;
    if (over.has(run) && credential.kind === 'session')
      await check('run-complete', credential, act_as, 'unauthorized');
    else await check('run-complete', credential, act_as, over.has(run) ? 'run is completed' : null);
    if (!over.has(run)) await untilOver(run);
    over.add(run);
  }
  expect([...over].toSorted()).toEqual(['a', 'b']);
  for (const who of ['lead@a', 'hand@a', 'lead@b', 'hand@b'])
    expect([who, await call('whoami', {}, tokens[who]!)]).toEqual([who, 'unauthorized']);
  expect(wrong).toEqual([]);
  expect(cells).toBeGreaterThan(is_long ? 4_000 : 2_000);
  expect(plane.log).not.toContain('an actor call failed');
});

/** Waits until the tokens of the run's agents are invalid: the end of a run stops its agents. */
async function untilOver(name: 'a' | 'b'): Promise<void> {
  for (const who of [`lead@${name}`, `hand@${name}`]) {
    while ((await call('whoami', {}, tokens[who]!)) !== 'unauthorized') await sleep(20);
  }
}

test('an agent cannot act in another run of its team, and a token made from the secret is valid once', async () => {
  const { client } = plane;
  const { team_id } = runs.a;
  const run = await client.call('createRun', { params: { team_id }, body: {} });
  const hand = await tokenOf(await agentOf(run, 'hand'));
  const named = (run_id: string) => call('step-list', { run_id }, hand);
  expect(await named(run.id)).toMatchObject({ steps: expect.any(Array) });
  for (const run_id of [runs.a.id, runs.b.id, 'run_none']) expect(await named(run_id)).toBe('run not found');
  // A holder of the shared secret cannot act in a run of another team than the actor's.
  const mixed = { actor_id: idOf('hand@b'), run_id: run.id };
  expect(await call('step-list', mixed, await mint({}))).toBe(`unknown actor: ${idOf('hand@b')}`);
  const stranger = { actor_id: 'user:sven', run_id: run.id };
  expect(await call('step-list', stranger, await mint({}))).toBe('unknown actor: user:sven');
  const once = await mint({ as: 'user:ana' });
  expect(await call('whoami', {}, once)).toMatchObject({ actor_id: `user:${ROOT.username}` });
  expect(await call('whoami', {}, once)).toBe('unauthorized');
});
