/** How a plane that shuts down treats requests that take long. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as sendRequest } from 'node:https';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { problems } from '../core/problem.ts';
import { CLIENT_HEADER, type Peers, type PlaneIdentity } from '../server/peers.ts';
import type { HttpServer } from '../server/server.ts';
import { openFakeHttp, USER_TOKEN } from '../testing/http.ts';
import { openTestPeers, TestAuthority } from '../testing/planes.ts';
import { Closing } from './closing.ts';
import { drainOnClose } from './http.ts';
import { limits } from './limits.ts';

const cut_ms = limits.requests_finish_ms + 1_000;
const headers = { authorization: `Bearer ${USER_TOKEN}` };
let http: HttpServer;
let peers: Peers;
let opened: Closing;
let standby: PlaneIdentity;
let closeOutbox: () => void;

beforeEach(async () => {
  const outcome = Promise.withResolvers<never>();
  http = await openFakeHttp({ logout: () => outcome.promise }, { timeouts: { cut_ms } });
  const authority = await TestAuthority.create();
  standby = await authority.plane('p2');
  peers = await openTestPeers(await authority.plane('p1'), { timeouts: { cut_ms } });
  peers.serve(http.handler);
  opened = new Closing();
  closeOutbox = () => outcome.reject(problems.shutdownInterrupted());
  drainOnClose({ http, peers }, { outbox: { close: () => closeOutbox() } } as never, opened);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const direct = async () => (await fetch(`${http.url}/api/logout`, { method: 'POST', headers })).status;
async function forwarded(): Promise<number | undefined> {
  const outgoing = sendRequest({
    ...{ ...standby, host: '127.0.0.1', port: peers.address.port, agent: false },
    ...{ method: 'POST', path: '/api/logout', headers: { ...headers, [CLIENT_HEADER]: 'unknown' } },
    checkServerIdentity: () => undefined,
  });
  outgoing.end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  incoming.resume();
  return incoming.statusCode;
}

test('a forwarded request is answered although no other request is open', async () => {
  const answer = forwarded();
  await expect.poll(() => http.requests_open()).toBe(1);
  const closed = opened.close();
  await http.drain();
  vi.advanceTimersByTime(limits.requests_finish_ms);
  expect(await answer).toBe(503);
  expect(await closed).toEqual([]);
});

test('direct and forwarded requests end at the same time', async () => {
  const answers = Promise.allSettled([direct(), forwarded()]);
  await expect.poll(() => http.requests_open()).toBe(2);
  // They wait for something else.
  closeOutbox = () => {};
  const closed = opened.close();
  vi.advanceTimersByTime(cut_ms);
  expect(await closed).toEqual([]);
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});
