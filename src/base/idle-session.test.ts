import { once } from 'node:events';
import { connect, createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { sleep } from './async.ts';
import { closeWhenIdle } from './idle-session.ts';

test('a session stays open while its peer pings, and is closed when it is silent', async () => {
  const idle_ms = 2_000;
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'session') as Promise<[ServerHttp2Session]>;
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.on('error', () => {});
  try {
    const [session] = await accepted;
    const closed = once(session, 'close');
    closeWhenIdle(session, idle_ms);
    const begun = performance.now();
    while (performance.now() < begun + 2 * idle_ms && !session.destroyed) {
      await new Promise((answered) => client.ping(answered));
      await sleep(idle_ms / 10);
    }
    expect(session.destroyed).toBe(false);
    await closed;
  } finally {
    client.destroy();
    server.close();
  }
});
