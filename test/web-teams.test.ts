/**
 * Teams and their runs in a browser: from a template to the result, everything that a run needs from people, concurrent
 * changes of a definition, invalid definitions, hostile text, and large runs.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  browserTest,
  clickUntil,
  longBrowserTest,
  mainScreens,
  sharedBrowser,
  signIn,
  type WatchedPage,
} from '../src/testing/browser.ts';
import { firstOf } from '../src/testing/long.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  // For agents that call the plane.
  const env = { SVC_INTERNAL_GRPC_ENABLED: 'true', SVC_INTERNAL_GRPC_LISTEN: '127.0.0.1:0' };
  plane = await TestPlane.open({ env });
});
afterAll(async () => {
  await plane.close();
});

async function open(screen: 'desk' | 'phone' = 'desk', separate = false): Promise<WatchedPage> {
  const watched = await browser.open(plane, { screen, separate });
  await signIn(watched.page, plane);
  return watched;
}

const team = (name: string, spec: object) =>
  plane.client.call('createTeam', { body: { name, spec } as never });
/** Waits until the field at a path of the definition has the focus. */
const untilAt = (page: Page, path: string) =>
  page.waitForFunction(`document.activeElement?.dataset.path === '${path}'`);
const inSteps = (page: Page, name: string) =>
  page.getByRole('region', { name: 'Steps' }).getByRole('button', { name, exact: true });

browserTest('a user creates the first team from a template, runs it and sees its result', async () => {
  const { page, errors, foreign_requests } = await open('phone');
  await page.goto(`${plane.url}/teams`);
  await page.getByRole('button', { name: /^Pipeline/ }).click();
  await page.getByLabel('Name', { exact: true }).fill('first');
  await page.getByRole('button', { name: 'Create team' }).click();
  await page.getByRole('heading', { level: 1, name: 'first' }).waitFor();
  await page.getByRole('button', { name: 'Start run' }).first().click();
  await page.getByLabel('Title').fill('Count to a hundred');
  await page.getByLabel('Prompt').press('Control+Enter');
  await page.waitForURL(/\/runs\/run_\w+/);
  await page
    .getByRole('region', { name: 'Result', exact: true })
    .getByText('"sum": 5050')
    .waitFor({ timeout: 90_000 });
  // On a phone the steps are a list instead of a graph.
  const steps = page.getByRole('region', { name: 'Steps' });
  expect(await steps.getByRole('application').count()).toBe(0);
  const first = steps.getByRole('listitem').getByRole('button').first();
  await expect.poll(() => first.innerText()).toMatch(/^prepare\s+Completed · /);
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

longBrowserTest('a start whose response was lost starts one run, also after a reload', async () => {
  const { id: team_id } = await team('once', {
    members: [{ member_id: 'ana', agent: null }],
    steps: [{ step_key: 'work', member_id: 'ana' }],
  });
  const { page } = await open();
  const start = async (title?: string) => {
    await page.goto(`${plane.url}/teams/${team_id}`);
    await page.getByRole('button', { name: 'Start run' }).first().click();
    if (title !== undefined) await page.getByLabel('Title').fill(title);
    expect(await page.getByLabel('Title').inputValue()).toBe('Snow');
    await page.getByLabel('Prompt').press('Control+Enter');
  };
  const lose = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  await page.route('**/runs', lose, { times: 1 });
  await start('Snow');
  await page.getByText('The service is not responding.').waitFor();
  await start();
  await page.waitForURL(/\/runs\/run_\w+/);
  const listRuns = async () =>
    (await plane.client.call('listRuns', { params: { team_id } })) as unknown as { id: string }[];
  expect(await listRuns()).toHaveLength(1);
  const url = page.url();
  await start('Snow');
  await page.waitForURL((now) => /\/runs\/run_\w+/.test(now.pathname) && now.href !== url);
  const runs = await listRuns();
  expect(runs).toHaveLength(2);
  for (const { id: run_id } of runs) await plane.client.call('cancelRun', { params: { team_id, run_id } });
});

browserTest('a run shows what its members changed, with links to the diffs', async () => {
  const repo = makeRepository(join(plane.work, 'changed'), { 'a.txt': 'one\ntwo\n' });
  const member = (member_id: string, command: string) => ({
    member_id,
    agent: { command, worktree_mode: 'create_worktree', worktree_repo: repo },
  });
  const { id: team_id } = await team('changes', {
    members: [member('editor', 'echo three > a.txt; echo new > b.txt'), member('reader', 'cat a.txt')],
    steps: [
      { step_key: 'edit', member_id: 'editor' },
      { step_key: 'read', member_id: 'reader' },
    ],
  });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: {} });
  for (const screen of firstOf(1, mainScreens)) {
    const { page, errors } = await open(screen);
    await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
    const changes = page.getByRole('region', { name: 'Changes' });
    const link = changes.getByRole('link');
    await expect
      .poll(() => link.allInnerTexts())
      .toEqual([expect.stringMatching(/^editor\s*\+2 −2, 2 files$/)]);
    const [width, inner] = ['scrollWidth', 'clientWidth'].map((name) =>
      page.evaluate<number>(`document.documentElement.${name}`),
    );
    expect(await width).toBe(await inner);
    await link.click();
    await page.waitForURL(/\/agents\/agt_\w+\/changes$/);
    await page.getByText('b.txt').first().waitFor();
    expect(errors).toEqual([]);
  }
});

