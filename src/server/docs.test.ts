import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openapi } from '../api/openapi.ts';
import { openFakeHttp, USER_TOKEN } from '../testing/http.ts';
import { metaHandlers } from './docs.ts';
import type { HttpServer } from './server.ts';

let server: HttpServer;
beforeAll(async () => {
  server = await openFakeHttp(metaHandlers());
});
afterAll(() => server.drain());

const user = { authorization: `Bearer ${USER_TOKEN}` };
const folder = new URL('./docs/', import.meta.url);
const files = readdirSync(folder).map((name) => ({
  name,
  text: readFileSync(new URL(name, folder), 'utf8'),
}));

test('serves the description with a token', async () => {
  const response = await fetch(`${server.url}/api/openapi.json`, { headers: user });
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(await response.json()).toEqual(openapi());
});

test('embeds the description as data in the page with a token', async () => {
  const response = await fetch(`${server.url}/api/openapi/docs`, { headers: user });
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-store');
  const html = await response.text();
  const data = /<script type="application\/json" id="description">(.*?)<\/script>/s.exec(html)?.[1];
  expect(JSON.parse(data!)).toEqual(openapi());
});

test('the page without a token contains no description', async () => {
  const response = await fetch(`${server.url}/docs`);
  expect(response.status).toBe(200);
  expect(await response.text()).not.toContain('/api/agents');
});

test('serves every file of the page, and 304 for unchanged ones', async () => {
  const links = files
    .flatMap(({ text }) => [...text.matchAll(/(?:src|href)="(\/[^"]+)"|from '\.(\/[^']+)'/g)])
    .map(([, absolute, relative]) => absolute ?? `/docs${relative}`);
  expect(new Set(links)).toEqual(
    new Set(files.filter(({ name }) => name !== 'docs.html').map(({ name }) => `/docs/${name}`)),
  );
  for (const link of new Set(links)) {
    const response = await fetch(`${server.url}${link}`);
    expect([link, response.status]).toEqual([link, 200]);
    await response.text();
    const again = await fetch(`${server.url}${link}`, {
      headers: { 'if-none-match': response.headers.get('etag')! },
    });
    expect(again.status).toBe(304);
  }
});

test('the page names no other host, writes no markup and runs nothing inline', () => {
  for (const { name, text } of files) {
    expect([name, text.match(/https?:\/\/|["'(]\/\/[a-z]|@import|\burl\(/g)]).toEqual([name, null]);
    expect([
      name,
      text.match(/innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function/g),
    ]).toEqual([name, null]);
    expect([name, text.match(/\sstyle=|\son[a-z]+="|<script>|localStorage|sessionStorage|cookie/g)]).toEqual([
      name,
      null,
    ]);
  }
});

test('returns 404 for a path outside the list of files', async () => {
  for (const path of ['/docs/', '/docs/docs.ts', '/docs/..%2fserver.ts', '/docs/%2e%2e/docs.ts']) {
    expect((await fetch(`${server.url}${path}`)).status).toBe(404);
  }
});
