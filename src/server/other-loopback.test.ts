import { once } from 'node:events';
import { request } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, expect, test } from 'vitest';
import { openFakeHttp } from '../testing/http.ts';
import { testTls } from '../testing/tls.ts';
import type { HttpServer } from './server.ts';

const has_v6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);

let server: HttpServer | undefined;
afterEach(() => server?.drain());
const portOf = ({ address }: HttpServer) => address.port;

test.runIf(has_v6)('localhost leads to svc at both addresses', async () => {
  server = await openFakeHttp({});
  expect(server.localhost_taken).toBe(false);
  for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
    expect((await fetch(`http://${host}:${portOf(server)}/healthz`)).status).toBe(200);
  }
  await server.drain();
  await expect(fetch(`http://[::1]:${portOf(server)}/healthz`)).rejects.toThrow();
});

test.runIf(has_v6)('localhost leads to svc at both addresses over TLS', async () => {
  server = await openFakeHttp({}, { tls: testTls });
  const port = portOf(server);
  const sent = request({ host: '::1', port, path: '/healthz', ca: testTls.cert, servername: 'localhost' });
  sent.end();
  const [{ statusCode }] = await once(sent, 'response');
  expect(statusCode).toBe(200);
});

test.runIf(has_v6)('reports another program at the other address, and works anyway', async () => {
  const stranger = createServer().listen(0, '::1');
  await once(stranger, 'listening');
  const { port } = stranger.address() as AddressInfo;
  server = await openFakeHttp({}, { port });
  expect(server.localhost_taken).toBe(true);
  expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  stranger.close();
});
