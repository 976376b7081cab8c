import { once } from 'node:events';
import http2 from 'node:http2';
import net from 'node:net';
import tls from 'node:tls';
import { createClient } from '@connectrpc/connect';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import { silentLog } from '../../base/log.ts';
import { invalid, Problem, problemKinds, problems } from '../../core/problem.ts';
import { actorMethods } from '../../features/actors/contract.ts';
import { type Connection, openConnection } from '../../link/plane/connection.ts';
import { ActorService } from '../../link/proto/actor_pb.ts';
import { makeCa, makeKey, makeLeaf } from '../../link/trust/pki.ts';
import { toProblem } from '../../link/wire.ts';
import { limits } from './limits.ts';
import { type ActorListener, type ActorListenerOptions, openActorListener } from './listener.ts';
import { waitingMethods } from './service.ts';

async function openTestListener(more: Partial<ActorListenerOptions> = {}): Promise<ActorListener> {
  const listener = await openActorListener({
    host: '127.0.0.1',
    port: 0,
    certificate: null,
    call: async (call) => call,
    log: silentLog,
    ...more,
  });
  onTestFinished(() => listener.close());
  return listener;
}

async function dial({ port }: ActorListener, ca: string | null = null): Promise<Connection> {
  const connection = await openConnection({
    ...{ host: '127.0.0.1', port, servername: '127.0.0.1' },
    tls: ca === null ? null : { ca },
  });
  onTestFinished(() => connection.close());
  return connection;
}

/** The response: the result, or the kind and message of the error. */
async function ask(
  { transport }: Connection,
  { method = 'm', params = '{}', authorization = 'Bearer t' as string | null } = {},
): Promise<unknown> {
  try {
    const headers = authorization === null ? {} : { authorization };
    const { result } = await createClient(ActorService, transport).call({ method, params }, { headers });
    return JSON.parse(result);
  } catch (error) {
    const { kind, message } = toProblem(error, problemKinds);
    return `${kind}: ${message}`;
  }
}

test('passes on a call with its token and caller address, and returns the answer', async () => {
  const connection = await dial(await openTestListener());
  expect(await ask(connection, { params: '{"a":[1,"ü"]}', authorization: 'bearer a.b-c_d' })).toEqual({
    ...{ method: 'm', params: '{"a":[1,"ü"]}', token: 'a.b-c_d', ip: '127.0.0.1' },
  });
});

test('rejects a call without a bearer token before handling it', async () => {
  let calls = 0;
  const connection = await dial(await openTestListener({ call: async () => calls++ }));
  const long = `Bearer ${'x'.repeat(sharedLimits.link_token_chars_max + 1)}`;
  for (const authorization of [null, '', 'Bearer', 'Bearer ', 'Basic x', 'Bearer a b', long])
    expect(await ask(connection, { authorization })).toBe('unauthenticated: unauthorized');
  expect(calls).toBe(0);
});

test('serves gRPC only, and no other protocol of the library', async () => {
  const { port } = await openTestListener();
  const session = http2.connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  for (const type of ['application/json', 'application/proto', 'application/grpc-web+proto']) {
    const head = { ':method': 'POST', ':path': '/svc.actor.v1.ActorService/Call', 'content-type': type };
    const stream = session.request({ ...head, authorization: 'Bearer t' });
    stream.end('{"method":"m","params":"{}"}');
    const [answer] = await once(stream.resume(), 'response');
    expect([type, answer[':status']]).toEqual([type, 415]);
  }
});

test('accepts only calls of a limited size', async () => {
  const connection = await dial(await openTestListener({ call: async () => 'passed' }));
  const quoted = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2));
  const most = limits.actor_params_bytes_max;
  expect(await ask(connection, { params: quoted(most) })).toBe('passed');
  expect(await ask(connection, { params: quoted(most + 1) })).toBe('too_large: the call is too large');
  expect(await ask(connection, { method: 'x'.repeat(65) })).toBe('too_large: the call is too large');
  // The listener stops reading before the end.
  expect(await ask(connection, { params: quoted(4 * most) })).not.toBe('passed');
  expect(await ask(connection, { params: '[]' })).toBe('passed');
});

/** A listener whose calls wait until they are released. The tokens that begin with `s` are genuine. */
async function openHeld(more: Partial<ActorListenerOptions> = {}) {
  const held: (() => void)[] = [];
  const listener = await openTestListener({
    call: () => new Promise((resolve) => held.push(() => resolve(null))),
    isGenuine: (token) => token.startsWith('s'),
    ...more,
  });
  const held_are = (count: number) => expect.poll(() => held.length).toBe(count);
  const releaseAll = () => {
    for (const release of held) release();
  };
  return { listener, held, held_are, releaseAll };
}

/** `count` calls with one token, over as many connections as they need. */
async function callers(
  listener: ActorListener,
  count: number,
  call: { method?: string; authorization?: string },
): Promise<Promise<unknown>[]> {
  const calls: Promise<unknown>[] = [];
  while (calls.length < count) {
    const connection = await dial(listener);
    for (let i = 0; i < sharedLimits.actor_streams_max && calls.length < count; i++)
      calls.push(ask(connection, call));
  }
  return calls;
}
const FULL = 'rate_limited: too many calls at once';

