/**
 * A real browser for tests: Chromium with the screen of a desktop or a phone, pages that record the browser's errors, and
 * sign-in without the form. Without Chromium, tests are skipped, except in CI, where Chromium is always installed.
 */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { test } from 'vitest';
import { Client } from '../client/client.ts';
import { SESSION_KEY } from '../web/api/session-key.ts';
import type { TestPlane } from './plane.ts';

const fullBrowserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
/** Path of the browser on this machine, if it has one. The headless shell needs half of the processor time. */
export const browserPath = ['/usr/bin/chromium-headless-shell'].find(existsSync) ?? fullBrowserPath;
export const browserTest = test.runIf(browserPath !== undefined || Boolean(process.env.CI));
/** For tests that need the full browser: the headless shell has no notifications. */
export const fullBrowserTest = test.runIf(fullBrowserPath !== undefined || Boolean(process.env.CI));

export const screens = {
  desk: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true },
} as const satisfies Record<string, BrowserContextOptions>;

const DAY_MS = 86_400_000;
const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`;

export interface WatchedPageOptions {
  screen?: keyof typeof screens;
  color_scheme?: 'light' | 'dark';
  /** Additional headers of every request. */
  headers?: Record<string, string>;
  /** Allows the page's service worker. Tests cannot intercept requests that pass through it. */
  service_worker?: boolean;
}

/** A page in a separate context, so that pages do not share storage. `page.context()` opens more pages with the same storage. */
export interface WatchedPage {
  page: Page;
  /** Errors that the browser reported: script errors, and violations of the content security policy. */
  errors: string[];
  /** URLs of requests to other origins. */
  foreign_requests: string[];
}

export interface TestBrowser {
  open(plane: TestPlane, options?: WatchedPageOptions): Promise<WatchedPage>;
  close(): Promise<void>;
}

/** `full`: Chromium itself, even if its headless shell is installed. */
export async function openBrowser({ full = false } = {}): Promise<TestBrowser> {
  // Without its sandbox, because tests may run as root.
  const executablePath = full ? fullBrowserPath! : browserPath!;
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  return {
    open: (plane, options = {}) => openWatched(browser, plane, options),
    close: () => browser.close(),
  };
}

async function openWatched(
  browser: Browser,
  plane: TestPlane,
  options: WatchedPageOptions,
): Promise<WatchedPage> {
  const { screen = 'desk', color_scheme = 'light', headers = {}, service_worker = false } = options;
  const context = await browser.newContext({
    ...screens[screen],
    colorScheme: color_scheme,
    extraHTTPHeaders: headers,
    serviceWorkers: service_worker ? 'allow' : 'block',
  });
  const errors: string[] = [];
  const foreign_requests: string[] = [];
  // Events of the whole context include those of its other pages and its workers.
  context.on('weberror', (error) => errors.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error') errors.push(`${message.text()} ${message.location().url}`.trim());
  });
  context.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'data:' && protocol !== 'blob:' && origin !== plane.url)
      foreign_requests.push(request.url());
  });
  await context.addInitScript(REPORT_VIOLATIONS);
  return { page: await context.newPage(), errors, foreign_requests };
}

/** Stores a session in the browser, by default root's, as after a sign-in. Afterwards, open any page of the UI. */
export async function signIn(
  page: Page,
  plane: TestPlane,
  { token = plane.token, origin = plane.url } = {},
): Promise<void> {
  const { id, username, role, created_at } = await new Client({ url: plane.url, token }).call('getMe');
  const session = { token, expires_at: Date.now() + DAY_MS, user: { id, username, role, created_at } };
  // A page that the test serves instead of the plane, to get access to the storage of the origin.
  const url = `${origin}/before`;
  const body = '<link rel="icon" href="data:,">';
  await page.route(url, (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.goto(url);
  const put = [SESSION_KEY, JSON.stringify(session)].map((text) => JSON.stringify(text));
  await page.evaluate(`localStorage.setItem(${put})`);
  await page.unroute(url);
}
