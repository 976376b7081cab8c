/**
 * The first run of a new user: the printed link and PIN, the first agent, its permission review and its changes, on a
 * desktop, on a phone and with the keyboard only; and errors of the link and the PIN.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterEach, beforeEach, expect } from 'vitest';
import { browserTest, mainScreens, openBrowser, signIn, type TestBrowser } from '../src/testing/browser.ts';
import { firstOf } from '../src/testing/long.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
let browser: TestBrowser | undefined;
beforeEach(async () => {
  plane = await TestPlane.prepare();
  const repo = makeRepository(join(plane.folder, 'shop'), { 'cart.ts': 'export const total = 0;\n' });
  await plane.start({ SVC_WORKTREE_REPO_ROOTS: repo, DEMO_AGENT_SPEED: '5' });
  browser = await openBrowser();
});
afterEach(async () => {
  await browser?.close();
  await plane.close();
});

async function challenge(): Promise<{ url: string; pin: string }> {
  return JSON.parse(await readFile(join(plane.data_dir, 'join.json'), 'utf8'));
}

async function fillJoin(page: Page, pin: string): Promise<void> {
  await page.getByLabel('PIN from the terminal').fill(`${pin.slice(0, 4)} ${pin.slice(4)}`);
  await page.getByLabel('Username').fill(ROOT.username);
  await page.getByLabel('Password').fill(ROOT.password);
}

browserTest.for(firstOf(1, mainScreens))(
  'a new user gets from the printed link to the diff of the first agent, on the screen of a %s',
  async (screen) => {
    const { url, pin } = await challenge();
    const { page, errors, foreign_requests } = await browser!.open(plane, { screen });
    await page.goto(url);
    // The link's secret does not stay in the URL.
    await page.waitForURL(`${plane.url}/join`);
    await fillJoin(page, pin);
    await page.getByRole('button', { name: 'Create root user' }).click();

    await page.getByLabel('Prompt').fill('Fix the flaky checkout test');
    await expect.poll(() => page.getByLabel('Repository').inputValue()).toMatch(/\/shop$/);
    await page.getByRole('button', { name: 'Start agent' }).click();

    await page.waitForURL(/\/agents\/agt_\w+\/conversation$/);
    const card = page.getByRole('article').filter({ hasText: 'Permission' });
    await card.locator('.diff-code-insert').first().waitFor();
    await card.getByRole('button', { name: /Allow/ }).first().click();
    await page.getByText(/^allowed by ana after/).waitFor();
    await page.getByRole('link', { name: /^changes/i }).click();
    // On a phone the list of files comes first.
    const files = page.getByRole('navigation', { name: 'Changed files' });
    await files.getByRole('button', { name: /^svc-demo.md/ }).click();
    await page.locator('.diff-code-insert').first().waitFor();
    expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
  },
);

browserTest('without a link, the sign-in page says how to create the first user', async () => {
  const { page } = await browser!.open(plane);
  await page.goto(plane.url);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.getByText(/^No users yet\? Open the link that svc printed .* run svc join-link/).waitFor();
});

browserTest('a link without its secret, a wrong PIN and a used link explain what to do', async () => {
  const { url, pin } = await challenge();
  const { page } = await browser!.open(plane);
  await page.goto(`${plane.url}/join`);
  await page.getByText('svc join-link').waitFor();

  await page.goto('about:blank');
  await page.goto(url);
  await fillJoin(page, pin === '00000000' ? '11111111' : '00000000');
  await page.getByRole('button', { name: 'Create root user' }).click();
  const field = page.getByLabel('PIN from the terminal');
  await page.getByText('invalid pin; 4 tries left', { exact: true }).waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  await page.locator('[name=pin]:focus').waitFor();
  // Nothing that was typed is lost.
  expect(await page.getByLabel('Username').inputValue()).toBe(ROOT.username);

  await plane.join();
  await page.getByRole('button', { name: 'Create root user' }).click();
  await page.getByText('root already initialized', { exact: true }).waitFor();
  await page.locator(':focus', { hasText: 'Sign in' }).waitFor();
});

browserTest('a user who is not signed in gets to the requested page after signing in', async () => {
  await plane.join();
  const { page } = await browser!.open(plane);
  await page.goto(`${plane.url}/agents?show=failed&group=node`);
  await page.getByLabel('Username').fill(ROOT.username);
  await page.getByLabel('Password').fill('not it, sorry');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('invalid username or password', { exact: true }).waitFor();
  await page.getByLabel('Password').fill(ROOT.password);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${plane.url}/agents?show=failed&group=node`);
  await page.getByRole('heading', { name: 'Agents' }).waitFor();
  // The form is not left in the history.
  await page.goBack();
  expect(page.url()).toBe('about:blank');
  await page.goForward();

  // A sign-in link cannot lead to another site.
  await page.context().clearCookies();
  await page.goto(`${plane.url}/login?to=${encodeURIComponent('//evil.example/x')}`);
  await page.waitForURL(`${plane.url}/agents`);
});

browserTest('the list of agents has no filters until there is an agent', async () => {
  await plane.join();
  const { page } = await browser!.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents`);
  await page.getByText('No agents yet.').waitFor();
  const filters = [
    page.getByRole('navigation', { name: 'Show' }),
    page.getByRole('searchbox', { name: 'Filter agents' }),
    page.getByRole('combobox', { name: 'Group' }),
  ];
  for (const filter of filters) expect(await filter.count()).toBe(0);
  await plane.agent('true', { name: 'first' });
  for (const filter of filters) await filter.first().waitFor();
});

browserTest('each empty list says what it is for and links to the operation of the API', async () => {
  await plane.join();
  const { page, errors } = await browser!.open(plane);
  await signIn(page, plane);
  const lists = [
    ['/agents', 'An agent is a program', 'createAgent'],
    ['/teams', 'A team is a group of agents', 'createTeam'],
    ['/runs', 'A run is one execution of a team', 'createRun'],
    ['/tasks', 'A task is work for a team', 'createTeam'],
    ['/approvals', 'Permission requests, forms', 'listReviews'],
    ['/nodes', 'A node is a machine', 'registerAgentNode'],
    ['/mail', 'A trigger sends mail to you', 'setTrigger'],
  ] as const;
  for (const [path, purpose, operation] of lists) {
    await page.goto(plane.url + path);
    await page.getByText(purpose).waitFor();
    await page.locator(`a[href*="operation=${operation}"]`, { hasText: 'API reference' }).waitFor();
  }
  expect(errors).toEqual([]);
});

browserTest('the whole first run works with the keyboard only', async () => {
  const { url, pin } = await challenge();
  const { page } = await browser!.open(plane);
  const keys = page.keyboard;
  /** Presses Tab until the focus is on or inside of an element. */
  const tabTo = async (selector: string) => {
    const there = `document.activeElement.closest(${JSON.stringify(selector)}) !== null`;
    for (let tabs = 0; tabs < 80 && !(await page.evaluate(there)); tabs++) await keys.press('Tab');
    expect(await page.evaluate(there), selector).toBe(true);
  };
  await page.goto(url);
  await page.getByLabel('PIN from the terminal').waitFor();
  await tabTo('[name=pin]');
  await keys.type(pin);
  await keys.press('Tab');
  await keys.type(ROOT.username);
  await keys.press('Tab');
  await keys.type(ROOT.password);
  await keys.press('Enter');
  await page.getByLabel('Prompt').waitFor();
  await tabTo('textarea');
  await keys.type('Fix the flaky checkout test');
  // The repositories of the machine may not be known yet.
  await expect.poll(() => page.getByRole('button', { name: 'Start agent' }).isEnabled()).toBe(true);
  await keys.press('Control+Enter');
  await page.getByRole('article').filter({ hasText: 'Permission' }).waitFor();
  await tabTo('article[data-review] button');
  await keys.press('1');
  await page.getByText('Turn ended').waitFor();
  await tabTo('a[href$="/changes"]');
  await keys.press('Enter');
  await page.locator('.diff-code-insert').first().waitFor();
});
