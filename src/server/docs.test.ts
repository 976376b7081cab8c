import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openapi } from '../api/openapi.ts';
import { openFakeHttp, USER_TOKEN } from '../testing/http.ts';
import { metaHandlers } from './docs.ts';
import type { HttpServer } from './server.ts';

const PAGE = '<!doctype html><html><head></head><body><div id="root"></div></body></html>';

let web: string;
let server: HttpServer;
beforeAll(async () => {
  web = await mkdtemp(join(tmpdir(), 'svc-docs-'));
  await mkdir(join(web, 'pages'));
  await writeFile(join(web, 'index.html'), PAGE);
  await writeFile(join(web, 'pages/api.openapi.docs.html'), PAGE.replace('</head>', '<!-- docs --></head>'));
  server = await openFakeHttp(metaHandlers(web), { web });
});
afterAll(async () => {
  await server.drain();
  await rm(web, { recursive: true });
});

const user = { authorization: `Bearer ${USER_TOKEN}` };
const navigation = { accept: 'text/html' };

test('serves the description with a token', async () => {
  const response = await fetch(`${server.url}/api/openapi.json`, { headers: user });
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(await response.json()).toEqual(openapi());
});

test('embeds the description as data in the page with a token', async () => {
  const response = await fetch(`${server.url}/api/openapi/docs`, { headers: user });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-store');
  const html = await response.text();
  expect(html).toContain('<!-- docs -->');
  const data = /<script type="application\/json" id="description">(.*?)<\/script>/s.exec(html)?.[1];
  expect(JSON.parse(data!)).toEqual(openapi());
  expect(html.match(/<script(?! type="application\/json")/g)).toBe(null);
});

test('gives neither the description nor the page without a token', async () => {
  for (const path of ['/api/openapi.json', '/api/openapi/docs']) {
    const response = await fetch(server.url + path, { headers: navigation });
    expect([path, response.status]).toEqual([path, 401]);
    expect(await response.json()).toEqual({ error: 'missing authorization token' });
  }
});

test('serves the web UI at /docs without a token and without the description', async () => {
  const response = await fetch(`${server.url}/docs`, { headers: navigation });
  expect(response.status).toBe(200);
  expect(await response.text()).toBe(PAGE);
});

test('answers 503 for the page if the web UI is not built, and still serves the description', async () => {
  const bare = await openFakeHttp(metaHandlers(join(web, 'nothing')));
  try {
    const page = await fetch(`${bare.url}/api/openapi/docs`, { headers: user });
    expect([page.status, await page.text()]).toEqual([
      503,
      expect.stringContaining('The web UI is not built'),
    ]);
    expect((await fetch(`${bare.url}/api/openapi.json`, { headers: user })).status).toBe(200);
  } finally {
    await bare.drain();
  }
});
