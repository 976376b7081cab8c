/**
 * The web UI as the real program serves it to a real browser: it complies with its Content-Security-Policy, sends requests
 * only to the service, and every URL can be opened directly and reloaded.
 */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  browserTest,
  longBrowserTest,
  mainScreens,
  screens,
  sharedBrowser,
  signIn,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

test('every asset of the page is served compressed and cached permanently', async () => {
  const page = await (await fetch(plane.url)).text();
  const names = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(1);
  for (const name of names) {
    const response = await fetch(plane.url + name, { headers: { 'accept-encoding': 'br' } });
    const large = (await response.text()).length >= 1024;
    const { status, headers } = response;
    expect([name, status, headers.get('content-encoding')]).toEqual([name, 200, large ? 'br' : null]);
    expect(headers.get('cache-control')).toContain('immutable');
  }
});

test('internal files of the build are not served', async () => {
  for (const path of ['/.stamp', '/.vite/manifest.json', '/manifest.json', '/index.html']) {
    expect((await fetch(plane.url + path)).status, path).toBe(404);
  }
});

browserTest.for(mainScreens)(
  'a user who is not signed in is asked to sign in, on the screen of a %s',
  async (screen) => {
    const { page, errors, foreign_requests } = await browser.open(plane, { screen });
    await page.goto(`${plane.url}/agents`);
    await page.getByLabel('Password').waitFor();
    expect(await page.evaluate('innerWidth')).toBe(screens[screen].viewport.width);
    expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
  },
);

browserTest('a signed-in user can open any URL and reload it', async () => {
  const { page, errors, foreign_requests } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/nodes`);
  await page.getByRole('navigation').first().waitFor();
  await page.reload();
  await page.getByRole('navigation').first().waitFor();
  expect(new URL(page.url()).pathname).toBe('/nodes');
  expect(await page.getByLabel('Password').count()).toBe(0);
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

browserTest(
  'after an upgrade, a click loads the page again, and a pointer above a link does not',
  async () => {
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents`);
    const link = page.getByRole('navigation').first().getByRole('link', { name: 'Teams' });
    await link.waitFor();
    await page.evaluate('globalThis.is_same_page = true');
    const isSamePage = () => page.evaluate('globalThis.is_same_page === true');
    let is_new_page = false;
    page.on('request', (request) => {
      is_new_page ||= request.isNavigationRequest();
    });
    await page.route('**/assets/teams-*.js', (route) =>
      is_new_page ? route.continue() : route.fulfill({ status: 404, body: 'not found' }),
    );
    const missing = page.waitForResponse((response) => response.status() === 404);
    await link.hover();
    await missing;
    // Longer than the page takes to notice.
    await page.waitForTimeout(500);
    expect([is_new_page, await isSamePage()]).toEqual([false, true]);
    await link.click();
    await page.getByRole('heading', { level: 1, name: 'Teams' }).waitFor();
    expect([is_new_page, await isSamePage()]).toEqual([true, false]);
    expect(new URL(page.url()).pathname).toBe('/teams');
  },
);

browserTest(
  'a screen that cannot be loaded while the service is down says so, and can be tried again',
  async () => {
    const { page } = await browser.open(plane, { separate: true });
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents`);
    const sidebar = page.getByRole('navigation').first();
    const link = sidebar.getByRole('link', { name: 'Teams' });
    await link.waitFor();
    await plane.kill();
    await link.click();
    const problem = page.getByRole('alert').getByText('This page could not be loaded.');
    await problem.waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    // Longer than the page takes to find out that the service is still down.
    await page.waitForTimeout(500);
    await problem.waitFor();
    await sidebar.waitFor();
    await plane.start();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { level: 1, name: 'Teams' }).waitFor();
  },
);

browserTest('a URL with an unknown tab of an agent offers a link to the agent', async () => {
  const agent = await plane.agent('true', { name: 'known' });
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${agent.id}/nowhere`);
  await page.getByText('This page does not exist.').waitFor();
  await page.getByRole('link', { name: 'Go to known' }).click();
  await page.waitForURL(`${plane.url}/agents/${agent.id}/output`);
});

