/**
 * Accessibility of every screen: axe finds no problem in either theme, on the narrowest phone and on a desktop, nothing scrolls
 * horizontally, and the page is not taller than the window.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { COLOR_RULES, preparePage, problemsOf, RULES, type Variant } from '../src/testing/axe.ts';
import {
  browserTest,
  openBrowser,
  signIn,
  type TestBrowser,
  type WatchedPage,
} from '../src/testing/browser.ts';
import { firstOf } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
let browser: TestBrowser | undefined;
/** Ids of this test's records, for the URLs of screens. */
let ids: Record<'reviewed' | 'failed' | 'team' | 'run' | 'task', string>;

/** The path of each screen, by the screen's name. */
const places: Record<string, () => string> = {
  Agents: () => '/agents',
  'New agent': () => '/agents/new',
  Approvals: () => '/approvals',
  Teams: () => '/teams',
  'New team': () => '/teams/new',
  Team: () => `/teams/${ids.team}`,
  'Edit team': () => `/teams/${ids.team}/edit`,
  Runs: () => '/runs',
  Run: () => `/teams/${ids.team}/runs/${ids.run}`,
  Mail: () => '/mail',
  Tasks: () => '/tasks',
  Task: () => `/tasks?team=${ids.team}&task=${ids.task}`,
  Nodes: () => '/nodes',
  Users: () => '/users',
  Audit: () => '/audit',
  ApiDocs: () => '/docs',
  'Output of a failed agent': () => `/agents/${ids.failed}/output`,
};
for (const tab of ['conversation', 'output', 'changes', 'events', 'timeline'])
  places[`Agent: ${tab}`] = () => `/agents/${ids.reviewed}/${tab}`;
for (const tab of ['account', 'passkeys', 'tokens', 'devices'])
  places[`Settings: ${tab}`] = () => `/settings/${tab}`;
for (const tab of ['notifications', 'appearance', 'shortcuts', 'config'])
  places[`Settings: ${tab}`] = () => `/settings/${tab}`;

beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  const repo = makeRepository(join(plane.work, 'shop'), { 'cart.ts': 'export const total = 0;\n' });
  const { client } = plane;
  const reviewed = await client.call('createAgent', {
    body: {
      name: 'asks',
      preset: 'demo',
      prompt: 'Write a note',
      worktree_mode: 'create_worktree',
      worktree_repo: repo,
      start: true,
    },
  });
  const failed = await plane.agent('echo "\u001b[31mred\u001b[0m"; echo wrong >&2; exit 3', {
    name: 'fails',
  });
  await plane.finished(failed.id);
  const spec = {
    leader_member_id: 'lead',
    members: [{ member_id: 'lead' }, { member_id: 'hand', agent: { command: 'true', workdir: plane.work } }],
    steps: [
      { step_key: 'plan', member_id: 'hand' },
      { step_key: 'do', member_id: 'lead', depends_on: ['plan'] },
    ],
  };
  const team = await client.call('createTeam', { body: { name: 'crew', spec } });
  const params = { team_id: team.id };
  const task = await client.call('createTask', { params, body: { title: 'Paint the shed' } });
  const message = {
    params: { ...params, task_id: task.id },
    body: { route: 'broadcast', text: 'Hello all' },
  };
  await client.call('sendMessage', message as never);
  const run = await client.call('createRun', { params, body: { input: { title: 'one' } } });
  while ((await plane.get(reviewed.id)).pending_reviews === 0) await sleep(100);
  const changed = '/** All. */\nexport const total: number = 1;\nexport const unit = "piece";\n';
  await writeFile(join(reviewed.workdir, 'cart.ts'), changed);
  ids = { reviewed: reviewed.id, failed: failed.id, team: team.id, run: run.id, task: task.id };
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await plane.close();
});

/**
 * Themes differ only in colors, so one full check per width covers all other rules, and each theme is checked at one width. The
 * colors of each theme at the other width are for the long run.
 */
const variants = firstOf<Variant>(2, [
  { colorScheme: 'light', width: 1280, rules: RULES },
  { colorScheme: 'dark', width: 320, rules: RULES },
  { colorScheme: 'dark', width: 1280, rules: COLOR_RULES },
  { colorScheme: 'light', width: 320, rules: COLOR_RULES },
]);

/** A script that follows a link within the page. */
const goTo = (path: string) =>
  `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`;

const windows = [
  { width: 1280, height: 800 },
  { width: 360, height: 740 },
  { width: 740, height: 360 },
];
/** Measured after the next frame, when the page has the new size. */
const HEIGHT_OVER = `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() =>
  resolve(document.documentElement.scrollHeight - innerHeight))))`;

/** By how many pixels the page is taller than the window, by window. Only parts of a screen scroll. */
async function heightsOver(page: Page): Promise<Record<string, number>> {
  const over: Record<string, number> = {};
  for (const { width, height } of windows) {
    await page.setViewportSize({ width, height });
    const over_px = Number(await page.evaluate(HEIGHT_OVER));
    if (over_px > 0) over[`${width} × ${height} px`] = over_px;
  }
  return over;
}

describe('axe finds no problem, light and dark, narrow and wide, on', () => {
  let watched: WatchedPage | undefined;
  /**
   * Opens a screen as a link does, because loading the UI and axe again for each screen takes more than checking it. The screen
   * in between makes sure that nothing of the screen before is checked.
   */
  const goThere = async (page: Page, path: string) => {
    const nowhere = page.getByText('This page does not exist.');
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.evaluate(goTo('/nowhere'));
    await nowhere.waitFor();
    await page.evaluate(goTo(path));
    await nowhere.waitFor({ state: 'detached' });
  };
  /** Content that appears late on a screen. */
  const late: Record<string, string> = { 'Agent: changes': '.token.keyword' };
  for (const [name, path] of Object.entries(places))
    browserTest(name, async () => {
      browser ??= await openBrowser();
      if (watched === undefined) {
        watched = await browser.open(plane);
        await signIn(watched.page, plane);
        await watched.page.goto(`${plane.url}/nowhere`);
        await preparePage(watched.page);
      }
      const { page, errors } = watched;
      await goThere(page, path());
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      await expect.poll(() => page.getByLabel('Loading').count(), { timeout: 30_000 }).toBe(0);
      if (late[name] !== undefined) await page.locator(late[name]).first().waitFor();
      expect(await problemsOf(page, variants)).toEqual({});
      expect(await heightsOver(page)).toEqual({});
      expect(errors.splice(0)).toEqual([]);
    });
});

browserTest(
  'axe finds no problem in the list of repositories and in the error of a refused one',
  async () => {
    browser ??= await openBrowser();
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/new`);
    await preparePage(page);
    const field = page.getByRole('combobox', { name: 'Repository' });
    await expect.poll(() => field.inputValue()).not.toBe('');
    await field.fill('/etc');
    await page.getByLabel('Prompt').click();
    await page.getByText('/etc is not in an allowed folder.').waitFor();
    await field.click();
    await page.getByRole('listbox', { name: 'Repositories' }).getByText('shop', { exact: true }).waitFor();
    expect(await problemsOf(page, variants)).toEqual({});
  },
);

browserTest('axe finds no problem on the sign-in and join pages', async () => {
  browser ??= await openBrowser();
  for (const path of ['/login', '/join', '/join#t=x']) {
    const { page } = await browser.open(plane);
    await page.goto(plane.url + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await preparePage(page);
    expect(await problemsOf(page, variants), path).toEqual({});
    await page.context().close();
  }
});
