/**
 * The new-agent form: what it prefills, that nothing moves while it loads, the list of repositories, errors at their
 * fields, and presets that are not installed.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { Client } from '../src/client/client.ts';
import {
  browserTest,
  longBrowserTest,
  mainScreens,
  screens,
  sharedBrowser,
  signIn,
} from '../src/testing/browser.ts';
import { firstOf } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
let code: string;
const browser = sharedBrowser();

beforeAll(async () => {
  plane = await TestPlane.prepare();
  code = join(plane.folder, 'code');
  for (const name of ['shop', 'billing-api']) makeRepository(join(code, name), { 'a.txt': 'one\n' });
  writeFileSync(join(code, 'shop/new.txt'), '');
  mkdirSync(join(code, 'notes'));
  await plane.start();
  await plane.join();
  await plane.client.call('updateConfig', { body: { 'worktree.repo_roots': [code] } });
});
afterAll(() => plane.close());

async function openForm(screen: keyof typeof screens = 'desk') {
  const opened = await browser.open(plane, { screen });
  await signIn(opened.page, plane);
  await opened.page.goto(`${plane.url}/agents/new`);
  return opened;
}

const countAgents = async () => ((await plane.client.call('listAgents')) as unknown as unknown[]).length;
const repository = (page: Page) => page.getByRole('combobox', { name: 'Repository' });
const start = (page: Page) => page.getByRole('button', { name: 'Start agent' });
/** What a screen reader says about the state of a field. */
async function stateOf(page: Page, name: string) {
  const field = page.getByRole('combobox', { name, exact: true });
  const ids = ((await field.getAttribute('aria-describedby')) ?? '').split(' ').filter(Boolean);
  const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).allTextContents()));
  return { invalid: await field.getAttribute('aria-invalid'), text: texts.flat().join(' ') };
}