browserTest(
  'everything that a run needs from people can be given on its page, which also shows the result',
  { timeout: 240_000 },
  async () => {
    const { page, errors, foreign_requests } = await open();
    const text = await readFile(new URL('../examples/human.json', import.meta.url), 'utf8');
    const { id: team_id } = await plane.client.call('createTeam', { body: JSON.parse(text) });
    await page.goto(`${plane.url}/teams/${team_id}`);
    await page.getByRole('button', { name: 'Start run' }).first().click();
    await page.getByLabel('Title').fill('Rain');
    await page
      .getByRole('button', { name: /^Start run/ })
      .last()
      .click();

    // The permission review, on the page of the run.
    await inSteps(page, 'draft needs you writer').waitFor();
    await page.getByRole('region', { name: 'Steps' }).getByText('1 needs you').waitFor();
    const question = page.locator('[data-review]');
    const heading = page.getByRole('heading', { level: 1 });
    // Until the name of the team is loaded, nothing shows its id instead.
    const held = Promise.withResolvers<void>();
    await page.route(`**/api/teams/${team_id}`, (route) => held.promise.then(() => route.continue()));
    await page.reload();
    await question.getByText('member writer', { exact: true }).waitFor();
    await heading.getByText('Run 1', { exact: true }).waitFor();
    expect(`${await heading.innerText()} ${await page.title()}`).not.toContain(team_id);
    held.resolve();
    await question.getByText(/^team .*, member writer$/).waitFor();
    await heading.getByText('needs you (running)').waitFor();
    await page.getByRole('region', { name: 'Step draft' }).getByText('needs you (running)').waitFor();
    const timeline = page.getByRole('region', { name: 'Timeline' });
    await timeline.getByRole('button', { name: /^draft needs you, .*waiting for a person/ }).waitFor();
    const list = await page.context().newPage();
    await list.goto(`${plane.url}/runs`);
    const listed = list.getByRole('row').filter({ hasText: 'Rain' });
    await listed.getByText('needs you (running)').waitFor();
    // It has a filter of its own, and is not among the runs that run.
    await list.getByRole('button', { name: 'Needs you 1' }).click();
    await list.waitForURL(/\?status=needs_you$/);
    await listed.waitFor();
    await list.goto(`${plane.url}/runs?status=running`);
    await list.getByText('No runs match this filter.').waitFor();
    await list.getByRole('link', { name: /^Show all/ }).click();
    await listed.waitFor();
    // Its agent has the name that the agents of other runs have.
    await list.goto(`${plane.url}/agents`);
    await list
      .getByRole('row')
      .filter({ hasText: 'human-writer' })
      .getByRole('link', { name: 'human #1' })
      .waitFor();
    await list.keyboard.press('Control+k');
    await list.getByRole('dialog').getByRole('combobox').fill('human-writer');
    await list.getByRole('option', { name: /human-writer\s*human #1/ }).waitFor();
    await list.goto(`${plane.url}/teams`);
    const listed_team = list.getByRole('row').filter({ has: list.locator(`a[href="/teams/${team_id}"]`) });
    await listed_team.getByText('needs you (running)').waitFor();
    // Its task names it too, within its card, and links to it.
    await list.goto(`${plane.url}/tasks?team=${team_id}`);
    const card = list.locator('li[data-task]');
    await card.getByText('needs you (running) · 0/3 steps').waitFor();
    await card.click();
    const review = list.locator('[data-panel]').getByRole('link', { name: 'Review' });
    await review.waitFor();
    const [width, inner] = ['scrollWidth', 'clientWidth'].map((name) =>
      list.evaluate<number>(`document.querySelector('li[data-task]').${name}`),
    );
    expect(await width).toBe(await inner);
    await review.click();
    await list.waitForURL(/\/approvals\?review=/);
    await list.goto(`${plane.url}/runs`);
    await question.getByText(/^Press j to select/).waitFor();
    await page.keyboard.press('j');
    await question.getByText(/answer · .*Esc leaves/).waitFor();
    expect(await page.evaluate('document.activeElement.matches("[data-review]")')).toBe(true);
    await question.getByRole('button', { name: /Allow/ }).first().click();
    await question.waitFor({ state: 'detached' });

    // The input that a step waits for. The page selects this step, because the user has selected none.
    await inSteps(page, 'title needs you editor').waitFor();
    await page.getByText('What should its title be?').first().waitFor();
    await page.getByRole('textbox', { name: 'Answer' }).fill('Rain in the hills');
    // The draft survives a reload.
    await page.reload();
    expect(await page.getByRole('textbox', { name: 'Answer' }).inputValue()).toBe('Rain in the hills');
    await page.getByRole('textbox', { name: 'Answer' }).press('Control+Enter');
    await inSteps(page, 'title completed editor').waitFor();

    // A step that a person carries out.
    await inSteps(page, 'print ready press').click();
    await page.waitForURL(/step=print/);
    await heading.getByText('Waits for press (external)').waitFor();
    await page.getByRole('button', { name: 'Start step' }).click();
    await inSteps(page, 'print running press').waitFor();
    expect(await heading.getByText('Waits for press').count()).toBe(0);
    await page.getByRole('button', { name: 'Complete step…' }).click();
    await page.getByRole('textbox', { name: 'Output' }).fill('{"copies": 200}');
    await page.getByLabel('Send as JSON').check();
    await page.getByRole('button', { name: 'Complete', exact: true }).click();

    await page.getByRole('region', { name: 'Result', exact: true }).getByText('"copies": 200').waitFor();
    await heading.getByText('completed').waitFor();
    await listed.getByText('completed').waitFor();
    await list.close();
    await page.getByRole('button', { name: 'Restart run' }).waitFor();
    expect(await page.getByRole('button', { name: /^(Cancel|Resume) run/ }).count()).toBe(0);
    // The timeline has a row per step, with its waits for a person.
    await timeline
      .getByRole('button', { name: /^title completed, earlier work and waits .*working/ })
      .waitFor();
    await timeline.getByRole('button', { name: /^draft completed, .*waiting for a person/ }).waitFor();
    await page.getByText('3/3 steps').waitFor();
    await page.getByText('started by').waitFor();
    // The table has the same content as the graph.
    await page.getByRole('button', { name: 'Table' }).click();
    const rows = page.getByRole('region', { name: 'Steps' }).getByRole('row');
    await expect.poll(() => rows.filter({ hasText: 'completed' }).count()).toBe(3);

    // The prompts that the run wrote keep their lines.
    const [run_id] = /run_\w+/.exec(page.url())!;
    const steps = await plane.client.call('listSteps', { params: { team_id, run_id } });
    const { agent_id } = steps.find(({ step_key }) => step_key === 'draft')!;
    await page.goto(`${plane.url}/agents/${agent_id}/conversation`);
    const prompt = page.getByRole('log').getByText('Your step is "draft"');
    await prompt.waitFor();
    expect(await prompt.innerText()).toMatch(/Input of the run:\n<<<\n[\s\S]*\n>>>\n/);
    expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
  },
);

longBrowserTest('a click anywhere in a row of a team or a run opens it', async () => {
  const { page } = await open();
  const { id: team_id } = await team('rows', { leader_member_id: 'ann', members: [{ member_id: 'ann' }] });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  await plane.client.call('failRun', { params: { team_id, run_id }, body: { error_text: 'paper jam' } });
  await page.goto(`${plane.url}/teams`);
  const team_row = page
    .getByRole('row')
    .filter({ has: page.getByRole('link', { name: 'rows', exact: true }) });
  await team_row.click();
  await page.waitForURL(`${plane.url}/teams/${team_id}`);
  await page.goBack();
  // The links in it still open what they name.
  await team_row.getByRole('link', { name: /^Run 1/ }).click();
  await page.waitForURL(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  await page.goto(`${plane.url}/runs`);
  const run_row = page.getByRole('row').filter({ hasText: 'paper jam' });
  // A run without a title shows only its error.
  expect(await run_row.getByRole('cell').nth(1).textContent()).toBe('paper jam');
  const left = async (cell: Locator) => (await cell.boundingBox())!.x;
  const header = page.getByRole('columnheader', { name: 'Input' });
  expect(await left(run_row.getByRole('cell').nth(1))).toBe(await left(header));
  await run_row.getByRole('link').focus();
  const bar = 'getComputedStyle(document.activeElement.closest("th"), "::before").opacity';
  expect(await page.evaluate(bar)).toBe('1');
  await run_row.click();
  await page.waitForURL(`${plane.url}/teams/${team_id}/runs/${run_id}`);
});

longBrowserTest(
  'a run without steps shows its members, and a person can fail, resume and cancel it',
  async () => {
    const { page } = await open();
    const { id: team_id } = await team('led', { leader_member_id: 'ann', members: [{ member_id: 'ann' }] });
    const run = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
    await page.goto(`${plane.url}/teams/${team_id}/runs/${run.id}`);
    await page.getByRole('region', { name: 'Members' }).getByRole('button', { name: 'ann' }).waitFor();
    expect(await page.getByRole('region', { name: 'Steps' }).count()).toBe(0);
    const marked = page.getByRole('navigation', { name: 'Main' }).locator('[aria-current="page"]');
    expect(await marked.allInnerTexts()).toEqual(['Runs']);
    await page.getByRole('button', { name: 'Fail run…' }).click();
    await page.getByRole('button', { name: 'Fail', exact: true }).click();
    const fault = page.getByText('Enter the error text', { exact: true });
    await fault.waitFor();
    await page.getByLabel('Error text').fill('nobody came');
    await fault.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Fail', exact: true }).click();
    // Not in the dialog, which is about to close.
    await page.locator('#main').getByText('nobody came', { exact: true }).waitFor();
    const cancel = page.getByRole('button', { name: 'Cancel run…' });
    const confirm = page.getByRole('dialog').getByRole('button', { name: 'Cancel run' });
    await clickUntil(page.getByRole('button', { name: 'Resume run' }), cancel);
    await clickUntil(cancel, confirm);
    await confirm.click();
    await page.getByRole('heading', { level: 1 }).getByText('cancelled').waitFor();
  },
);

longBrowserTest('a person can add steps to a run in progress', async () => {
  const { page, foreign_requests } = await open();
  const members = [{ member_id: 'ann' }, { member_id: 'bob' }];
  const { id: team_id } = await team('grows', { members });
  const params = { team_id };
  const { id: run_id } = await plane.client.call('createRun', { params, body: { input: {} } });
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  const dialog = page.getByRole('dialog');
  const add = page.getByRole('button', { name: 'Add step', exact: true });
  const adding = page.getByRole('button', { name: 'Add step…' });
  await adding.click();
  await add.click();
  await dialog.getByText('step_key is required', { exact: true }).waitFor();
  await dialog.getByLabel('Step').fill('look');
  await add.click();
  await inSteps(page, 'look ready ann').waitFor();
  await page.waitForURL(/step=look/);

  await adding.click();
  await dialog.getByLabel('Step').fill('look');
  await dialog.getByLabel('Member').selectOption('bob');
  await dialog.getByLabel('Waits for').selectOption('look');
  await dialog.getByLabel('Prompt').fill('Say what you saw');
  await add.click();
  await dialog.getByText('step already exists for run', { exact: true }).waitFor();
  // The draft survives a reload.
  await page.reload();
  await adding.click();
  expect(await dialog.getByLabel('Prompt').inputValue()).toBe('Say what you saw');
  expect(await dialog.getByLabel('Member').inputValue()).toBe('bob');
  await dialog.getByRole('button', { name: 'Remove dependency on look' }).waitFor();
  await dialog.getByLabel('Step').fill('tell');
  await add.click();
  await inSteps(page, 'tell pending bob').waitFor();
  const steps = await plane.client.call('listSteps', { params: { team_id, run_id } });
  expect(steps.map(({ step_key, depends_on, prompt }) => [step_key, depends_on, prompt])).toEqual([
    ['look', [], ''],
    ['tell', ['look'], 'Say what you saw'],
  ]);
  // A graph that the user has zoomed keeps its view when a step is added.
  const view = () => page.locator('.react-flow__viewport').getAttribute('style');
  const fitted = await view();
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await expect.poll(view).not.toBe(fitted);
  const zoomed = await view();
  await plane.client.call('addStep', {
    params: { team_id, run_id },
    body: { step_key: 'sum', member_id: 'ann', depends_on: ['tell'], prompt: '' },
  });
  await inSteps(page, 'sum pending ann').waitFor();
  await page.evaluate(
    'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
  );
  expect(await view()).toBe(zoomed);
  await plane.client.call('completeStep', {
    params: { team_id, run_id, step_key: 'look' },
    body: { output: null },
  });
  await inSteps(page, 'tell ready bob').waitFor();
  await plane.client.call('cancelRun', { params: { team_id, run_id } });
  await adding.waitFor({ state: 'detached' });
  expect(foreign_requests).toEqual([]);
});

browserTest('what the user works with on the page of a run stays while other steps change', async () => {
  const { page, errors } = await open();
  const members = [{ member_id: 'ann' }, { member_id: 'bob' }];
  const { id: team_id } = await team('steady', { members });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  const params = { team_id, run_id };
  const addStep = (step_key: string, member_id: string) =>
    plane.client.call('addStep', { params, body: { step_key, member_id, depends_on: [], prompt: '' } });
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  await page.getByRole('button', { name: 'Add step…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Prompt').fill('Say what you saw');
  await addStep('look', 'ann');
  // Behind the dialog.
  await page.locator('section[aria-label=Steps]').waitFor();
  await dialog.getByLabel('Waits for').getByRole('option', { name: 'look' }).waitFor({ state: 'attached' });
  expect(await dialog.getByLabel('Prompt').inputValue()).toBe('Say what you saw');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });

  await addStep('tell', 'bob');
  await inSteps(page, 'tell ready bob').waitFor();
  const panel = page.getByRole('region', { name: 'Step look' });
  await panel.getByRole('button', { name: 'Complete step…' }).click();
  await panel.getByLabel('Output').fill('A fox');
  await plane.client.call('failStep', {
    params: { ...params, step_key: 'tell' },
    body: { error_text: 'no voice' },
  });
  await inSteps(page, 'tell failed bob').waitFor();
  expect(await panel.getByLabel('Output').inputValue()).toBe('A fox');
  await page.getByRole('region', { name: 'Member ann' }).waitFor();
  expect(errors).toEqual([]);
});

browserTest("a person can send, answer and acknowledge mail in a run's mailbox", async () => {
  const { page, errors, foreign_requests } = await open();
  const members = [{ member_id: 'ann' }, { member_id: 'bob' }];
  const { id: team_id } = await team('writes', { leader_member_id: 'ann', members });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  const me = `user:${ROOT.username}`;
  const bob = `bob@${team_id}`;
  const inbox = async (actor_id: string) => {
    const found = await plane.client.call('listMail', { params: { actor_id }, query: { run_id } });
    return found.map(({ from_actor_id, payload }) => [from_actor_id, payload]);
  };
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  const mailbox = page.getByRole('region', { name: 'Mailbox' });
  const message = mailbox.getByLabel('Message');
  await message.fill('Who has the keys?');
  await page.reload();
  await expect.poll(() => message.inputValue()).toBe('Who has the keys?');
  await message.press('Control+Enter');
  await mailbox.getByRole('listitem').getByText('Who has the keys?').waitFor();
  await expect.poll(() => message.inputValue()).toBe('');
  expect(await inbox(`ann@${team_id}`)).toEqual([[me, { text: 'Who has the keys?' }]]);

  const question = { run_id, from_actor_id: bob, to_actor_id: me, payload: { text: 'Which door?' } };
  await plane.client.call('sendMail', { body: question });
  const question_item = mailbox.getByRole('listitem').filter({ hasText: 'Which door?' });
  const replies = async () => (await mailbox.getByLabel('To', { exact: true }).inputValue()) === bob;
  await clickUntil(question_item.getByRole('button', { name: 'Reply' }), replies);
  await message.pressSequentially('The green one');
  expect([
    await mailbox.getByLabel('From').inputValue(),
    await mailbox.getByLabel('To', { exact: true }).inputValue(),
  ]).toEqual([me, bob]);
  await mailbox.getByRole('button', { name: 'Send' }).click();
  await mailbox.getByRole('listitem').filter({ hasText: 'The green one' }).waitFor();
  expect(await inbox(bob)).toEqual([[me, { text: 'The green one' }]]);
  const acknowledged = question_item.getByText('acknowledged');
  await clickUntil(question_item.getByRole('button', { name: 'Acknowledge' }), acknowledged);
  expect(await inbox(me)).toEqual([]);

  // Mail of all runs is on one page, with its number in the navigation.
  await plane.client.call('sendMail', { body: { ...question, payload: { text: 'And which key?' } } });
  await page.goto(`${plane.url}/mail`);
  const item = page.getByRole('listitem').filter({ hasText: 'And which key?' });
  await item.getByRole('link', { name: 'writes · run 1' }).waitFor();
  const link = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: /^Mail/ });
  expect(await link.innerText()).toContain('1');
  await item.getByRole('button', { name: 'Reply' }).click();
  await item.getByLabel('Message').fill('The small one');
  await item.getByRole('button', { name: 'Send reply' }).click();
  await page.getByText(/^No mail/).waitFor();
  await link.getByText('1').waitFor({ state: 'detached' });
  expect(await inbox(me)).toEqual([]);
  expect(await inbox(bob)).toContainEqual([me, { text: 'The small one' }]);

  // The page follows what is sent and what is acknowledged elsewhere.
  const later = { ...question, payload: { text: 'Is it open?' } };
  const { id: message_id } = await plane.client.call('sendMail', { body: later });
  await page.getByRole('listitem').filter({ hasText: 'Is it open?' }).waitFor();
  await plane.client.call('ackMail', { params: { message_id: String(message_id) } });
  await page.getByText(/^No mail/).waitFor();
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);

  // A person can write on behalf of a member without an agent.
  await mailbox.getByLabel('From').selectOption('bob');
  await mailbox.getByLabel('To', { exact: true }).selectOption('ann');
  await message.fill('From me as well');
  await mailbox.getByRole('button', { name: 'Send' }).click();
  await expect.poll(() => inbox(`ann@${team_id}`)).toContainEqual([bob, { text: 'From me as well' }]);
  await plane.client.call('cancelRun', { params: { team_id, run_id } });
  await message.waitFor({ state: 'detached' });
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

longBrowserTest('a conflicting change of a team shows both versions, and nothing typed is lost', async () => {
  const { page } = await open();
  const made = await team('shared', { members: [{ member_id: 'a' }], steps: [{ step_key: 'one' }] });
  const params = { team_id: made.id };
  await page.goto(`${plane.url}/teams/${made.id}/edit`);
  const description = page.getByLabel('Description', { exact: true });
  await description.fill('what I wrote');
  await plane.client.call('updateTeam', { params, body: { version: 1, name: 'theirs' } });
  await page.getByRole('button', { name: 'Save' }).click();
  const both = page.getByRole('region', { name: 'Both versions' });
  await both.getByText('team definition changed concurrently; reload and retry', { exact: true }).waitFor();
  await both.getByText(/^− +"name": "theirs"/).waitFor();
  await both.getByText(/^\+ +"description": "what I wrote"/).waitFor();

  await page.reload();
  await description.waitFor();
  expect(await description.inputValue()).toBe('what I wrote');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Use theirs' }).click();
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('theirs');
  await page.getByRole('button', { name: 'Restore my version' }).click();
  expect(await description.inputValue()).toBe('what I wrote');

  await plane.client.call('updateTeam', { params, body: { version: 2, description: 'theirs again' } });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Overwrite with mine' }).click();
  await page.waitForURL(`${plane.url}/teams/${made.id}`);
  expect(await plane.client.call('getTeam', { params })).toMatchObject({
    name: 'shared',
    description: 'what I wrote',
    version: 4,
  });
});

longBrowserTest(
  'the editor shows the names of variables but no values, and saving keeps the values',
  async () => {
    const { page } = await open();
    const agent = { command: 'printenv KEY > kept', workdir: plane.work, env: { KEY: 'kept-out-of-sight' } };
    const made = await team('with variables', {
      members: [{ member_id: 'a', agent }],
      steps: [{ step_key: 'one' }],
    });
    const params = { team_id: made.id };
    await page.goto(`${plane.url}/teams/${made.id}/edit`);
    const json = page.getByLabel('Definition (JSON)');
    await page.getByText('Environment values are hidden.').waitFor();
    expect(JSON.parse(await json.inputValue()).spec.members[0].agent.env_keys).toEqual(['KEY']);
    expect(await page.content()).not.toContain('kept-out-of-sight');
    await page.getByLabel('Member', { exact: true }).first().fill('renamed');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.waitForURL(`${plane.url}/teams/${made.id}`);
    const { id: run_id } = await plane.client.call('createRun', { params, body: {} });
    await expect
      .poll(async () => (await plane.client.call('findRun', { params: { run_id } })).status)
      .toBe('completed');
    expect(await readFile(join(plane.work, 'kept'), 'utf8')).toBe('kept-out-of-sight\n');
  },
);

longBrowserTest('the form and the JSON edit one definition, and an error focuses its field', async () => {
  // The test changes its size.
  const { page } = await open('desk', true);
  await page.goto(`${plane.url}/teams/new?template=writer-reviewer`);
  const json = page.getByLabel('Definition (JSON)');
  const name = page.getByLabel('Name', { exact: true });
  await name.fill('checked');
  expect(JSON.parse(await json.inputValue()).name).toBe('checked');
  // Renaming a member updates its steps and the graph.
  await page.getByLabel('Member', { exact: true }).first().fill('author');
  expect(JSON.parse(await json.inputValue()).spec.steps[0].member_id).toBe('author');
  await page.getByRole('application', { name: 'Step graph' }).getByText('author').waitFor();

  // Invalid JSON stays as typed, and disables the form.
  const good = await json.inputValue();
  await json.fill(`${good.trimEnd()},`);
  await page.getByText('The JSON is invalid.').waitFor();
  expect(await name.isDisabled()).toBe(true);
  await page.reload();
  expect(await json.inputValue()).toBe(`${good.trimEnd()},`);
  await json.fill(good);
  expect(await name.isEnabled()).toBe(true);

  // While somebody types, the service's error appears before the definition is sent.
  const key = page.getByLabel('Step', { exact: true }).nth(1);
  await key.fill('write');
  await page.getByText('Not valid yet: spec.steps[].step_key must be unique').waitFor();
  await key.fill('review');
  const second = page.getByRole('group', { name: 'review', exact: true });

  // An error of the service appears at its field, which gets the focus.
  const attempts = second.getByLabel('Maximum attempts');
  await second.locator('summary').click();
  await attempts.fill('0');
  await page.getByRole('button', { name: 'Create team' }).click();
  const message = 'spec.steps[].max_attempts must be an integer from 1 to 100';
  await second.getByText(message, { exact: true }).waitFor();
  await untilAt(page, 'spec.steps.1.max_attempts');
  expect(await attempts.getAttribute('aria-invalid')).toBe('true');
  await attempts.fill('2');
  await page.getByRole('button', { name: 'Create team' }).click();
  await page.getByRole('heading', { level: 1, name: 'checked' }).waitFor();

  // A name that is already taken.
  await page.goto(`${plane.url}/teams/new?template=pipeline`);
  await name.fill('checked');
  const form = page.getByRole('group', { name: 'Definition', exact: true });
  const { y } = (await form.boundingBox())!;
  await page.getByRole('button', { name: 'Create team' }).click();
  const taken = page.getByText('team name already exists', { exact: true });
  await taken.first().waitFor();
  await untilAt(page, 'name');
  // The message is at the field alone, and the form stays where it is.
  expect(await taken.count()).toBe(1);
  expect((await form.boundingBox())!.y).toBe(y);
  expect(await page.getByRole('alert').count()).toBe(1);

  // A phone that shows the JSON has it there.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('button', { name: 'JSON' }).click();
  await taken.locator('visible=true').waitFor();
});

browserTest('text that is typed while a team is created is kept for its next version', async () => {
  const { page } = await open();
  await page.goto(`${plane.url}/teams/new?template=pipeline`);
  const sent = Promise.withResolvers<void>();
  const typed = Promise.withResolvers<void>();
  await page.route('**/api/teams', async (route) => {
    if (route.request().method() === 'POST') {
      sent.resolve();
      await typed.promise;
    }
    await route.continue();
  });
  const name = page.getByLabel('Name', { exact: true }).first();
  await name.fill('typed');
  await page.getByRole('button', { name: 'Create team' }).click();
  await sent.promise;
  const about = page.getByLabel('Description', { exact: true }).first();
  await about.fill('Typed later');
  typed.resolve();
  await page.getByRole('heading', { level: 1, name: 'Edit typed' }).waitFor();
  expect(await about.inputValue()).toBe('Typed later');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Version 2').waitFor();
  await page.getByText('Typed later').waitFor();
  // The draft of a new team is empty again.
  await page.goto(`${plane.url}/teams/new?template=pipeline`);
  await name.waitFor();
  expect(await name.inputValue()).not.toBe('typed');
});

browserTest('a late save keeps what was typed after leaving the editor and coming back', async () => {
  const spec = { members: [{ member_id: 'ann' }] };
  const { id } = await plane.client.call('createTeam', { body: { name: 'late', spec } as never });
  const { page } = await open();
  await page.goto(`${plane.url}/teams/${id}`);
  await page.getByRole('link', { name: 'Edit' }).click();
  const held = Promise.withResolvers<void>();
  await page.route(`**/api/teams/${id}`, async (route) => {
    if (route.request().method() !== 'GET') await held.promise;
    await route.continue();
  });
  const about = page.getByLabel('Description', { exact: true }).first();
  await about.fill('Sent');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'late', exact: true }).waitFor();
  await page.goForward();
  await about.fill('Typed later');
  held.resolve();
  await page.getByText('The team was saved').waitFor();
  expect(await about.inputValue()).toBe('Typed later');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Version 3').waitFor();
  await page.getByText('Typed later').waitFor();
});