test('limits concurrent calls, and frees a slot when a call is answered', async () => {
  const { listener, held, held_are, releaseAll } = await openHeld();
  const calls = [];
  for (let i = 0; i < limits.actor_calls_max / sharedLimits.actor_calls_per_token; i++) {
    calls.push(
      ...(await callers(listener, sharedLimits.actor_calls_per_token, { authorization: `Bearer s${i}` })),
    );
  }
  await held_are(limits.actor_calls_max);
  const late = await dial(listener);
  expect(await ask(late)).toBe(FULL);
  held.shift()!();
  await Promise.race(calls);
  const next = ask(late);
  await held_are(limits.actor_calls_max);
  releaseAll();
  expect(await next).toBeNull();
  expect(await Promise.all(calls)).toEqual(calls.map(() => null));
});

test('reserves slots for calls that do not wait for mail', async () => {
  const { listener, held_are, releaseAll } = await openHeld();
  const calls = [];
  for (let i = 0; i < limits.actor_receives_max / sharedLimits.actor_receives_per_token; i++) {
    const call = { method: 'receive', authorization: `Bearer s${i}` };
    calls.push(...(await callers(listener, sharedLimits.actor_receives_per_token, call)));
  }
  await held_are(limits.actor_receives_max);
  const another = await dial(listener);
  expect(await ask(another, { method: 'receive' })).toBe(FULL);
  const call = ask(another);
  await held_are(limits.actor_receives_max + 1);
  releaseAll();
  expect(await call).toBeNull();
  expect(await Promise.all(calls)).toEqual(calls.map(() => null));
});

test('limits the concurrent calls with one token', async () => {
  const { listener, held_are, releaseAll } = await openHeld();
  const own = { authorization: 'Bearer s1' };
  const receive = { ...own, method: 'receive' };
  const calls = await callers(listener, sharedLimits.actor_receives_per_token, receive);
  await held_are(sharedLimits.actor_receives_per_token);
  const [refused] = await callers(listener, 1, receive);
  expect(await refused).toBe(FULL);
  calls.push(...(await callers(listener, sharedLimits.actor_calls_per_token - calls.length, own)));
  await held_are(sharedLimits.actor_calls_per_token);
  const [late] = await callers(listener, 1, own);
  expect(await late).toBe(FULL);
  calls.push(...(await callers(listener, 1, { ...receive, authorization: 'Bearer s2' })));
  await held_are(sharedLimits.actor_calls_per_token + 1);
  releaseAll();
  expect(await Promise.all(calls)).toEqual(calls.map(() => null));
});

test('calls with unknown tokens leave slots for tokens that have been valid', async () => {
  const { listener, held, held_are, releaseAll } = await openHeld({ isGenuine: () => false });
  const valid = { authorization: 'Bearer valid' };
  const [first] = await callers(listener, 1, valid);
  await held_are(1);
  held.shift()!();
  await first;
  const calls = [];
  for (let i = 0; i < limits.actor_calls_unproven_max; i++)
    calls.push(...(await callers(listener, 1, { authorization: `Bearer ${i}` })));
  await held_are(limits.actor_calls_unproven_max);
  const [unknown] = await callers(listener, 1, { authorization: 'Bearer x' });
  expect(await unknown).toBe(FULL);
  calls.push(...(await callers(listener, 1, valid)));
  await held_are(limits.actor_calls_unproven_max + 1);
  releaseAll();
  expect(await Promise.all(calls)).toEqual(calls.map(() => null));
});

test('forgets a token that is no longer valid', async () => {
  let valid = true;
  let calls = 0;
  const hold = Promise.withResolvers<unknown>();
  const listener = await openTestListener({
    call: async ({ token }) => {
      calls++;
      if (token !== 'once') return hold.promise;
      if (!valid) throw problems.actorUnauthorized();
      return 'ok';
    },
  });
  const once_valid = { authorization: 'Bearer once' };
  const connection = await dial(listener);
  expect(await ask(connection, once_valid)).toBe('ok');
  valid = false;
  expect(await ask(connection, once_valid)).toBe('unauthenticated: unauthorized');
  const others = [];
  for (let i = 0; i < limits.actor_calls_unproven_max; i++)
    others.push(...(await callers(listener, 1, { authorization: `Bearer ${i}` })));
  await expect.poll(() => calls).toBe(limits.actor_calls_unproven_max + 2);
  expect(await ask(connection, once_valid)).toBe(FULL);
  hold.resolve(null);
  await Promise.all(others);
});

/** A client that opens a connection and sends pings only. */
async function openPinging({ port }: ActorListener): Promise<{ destroyed: boolean }> {
  const session = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {});
  await once(session, 'connect');
  const pings = setInterval(() => session.destroyed || session.ping(() => {}), 20);
  onTestFinished(() => {
    clearInterval(pings);
    session.destroy();
  });
  return session;
}

