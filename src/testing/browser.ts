/**
 * A real browser for tests: Chromium on the screen of a desk or a phone, pages that keep what the browser complained of,
 * and signing in without the form. Tests are not run where there is no Chromium, except in CI, which installs it.
 */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { test } from 'vitest';
import { Client } from '../client/client.ts';
import { SESSION_KEY } from '../web/api/session-key.ts';
import type { TestPlane } from './plane.ts';

/** Path of the browser on this machine, if it has one. */
export const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
);
export const browserTest = test.runIf(browserPath !== undefined || Boolean(process.env.CI));

export const screens = {
  desk: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true },
} as const satisfies Record<string, BrowserContextOptions>;

const DAY_MS = 86_400_000;
const TELL_VIOLATIONS = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`;

export interface WatchedOptions {
  screen?: keyof typeof screens;
  colour_scheme?: 'light' | 'dark';
  /** Of every request. */
  headers?: Record<string, string>;
  /** With the page's service worker. What a test does to requests does not reach those that pass through one. */
  service_worker?: boolean;
}

/** A page in a context of its own, so that no two share storage; `page.context()` has more pages of the same browser user. */
export interface Watched {
  page: Page;
  /** What the browser complained of: scripts that failed, and everything that the policy refused. */
  complaints: string[];
  /** Requests to another origin than the service's. */
  elsewhere: string[];
}

export interface TestBrowser {
  open(plane: TestPlane, options?: WatchedOptions): Promise<Watched>;
  close(): Promise<void>;
}

export async function openBrowser(): Promise<TestBrowser> {
  // Without its sandbox, because tests may run as root.
  const browser = await chromium.launch({ executablePath: browserPath!, args: ['--no-sandbox'] });
  return {
    open: (plane, options = {}) => openWatched(browser, plane, options),
    close: () => browser.close(),
  };
}

async function openWatched(browser: Browser, plane: TestPlane, options: WatchedOptions): Promise<Watched> {
  const { screen = 'desk', colour_scheme = 'light', headers = {}, service_worker = false } = options;
  const context = await browser.newContext({
    ...screens[screen],
    colorScheme: colour_scheme,
    extraHTTPHeaders: headers,
    serviceWorkers: service_worker ? 'allow' : 'block',
  });
  const complaints: string[] = [];
  const elsewhere: string[] = [];
  // Of the whole context: its other pages and its workers too.
  context.on('weberror', (error) => complaints.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${message.text()} ${message.location().url}`.trim());
  });
  context.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'data:' && protocol !== 'blob:' && origin !== plane.url) elsewhere.push(request.url());
  });
  await context.addInitScript(TELL_VIOLATIONS);
  return { page: await context.newPage(), complaints, elsewhere };
}

/** As somebody who has signed in with this browser before, root unless told otherwise; then open any page of the UI. */
export async function signIn(
  page: Page,
  plane: TestPlane,
  { token = plane.token, origin = plane.url } = {},
): Promise<void> {
  const { id, username, role, created_at } = await new Client({ url: plane.url, token }).call('getMe');
  const session = { token, expires_at: Date.now() + DAY_MS, user: { id, username, role, created_at } };
  // A page of the origin that only this browser knows, to reach the origin's storage.
  const url = `${origin}/before`;
  const body = '<link rel="icon" href="data:,">';
  await page.route(url, (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.goto(url);
  const put = [SESSION_KEY, JSON.stringify(session)].map((text) => JSON.stringify(text));
  await page.evaluate(`localStorage.setItem(${put})`);
  await page.unroute(url);
}