browserTest('a team that was deleted is not shown as one that exists', async () => {
  const { page } = await open();
  const spec = { members: [{ member_id: 'ann' }] };
  const { id: elsewhere } = await team('gone elsewhere', spec);
  await page.goto(`${plane.url}/teams/${elsewhere}`);
  await page.getByRole('button', { name: 'Start run' }).first().waitFor();
  await plane.client.call('deleteTeam', { params: { team_id: elsewhere } });
  // Later, when the user returns to the page; the first time, it may still wait for an answer from before.
  const returns = `{ const { now } = Date; Date.now = () => now() + 60_000; }
    window.dispatchEvent(new Event('visibilitychange'))`;
  const deleted = async () => {
    await page.evaluate(returns);
    return page.getByText('This team was deleted.').isVisible();
  };
  await expect.poll(deleted).toBe(true);

  const { id: here } = await team('gone here', spec);
  await page.goto(`${plane.url}/teams/${here}`);
  const remove = async () => {
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Delete team' }).click();
  };
  await remove();
  await page.waitForURL(`${plane.url}/teams`);
  await page.goBack();
  await page.getByText('This team was deleted.').waitFor();

  // A late response does not take the user away from another page.
  const { id: late } = await team('gone late', spec);
  await page.goto(`${plane.url}/teams/${late}`);
  const left = Promise.withResolvers<void>();
  await page.route(`**/api/teams/${late}`, async (route) => {
    if (route.request().method() === 'DELETE') await left.promise;
    await route.continue();
  });
  await remove();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Tasks' }).first().click();
  await page.waitForURL(`${plane.url}/tasks`);
  left.resolve();
  await page.getByText('The team was deleted').waitFor();
  expect(new URL(page.url()).pathname).toBe('/tasks');
});

