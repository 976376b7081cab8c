/**
 * A real browser for tests: Chromium with the screen of a desktop or a phone, pages that record the browser's errors, and
 * sign-in without the form. Without Chromium, tests are skipped, except in CI, where Chromium is always installed.
 */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import { afterAll, afterEach, expect, test } from 'vitest';
import { Client } from '../client/client.ts';
import { SESSION_KEY } from '../web/api/session-key.ts';
import { onlyLong } from './long.ts';
import type { TestPlane } from './plane.ts';

const fullBrowserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
/** Path of the browser on this machine, if it has one. The headless shell needs half of the processor time. */
export const browserPath = ['/usr/bin/chromium-headless-shell'].find(existsSync) ?? fullBrowserPath;
export const browserTest = test.runIf(browserPath !== undefined || Boolean(process.env.CI));
export const longBrowserTest = onlyLong(browserTest);
/** For tests that need the full browser: the headless shell has no notifications. */
export const fullBrowserTest = test.runIf(fullBrowserPath !== undefined || Boolean(process.env.CI));
export const longFullBrowserTest = onlyLong(fullBrowserTest);

export const screens = {
  desk: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true },
  /** A phone on its side. */
  sideways: { viewport: { width: 844, height: 390 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true },
} as const satisfies Record<string, BrowserContextOptions>;
/** The screens on which tests of whole paths run. */
export const mainScreens = ['desk', 'phone'] as const;

const DAY_MS = 86_400_000;
const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`;
/** Chromium would draw 60 frames per second for them, without a graphics card: a third of its work in some tests. */
const STOP_SPINNERS = `document.adoptedStyleSheets.push(new CSSStyleSheet());
  document.adoptedStyleSheets[0].replaceSync('.animate-spin, .animate-working { animation: none }')`;

export interface WatchedPageOptions {
  screen?: keyof typeof screens;
  color_scheme?: 'light' | 'dark';
  /** Additional headers of every request. */
  headers?: Record<string, string>;
  /** Allows the page's service worker. Tests cannot intercept requests that pass through it. */
  service_worker?: boolean;
  /** Absent: this machine's time zone. */
  time_zone?: string;
  /** Not one of an earlier test, and not left to a later one, for a page that a test changes permanently. */
  separate?: boolean;
}

/** A page in a separate context, so that pages do not share storage. `page.context()` opens more pages with the same storage. */
export interface WatchedPage {
  page: Page;
  /** Errors that the browser reported: script errors, and violations of the content security policy. */
  errors: string[];
  /** URLs of requests to other origins. */
  foreign_requests: string[];
}

/** A service, or a proxy in front of it. */
type Service = Pick<TestPlane, 'url'>;

export interface TestBrowser {
  open(plane: Service, options?: WatchedPageOptions): Promise<WatchedPage>;
  /** Closes all pages that are open, or keeps them empty for the next calls of `open`. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A browser for the tests of a file. It starts with the first page, and is cleared after each test: a new context with a new
 * page takes more than half of the processor time that a test needs until it sees the UI.
 */
export function sharedBrowser(options: { full?: boolean } = {}): Pick<TestBrowser, 'open'> {
  let browser: Promise<TestBrowser> | undefined;
  afterEach(async () => (await browser)?.clear());
  afterAll(async () => (await browser)?.close());
  return {
    open: async (...args) => {
      browser ??= openBrowser(options);
      return (await browser).open(...args);
    },
  };
}

/** `full`: Chromium itself, even if its headless shell is installed. */
export async function openBrowser({ full = false } = {}): Promise<TestBrowser> {
  // Without its sandbox, because tests may run as root.
  const executablePath = full ? fullBrowserPath! : browserPath!;
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const spare: OpenPage[] = [];
  let in_use: OpenPage[] = [];
  return {
    async open(plane, options = {}) {
      const key = JSON.stringify([options.screen ?? 'desk', options.color_scheme ?? 'light']);
      const at = isReusable(options) ? spare.findIndex((one) => one.key === key) : -1;
      const opened = at >= 0 ? spare.splice(at, 1)[0]! : await openPage(browser, key, options);
      in_use.push(opened);
      return watch(opened, plane);
    },
    async clear() {
      const pages = in_use;
      in_use = [];
      for (const opened of pages) {
        if (opened.page.isClosed() || !opened.is_reusable) await opened.page.context().close();
        else {
          await clearPage(opened);
          spare.push(opened);
        }
      }
    },
    close: () => browser.close(),
  };
}

interface OpenPage {
  page: Page;
  is_reusable: boolean;
  /** The options that a page keeps. */
  key: string;
  /** Which origin is the service's, and where to record what the browser reports. */
  origin: string;
  watched: WatchedPage;
}

function isReusable(options: WatchedPageOptions): boolean {
  const { headers, service_worker = false, separate = false, time_zone } = options;
  return headers === undefined && !service_worker && !separate && time_zone === undefined;
}

async function openPage(browser: Browser, key: string, options: WatchedPageOptions): Promise<OpenPage> {
  const {
    screen = 'desk',
    color_scheme = 'light',
    headers = {},
    service_worker = false,
    time_zone,
  } = options;
  const context = await browser.newContext({
    ...screens[screen],
    colorScheme: color_scheme,
    ...(time_zone !== undefined && { timezoneId: time_zone }),
    extraHTTPHeaders: headers,
    serviceWorkers: service_worker ? 'allow' : 'block',
  });
  await context.addInitScript(REPORT_VIOLATIONS);
  await context.addInitScript(STOP_SPINNERS);
  const page = await context.newPage();
  const watched: WatchedPage = { page, errors: [], foreign_requests: [] };
  const opened: OpenPage = { page, is_reusable: isReusable(options), key, origin: '', watched };
  // Events of the whole context include those of its other pages and its workers.
  context.on('weberror', (error) => opened.watched.errors.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() !== 'error') return;
    opened.watched.errors.push(`${message.text()} ${message.location().url}`.trim());
  });
  context.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'data:' && protocol !== 'blob:' && origin !== opened.origin)
      opened.watched.foreign_requests.push(request.url());
  });
  return opened;
}

function watch(opened: OpenPage, plane: Service): WatchedPage {
  opened.origin = plane.url;
  opened.watched = { page: opened.page, errors: [], foreign_requests: [] };
  return opened.watched;
}

/** Removes what a test left in a page and its context, and leaves the page empty, at the service's origin. */
async function clearPage({ page, origin }: OpenPage): Promise<void> {
  const context = page.context();
  for (const other of context.pages()) if (other !== page) await other.close();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.unrouteAll({ behavior: 'ignoreErrors' });
  // A test may use the service through a proxy.
  const { origin: last } = new URL(page.url());
  for (const each of last.startsWith('http') && last !== origin ? [last, origin] : [origin]) {
    await openEmptyPage(page, each);
    await page.evaluate('localStorage.clear(); sessionStorage.clear()');
  }
  await Promise.all([
    context.setOffline(false),
    context.clearPermissions(),
    context.clearCookies(),
    page.mouse.move(0, 0),
  ]);
}

/** A page that the test serves instead of the service, to get access to the storage of the origin. */
async function openEmptyPage(page: Page, origin: string): Promise<void> {
  const url = `${origin}/before`;
  if (page.url() === url) return;
  const body = '<link rel="icon" href="data:,">';
  await page.route(url, (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.goto(url);
  await page.unroute(url);
}

/** Stores a session in the browser, by default root's, as after a sign-in. Afterwards, open any page of the UI. */
export async function signIn(
  page: Page,
  plane: Service & Pick<TestPlane, 'token'>,
  { token = plane.token, origin = plane.url } = {},
): Promise<void> {
  const { id, username, role, created_at } = await new Client({ url: plane.url, token }).call('getMe');
  const session = { token, expires_at: Date.now() + DAY_MS, user: { id, username, role, created_at } };
  await openEmptyPage(page, origin);
  const put = [SESSION_KEY, JSON.stringify(session)].map((text) => JSON.stringify(text));
  await page.evaluate(`localStorage.setItem(${put})`);
}

/** Presses a key in the focused element as Safari reports it for an input method, whose text it confirms or cancels. */
export function pressComposing(page: Page, key: string): Promise<unknown> {
  const event = `{ key: '${key}', keyCode: 229, bubbles: true, cancelable: true }`;
  return page.evaluate(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', ${event}))`);
}

