/** Calls that share a connection, through a TCP proxy that counts connections. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { sleep } from '../../../base/async.ts';
import { limits } from '../../../base/limits.ts';
import { silentLog } from '../../../base/log.ts';
import type { Context } from '../../../cli/context.ts';
import { type ActorListener, openActorListener } from '../../../server/actors/listener.ts';
import { PlaneCaller } from './actor-call.ts';

let home: string;
let listener: ActorListener;
let proxy: net.Server;
let connections: net.Socket[];
let context: Context;
let caller: PlaneCaller;
/** The methods of the calls that arrived. */
let made: string[];
/** Calls are answered when it resolves. */
let answers: Promise<void>;

function listen(): Promise<ActorListener> {
  return openActorListener({
    ...{ host: '127.0.0.1', port: 0, certificate: null, log: silentLog },
    call: async ({ method }) => {
      made.push(method);
      await answers;
      return { method };
    },
  });
}

/** What the service writes next to the token at its start. */
function publish(port: number): Promise<void> {
  return writeFile(join(home, 'actor.json'), JSON.stringify({ endpoint: `http://127.0.0.1:${port}` }));
}

const call = (by = caller) => by.call({ method: 'inbox', actor_id: undefined, params: {} });
const receive = () => caller.call({ method: 'receive', actor_id: undefined, params: {} });

beforeEach(async () => {
  made = [];
  answers = Promise.resolve();
  home = await mkdtemp(join(tmpdir(), 'svc-call-'));
  await writeFile(join(home, 'token'), 'ses_a.secret\n');
  listener = await listen();
  connections = [];
  proxy = net.createServer((socket) => {
    connections.push(socket);
    const upstream = net.connect(listener.port, '127.0.0.1');
    socket.on('error', () => {}).pipe(upstream.on('error', () => {}));
    upstream.pipe(socket);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  await publish(port);
  const env = {
    SVC_ACTOR_ENDPOINT: `http://127.0.0.1:${port}`,
    SVC_ACTOR_TOKEN_FILE: join(home, 'token'),
  };
  const loadConfig = () => {
    throw new Error('an agent cannot read the configuration');
  };
  const io = { env, signal: new AbortController().signal };
  context = { io, local: { loadConfig } } as unknown as Context;
  caller = new PlaneCaller(context, {});
});
afterEach(async () => {
  caller.close();
  proxy.close();
  await listener.close();
  await rm(home, { recursive: true, force: true });
});

test('calls at the same time and one after another share a connection', async () => {
  expect(await Promise.all([call(), call()])).toEqual(Array(2).fill({ method: 'inbox' }));
  await call();
  expect(connections).toHaveLength(1);
});

test('more calls at the same time than a connection can carry use further connections', async () => {
  const calls = Array.from({ length: 2 * limits.actor_streams_max + 1 }, () => call());
  expect(await Promise.all(calls)).toEqual(calls.map(() => ({ method: 'inbox' })));
  expect(connections).toHaveLength(3);
});

test('more calls at the same time than the service accepts wait for their turn', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  answers = promise;
  const other = new PlaneCaller(context, {});
  onTestFinished(() => other.close());
  const calls = Array.from({ length: limits.actor_calls_per_token + 1 }, () => call());
  const of_another_process = call(other);
  const first = await Promise.race([...calls, of_another_process, sleep(200)]);
  resolve();
  expect(first).toBeUndefined();
  expect(await of_another_process).toEqual({ method: 'inbox' });
  expect(await Promise.all(calls)).toEqual(calls.map(() => ({ method: 'inbox' })));
});

test('calls that wait for mail keep out no others, and those that wait for their turn are not made after the end', async () => {
  answers = new Promise(() => {});
  const receives = Array.from({ length: limits.actor_receives_per_token + 1 }, receive);
  const failures = Promise.allSettled(receives);
  await expect.poll(() => made.length).toBe(limits.actor_receives_per_token);
  answers = Promise.resolve();
  expect(await call()).toEqual({ method: 'inbox' });
  caller.close();
  for (const { status } of await failures) expect(status).toBe('rejected');
  expect(made).toEqual([...Array(limits.actor_receives_per_token).fill('receive'), 'inbox']);
});

test('the connection is closed when there are no more calls, and the next call opens another', async () => {
  await call();
  await once(connections[0]!, 'close');
  await call();
  expect(connections).toHaveLength(2);
});

test('a call after a restart of the service on another port reaches it', async () => {
  await call();
  await listener.close();
  listener = await listen();
  await publish(listener.port);
  expect(await call()).toEqual({ method: 'inbox' });
  expect(connections).toHaveLength(1);
});

test('a call fails while the service is down, and the next one succeeds when it is up', async () => {
  await publish(await unusedPort());
  await expect(call()).rejects.toMatchObject({ code: 'actor_surface_unreachable' });
  await publish(listener.port);
  expect(await call()).toEqual({ method: 'inbox' });
});

async function unusedPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
