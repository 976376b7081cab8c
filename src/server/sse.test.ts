import { createServer, get, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { LocalWakes } from '../store/wakes.ts';
import { Streams, type StreamsOptions } from './sse.ts';

let server: Server;
let port: number;
let open: (signal: AbortSignal, write: (frames: Buffer) => boolean) => AsyncIterable<Buffer>;
let holds: () => boolean;
let failures: unknown[];
let ended: Promise<void>[];
let drain: AbortController;

beforeEach(() => {
  holds = () => true;
  failures = [];
  ended = [];
  drain = new AbortController();
});
afterEach(async () => {
  drain.abort();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await Promise.all(ended);
});

async function listen(options: StreamsOptions = {}): Promise<Streams> {
  const streams = new Streams(new LocalWakes(silentLog), options);
  server = createServer((req, res) => {
    const call = {
      method: req.method!,
      caller: { user_id: req.headers['x-user']?.toString() ?? 'usr_1', token_id: 'tok_1' },
      signal: drain.signal,
      hijack: () => res,
    };
    ended.push(
      streams
        .serve(call, open, () => holds())
        .catch((error) => {
          failures.push(error);
          res.statusCode = 500;
          res.end();
        }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
  return streams;
}

function send(user = 'usr_1'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', headers: { 'x-user': user } }, resolve).on('error', reject);
  });
}

async function* ticks(signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let i = 0; !signal.aborted; i++) {
    yield Buffer.from(`id: ${i}\n\n`);
    await setTimeout(5);
  }
}

async function* quiet(signal: AbortSignal): AsyncGenerator<Buffer> {
  yield Buffer.from('retry: 1000\n\n');
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
}

test('sends frames unchanged, with the headers of an event stream', async () => {
  open = async function* () {
    yield Buffer.from('retry: 1000\n\n');
    yield Buffer.from('id: 1\ndata: é\n\n');
  };
  await listen();
  const response = await send();
  let body = '';
  for await (const bytes of response) body += bytes.toString();
  expect(body).toBe('retry: 1000\n\nid: 1\ndata: é\n\n');
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  });
});

test('HEAD returns the headers, counts no stream, and fails like GET', async () => {
  open = quiet;
  const streams = await listen();
  const head = () =>
    new Promise<IncomingMessage>((resolve) =>
      request({ port, host: '127.0.0.1', method: 'HEAD' }, resolve).end(),
    );
  const response = await head();
  expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'text/event-stream']);
  await expect.poll(() => streams.open).toBe(0);
  open = () => failing();
  expect((await head()).statusCode).toBe(500);
});

async function* failing(): AsyncGenerator<Buffer> {
  yield await Promise.reject(new Error('agent not found'));
}

test('throws an error before the first frame before any header', async () => {
  open = () => failing();
  const streams = await listen();
  expect((await send()).statusCode).toBe(500);
  expect(failures).toEqual([new Error('agent not found')]);
  expect(streams.open).toBe(0);
});

test('limits streams per user and in total', async () => {
  open = quiet;
  const streams = await listen({ bounds: () => ({ per_user: 2, total: 3 }) });
  const first = await send();
  await send();
  expect((await send()).statusCode).toBe(500);
  expect(failures.pop()).toMatchObject({ kind: 'rate_limited' });
  await send('usr_2');
  expect((await send('usr_3')).statusCode).toBe(500);
  expect(failures.pop()).toMatchObject({ kind: 'unavailable' });
  first.destroy();
  await expect.poll(() => streams.open).toBe(2);
  expect((await send()).statusCode).toBe(200);
});

test('ends a stream when its token becomes invalid', async () => {
  open = ticks;
  const streams = await listen({ recheck_ms: 20 });
  const response = await send();
  holds = () => false;
  for await (const _ of response);
  expect(response.complete).toBe(true);
  await expect.poll(() => streams.open).toBe(0);
});

test('ends a stream whose token cannot be checked', async () => {
  open = ticks;
  await listen({ recheck_ms: 20 });
  const response = await send();
  holds = () => {
    throw new Error('no database');
  };
  for await (const _ of response);
});

test('ends streams cleanly on shutdown', async () => {
  open = ticks;
  await listen();
  const response = await send();
  drain.abort();
  for await (const _ of response);
  expect(response.complete).toBe(true);
});

test('sends a stalled reader no more than fits, and disconnects it', async () => {
  let chunk_count = 0;
  open = async function* () {
    while (true) {
      chunk_count++;
      yield Buffer.alloc(64 * 1024, 'x');
    }
  };
  const streams = await listen({ stall_ms: 300 });
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  socket.pause();
  await expect.poll(() => streams.open).toBe(1);
  await expect.poll(() => streams.open, { timeout: 20_000 }).toBe(0);
  expect(chunk_count * 64 * 1024).toBeLessThan(32 * 1024 * 1024);
  socket.destroy();
});

test('frames that are written directly follow those before them', async () => {
  open = async function* (_signal, write) {
    expect(write(Buffer.from('too early'))).toBe(false);
    for (let i = 0; i < 5; i++) {
      yield Buffer.from(`yielded ${i}\n`);
      expect(write(Buffer.from(`written ${i}\n`))).toBe(true);
      await setTimeout(1);
      expect(write(Buffer.from(`later ${i}\n`))).toBe(true);
    }
  };
  await listen();
  let body = '';
  for await (const bytes of await send()) body += bytes.toString();
  const part = (i: number) => `yielded ${i}\nwritten ${i}\nlater ${i}\n`;
  expect(body).toBe([0, 1, 2, 3, 4].map(part).join(''));
  expect(failures).toEqual([]);
});

test('a client that does not read, or is gone, cannot be written to directly', async () => {
  const bytes = Buffer.alloc(64 * 1024, 'x');
  let written = 0;
  let write = (_frames: Buffer): boolean => false;
  open = async function* (signal, live) {
    write = live;
    yield* quiet(signal);
  };
  const streams = await listen();
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  socket.pause();
  await expect.poll(() => write(bytes)).toBe(true);
  while (write(bytes)) {
    written += bytes.length;
    await setTimeout(1);
  }
  expect(written).toBeLessThan(32 * 1024 * 1024);
  socket.destroy();
  await expect.poll(() => streams.open).toBe(0);
  expect(write(bytes)).toBe(false);
});

test('an idle stream is not a stall', async () => {
  open = quiet;
  const streams = await listen({ stall_ms: 50 });
  const response = await send();
  await setTimeout(300);
  expect(streams.open).toBe(1);
  response.destroy();
  await expect.poll(() => streams.open).toBe(0);
});