browserTest(
  'the URL of an agent, a run or a team that does not exist offers a link to the list',
  async () => {
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    for (const [path, list] of [
      ['/agents/agt_none', 'agents'],
      ['/teams/team_none/runs/run_none', 'runs'],
      ['/teams/team_none', 'teams'],
    ] as const) {
      await page.goto(`${plane.url}${path}`);
      await page.getByRole('link', { name: `Go to ${list}` }).click();
      await page.waitForURL(`${plane.url}/${list}`);
    }
  },
);

browserTest('the HTML of each place names all scripts that it loads', { timeout: 240_000 }, async () => {
  const { page } = await browser.open(plane, { separate: true });
  // Two seconds after the page, the palette and the toasts are loaded with what they need.
  await page.addInitScript(`{
    const { setTimeout } = window;
    window.setTimeout = (run, ms, ...rest) => setTimeout(run, ms >= 2000 ? ms + 3_600_000 : ms, ...rest);
  }`);
  const late = async (path: string, heading: string) => {
    const html = await (await page.goto(plane.url + path))!.text();
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    const loaded = (await page.evaluate(
      "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)",
    )) as string[];
    const scripts = loaded.filter((name) => /^\/assets\/(?!worker-).*\.js$/.test(name));
    expect(scripts.length).toBeGreaterThan(1);
    return scripts.filter((name) => !html.includes(`"${name}"`));
  };
  expect(await late('/login', 'Sign in')).toEqual([]);
  await signIn(page, plane);
  const places = {
    '/': 'Agents',
    '/approvals': 'Approvals',
    '/teams': 'Teams',
    '/runs': 'Runs',
    '/tasks': 'Tasks',
    '/nodes': 'Nodes',
    '/users': 'Users',
    '/audit': 'Audit',
    '/settings/account': 'Settings',
    '/docs': 'API',
  };
  for (const [path, heading] of Object.entries(places))
    expect([path, await late(path, heading)]).toEqual([path, []]);
});

browserTest(
  'the first screen shows the answers to requests that were sent before its scripts arrived',
  async () => {
    await plane.agent('true', { name: 'seen early' });
    const { page, errors } = await browser.open(plane, { separate: true });
    await signIn(page, plane);
    const early = Promise.withResolvers<void>();
    await page.route(/\/assets\/index-.*\.js/, (route) => early.promise.then(() => route.continue()));
    let requests = 0;
    await page.route(/\/api\/agents\?/, (route) => {
      early.resolve();
      // A second request gets no answer.
      return requests++ === 0 ? route.continue() : undefined;
    });
    await page.goto(`${plane.url}/agents`, { waitUntil: 'commit' });
    await page.getByRole('link', { name: 'seen early', exact: true }).waitFor();
    expect(errors).toEqual([]);
  },
);

browserTest(
  'the sign-in page shows the answer to a request that was sent before its scripts arrived',
  async () => {
    const { page, errors } = await browser.open(plane, { separate: true });
    const early = Promise.withResolvers<void>();
    await page.route(/\/assets\/index-.*\.js/, (route) => early.promise.then(() => route.continue()));
    let requests = 0;
    await page.route('**/api/passkeys/relying-party', (route) => {
      early.resolve();
      // A second request gets no answer.
      return requests++ === 0 ? route.continue() : undefined;
    });
    await page.goto(`${plane.url}/login`, { waitUntil: 'commit' });
    await page.getByText('To use passkeys').waitFor();
    expect(errors).toEqual([]);
  },
);

/** Holds back the entry point of the app until `release` is called. */
async function holdApp(page: Page): Promise<{ release: () => void }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route(/\/assets\/index-.*\.js/, (route) => promise.then(() => route.continue()));
  return { release: resolve };
}

/** Until then, text has the widths of a fallback font. `document.fonts.ready` does not wait for what nothing has requested yet. */
async function fontLoaded(page: Page): Promise<void> {
  await page.waitForFunction(
    `document.fonts.load('13px "Inter Variable"').then((faces) => faces.length > 0)`,
  );
}

const FIRST = '[data-first]';

