/** Calls to the plane of this machine, whose certificate is for another name than its address. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client, Unreachable } from '../client/client.ts';
import type { Certificate } from '../server/listener.ts';
import type { HttpServer } from '../server/server.ts';
import { time } from '../testing/agent-record.ts';
import { run } from '../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../testing/http.ts';
import { TestAuthority } from '../testing/planes.ts';
import { pinnedFetch } from './pinned-fetch.ts';

let home: string;
let server: HttpServer;
let tls: Certificate;
let other: Certificate;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-pinned-'));
  const authority = await TestAuthority.create();
  [tls, other] = await Promise.all([authority.plane('one'), authority.plane('two')]);
  server = await openFakeHttp(
    {
      getMe: () => ({ id: 'usr_1', username: 'ana', role: 'root', created_at: time, passkeys: [] }),
      logout: () => undefined,
      updateUser: ({ body }) => ({ id: 'usr_1', username: body.username!, role: 'user', created_at: time }),
      followAll: (call) => {
        const response = call.hijack();
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('id: 1\nevent: agent\ndata: {"type":"agent"}\n\n');
        return undefined;
      },
    },
    { tls },
  );
});
afterAll(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

const clientFor = ({ cert }: Certificate): Client =>
  new Client({ url: server.url, token: ROOT_TOKEN, fetch: pinnedFetch(cert) });

test('accepts the certificate for an address that it does not name', async () => {
  const client = clientFor(tls);
  expect(await client.call('getMe')).toMatchObject({ username: 'ana' });
  expect(await client.call('logout')).toBeUndefined();
  const renamed = await client.call('updateUser', {
    params: { user_id: 'usr_1' },
    body: { username: 'ada' },
  });
  expect(renamed.username).toBe('ada');
  await expect(client.call('getUser', { params: { user_id: 'usr_1' } })).rejects.toThrow();
});

test('accepts no other certificate, not even one of the same authority', async () => {
  await expect(clientFor(other).call('getMe')).rejects.toThrow(Unreachable);
});

test('streams a body, and a signal ends it', async () => {
  const stop = new AbortController();
  const frames = [];
  for await (const { id } of clientFor(tls).follow('followAll', { signal: stop.signal })) {
    frames.push(id);
    stop.abort();
  }
  expect(frames).toEqual(['1']);
});

test('commands trust the certificate of the plane on this machine, at its own URL only', async () => {
  const holder = { pid: 1, host: 'here', since: time, url: server.url, certificate: tls.cert };
  const whoami = (url: string) =>
    run(['whoami', '--url', url], {
      home,
      env: { SVC_TOKEN: ROOT_TOKEN },
      local: { holderOf: async () => holder },
    });
  expect(await whoami(server.url)).toMatchObject({ code: 0, stdout: expect.stringContaining('ana') });
  const elsewhere = server.url.replace('127.0.0.1', 'localhost');
  expect(await whoami(elsewhere)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('does not answer'),
  });
});
