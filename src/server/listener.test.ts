import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openFakeHttp } from '../testing/http.ts';
import { type Listener, type ListenerOptions, openListener } from './listener.ts';

const options: ListenerOptions = { host: '127.0.0.1', port: 0, tls: null, public_origin: null };
let listener: Listener;

beforeEach(async () => {
  listener = await openListener({ ...options, timeouts: { cut_ms: 100 } });
});
afterEach(() => listener.close());

const get = (path: string) => fetch(listener.url + path, { headers: { connection: 'close' } });

test('answers 503 until something serves its requests', async () => {
  const response = await get('/api/me');
  expect(response.status).toBe(503);
  expect(response.headers.get('x-error-code')).toBe('not_ready');
  expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await response.json()).toEqual({ error: 'service is not ready' });
});

test('passes new requests to the handler that serves last', async () => {
  listener.serve((_request, response) => response.end('first'));
  expect(await (await get('/')).text()).toBe('first');
  listener.serve((_request, response) => response.end('second'));
  expect(await (await get('/')).text()).toBe('second');
});

test('serves a plane without closing its socket', async () => {
  const { port } = listener.address;
  listener.serve((_request, response) => response.end('standing by'));
  expect(await (await get('/healthz')).text()).toBe('standing by');
  const server = await openFakeHttp({}, { listener });
  expect(server.address.port).toBe(port);
  expect(await (await get('/healthz')).json()).toEqual({ status: 'ok' });
  await server.drain();
  await expect(get('/healthz')).rejects.toThrow();
});

test('waits for open requests when it closes', async () => {
  const patient = await openListener(options);
  const begun = once(patient.server, 'request');
  const finish = Promise.withResolvers<void>();
  patient.serve((_request, response) => void finish.promise.then(() => response.end('complete')));
  const response = fetch(patient.url);
  await begun;
  const closed = patient.close();
  finish.resolve();
  expect(await (await response).text()).toBe('complete');
  await closed;
});

test('closes the connections of requests that do not end in time', async () => {
  const begun = once(listener.server, 'request');
  listener.serve(() => {});
  const response = get('/').catch(() => 'closed');
  await begun;
  await listener.close();
  expect(await response).toBe('closed');
});

test('rejects with the errno error if the address is taken', async () => {
  await expect(openListener({ ...options, port: listener.address.port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
});
