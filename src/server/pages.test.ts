import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFakeHttp, USER_TOKEN } from '../testing/http.ts';
import type { HttpServer } from './server.ts';

const PAGE = '<!doctype html><title>svc</title>';
const SCRIPT = 'console.log("a script");\n'.repeat(100);
const SECRET = 'not for anybody';

let folder: string;
let server: HttpServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-pages-'));
  const put = async (name: string, content: string | Buffer) => {
    const path = join(folder, 'web', name);
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, content);
  };
  await put('index.html', PAGE);
  await put('pages/runs.html', `${PAGE}<!-- runs -->`);
  await put('pages/runs.any.log.html', `${PAGE}<!-- log -->`);
  await put('pages/home.html', PAGE);
  await put('pages/nodes.html', PAGE);
  await put('pages/nodes.html.br', brotliCompressSync(PAGE));
  await put('pages/nodes.html.gz', gzipSync(PAGE));
  await put('sw.js', 'self.x = 1;');
  await put('manifest.webmanifest', '{}');
  await put('icon.png', Buffer.from([137, 80]));
  await put('.stamp', SECRET);
  await put('notes.html', SECRET);
  await put('more/deep.js', SECRET);
  await put('../outside.js', SECRET);
  await put('assets/index-1a.js', SCRIPT);
  await put('assets/index-1a.js.br', brotliCompressSync(SCRIPT));
  await put('assets/index-1a.js.gz', gzipSync(SCRIPT));
  await put('assets/font-2b.woff2', Buffer.from('wOF2'));
  await put('assets/.hidden.js', SECRET);
  await put('assets/folder/x.js', SECRET);
  server = await openFakeHttp({}, { web: join(folder, 'web') });
});
afterAll(async () => {
  await server.drain();
  await rm(folder, { recursive: true });
});

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Sends a request with exactly this path and only the given headers. */
function send(
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  at = server,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(at.url);
    const req = httpRequest({ hostname, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    req.on('error', reject).end();
  });
}
const go = (path: string, headers: Record<string, string> = {}) =>
  send(path, { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', ...headers });
const errorOf = ({ status, body }: Answer) => [status, JSON.parse(body.toString())];
const NOT_FOUND = [404, { error: 'not found' }];

describe('the page', () => {
  test.each([
    '/',
    '/join',
    '/docs',
    '/agents/agt_1/output?from=3',
    '/agents/agt_1/changes/src/cart.ts',
    '/users/ana.b',
    '/teams/%C3%A4',
  ])('is served at %s, and revalidated each time', async (path) => {
    const { status, headers, body } = await go(path);
    expect([status, body.toString(), headers['content-type']]).toEqual([
      200,
      PAGE,
      'text/html; charset=utf-8',
    ]);
    expect(headers['cache-control']).toBe('no-cache');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['content-security-policy']).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'",
    );
    expect(headers['content-security-policy']).toContain("manifest-src 'self'; worker-src 'self'");
    expect(headers['content-security-policy']).not.toContain('unsafe');
  });

  test.each([
    ['/runs', 'runs'],
    ['/runs/?status=failed', 'runs'],
    ['/runs/run_1', 'runs'],
    ['/runs/run_1/log', 'log'],
    ['/runs/run_1/log/7/x/y', 'log'],
    ['/runs/run_1/other', 'runs'],
  ])('is for %s the one that names the scripts of that screen', async (path, screen) => {
    expect((await go(path)).body.toString()).toBe(`${PAGE}<!-- ${screen} -->`);
  });

  test('is sent again only if its content has changed', async () => {
    const { etag } = (await go('/')).headers;
    for (const tag of [etag!, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await go('/agents', { 'if-none-match': tag });
      expect([again.status, again.body.length, again.headers.etag]).toEqual([304, 0, etag]);
    }
    expect((await go('/', { 'if-none-match': '"other"' })).status).toBe(200);

    const changed = PAGE.replace('svc', 'csv');
    await writeFile(join(folder, 'web/index.html'), changed);
    const later = await go('/agents', { 'if-none-match': etag! });
    expect([later.status, later.body.toString()]).toEqual([200, changed]);
    await writeFile(join(folder, 'web/index.html'), PAGE);
  });

  test('is sent compressed if the browser accepts it', async () => {
    const encoded = async (accepted: string) => {
      const { headers, body } = await go('/nodes', { 'accept-encoding': accepted });
      expect(headers.vary).toContain('accept-encoding');
      return [headers['content-encoding'], body, headers.etag] as const;
    };
    const [br, br_body, br_etag] = await encoded('gzip, deflate, br');
    expect([br, brotliDecompressSync(br_body).toString()]).toEqual(['br', PAGE]);
    const [gz, gz_body, gz_etag] = await encoded('gzip, deflate');
    expect([gz, gunzipSync(gz_body).toString()]).toEqual(['gzip', PAGE]);
    expect((await encoded('identity')).slice(0, 2)).toEqual([undefined, Buffer.from(PAGE)]);
    expect(gz_etag).not.toBe(br_etag);
    expect((await go('/runs', { 'accept-encoding': 'br' })).headers['content-encoding']).toBe(undefined);
  });

  test('answers HEAD like GET, without the body', async () => {
    for (const path of ['/', '/agents/agt_1']) {
      const { status, headers, body } = await send(path, { accept: 'text/html' }, 'HEAD');
      expect([status, headers['content-length'], body.length]).toEqual([200, String(PAGE.length), 0]);
    }
  });

  test('is not served to a program that requests something else', async () => {
    for (const accept of ['*/*', 'application/json', 'image/png', '']) {
      expect(errorOf(await send('/agents/agt_1', { accept }))).toEqual(NOT_FOUND);
    }
    expect((await send('/')).body.toString()).toBe(PAGE);
  });

  test.each([
    '/robots.txt',
    '/x.js',
    '/index.html',
    '/notes.html',
    '/assets/',
    '/assets/nothing',
    '/metrics/x',
    '/healthz/',
  ])('is not served for %s, which belongs to another handler', async (path) => {
    expect(errorOf(await go(path))).toEqual(NOT_FOUND);
  });

  test('is never served for a path below /api', async () => {
    for (const path of ['/api', '/api/nothing', '/API/nothing', '/%61pi/nothing', '//api/x']) {
      expect(errorOf(await go(path))).toEqual([401, { error: 'missing authorization token' }]);
      expect(errorOf(await go(path, { authorization: `Bearer ${USER_TOKEN}` }))).toEqual(NOT_FOUND);
    }
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('is not found with %s', async (method) => {
    for (const path of ['/', '/agents', '/assets/index-1a.js', '/sw.js']) {
      expect(errorOf(await send(path, { accept: 'text/html' }, method))).toEqual(NOT_FOUND);
    }
  });

  test('reports that it was never built, while the API works', async () => {
    const bare = await openFakeHttp({}, { web: join(folder, 'nothing') });
    try {
      const { status, headers, body } = await send('/join', { accept: 'text/html' }, 'GET', bare);
      expect([status, headers['cache-control']]).toEqual([503, 'no-store']);
      expect(body.toString()).toContain('The web UI is not built');
      expect(body.toString()).toContain('npm run build:web');
      expect((await send('/assets/index-1a.js', {}, 'GET', bare)).status).toBe(404);
      expect((await send('/healthz', {}, 'GET', bare)).status).toBe(200);
    } finally {
      await bare.drain();
    }
  });
});

describe('files', () => {
  test('with a hash in their name are cached permanently', async () => {
    const { status, headers, body } = await send('/assets/index-1a.js');
    expect([status, body.toString()]).toEqual([200, SCRIPT]);
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(headers['content-type']).toBe('application/javascript; charset=utf-8');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect((await send('/assets/font-2b.woff2')).headers['content-type']).toBe('font/woff2');
  });

  test('with a fixed name are revalidated each time', async () => {
    const types = {
      '/sw.js': 'text/javascript; charset=utf-8',
      '/manifest.webmanifest': 'application/manifest+json; charset=utf-8',
      '/icon.png': 'image/png',
    };
    for (const [path, type] of Object.entries(types)) {
      const { status, headers } = await send(path);
      expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, 'no-cache']);
      expect((await send(path, { 'if-none-match': headers.etag! })).status).toBe(304);
      expect((await send(path, {}, 'HEAD')).body.length).toBe(0);
    }
  });

  const plain = (bytes: Buffer) => bytes;
  test.each([
    ['br', 'br', brotliDecompressSync],
    ['gzip', 'gzip', gunzipSync],
    ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
    ['gzip;q=1, br;q=0.5', 'gzip', gunzipSync],
    ['br;q=0, gzip', 'gzip', gunzipSync],
    ['br;q=0, gzip;q=0', undefined, plain],
    ['*;q=0', undefined, plain],
    ['identity', undefined, plain],
    ['deflate', undefined, plain],
    ['zstd', undefined, plain],
    ['', undefined, plain],
  ])('are sent to a client that accepts "%s" as %s', async (accepted, encoding, read) => {
    const { status, headers, body } = await send('/assets/index-1a.js', { 'accept-encoding': accepted });
    expect([status, headers['content-encoding'], headers.vary]).toEqual([200, encoding, 'accept-encoding']);
    expect(headers['content-type']).toBe('application/javascript; charset=utf-8');
    expect(headers['content-length']).toBe(String(body.length));
    expect(read(body).toString()).toBe(SCRIPT);
  });

  test('without a compressed copy are sent uncompressed', async () => {
    const { headers, body } = await send('/assets/font-2b.woff2', { 'accept-encoding': 'br, gzip' });
    expect([headers['content-encoding'], body.toString()]).toEqual([undefined, 'wOF2']);
  });

  test('are sent once, with an ETag per encoding', async () => {
    const path = '/assets/index-1a.js';
    const tagOf = async (encoding: string) =>
      (await send(path, { 'accept-encoding': encoding })).headers.etag!;
    const [br, gzip, none] = [await tagOf('br'), await tagOf('gzip'), await tagOf('identity')];
    expect(new Set([br, gzip, none]).size).toBe(3);
    const again = (tag: string) => send(path, { 'accept-encoding': 'br', 'if-none-match': tag });
    expect([(await again(br)).status, (await again(none)).status]).toEqual([304, 200]);
    expect((await again(br)).body.length).toBe(0);
  });

  test('are sent in full, whatever range or write condition a request has', async () => {
    for (const headers of [
      { range: 'bytes=0-3' },
      { range: 'bytes=999999-' },
      { 'if-match': '"other"' },
      { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
    ]) {
      for (const path of ['/assets/index-1a.js', '/sw.js']) {
        const { status, headers: response_headers } = await send(
          path,
          headers as unknown as Record<string, string>,
        );
        expect([path, status, response_headers['accept-ranges']]).toEqual([path, 200, undefined]);
      }
    }
  });
});

test.each([
  '/../outside.js',
  '/assets/../../outside.js',
  '/assets/..%2f..%2foutside.js',
  '/assets/%2e%2e/%2e%2e/outside.js',
  '/assets/..%5c..%5coutside.js',
  '/..%2foutside.js',
  '/%2e%2e%2foutside.js',
  '/....//outside.js',
  '/more/deep.js',
  '/assets/folder/x.js',
  '/assets/folder%2fx.js',
  '/assets/folder',
  '/assets//index-1a.js',
  '//assets/index-1a.js',
  '/assets/./index-1a.js',
  '/assets/index-1a.js%00',
  '/assets/index-1a.js%00.png',
  '/sw.js%00.png',
  '/%00',
  '/.stamp',
  '/%2estamp',
  '/.stamp.js',
  '/assets/.hidden.js',
  '/assets/%2ehidden.js',
  '/assets/index-1a.js.br',
  '/assets/index-1a.js.gz',
  '/ASSETS/index-1a.js',
  '/assets/INDEX-1a.js',
  `/${'a'.repeat(300)}.js`,
  `/assets/${'a'.repeat(300)}.js`,
])('%.60s leads to no file', async (path) => {
  for (const answer of [await send(path), await send(path, { 'accept-encoding': 'br, gzip' })]) {
    expect(errorOf(answer)).toEqual(NOT_FOUND);
  }
  expect((await go(path)).body.toString()).not.toContain(SECRET);
});

test('an invalid path gets an error in the usual format, and no page', async () => {
  for (const path of ['/%', '/assets/%', '/agents/%ff']) {
    const { status, body } = await go(path);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(JSON.parse(body.toString())).toEqual({ error: expect.any(String) });
  }
});

describe('an unknown host name', () => {
  const host = 'evil.example';

  test('shows a person the setting that would allow it', async () => {
    const { status, headers, body } = await go('/join', { host });
    expect([status, headers['content-type'], headers['x-error-code']]).toEqual([
      421,
      'text/html; charset=utf-8',
      'unknown_host',
    ]);
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    expect(body.toString()).toContain('web.rp_origin');
    expect(body.toString()).toContain('server.listen');
    expect(body.toString()).not.toContain(host);
  });

  test('gives programs, files and the API the usual error', async () => {
    for (const answer of [
      await send('/', { host }),
      await send('/assets/index-1a.js', { host }),
      await go('/assets/index-1a.js', { host }),
      await go('/api/me', { host }),
    ]) {
      expect(errorOf(answer)).toEqual([421, { error: 'unknown host' }]);
    }
  });
});
