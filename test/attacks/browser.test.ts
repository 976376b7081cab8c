/**
 * What an attacker's web page can do in the browser of a signed-in person: through another name for the service's address
 * (DNS rebinding), from another origin, in a frame, and through messages to the service worker.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { browserPath, browserTest, openBrowser, signIn } from '../../src/testing/browser.ts';
import { TestPlane } from '../../src/testing/plane.ts';

/** A name that the attacker resolves to loopback. */
const REBOUND = 'rebound.example';

let plane: TestPlane;
let elsewhere: Server;
let evil_url: string;
beforeAll(async () => {
  plane = await TestPlane.open();
  elsewhere = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>evil</title>');
  });
  elsewhere.listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  evil_url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
});
afterAll(async () => {
  elsewhere.close();
  await plane.close();
});

const names = async () =>
  ((await plane.client.call('listTokens')) as unknown as { name: string }[]).map(({ name }) => name);

/** A browser with a signed-in person, whose host names resolve as the attacker wants. */
async function withBrowser(act: (page: Page, context: BrowserContext) => Promise<void>): Promise<void> {
  const args = ['--no-sandbox', `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`];
  const browser = await chromium.launch({ executablePath: browserPath!, args });
  try {
    const context = await browser.newContext({ serviceWorkers: 'allow' });
    const page = await context.newPage();
    await signIn(page, plane);
    await act(page, context);
  } finally {
    await browser.close();
  }
}

/** What the page can read of a response; `opaque` and errors mean nothing. */
const reads = (page: Page, url: string, options: object = {}) =>
  page.evaluate(
    `fetch(${JSON.stringify(url)}, ${JSON.stringify(options)}).then(async (r) => r.type === 'opaque' ? 'opaque' : r.status + ' ' + (await r.text()), (e) => 'failed')`,
  ) as Promise<string>;

const TOKEN_FORM = JSON.stringify({ name: 'forged' });