longBrowserTest('a team can be deleted once it has no active runs', async () => {
  const { page } = await open();
  const { id: team_id } = await team('doomed', {
    members: [{ member_id: 'a' }],
    steps: [{ step_key: 'one' }],
  });
  const params = { team_id };
  const { id: run_id } = await plane.client.call('createRun', { params, body: { input: {} } });
  await page.goto(`${plane.url}/teams/${team_id}`);
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('button', { name: 'Delete team' }).click();
  await page.getByText('team has active runs', { exact: true }).waitFor();
  await plane.client.call('cancelRun', { params: { ...params, run_id } });
  await page.getByRole('button', { name: 'Delete team' }).click();
  await page.waitForURL(`${plane.url}/teams`);
  await page.getByRole('link', { name: 'first' }).waitFor();
  await page.getByRole('link', { name: 'doomed' }).waitFor({ state: 'detached' });
});

browserTest('hostile names, inputs, mail and results are shown as text', async () => {
  const evil = '<img src=http://elsewhere.example/x onerror="window.owned=1">';
  const turned = 'a\u202egnp.exe';
  const { page, errors, foreign_requests } = await open();
  const { id: team_id } = await plane.client.call('createTeam', {
    body: {
      name: `${evil} <script>window.owned=2</script>`,
      description: `${evil}${turned} javascript:alert(1)`,
      spec: {
        members: [{ member_id: 'a', description: evil }, { member_id: 'b' }],
        steps: [
          { step_key: evil, member_id: 'a', prompt: evil },
          { step_key: '__proto__', member_id: 'a', depends_on: [evil] },
          { step_key: '"] .x{', member_id: 'b', depends_on: ['__proto__', evil] },
        ],
      },
    } as never,
  });
  const params = { team_id };
  const run = await plane.client.call('createRun', {
    params,
    body: { input: { title: evil, more: turned } },
  });
  const from_actor_id = `a@${team_id}`;
  const mail = {
    run_id: run.id,
    from_actor_id,
    to_actor_id: `b@${team_id}`,
    payload: { text: evil + turned },
  };
  await plane.client.call('sendMail', { body: mail });
  for (const step_key of [evil, '__proto__', '"] .x{']) {
    const of = { ...params, run_id: run.id, step_key };
    await plane.client.call('completeStep', { params: of, body: { output: { [evil]: turned } } });
  }
  await page.goto(`${plane.url}/runs`);
  await page.getByText('<script>').first().waitFor();
  await page.goto(`${plane.url}/teams/${team_id}`);
  await page.getByRole('application').getByText('__proto__').waitFor();
  await page.goto(`${plane.url}/teams/${team_id}/edit`);
  await page.getByRole('application').getByText('__proto__').waitFor();
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run.id}`);
  await inSteps(page, '__proto__ completed a').click();
  await page.getByRole('region', { name: 'Result', exact: true }).getByText('onerror').waitFor();
  await page.getByRole('region', { name: 'Mailbox' }).getByText('⟦U+202E⟧').waitFor();
  expect(await page.evaluate('[window.owned ?? null, document.images.length]')).toEqual([null, 0]);
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

longBrowserTest(
  'a run of 2,048 steps is a table that renders only visible rows, and a link opens any step',
  async () => {
    const steps = Array.from({ length: 2048 }, (_, n) => ({
      step_key: `s${n}`,
      ...(n >= 8 && { depends_on: [`s${n - 8}`] }),
    }));
    const { id: team_id } = await team('large', { members: [{ member_id: 'a' }], steps });
    const run = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
    const { page } = await open();
    await page.goto(`${plane.url}/teams/${team_id}/runs/${run.id}?step=s1999`);
    const table = page.getByRole('region', { name: 'Steps' }).getByRole('table');
    await table.getByRole('button', { name: 's1999', exact: true }).waitFor();
    expect(await table.getAttribute('aria-rowcount')).toBe('2049');
    expect(await table.getByRole('row').count()).toBeLessThan(60);
    await page.getByRole('region', { name: 'Step s1999' }).waitFor();
    await plane.client.call('completeStep', {
      params: { team_id, run_id: run.id, step_key: 's0' },
      body: { output: null },
    });
    await page.getByRole('region', { name: 'Steps' }).getByText('1 completed').waitFor();
    await page.getByRole('button', { name: 'Graph' }).click();
    await page.getByRole('application', { name: 'Step graph' }).waitFor();
  },
);