browserTest.for(mainScreens)(
  'pages paint before their scripts arrive, in the chosen theme, on the screen of a %s',
  async (screen) => {
    const { page, errors } = await browser.open(plane, { screen, separate: true });
    await signIn(page, plane);
    await page.evaluate(`localStorage.setItem('svc.appearance', '{"theme":"dark"}')`);
    const app = await holdApp(page);
    await page.goto(`${plane.url}/nodes`, { waitUntil: 'commit' });
    const heading = page.locator(`${FIRST} h1`).filter({ visible: true });
    await heading.waitFor();
    expect(await heading.textContent()).toBe('Nodes');
    expect(await page.locator('html').getAttribute('data-theme')).toBe('dark');
    await fontLoaded(page);
    const before = await heading.boundingBox();
    // For assistive technology, the page is still empty.
    expect(await page.getByRole('heading').count()).toBe(0);
    app.release();
    const shown = page.getByRole('heading', { level: 1, name: 'Nodes' });
    await shown.waitFor();
    expect(await page.locator(FIRST).count()).toBe(0);
    expect(await shown.boundingBox()).toEqual(before);
    expect(errors).toEqual([]);
  },
);

browserTest('the sign-in page paints before its scripts arrive, and its form does not move', async () => {
  const { page, errors } = await browser.open(plane, { separate: true });
  const app = await holdApp(page);
  await page.goto(`${plane.url}/login`, { waitUntil: 'commit' });
  const field = page.locator('input[name="username"]').filter({ visible: true });
  await field.waitFor();
  expect(await page.locator(FIRST).count()).toBe(1);
  await fontLoaded(page);
  const before = await field.boundingBox();
  app.release();
  await page.getByRole('textbox', { name: 'Username' }).waitFor();
  // The last to arrive.
  await page.getByText('To use passkeys').waitFor();
  expect(await field.boundingBox()).toEqual(before);
  expect(errors).toEqual([]);
});

browserTest(
  'pages of signed-in users show nothing to others, and the sign-in page nothing to them',
  async () => {
    const { page } = await browser.open(plane, { separate: true });
    await page.addInitScript(`new MutationObserver(() => {
    if (document.querySelector('${FIRST}')) globalThis.was_shown = true;
  }).observe(document, { childList: true, subtree: true })`);
    const wasShown = () => page.evaluate('globalThis.was_shown === true');
    await page.goto(`${plane.url}/agents`);
    await page.getByLabel('Password').waitFor();
    expect(await wasShown()).toBe(false);
    await signIn(page, plane);
    await page.goto(`${plane.url}/login`);
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    expect(await wasShown()).toBe(false);
  },
);

browserTest('nothing moves on a phone when the font arrives late', async () => {
  const { page } = await browser.open(plane, { screen: 'phone', separate: true });
  await signIn(page, plane);
  const shown = Promise.withResolvers<void>();
  await page.route(/\.woff2$/, (route) => shown.promise.then(() => route.continue()));
  const font = page.waitForResponse(/\.woff2$/);
  await page.goto(`${plane.url}/agents`, { waitUntil: 'commit' });
  await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
  await page.waitForFunction("performance.getEntriesByName('first-contentful-paint').length > 0");
  shown.resolve();
  await (await font).finished();
  await page.evaluate('document.fonts.ready.then(() => true)');
  const moved = await page.evaluate(`new Promise((resolve) => {
    const observer = new PerformanceObserver((list) =>
      resolve(list.getEntries().reduce((sum, { value }) => sum + value, 0)));
    observer.observe({ type: 'layout-shift', buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(0))));
  })`);
  expect(moved).toBeLessThan(0.02);
  // The first page already uses it.
  const widths = await page.evaluate(`['"Inter Variable", sans-serif', 'sans-serif'].map((family) => {
    const text = document.body.appendChild(document.createElement('span'));
    text.textContent = 'Agents that need you';
    text.style.fontFamily = family;
    return text.getBoundingClientRect().width;
  })`);
  expect(new Set(widths as number[]).size).toBe(2);
});

longBrowserTest(
  'an installed page shows no stale content while the service is down, and works again afterwards',
  async () => {
    const { page } = await browser.open(plane, { service_worker: true });
    await page.goto(`${plane.url}/login`);
    await page.evaluate('navigator.serviceWorker.ready.then(() => true)');
    await expect.poll(() => page.evaluate('navigator.serviceWorker.controller !== null')).toBe(true);
    const manifest = await page.evaluate("fetch('/manifest.webmanifest').then((answer) => answer.json())");
    expect(manifest).toMatchObject({ start_url: '/agents', display: 'standalone' });
    await plane.kill();
    await page.goto(`${plane.url}/agents`);
    await page.getByRole('heading', { name: 'The service is not responding' }).waitFor();
    await plane.start();
    await page.getByRole('link', { name: 'Try again' }).click();
    await page.getByLabel('Password').waitFor();
  },
);