describe('DNS rebinding', () => {
  browserTest('a page served under an attacker’s host name gets neither the pages nor the API', async () => {
    await withBrowser(async (page) => {
      const rebound = plane.url.replace('127.0.0.1', REBOUND);
      const response = await page.goto(`${rebound}/`);
      expect(response!.status()).toBe(421);
      // The page's origin equals the service's there, so only the host name distinguishes them.
      for (const path of [
        '/api/me',
        '/api/agents',
        '/healthz',
        '/metrics',
        '/api/passkeys/relying-party',
        '/sw.js',
      ])
        expect(await reads(page, path), path).toMatch(/^421 /);
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${plane.token}` };
      expect(await reads(page, '/api/tokens', { method: 'POST', headers, body: TOKEN_FORM })).toMatch(
        /^421 /,
      );
      expect(await reads(page, '/api/admin/join-challenge', { method: 'POST' })).toMatch(/^421 /);
      expect(await page.evaluate('localStorage.length')).toBe(0);
    });
    expect(await names()).not.toContain('forged');
  });
});

describe('a page of another origin', () => {
  browserTest('reads no response and changes nothing, with any kind of request', async () => {
    await withBrowser(async (page) => {
      await page.goto(evil_url);
      const headers = { authorization: `Bearer ${plane.token}` };
      const json = { ...headers, 'content-type': 'application/json' };
      const text = { 'content-type': 'text/plain' };
      const url = (path: string) => plane.url + path;
      for (const path of ['/api/me', '/healthz', '/metrics', '/api/passkeys/relying-party', '/']) {
        expect(await reads(page, url(path)), path).toBe('failed');
        expect(await reads(page, url(path), { headers }), path).toBe('failed');
        expect(await reads(page, url(path), { mode: 'no-cors', credentials: 'include' }), path).toMatch(
          /^(opaque|failed)$/,
        );
      }
      for (const options of [
        { method: 'POST', headers: json, body: TOKEN_FORM },
        { method: 'POST', headers: text, body: TOKEN_FORM, mode: 'no-cors', credentials: 'include' },
        { method: 'POST', body: TOKEN_FORM, mode: 'no-cors', keepalive: true },
        { method: 'DELETE', headers: json },
      ])
        expect(await reads(page, url('/api/tokens'), options)).toMatch(/^(opaque|failed)$/);
      await page.evaluate(
        `navigator.sendBeacon(${JSON.stringify(url('/api/tokens'))}, ${JSON.stringify(TOKEN_FORM)})`,
      );
      for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        const answered = page.waitForResponse((one) => one.url().startsWith(url('/api/tokens')));
        await page.evaluate(`{
          const form = document.createElement('form');
          Object.assign(form, { method: 'POST', enctype: '${enctype}', action: ${JSON.stringify(url('/api/tokens'))}, target: 'sink' });
          const input = document.createElement('input');
          Object.assign(input, { name: '{"name":"forged","x":"', value: '"}' });
          form.append(input);
          const sink = document.createElement('iframe');
          sink.name = 'sink';
          document.body.append(sink, form);
          form.submit();
        }`);
        expect((await answered).status()).toBe(403);
      }
      await page.goto(evil_url);
      await page.evaluate(`document.body.innerHTML = ['script', 'img', 'iframe', 'link rel=stylesheet'].map((tag) =>
        '<' + tag + ' src=${url('/api/me')} href=${url('/api/me')}></' + tag.split(' ')[0] + '>').join('')`);
    });
    expect(await names()).not.toContain('forged');
  });

  browserTest('can neither frame the UI nor reach into its window', async () => {
    await withBrowser(async (page, context) => {
      await page.goto(evil_url);
      await page.setContent(`<iframe src="${plane.url}/agents"></iframe>`);
      await expect.poll(() => page.frames()[1]?.url()).toMatch(/^(chrome-error:|about:blank$)/);
      const opened = context.waitForEvent('page');
      await page.evaluate(`window.other = window.open(${JSON.stringify(`${plane.url}/agents`)})`);
      await (await opened).waitForLoadState();
      // The opener has no reference to the window, and the window none to its opener.
      expect(await page.evaluate('window.other.closed')).toBe(true);
      expect(await (await opened).evaluate('window.opener')).toBe(null);
    });
  });
});

describe('the service worker', () => {
  browserTest('caches no responses, tokens or pages', async () => {
    await withBrowser(async (page) => {
      await page.goto(`${plane.url}/agents`);
      await page.evaluate('navigator.serviceWorker.ready');
      await page.reload();
      await page.getByRole('heading').first().waitFor();
      const kept = await page.evaluate(`(async () => {
        const names = await caches.keys();
        const databases = await indexedDB.databases();
        const { scope, active } = await navigator.serviceWorker.getRegistration();
        return { names, databases: databases.length, scope, script: active.scriptURL };
      })()`);
      expect(kept).toEqual({ names: [], databases: 0, scope: `${plane.url}/`, script: `${plane.url}/sw.js` });
    });
  });

  browserTest('is served only as a script of this origin, and is never cached', async () => {
    const response = await fetch(`${plane.url}/sw.js`);
    const { headers } = response;
    expect(response.status).toBe(200);
    expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('service-worker-allowed')).toBeNull();
    // Nothing else can be loaded as a script: neither what agents wrote nor an error.
    const agent = await plane.agent('echo "addEventListener(1)"');
    await plane.finished(agent.id);
    const authorization = `Bearer ${plane.token}`;
    for (const path of [
      `/api/agents/${agent.id}/output`,
      `/api/agents/${agent.id}/log`,
      '/api/none.js',
      '/none.js',
    ]) {
      const other = await fetch(plane.url + path, { headers: { authorization } });
      expect(other.headers.get('content-type') ?? '', path).not.toMatch(/javascript/);
      expect(other.headers.get('x-content-type-options'), path).toBe('nosniff');
    }
  });

  browserTest('opens only pages of its own origin, whatever a message says', async () => {
    const browser = await openBrowser();
    try {
      const { page } = await browser.open(plane, { service_worker: true });
      await page.context().grantPermissions(['notifications'], { origin: plane.url });
      await signIn(page, plane);
      await page.goto(`${plane.url}/agents`);
      await page.evaluate('navigator.serviceWorker.ready');
      const worker =
        page.context().serviceWorkers()[0] ?? (await page.context().waitForEvent('serviceworker'));
      for (const path of [
        ...[`${evil_url}/phish`, `//${new URL(evil_url).host}/phish`, `\\\\${new URL(evil_url).host}\\phish`],
        ...['javascript:alert(1)', 'data:text/html,<script>alert(1)</script>', `blob:${plane.url}/x`],
        ...[`http://x@${new URL(evil_url).host}/`, null, { toString: 'x' }, 7],
      ]) {
        const text = JSON.stringify({
          kind: 'review',
          tag: 't',
          title: '<b>x</b>',
          body: '',
          path,
          waiting: 0,
        });
        // Like a tap: asks the service worker which page it would open.
        const went = (await worker.evaluate(`(async () => {
          const data = JSON.parse(${JSON.stringify(text)});
          const went = [];
          const fake = { url: 'about:blank', focused: true, focus: async () => {}, navigate: async (href) => { went.push(href); } };
          self.clients.matchAll = async () => [fake];
          self.clients.openWindow = async (href) => { went.push(href); };
          const event = new Event('notificationclick');
          let until;
          event.notification = { close() {}, data: { path: data.path } };
          event.waitUntil = (promise) => { until = promise; };
          self.dispatchEvent(event);
          await Promise.resolve(until).catch(() => {});
          return went;
        })()`)) as string[];
        expect(
          went.every((href) => new URL(href).origin === plane.url),
          `${JSON.stringify(path)}: ${went}`,
        ).toBe(true);
      }
    } finally {
      await browser.close();
    }
  });
});