/** The expected effect of an action: an element becomes visible, or a condition holds. */
type Effect = Locator | (() => boolean | Promise<boolean>);

/** Acts again if there is no effect within three seconds, because the UI may have ignored the action. */
export async function actUntil(act: () => Promise<unknown>, effect: Effect): Promise<void> {
  const isDone = typeof effect === 'function' ? effect : () => effect.isVisible();
  for (let tries_left = 9; ; tries_left--) {
    await act();
    try {
      await expect.poll(isDone, { timeout: 3_000 }).toBe(true);
      return;
    } catch (error) {
      if (await isDone()) return;
      if (tries_left === 0) throw error;
    }
  }
}

/**
 * Clicks until there is an effect: the UI ignores clicks on what has just appeared or moved (`src/web/waiting/focus.ts`,
 * `src/web/ui/moved-rows.ts`, `src/web/ui/replaced.ts`), and a test cannot know when that was.
 */
export function clickUntil(button: Locator, effect: Effect): Promise<void> {
  // It may be gone when it is clicked again.
  return actUntil(() => button.click({ timeout: 1_000 }).catch(() => {}), effect);
}

/** Like `clickUntil`, with a finger. */
export function tapUntil(button: Locator, effect: Effect): Promise<void> {
  return actUntil(() => button.tap({ timeout: 1_000 }).catch(() => {}), effect);
}

/**
 * Presses keys one after another, again and again until they have an effect. The UI takes them for a sequence only if each
 * follows the one before within 1.5 s, which a slow machine may miss. The keys must be harmless after their effect.
 */
export function pressSequence(page: Page, keys: readonly string[], effect: Effect): Promise<void> {
  return actUntil(async () => {
    for (const key of keys) await page.keyboard.press(key);
  }, effect);
}

/** Whether an element is completely inside the visible part of another. */
export async function isInView(element: Locator, container: Locator): Promise<boolean> {
  const [inner, outer] = await Promise.all([element.boundingBox(), container.boundingBox()]);
  if (!inner || !outer) return false;
  return inner.y >= outer.y && inner.y + inner.height <= outer.y + outer.height;
}