test('connections without a valid token keep nobody out, and are closed', async () => {
  const bounds = { anonymous_max: 4, owned_max: 8, per_owner_max: 2, anonymous_ms: 4_000 };
  const listener = await openTestListener({
    bounds,
    call: async ({ token }) => {
      if (token === 'invalid') throw problems.actorUnauthorized();
      return 'ok';
    },
  });
  const early = await dial(listener);
  expect(await ask(early)).toBe('ok');
  const pinging: { destroyed: boolean }[] = [];
  for (let i = 0; i < 12; i++) {
    pinging.push(await openPinging(listener));
    const invalid = await dial(listener);
    expect(await ask(invalid, { authorization: 'Bearer invalid' })).toBe('unauthenticated: unauthorized');
    expect(await ask(await dial(listener), { authorization: 'Bearer other' })).toBe('ok');
  }
  expect(await ask(early)).toBe('ok');
  await expect.poll(() => pinging.every(({ destroyed }) => destroyed), { timeout: 20_000 }).toBe(true);
});

test('an agent that opens too many connections loses only its own', async () => {
  const bounds = { anonymous_max: 4, owned_max: 8, per_owner_max: 2, anonymous_ms: 60_000 };
  const listener = await openTestListener({ bounds, call: async () => 'ok' });
  const other = await dial(listener);
  expect(await ask(other, { authorization: 'Bearer other' })).toBe('ok');
  const greedy = [];
  for (let i = 0; i < 5; i++) {
    greedy.push(await dial(listener));
    expect(await ask(greedy[i]!, { authorization: 'Bearer greedy' })).toBe('ok');
  }
  await Promise.all(greedy.slice(0, 3).map(({ closed }) => closed));
  expect(await ask(other, { authorization: 'Bearer other' })).toBe('ok');
  expect(await ask(greedy[4]!, { authorization: 'Bearer greedy' })).toBe('ok');
});

test('returns an error message that contains half a character', async () => {
  const refuses = async () => {
    throw invalid('unknown actor: \ud800');
  };
  const listener = await openTestListener({ call: refuses });
  expect(await ask(await dial(listener))).toBe('invalid: unknown actor: \ufffd');
});

test('returns the message of a Problem, but not of an unexpected error', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const outcomes = [
    new Problem('forbidden', 'x', 'not you'),
    problems.nodeUnreachable(),
    new Error('inside'),
  ];
  const connection = await dial(
    await openTestListener({ call: () => Promise.reject(outcomes.shift()), log }),
  );
  expect(await ask(connection)).toBe('forbidden: not you');
  expect(await ask(connection)).toBe('bad_gateway: failed to connect to remote node');
  expect(lines).toEqual([]);
  expect(await ask(connection)).toBe('unavailable: internal server error');
  expect(lines.join()).toContain('inside');
});

test('verifies the certificate over TLS, and shows a renewed one to new connections', async () => {
  const leafOf = async (): Promise<{ ca: string; cert: string; key: string }> => {
    const ca_key = await makeKey();
    const ca = { key: ca_key, cert: await makeCa(ca_key, Date.now()) };
    const key = await makeKey();
    const content = { title: 'plane', uri: 'svc:plane:pln_a', names: ['127.0.0.1'] };
    const times = { now_ms: Date.now(), lifetime_ms: 3_600_000 };
    const cert = await makeLeaf(ca, key, { ...content, ...times, usages: ['server'] });
    return { ca: ca.cert, cert, key };
  };
  const [first, second] = [await leafOf(), await leafOf()];
  const listener = await openTestListener({ certificate: first, call: async () => 'ok' });
  const early = await dial(listener, first.ca);
  await expect(dial(listener, second.ca)).rejects.toThrow('certificate verify failed');
  listener.certify(second);
  expect(await ask(await dial(listener, second.ca))).toBe('ok');
  expect(await ask(early)).toBe('ok');

  const old = tls.connect({ host: '127.0.0.1', port: listener.port, ca: second.ca, maxVersion: 'TLSv1.2' });
  const [error] = await once(old, 'error');
  expect(error.code).toMatch(/PROTOCOL_VERSION/);
});

test('closes all connections on shutdown, even silent ones', async () => {
  const called = Promise.withResolvers<void>();
  const listener = await openActorListener({
    ...{ host: '127.0.0.1', port: 0, certificate: null, log: silentLog },
    call: () => {
      called.resolve();
      return new Promise(() => {});
    },
  });
  const silent = net.connect(listener.port, '127.0.0.1');
  await once(silent, 'connect');
  const connection = await dial(listener);
  const waiting = ask(connection);
  const closed = once(silent.resume(), 'close');
  silent.on('error', () => {});
  await called.promise;
  await listener.close();
  expect(await waiting).toBe('bad_gateway: failed to connect to remote node');
  await closed;
});

test('the methods that may wait are those of the method table', () => {
  const waiting = Object.entries(actorMethods).filter(([, method]) => 'waits' in method);
  expect(waitingMethods).toEqual(waiting.map(([name]) => name));
});