/** How much of the page has moved since it was opened, as the sum of the layout shifts. */
function movedBy(page: Page): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const observer = new PerformanceObserver((list) =>
      resolve(list.getEntries().reduce((sum, { value }) => sum + value, 0)));
    observer.observe({ type: 'layout-shift', buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(0), 50)));
  })`);
}

/** Stores the choices of an earlier start in the browser. */
async function remember(page: Page, choices: object): Promise<void> {
  const { id } = await plane.client.call('getMe');
  const put = [`svc.draft.${id}.new-agent.choices`, JSON.stringify(choices)].map((text) =>
    JSON.stringify(text),
  );
  await page.evaluate(`localStorage.setItem(${put})`);
}

browserTest.for(firstOf(1, mainScreens))(
  'the form is complete on the screen of a %s before anything is loaded, and nothing moves',
  async (screen) => {
    const { page } = await browser.open(plane, { screen });
    await signIn(page, plane);
    const held = Promise.withResolvers<void>();
    await page.route(/\/api\/(presets|nodes)/, (route) => held.promise.then(() => route.continue()));
    await page.goto(`${plane.url}/agents/new`);
    await page.locator('textarea:focus').waitFor();
    expect(await page.getByLabel('Prompt').getAttribute('rows')).toBe('4');
    await start(page).waitFor();
    held.resolve();
    await expect.poll(() => repository(page).inputValue()).toBe(join(code, 'billing-api'));
    await page
      .getByRole('combobox', { name: 'Agent' })
      .locator('option', { hasText: 'Install…' })
      .waitFor({ state: 'attached' });
    expect(await movedBy(page)).toBeLessThan(0.02);
    const about = page.getByText('own scripted agent: no model, no account, no network');
    expect(await about.evaluate((hint) => hint.scrollWidth - hint.clientWidth)).toBe(0);
    // The whole form fits on one screen, without scrolling.
    const { y, height } = (await page.locator('form details').boundingBox())!;
    const bar = await page.locator('nav').last().boundingBox();
    const bottom = screen === 'phone' ? bar!.y : screens[screen].viewport.height;
    expect(y + height).toBeLessThan(bottom);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  },
);

browserTest.for(firstOf(1, mainScreens))(
  'an agent starts on the screen of a %s only once it is known where',
  async (screen) => {
    const { page } = await browser.open(plane, { screen });
    await signIn(page, plane);
    const created: string[] = [];
    page.on('request', (request) => request.method() === 'POST' && created.push(request.url()));
    const held = Promise.withResolvers<void>();
    await page.route('**/repositories*', (route) => held.promise.then(() => route.continue()));
    await page.goto(`${plane.url}/agents/new`);
    const reason = page.getByText('Searching for repositories. You can also enter a path.');
    await reason.waitFor();
    const button = start(page);
    expect(await button.isDisabled()).toBe(true);
    expect(await button.getAttribute('aria-describedby')).toBe(await reason.getAttribute('id'));
    await page.keyboard.press('Control+Enter');

    // Nobody has to wait for a list that does not decide anything.
    await repository(page).fill(join(code, 'shop'));
    await expect.poll(() => button.isEnabled()).toBe(true);
    await repository(page).fill('');
    await expect.poll(() => button.isDisabled()).toBe(true);
    const where = page.getByRole('combobox', { name: 'Where' });
    await where.selectOption({ label: 'Empty folder' });
    await expect.poll(() => button.isEnabled()).toBe(true);
    await where.selectOption({ label: 'New worktree' });
    await expect.poll(() => button.isDisabled()).toBe(true);

    held.resolve();
    await expect.poll(() => button.isEnabled()).toBe(true);
    await reason.waitFor({ state: 'detached' });
    expect(created).toEqual([]);
    expect(await movedBy(page)).toBeLessThan(0.02);
  },
);

browserTest('the list shows branches and changes, filters, and is used with keys or a pointer', async () => {
  const { page, errors } = await openForm();
  const field = repository(page);
  const options = page.getByRole('option').filter({ has: page.locator('span') });
  await field.click();
  await expect
    .poll(() => options.allTextContents())
    .toEqual([`billing-apimain${code}/billing-api`, `shopmain● uncommitted${code}/shop`]);
  await page.keyboard.press('ArrowDown');
  expect(await field.getAttribute('aria-activedescendant')).toBe(await options.nth(1).getAttribute('id'));
  await page.keyboard.press('Enter');
  expect(await field.inputValue()).toBe(join(code, 'shop'));
  expect(await options.count()).toBe(0);
  await page.getByText('svc agents create shop-1 --preset demo').waitFor();

  await field.fill('bill');
  expect(await options.count()).toBe(1);
  await options.click();
  expect(await field.inputValue()).toBe(join(code, 'billing-api'));
  await field.press('ArrowDown');
  expect(await options.count()).toBe(2);
  await page.keyboard.press('Escape');
  expect(await options.count()).toBe(0);
  expect(await stateOf(page, 'Repository')).toMatchObject({ invalid: null });
  expect(errors).toEqual([]);
});

browserTest('a path that is no repository is refused at its field, before and after the start', async () => {
  const { page } = await openForm();
  const field = repository(page);
  await expect.poll(() => field.inputValue()).not.toBe('');
  const refusal = {
    invalid: 'true',
    text: `${code} is not a git repository. Choose billing-api or shop below it.`,
  };
  await field.fill(`${code}/`);
  await page.getByLabel('Prompt').click();
  await expect.poll(() => stateOf(page, 'Repository')).toEqual(refusal);
  await field.fill(code);
  expect(await stateOf(page, 'Repository')).toEqual({ invalid: null, text: '' });
  await page.keyboard.press('Escape');
  await field.press('Enter');
  await expect.poll(() => stateOf(page, 'Repository')).toEqual(refusal);
  await page.locator('[role=combobox][aria-invalid=true]:focus').waitFor();
  await field.fill(join(code, 'nothing'));
  await page.getByLabel('Prompt').click();
  await page.getByText(`${code}/nothing does not exist on this node.`).waitFor();
});

longBrowserTest('a folder that is no repository is never prefilled, even if it was used before', async () => {
  const { page } = await openForm();
  await expect.poll(() => repository(page).inputValue()).not.toBe('');
  await remember(page, {
    preset: 'plain',
    preset_name: 'Command',
    repo: code,
    shape: { acp: false, needs_command: true },
  });
  const held = Promise.withResolvers<void>();
  await page.route('**/api/presets*', (route) => held.promise.then(() => route.continue()));
  await page.reload();
  // The form has the fields of the preset that was used last, before the presets are loaded.
  await page.getByRole('textbox', { name: 'Command' }).waitFor();
  await expect.poll(() => repository(page).inputValue()).toBe(join(code, 'billing-api'));
  held.resolve();
  await page
    .getByRole('combobox', { name: 'Agent' })
    .locator('option', { hasText: 'Demo' })
    .waitFor({ state: 'attached' });
  expect(await page.getByLabel('Prompt').count()).toBe(0);
});

longBrowserTest('nothing moves if the remembered preset turns out not to be installed', async () => {
  const { page } = await openForm();
  await remember(page, {
    preset: 'gemini',
    preset_name: 'Gemini CLI',
    shape: { acp: true, needs_command: false },
  });
  const held = Promise.withResolvers<void>();
  await page.route('**/api/presets*', (route) => held.promise.then(() => route.continue()));
  await page.reload();
  await expect.poll(() => repository(page).inputValue()).not.toBe('');
  const agent = page.getByRole('combobox', { name: 'Agent' });
  expect(await agent.locator('option').allTextContents()).toEqual(['Gemini CLI']);
  held.resolve();
  await page.getByText('Gemini CLI is not installed. Install it with npm install -g').waitFor();
  expect(await agent.locator('option', { hasText: 'Gemini CLI (not installed)' }).count()).toBe(1);
  expect(await movedBy(page)).toBeLessThan(0.02);
});

longBrowserTest('a path can be entered if the repositories cannot be listed', async () => {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  const refusal = { status: 502, json: { error: 'failed to connect to remote node' } };
  // The first attempt decides: others may take long.
  const again = Promise.withResolvers<void>();
  let attempts = 0;
  await page.route('**/repositories*', async (route) => {
    if (++attempts > 1) await again.promise;
    await route.fulfill(refusal);
  });
  await page.goto(`${plane.url}/agents/new`);
  await repository(page).click();
  await page.getByText('The repositories cannot be listed: failed to connect to remote node.').waitFor();
  await start(page).click();
  await page.getByText('Choose a repository, or enter its path.').waitFor();
  await repository(page).fill(join(code, 'shop'));
  await start(page).click();
  await page.waitForURL(/\/agents\/agt_\w+/);
  again.resolve();
});

browserTest('presets that are not installed show the command that installs them', async () => {
  const { page } = await openForm();
  const agent = page.getByRole('combobox', { name: 'Agent' });
  await agent.locator('option', { hasText: 'Install…' }).waitFor({ state: 'attached' });
  expect(await agent.locator('option', { hasText: 'Gemini' }).count()).toBe(0);
  await agent.selectOption({ label: 'Install…' });
  const dialog = page.getByRole('dialog', { name: 'Install an agent' });
  await dialog.getByText('npm install -g @google/gemini-cli').waitFor();
  const asked = page.waitForRequest(/presets\?.*refresh=true/);
  await dialog.getByRole('button', { name: 'Check again' }).click();
  await asked;
  await dialog.getByRole('button', { name: 'Close' }).click();
  // Opening the list has not changed the choice.
  expect(await agent.inputValue()).toBe('demo');
});

browserTest('an agent starts in the chosen repository, which is the first one from then on', async () => {
  const { page } = await openForm();
  await repository(page).click();
  await page.getByRole('option', { name: /^shop/ }).click();
  await page.getByRole('textbox', { name: 'Branch' }).fill('main');
  await page.getByLabel('Prompt').fill('Write a note');
  // A lost response does not create a second agent, also after a reload.
  const before = await countAgents();
  await page.route(
    '**/api/agents',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await page.keyboard.press('Control+Enter');
  await page.getByText('The service is not responding.').waitFor();
  // The list of agents has the new one, whose name the form suggested.
  await expect.poll(countAgents).toBe(before + 1);
  await page.reload();
  await expect.poll(() => start(page).isEnabled()).toBe(true);
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/\/agents\/agt_\w+\/conversation$/);
  expect(await countAgents()).toBe(before + 1);
  const { worktree_repo, worktree_ref, preset } = await plane.get(/agt_\w+/.exec(page.url())![0]);
  expect({ worktree_repo, worktree_ref, preset }).toEqual({
    worktree_repo: join(code, 'shop'),
    worktree_ref: 'main',
    preset: 'demo',
  });
  await page.goto(`${plane.url}/agents/new`);
  await expect.poll(() => repository(page).inputValue()).toBe(join(code, 'shop'));
  await page.evaluate(
    'localStorage.removeItem(Object.keys(localStorage).find((key) => key.endsWith(".choices")))',
  );
  await page.reload();
  await expect.poll(() => repository(page).inputValue()).toBe(join(code, 'shop'));
});

browserTest('a started agent leaves no draft for a reload right after its screen appears', async () => {
  const { page } = await openForm();
  await expect.poll(() => start(page).isEnabled()).toBe(true);
  await page.getByLabel('Prompt').fill('Write a note');
  await page.evaluate(`navigation.addEventListener('navigate', () => {
    window.stored = Object.keys(localStorage).filter((key) => key.includes('.new-agent'));
  }, { once: true })`);
  await start(page).click();
  await page.waitForURL(/\/agents\/agt_\w+/);
  expect(await page.evaluate('window.stored')).toEqual([expect.stringMatching(/\.new-agent\.choices$/)]);
});

browserTest('a user who has left the form stays where they are when the agent is created', async () => {
  const { page } = await openForm();
  const held = Promise.withResolvers<void>();
  await page.route('**/api/agents', async (route) => {
    if (route.request().method() === 'POST') await held.promise;
    await route.continue();
  });
  await start(page).click();
  await page.getByRole('button', { name: 'Starting…' }).waitFor();
  await page.getByRole('link', { name: 'Approvals' }).first().click();
  await page.waitForURL(/\/approvals$/);
  held.resolve();
  await page.getByText('The agent was created and is starting').waitFor();
  expect(new URL(page.url()).pathname).toBe('/approvals');
});

browserTest('root allows a refused repository from its error, and then starts an agent in it', async () => {
  const { page } = await openForm();
  const field = repository(page);
  const other = makeRepository(join(plane.folder, 'other'), { 'a.txt': 'one\n' });
  await expect.poll(() => field.inputValue()).not.toBe('');
  await field.fill(other);
  await page.getByLabel('Prompt').click();
  await page.getByText(`${other} is not in an allowed folder.`).waitFor();
  await page.getByRole('listitem').getByText(code, { exact: true }).waitFor();
  await page.getByRole('button', { name: `Allow ${other}` }).click();
  await page.getByText('is not in an allowed folder').waitFor({ state: 'detached' });
  await field.click();
  await page.getByRole('option', { name: /^other/ }).waitFor();
  const setting = (await plane.client.call('getConfig')).find(({ key }) => key === 'worktree.repo_roots');
  expect(setting?.value).toEqual([code, other]);
  await start(page).click();
  await page.waitForURL(/\/agents\/agt_\w+/);

  // The test service has its safe paths from the environment, so they cannot change.
  await page.goto(`${plane.url}/agents/new`);
  await page.getByRole('combobox', { name: 'Where' }).selectOption({ label: 'Existing folder' });
  await page.getByRole('combobox', { name: 'Folder' }).fill('/etc');
  await start(page).click();
  await page.getByRole('button', { name: 'Allow /etc' }).click();
  await page.getByText('safe_paths is fixed by SVC_SAFE_PATHS').waitFor();
});

longBrowserTest('another user sees who can allow a folder', async () => {
  const { page } = await browser.open(plane);
  const password = 'a long password of bob';
  await plane.client.call('createUser', { body: { username: 'bob', password } });
  const { token } = await new Client({ url: plane.url, token: null }).call('login', {
    body: { username: 'bob', password },
  });
  await signIn(page, plane, { token });
  await page.goto(`${plane.url}/agents/new`);
  await expect.poll(() => repository(page).inputValue()).not.toBe('');
  await repository(page).fill('/etc');
  await page.getByLabel('Prompt').click();
  await page.getByText('A root user can allow this repository.').waitFor();
  expect(await page.getByRole('button', { name: /^Allow/ }).count()).toBe(0);
});

browserTest(
  'on a node without repositories, an agent starts in an empty folder or the entered path',
  async () => {
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    let held = Promise.resolve();
    const none = { roots: [code], repositories: [], truncated: false };
    await page.route('**/repositories*', (route) => held.then(() => route.fulfill({ json: none })));
    await page.goto(`${plane.url}/agents/new`);
    const where = page.getByRole('combobox', { name: 'Where' });
    await expect.poll(() => where.inputValue()).toBe('empty');
    await expect.poll(() => start(page).isEnabled()).toBe(true);

    const answer = Promise.withResolvers<void>();
    held = answer.promise;
    await page.reload();
    await page.getByText('Searching for repositories. You').waitFor();
    await repository(page).fill(join(code, 'sho'));
    answer.resolve();
    await page.getByText(`No repositories in ${code}. Enter a path.`).waitFor({ state: 'attached' });
    await repository(page).fill('');
    expect(await where.inputValue()).toBe('worktree');
    await repository(page).fill(join(code, 'shop'));
    await start(page).click();
    await page.waitForURL(/\/agents\/agt_\w+/);
    const { worktree_repo } = await plane.get(/agt_\w+/.exec(page.url())![0]);
    expect(worktree_repo).toBe(join(code, 'shop'));

    // The next form proposes the same, and keeps the folder that is entered before the list arrives.
    await page.goto(`${plane.url}/agents/new`);
    await where.selectOption({ label: 'Existing folder' });
    const place = page.getByLabel('Folder', { exact: true });
    await place.fill(plane.work);
    await start(page).click();
    await page.waitForURL(/\/agents\/agt_\w+/);
    const later = Promise.withResolvers<void>();
    held = later.promise;
    await page.goto(`${plane.url}/agents/new`);
    await page.getByText('Searching for repositories. You').waitFor();
    expect(await where.inputValue()).toBe('folder');
    await place.fill(plane.work);
    await expect.poll(() => start(page).isEnabled()).toBe(true);
    later.resolve();
    await page.getByText(`No repositories in ${code}. Enter a path.`).waitFor({ state: 'attached' });
    expect(await where.inputValue()).toBe('folder');
    expect(await place.inputValue()).toBe(plane.work);
  },
);
