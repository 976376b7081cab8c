import { once } from 'node:events';
import { request } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFakeHttp } from '../testing/http.ts';
import { testTls } from '../testing/tls.ts';
import type { HttpServer } from './server.ts';

let server: HttpServer;
beforeAll(async () => {
  server = await openFakeHttp({}, { tls: testTls, public_origin: 'https://svc.example' });
});
afterAll(() => server.drain());

function send(
  headers: Record<string, string>,
  url = server.url,
): Promise<{ status: number; hsts: string | undefined }> {
  return new Promise((resolve, reject) => {
    request(`${url}/healthz`, { ca: testTls.cert, headers, agent: false }, (response) => {
      response.resume();
      const { statusCode, headers } = response;
      response.on('end', () => resolve({ status: statusCode!, hsts: headers['strict-transport-security'] }));
    })
      .on('error', reject)
      .end();
  });
}

test('a TLS listener serves https, with strict transport security', async () => {
  expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(await send({})).toEqual({ status: 200, hsts: 'max-age=31536000' });
});

test('sends no such header about localhost without a public name', async () => {
  const local = await openFakeHttp({}, { tls: testTls });
  try {
    expect(await send({}, local.url)).toEqual({ status: 200, hsts: undefined });
  } finally {
    await local.drain();
  }
});

test('its own origin is the https one', async () => {
  expect((await send({ origin: server.url })).status).toBe(200);
  expect((await send({ origin: server.url.replace('https', 'http') })).status).toBe(403);
});

test('rejects TLS before 1.2', async () => {
  const { port } = server.address;
  const old = new Promise<string>((resolve) => {
    const socket = connect({
      port,
      host: '127.0.0.1',
      ca: testTls.cert,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    });
    socket.on('secureConnect', () => {
      resolve(socket.getProtocol() ?? 'connected');
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'refused'));
  });
  expect(await old).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
});

test('an incomplete handshake does not delay the shutdown', async () => {
  const slow = await openFakeHttp({}, { tls: testTls, timeouts: { cut_ms: 200 } });
  const socket = connectTcp(slow.address.port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  const closed = once(socket, 'close');
  await send({}, slow.url);
  await slow.drain();
  await closed;
});

test('a handshake has the same time limit as headers', async () => {
  const strict = await openFakeHttp({}, { tls: testTls, timeouts: { headers_ms: 200 } });
  const socket = connectTcp(strict.address.port, '127.0.0.1');
  socket.on('error', () => {});
  try {
    await once(socket, 'connect');
    await once(socket, 'close');
  } finally {
    socket.destroy();
    await strict.drain();
  }
});
