/** Keyboard shortcuts in a real browser: the palette everywhere, single keys only outside of text fields and when turned on. */
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import {
  browserTest,
  longBrowserTest,
  pressSequence,
  sharedBrowser,
  signIn,
  type WatchedPage,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
let plane: TestPlane;
const browser = sharedBrowser();
let watched: WatchedPage | undefined;
let page: Page;
beforeAll(async () => {
  plane = await TestPlane.open();
  for (const name of ['paint-shed', 'mow-lawn', 'paint-fence'])
    await plane.create({ name, command: 'true', start: false });
});
afterAll(async () => {
  await plane.close();
});
beforeEach(async () => {
  watched = await browser.open(plane);
  page = watched.page;
  await signIn(page, plane);
});
afterEach(async () => {
  const { errors, foreign_requests } = watched!;
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

const go = async (path: string, heading: string | RegExp) => {
  await page.goto(plane.url + path);
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
};
/** Waits until an expression has a value in the page. */
const becomes = (expression: string, value: unknown) =>
  expect.poll(() => page.evaluate(expression)).toBe(value);
const path = () => new URL(page.url()).pathname;
const palette = () => page.getByRole('combobox', { name: 'Search and commands' });
const focused = () => page.evaluate('document.activeElement.textContent') as Promise<string>;

browserTest(
  'the palette opens from everywhere, finds an agent by parts of its name, and opens it',
  async () => {
    await go('/settings/account', 'Settings');
    await page.getByLabel('Current password').focus();
    await page.keyboard.press('Control+k');
    await palette().waitFor();
    await becomes('document.activeElement.getAttribute("role")', 'combobox');
    await page.keyboard.type('fence PAINT');
    const found = page.getByRole('option');
    await found.filter({ hasText: 'paint-fence' }).waitFor();
    await expect.poll(() => found.count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/agents\/agt_/);
    await palette().waitFor({ state: 'detached' });
    expect(await page.evaluate('document.querySelectorAll("style").length')).toBe(0);
  },
);

browserTest('the palette runs the chosen command, and returns the focus when it closes', async () => {
  await go('/settings/appearance', 'Settings');
  const box = page.getByRole('checkbox');
  await box.focus();
  await page.keyboard.press('Control+k');
  await palette().waitFor();
  await page.keyboard.type('theme dark');
  await page.getByRole('option', { name: 'Theme: dark' }).waitFor();
  await page.keyboard.press('Enter');
  await becomes('document.documentElement.dataset.theme', 'dark');
  await palette().waitFor({ state: 'detached' });
  await becomes('document.activeElement.type', 'checkbox');
});

browserTest('the palette starts the demo agent without further input', async () => {
  await go('/users', 'Users');
  await page.keyboard.press('Control+k');
  await palette().waitFor();
  await page.keyboard.type('demo');
  await page.getByRole('option', { name: 'Start demo agent' }).click();
  await page.waitForURL(/\/agents\/agt_/);
  const agent = await plane.until(/agt_\w+/.exec(page.url())![0], ['running']);
  expect([agent.preset, agent.protocol, agent.status]).toEqual(['demo', 'acp', 'running']);
});

browserTest(
  'g and a letter open a screen, c opens the form for a new agent, and ? shows all shortcuts',
  async () => {
    // In the list of users, `k` alone means "up", but not after `g`, even while the list is still on the screen.
    await go('/users', 'Users');
    await page.keyboard.press('j');
    await pressSequence(page, ['g', 'k'], () => page.url() === `${plane.url}/tasks`);
    await pressSequence(page, ['g', 'n'], () => page.url() === `${plane.url}/nodes`);
    await page.keyboard.press('?');
    const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await sheet.getByText('New agent').waitFor();
    // While the sheet is open, the page below it ignores keys.
    await page.keyboard.press('c');
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    expect(path()).toBe('/nodes');
    await page.keyboard.press('c');
    await page.waitForURL(/\/agents\/new/);
  },
);

browserTest('keys in a text field only enter text', async () => {
  await go('/docs', /^API/);
  const filter = page.getByRole('searchbox', { name: 'Find an operation' });
  await filter.waitFor();
  await page.keyboard.press('/');
  await becomes('document.activeElement.type', 'search');
  await page.keyboard.type('/cg?jk');
  expect(await filter.inputValue()).toBe('/cg?jk');
  expect([path(), await page.getByRole('dialog').count()]).toEqual(['/docs', 0]);
});

browserTest('text can be typed in the middle of a filter', async () => {
  await go('/agents', 'Agents');
  const filter = page.getByRole('searchbox', { name: 'Filter agents' });
  await filter.pressSequentially('pat');
  await page.waitForURL(/q=pat$/);
  await filter.press('ArrowLeft');
  await page.keyboard.type('in');
  await page.waitForURL(/q=paint$/);
  expect(await filter.inputValue()).toBe('paint');
  // The field follows changes that were not typed.
  await filter.fill('no such agent');
  await page.getByRole('link', { name: /^Show all/ }).click();
  await becomes('document.querySelector("[data-filter]").value', '');
});

browserTest('single-key shortcuts ignore keys with a modifier', async () => {
  await go('/users', 'Users');
  const visited: string[] = [];
  page.on('framenavigated', () => visited.push(path()));
  for (const key of ['Control+c', 'Alt+c', 'Meta+c']) await page.keyboard.press(key);
  // These keys come last, so their effect shows that the others were processed.
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.waitForURL(`${plane.url}/teams`);
  expect(visited).toEqual(['/teams']);
});

browserTest('j and k move through a list, Enter opens an item, and Esc leaves the list', async () => {
  await go('/docs?q=token', /^API/);
  await page.getByRole('link', { name: /Create a named API token/ }).waitFor();
  await page.keyboard.press('j');
  const first = await focused();
  await page.keyboard.press('j');
  const second = await focused();
  expect(second).not.toBe(first);
  await page.keyboard.press('k');
  await page.keyboard.press('k');
  expect(await focused()).toBe(first);
  await page.keyboard.press('Enter');
  await page.waitForURL(/operation=/);
  await page.keyboard.press('Escape');
  await becomes('document.activeElement === document.body', true);
});

browserTest('[ and ] on the page of an agent step through the list as it was last shown', async () => {
  await go('/agents?q=paint', 'Agents');
  await page.getByRole('link', { name: 'paint-fence', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'paint-fence' }).waitFor();
  // `mow-lawn` is between them, and not in the list.
  await page.keyboard.press(']');
  await page.getByRole('heading', { level: 1, name: 'paint-shed' }).waitFor();
  await page.keyboard.press('[');
  await page.getByRole('heading', { level: 1, name: 'paint-fence' }).waitFor();
  // On keyboards that type them with AltGr, as Windows reports it.
  const alt_graph = "{ key: ']', ctrlKey: true, altKey: true, modifierAltGraph: true, bubbles: true }";
  await page.evaluate(`document.body.dispatchEvent(new KeyboardEvent('keydown', ${alt_graph}))`);
  await page.getByRole('heading', { level: 1, name: 'paint-shed' }).waitFor();
});

longBrowserTest(
  'single-key shortcuts can be turned off and on again, and the palette works in both cases',
  async () => {
    await go('/settings/shortcuts', 'Settings');
    const single = page.getByRole('checkbox', { name: /single-key shortcuts/ });
    await single.uncheck();
    await go('/users', 'Users');
    await page.getByRole('rowheader', { name: /^ana/ }).waitFor();
    for (const key of ['c', '?', 'j', 'g', 't']) await page.keyboard.press(key);
    await page.keyboard.press('Control+k');
    await palette().waitFor();
    expect([path(), await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).count()]).toEqual([
      '/users',
      0,
    ]);
    await page.keyboard.press('Escape');
    await palette().waitFor({ state: 'detached' });
    await go('/settings/shortcuts', 'Settings');
    await single.check();
    await page.getByRole('heading', { level: 1 }).click();
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('c');
    await page.waitForURL(/\/agents\/new/);
  },
);

browserTest('a dialog focuses its first field, and returns the focus when it closes', async () => {
  const list = [
    ['/users', 'Users', 'New user', 'Username'],
    ['/settings/tokens', 'Settings', 'New token', 'Name'],
    ['/nodes', 'Nodes', 'Register node', 'ID'],
  ] as const;
  for (const [place, heading, button, field] of list) {
    await go(place, heading);
    const opener = page.getByRole('main').getByRole('button', { name: button });
    await opener.focus();
    await page.keyboard.press('Enter');
    const first = page.getByRole('dialog').getByLabel(field, { exact: true });
    await first.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Escape');
    await opener.and(page.locator(':focus')).waitFor();
  }
});

browserTest('the button that stops an agent keeps the focus, on its page and in the list', async () => {
  const { id } = await plane.agent('exec sleep 600', { name: 'sleeps' });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  await go(`/agents/${id}`, /^sleeps/);
  await button('Stop').press('Enter');
  await button('Restart').and(page.locator(':focus')).waitFor();
  await plane.client.call('startAgent', { params: { agent_id: id } });
  await go('/agents?q=sleeps', 'Agents');
  await button('Stop sleeps').press('Enter');
  await button('Restart sleeps').and(page.locator(':focus')).waitFor();
});

browserTest('the heading gets the focus when the button that cancels the turn goes', async () => {
  const toolCall = { toolCallId: 't', title: 'npm publish', kind: 'execute' };
  const options = [{ optionId: 'once', name: 'Allow once', kind: 'allow_once' }];
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([[{ toolCall, options }]])];
  const { id } = await plane.agent(argv, { name: 'asks', protocol: 'acp', prompt: 'Go on' });
  // A button that has just appeared in the place of another takes no clicks: `src/web/ui/replaced.ts`.
  await expect.poll(async () => (await plane.get(id)).pending_reviews, { timeout: 30_000 }).toBe(1);
  await go(`/agents/${id}`, /^asks/);
  // Before that of the request.
  await page.getByRole('button', { name: 'Cancel turn' }).first().press('Enter');
  await page.locator('h1:focus').waitFor();
});

longBrowserTest('a menu opens with the keyboard the first time too, and gives the focus back', async () => {
  const { id } = await plane.create({ name: 'with a menu', command: 'true', start: false });
  for (const key of ['Enter', 'Space', 'ArrowDown']) {
    await go(`/agents/${id}/output`, /with a menu/);
    const more = page.locator('header').getByRole('button', { name: 'More' });
    expect(await more.getAttribute('aria-haspopup')).toBe('menu');
    expect(await more.getAttribute('aria-expanded')).toBe('false');
    for (const time of ['the first time', 'again']) {
      await more.focus();
      await page.keyboard.press(key);
      const menu = page.getByRole('menu');
      await menu.waitFor();
      await page.keyboard.press('ArrowDown');
      await expect
        .poll(() => page.evaluate('document.activeElement.getAttribute("role")'), {
          message: `${key}, ${time}`,
        })
        .toBe('menuitem');
      await page.keyboard.press('Escape');
      await menu.waitFor({ state: 'detached' });
      await becomes('document.activeElement.getAttribute("aria-label")', 'More');
    }
  }
});
