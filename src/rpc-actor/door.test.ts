import { once } from 'node:events';
import http2 from 'node:http2';
import net from 'node:net';
import tls from 'node:tls';
import { createClient } from '@connectrpc/connect';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { silentLog } from '../base/log.ts';
import { ActorService } from '../contract/gen/actor_pb.ts';
import { invalid, Problem, problemKinds, problems } from '../domain/problem.ts';
import { type Connection, openConnection } from '../link/connection.ts';
import { makeCa, makeKey, makeLeaf } from '../link/pki.ts';
import { toProblem } from '../link/wire.ts';
import { type ActorDoor, type ActorDoorOptions, openActorDoor } from './door.ts';

async function openDoor(more: Partial<ActorDoorOptions> = {}): Promise<ActorDoor> {
  const door = await openActorDoor({
    host: '127.0.0.1',
    port: 0,
    certificate: null,
    call: async (call) => call,
    log: silentLog,
    ...more,
  });
  onTestFinished(() => door.close());
  return door;
}

async function dial({ port }: ActorDoor, ca: string | null = null): Promise<Connection> {
  const connection = await openConnection({
    ...{ host: '127.0.0.1', port, servername: '127.0.0.1' },
    tls: ca === null ? null : { ca },
  });
  onTestFinished(() => connection.close());
  return connection;
}

/** What came back: the result, or the refusal's kind and words. */
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

test('a call is handed on with its token and the address of its caller, and its answer back', async () => {
  const connection = await dial(await openDoor());
  expect(await ask(connection, { params: '{"a":[1,"ü"]}', authorization: 'bearer a.b-c_d' })).toEqual({
    ...{ method: 'm', params: { a: [1, 'ü'] }, token: 'a.b-c_d', ip: '127.0.0.1' },
  });
});

test('a call without a bearer token is refused before anybody looks at it', async () => {
  let calls = 0;
  const connection = await dial(await openDoor({ call: async () => calls++ }));
  const long = `Bearer ${'x'.repeat(limits.link_token_chars_max + 1)}`;
  for (const authorization of [null, '', 'Bearer', 'Bearer ', 'Basic x', 'Bearer a b', long])
    expect(await ask(connection, { authorization })).toBe('unauthenticated: unauthorized');
  expect(calls).toBe(0);
});

test('gRPC is the only protocol: others that the library knows are not served', async () => {
  const { port } = await openDoor();
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

test('what is passed on is bounded, and JSON', async () => {
  const connection = await dial(await openDoor({ call: async () => 'passed' }));
  const quoted = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2));
  const most = limits.actor_params_bytes_max;
  expect(await ask(connection, { params: quoted(most) })).toBe('passed');
  expect(await ask(connection, { params: quoted(most + 1) })).toBe('too_large: the call is too large');
  expect(await ask(connection, { method: 'x'.repeat(65) })).toBe('too_large: the call is too large');
  expect(await ask(connection, { params: '{' })).toBe('invalid: params must be JSON');
  // Nobody reads that far.
  expect(await ask(connection, { params: quoted(4 * most) })).not.toBe('passed');
  expect(await ask(connection, { params: '[]' })).toBe('passed');
});

test('calls at once are bounded; a place is free when its call was answered', async () => {
  const held: (() => void)[] = [];
  const door = await openDoor({ call: () => new Promise((resolve) => held.push(() => resolve(null))) });
  const callers = [];
  while (callers.length < limits.actor_calls_max) {
    const connection = await dial(door);
    for (let i = 0; i < limits.actor_streams_max; i++) callers.push(ask(connection));
  }
  while (held.length < limits.actor_calls_max) await new Promise((resolve) => setTimeout(resolve, 10));
  const late = await dial(door);
  expect(await ask(late)).toBe('rate_limited: too many calls at once');
  held.shift()!();
  await Promise.race(callers);
  const next = ask(late);
  while (held.length < limits.actor_calls_max) await new Promise((resolve) => setTimeout(resolve, 10));
  for (const release of held) release();
  expect(await next).toBeNull();
  expect(await Promise.all(callers)).toEqual(callers.map(() => null));
});

test('whoever waits for mail leaves places for those who have something to say', async () => {
  const held: (() => void)[] = [];
  const receive = { method: 'receive' };
  const door = await openDoor({
    call: ({ method }) =>
      method === 'receive'
        ? new Promise((resolve) => held.push(() => resolve(null)))
        : Promise.resolve('said'),
  });
  const receivers = [];
  while (receivers.length < limits.actor_receives_max) {
    const connection = await dial(door);
    for (let i = 0; i < limits.actor_streams_max; i++) receivers.push(ask(connection, receive));
  }
  while (held.length < limits.actor_receives_max) await new Promise((resolve) => setTimeout(resolve, 10));
  const another = await dial(door);
  expect(await ask(another, receive)).toBe('rate_limited: too many calls at once');
  expect(await ask(another)).toBe('said');
  for (const release of held) release();
  expect(await Promise.all(receivers)).toEqual(receivers.map(() => null));
});

test('a refusal that quotes half a character is an answer too', async () => {
  const refuses = async () => {
    throw invalid('unknown actor: \ud800');
  };
  const door = await openDoor({ call: refuses });
  expect(await ask(await dial(door))).toBe('invalid: unknown actor: \ufffd');
});

test('refusals keep their words, faults show none', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const outcomes = [
    new Problem('forbidden', 'x', 'not you'),
    problems.nodeUnreachable(),
    new Error('inside'),
  ];
  const connection = await dial(await openDoor({ call: () => Promise.reject(outcomes.shift()), log }));
  expect(await ask(connection)).toBe('forbidden: not you');
  expect(await ask(connection)).toBe('bad_gateway: failed to connect to remote node');
  expect(lines).toEqual([]);
  expect(await ask(connection)).toBe('unavailable: internal server error');
  expect(lines.join()).toContain('inside');
});

test('over TLS the certificate is checked, and a renewed one is shown from the next connection on', async () => {
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
  const door = await openDoor({ certificate: first, call: async () => 'ok' });
  const early = await dial(door, first.ca);
  await expect(dial(door, second.ca)).rejects.toThrow('certificate verify failed');
  door.certify(second);
  expect(await ask(await dial(door, second.ca))).toBe('ok');
  expect(await ask(early)).toBe('ok');

  const old = tls.connect({ host: '127.0.0.1', port: door.port, ca: second.ca, maxVersion: 'TLSv1.2' });
  const [error] = await once(old, 'error');
  expect(error.code).toMatch(/PROTOCOL_VERSION/);
});

test('closing ends who is still connected, also who never said a word', async () => {
  const called = Promise.withResolvers<void>();
  const door = await openActorDoor({
    ...{ host: '127.0.0.1', port: 0, certificate: null, log: silentLog },
    call: () => {
      called.resolve();
      return new Promise(() => {});
    },
  });
  const silent = net.connect(door.port, '127.0.0.1');
  await once(silent, 'connect');
  const connection = await dial(door);
  const waiting = ask(connection);
  const gone = once(silent.resume(), 'close');
  silent.on('error', () => {});
  await called.promise;
  await door.close();
  expect(await waiting).toBe('bad_gateway: failed to connect to remote node');
  await gone;
});
