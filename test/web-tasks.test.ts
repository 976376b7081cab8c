/**
 * Tasks in the web UI: moving cards with keys and the menu, conflicts, task threads that open at the end and keep the reader's
 * scroll position, and messages that are neither lost nor sent twice.
 */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  browserTest,
  longBrowserTest,
  sharedBrowser,
  signIn,
  type WatchedPage,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
let team_id: string;

beforeAll(async () => {
  plane = await TestPlane.open();
  const members = [{ member_id: 'lead' }, { member_id: 'dev' }];
  const body = { name: 'shop', spec: { members, leader_member_id: 'lead' } };
  team_id = (await plane.client.call('createTeam', { body })).id;
});
afterAll(async () => {
  await plane.close();
});

const create = async (title: string, team = team_id) =>
  (await plane.client.call('createTask', { params: { team_id: team }, body: { title } })).id;
const get = (task_id: string) => plane.client.call('getTask', { params: { team_id, task_id } });
const set = (task_id: string, status: 'in_progress' | 'completed') =>
  plane.client.call('updateTask', { params: { team_id, task_id }, body: { status } });
const sendMessage = (task_id: string, text: string, reply_to?: number) =>
  plane.client.call('sendMessage', {
    params: { team_id, task_id },
    body: { route: 'broadcast', text, ...(reply_to !== undefined && { reply_to }) },
  });
const listTexts = async (task_id: string, team = team_id) => {
  const messages = await plane.client.call('listMessages', { params: { team_id: team, task_id } });
  return (messages as { text: string | null }[]).map(({ text }) => text);
};

async function open(path: string, screen: 'desk' | 'phone' = 'desk'): Promise<WatchedPage> {
  const watched = await browser.open(plane, { screen });
  await signIn(watched.page, plane);
  await watched.page.goto(plane.url + path);
  return watched;
}
const column = (page: Page, label: string) => page.getByRole('region', { name: new RegExp(`^${label}, `) });
const soon = <T>(read: () => Promise<T>) => expect.poll(read);
const log = (page: Page) => page.getByRole('log', { name: 'Task thread' });
const texts = (page: Page) => log(page).locator('li p.text-prose').allTextContents();

browserTest('a card can be moved with keys and with its menu, and keeps the focus', async () => {
  const id = await create('Moved by hand');
  const { page, errors } = await open(`/tasks?team=${team_id}`);
  const card = page.getByRole('link', { name: 'Moved by hand' });
  const focused = () => page.evaluate('document.activeElement.closest("li")?.textContent ?? ""');
  await column(page, 'To do').getByRole('link', { name: 'Moved by hand' }).focus();
  await page.keyboard.press('Shift+ArrowRight');
  await column(page, 'Doing').getByRole('link', { name: 'Moved by hand' }).waitFor();
  await soon(async () => (await get(id)).status).toBe('in_progress');
  await soon(focused).toContain('Moved by hand');
  await page.keyboard.press('Shift+ArrowLeft');
  await column(page, 'To do').getByRole('link', { name: 'Moved by hand' }).waitFor();

  await column(page, 'To do')
    .locator('li', { has: card })
    .getByRole('button', { name: /^Actions for/ })
    .click();
  await page.getByRole('menuitem', { name: 'Move to In review' }).click();
  await column(page, 'In review').getByRole('link', { name: 'Moved by hand' }).waitFor();
  await soon(async () => (await get(id)).status).toBe('in_review');
  await soon(focused).toContain('Moved by hand');

  // An open task is next to the board. The palette finds it by its key.
  const { key } = await get(id);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search and commands' }).fill(key.toLowerCase());
  await page.getByRole('option', { name: `${key} Moved by hand` }).click();
  const panel = page.getByRole('region', { name: `${key} Moved by hand` });
  await panel.waitFor();
  await column(page, 'To do').waitFor();
  await panel.getByRole('button', { name: 'Close' }).click();
  await panel.waitFor({ state: 'detached' });
  // As every panel, it closes on Escape wherever the focus is.
  await column(page, 'In review').getByRole('link', { name: 'Moved by hand' }).click();
  await panel.waitFor();
  await page.getByRole('combobox', { name: 'Team' }).focus();
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  // Also where the actions of the page are in a hidden sheet, but not while Escape is part of a text.
  await column(page, 'In review').getByRole('link', { name: 'Moved by hand' }).click();
  await panel.waitFor();
  const screen = page.viewportSize()!;
  await page.setViewportSize({ width: 700, height: 800 });
  await page.locator('[role=dialog][popover]').waitFor({ state: 'attached' });
  const composing = "{ key: 'Escape', isComposing: true, bubbles: true }";
  await page.evaluate(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', ${composing}))`);
  await panel.getByRole('button', { name: 'Back to tasks' }).waitFor();
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  await page.setViewportSize(screen);

  // The column of cancelled tasks is folded, and keeps the focus of a card that moves into it.
  const cancelled = column(page, 'Cancelled');
  expect((await cancelled.boundingBox())!.width).toBe(40);
  await card.focus();
  await page.keyboard.press('Shift+ArrowRight');
  await soon(async () => (await get(id)).status).toBe('completed');
  await soon(focused).toContain('Moved by hand');
  await page.keyboard.press('Shift+ArrowRight');
  await soon(async () => (await get(id)).status).toBe('cancelled');
  await soon(() => page.evaluate('document.activeElement.getAttribute("aria-label") ?? ""')).toBe(
    'Expand Cancelled',
  );
  await page.keyboard.press('Enter');
  await cancelled.getByRole('link', { name: 'Moved by hand' }).waitFor();
  expect(errors).toEqual([]);
});

browserTest('a card that is moved twice before the server answers arrives in the second column', async () => {
  const id = await create('Moved twice');
  const { page, errors } = await open(`/tasks?team=${team_id}`);
  const pressed = Promise.withResolvers<void>();
  await page.route(`**/tasks/${id}`, async (route) => {
    await pressed.promise;
    await route.continue();
  });
  const focused = () =>
    page.evaluate('document.activeElement.closest("section")?.getAttribute("aria-label")');
  await column(page, 'To do').getByRole('link', { name: 'Moved twice' }).focus();
  await page.keyboard.press('Shift+ArrowRight');
  await soon(focused).toMatch(/^Doing/);
  await page.keyboard.press('Shift+ArrowRight');
  pressed.resolve();
  await soon(async () => (await get(id)).status).toBe('in_review');
  await column(page, 'In review').getByRole('link', { name: 'Moved twice' }).waitFor();
  await page.unroute(`**/tasks/${id}`);
  expect(await page.getByRole('alert').count()).toBe(0);
  expect(errors).toEqual([]);
});

browserTest(
  'moving a card that somebody else has just moved shows a conflict, and can be forced',
  async () => {
    const id = await create('Wanted by two');
    const { page } = await open(`/tasks?team=${team_id}`);
    // Somebody else moves the card first, too late for this page to notice.
    await page.route(
      `**/tasks/${id}`,
      async (route) => {
        if (route.request().method() === 'PATCH') await set(id, 'completed');
        await route.continue();
      },
      { times: 1 },
    );
    await page.getByRole('link', { name: 'Wanted by two' }).focus();
    await page.keyboard.press('Shift+ArrowRight');
    const card = column(page, 'Done').locator('li', { hasText: 'Wanted by two' });
    await card.getByRole('alert').getByText('task changed concurrently; reload and retry').waitFor();
    expect((await get(id)).status).toBe('completed');
    await card.getByRole('button', { name: 'Move to Doing anyway' }).click();
    await column(page, 'Doing').getByRole('link', { name: 'Wanted by two' }).waitFor();
    await soon(async () => (await get(id)).status).toBe('in_progress');
  },
);

browserTest('a card that is being moved stays in its new column while other changes arrive', async () => {
  const id = await create('On its way');
  const { page } = await open(`/tasks?team=${team_id}`);
  const answered = Promise.withResolvers<void>();
  await page.route(
    `**/tasks/${id}`,
    async (route) => {
      await answered.promise;
      await route.continue();
    },
    { times: 1 },
  );
  await page.getByRole('link', { name: 'On its way' }).focus();
  await page.keyboard.press('Shift+ArrowRight');
  await column(page, 'Doing').getByRole('link', { name: 'On its way' }).waitFor();
  const { version } = await get(id);
  await plane.client.call('updateTask', {
    params: { team_id, task_id: id },
    body: { version, title: 'On its long way' },
  });
  await column(page, 'Doing').getByRole('link', { name: 'On its long way' }).waitFor();
  answered.resolve();
  const card = column(page, 'To do').locator('li', { hasText: 'On its long way' });
  await card.getByRole('alert').getByText('task changed concurrently; reload and retry').waitFor();
});

browserTest('changes to tasks by somebody else appear without a reload', async () => {
  const { page } = await open(`/tasks?team=${team_id}`);
  await page.getByRole('heading', { level: 1, name: 'Tasks' }).waitFor();
  await column(page, 'To do').waitFor();
  const id = await create('Made elsewhere');
  await column(page, 'To do').getByRole('link', { name: 'Made elsewhere' }).waitFor();
  await set(id, 'completed');
  await column(page, 'Done').getByRole('link', { name: 'Made elsewhere' }).waitFor();
});

browserTest(
  'the form for a new task shows errors at its fields, survives a reload, and opens the task thread',
  async () => {
    const { page } = await open(`/tasks?team=${team_id}`);
    await page.getByRole('button', { name: 'New task' }).click();
    await page.getByLabel('Description').fill('With gift wrap');
    await page.getByRole('button', { name: 'Create task' }).click();
    await page.getByText('title is required').waitFor();
    expect(await page.getByLabel('Title').getAttribute('aria-invalid')).toBe('true');
    await page.reload();
    await page.getByRole('button', { name: 'New task' }).click();
    expect(await page.getByLabel('Description').inputValue()).toBe('With gift wrap');
    await page.getByLabel('Title').fill('Add gift cards');
    await page.getByLabel('Assignee').selectOption('dev');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('heading', { level: 2, name: 'Add gift cards' }).waitFor();
    const task_id = new URL(page.url()).searchParams.get('task')!;
    expect(await get(task_id)).toMatchObject({ description: 'With gift wrap', assignee_member_id: 'dev' });
    await page.getByText('No messages yet.').waitFor();

    // The form is empty after the task was created.
    await page.getByRole('button', { name: 'New task' }).click();
    expect(await page.getByLabel('Title').inputValue()).toBe('');
  },
);

browserTest('a task whose assignee has left the team can still be edited', async () => {
  const members = [{ member_id: 'lead' }, { member_id: 'ops' }];
  const team = await plane.client.call('createTeam', {
    body: { name: 'left', spec: { members, leader_member_id: 'lead' } },
  });
  const { id } = await plane.client.call('createTask', {
    params: { team_id: team.id },
    body: { title: 'Left behind', assignee_member_id: 'ops' },
  });
  await plane.client.call('updateTeam', {
    params: { team_id: team.id },
    body: { version: team.version, spec: { ...team.spec, members: members.slice(0, 1) } } as never,
  });
  const { page, errors } = await open(`/tasks?team=${team.id}&task=${id}`);
  await page.getByRole('button', { name: 'Edit task' }).click();
  const dialog = page.getByRole('dialog');
  const assignee = dialog.getByRole('combobox', { name: 'Assignee' });
  await soon(() => assignee.locator('option:checked').textContent()).toBe('ops (no longer a member)');
  await dialog.getByLabel('Title').fill('Taken over');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  const params = { team_id: team.id, task_id: id };
  expect(await plane.client.call('getTask', { params })).toMatchObject({
    title: 'Taken over',
    assignee_member_id: 'ops',
  });

  // The draft of a new task keeps the team of its assignee.
  await page.goto(`${plane.url}/tasks`);
  await page.getByRole('button', { name: 'New task' }).click();
  await dialog.getByLabel('Team').selectOption('left');
  await assignee.selectOption('lead');
  await page.reload();
  await page.getByRole('button', { name: 'New task' }).click();
  await soon(() => dialog.getByLabel('Team').locator('option:checked').textContent()).toBe('left');
  await soon(() => assignee.inputValue()).toBe('lead');

  // The team alone is no draft: the page of another team offers that one.
  await assignee.selectOption('');
  await page.goto(`${plane.url}/tasks?team=${team_id}`);
  await page.getByRole('button', { name: 'New task' }).click();
  await soon(() => dialog.getByLabel('Team').inputValue()).toBe(team_id);
  expect(errors).toEqual([]);
});

browserTest('a conflicting edit shows both versions and loses neither', async () => {
  const id = await create('Paint it red');
  const { page } = await open(`/tasks?team=${team_id}&task=${id}`);
  await page.getByRole('button', { name: 'Edit task' }).click();
  await page.getByLabel('Title').fill('Paint it blue');
  await plane.client.call('updateTask', {
    params: { team_id, task_id: id },
    body: { title: 'Paint it green' },
  });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('task changed concurrently; reload and retry').waitFor();
  await dialog.getByText('Paint it green').waitFor();
  expect(await page.getByLabel('Title').inputValue()).toBe('Paint it blue');
  await dialog.getByRole('button', { name: 'Overwrite with mine' }).click();
  await page.getByRole('heading', { level: 2, name: 'Paint it blue' }).waitFor();
  expect((await get(id)).title).toBe('Paint it blue');

  // Also if the draft was begun before the other change, and the page was opened after it.
  await page.getByRole('button', { name: 'Edit task' }).click();
  await page.getByLabel('Title').fill('Paint it black');
  await plane.client.call('updateTask', {
    params: { team_id, task_id: id },
    body: { description: 'Two coats' },
  });
  await page.reload();
  await page.getByRole('button', { name: 'Edit task' }).click();
  expect(await page.getByLabel('Title').inputValue()).toBe('Paint it black');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await dialog.getByText('task changed concurrently; reload and retry').waitFor();
  await dialog.getByText('Two coats').waitFor();
  // A page that does not show the other change does not overwrite it, even though it has the same draft.
  await page.reload();
  await page.getByRole('button', { name: 'Edit task' }).click();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await dialog.getByText('Two coats').waitFor();
  await dialog.getByRole('button', { name: 'Use theirs' }).click();
  expect(await page.getByLabel('Title').inputValue()).toBe('Paint it blue');
  expect(await page.getByLabel('Description').inputValue()).toBe('Two coats');
  await page.getByLabel('Title').fill('Paint it white');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { level: 2, name: 'Paint it white' }).waitFor();
  expect(await get(id)).toMatchObject({ title: 'Paint it white', description: 'Two coats' });
});

browserTest('a message follows its route, and errors of the service appear at their fields', async () => {
  const body = { name: 'flat', spec: { members: [{ member_id: 'one' }, { member_id: 'two' }] } };
  const { id: flat } = await plane.client.call('createTeam', { body });
  const task_id = await create('Without a leader', flat);
  const { page } = await open(`/tasks?team=${flat}&task=${task_id}`);
  const message = page.getByRole('textbox', { name: 'Message' });
  await page.getByText('Leader', { exact: true }).click();
  await message.fill('Who leads?');
  await page.keyboard.press('Control+Enter');
  await page.getByText('route=to_leader requires a leader member in spec.members').waitFor();
  await page.getByText('Member', { exact: true }).click();
  await page.keyboard.press('Tab');
  await message.press('Control+Enter');
  await page.getByText('to_actor_id is required when route=to_member').waitFor();
  await page.getByLabel('Member', { exact: true }).last().selectOption('two');
  await message.press('Control+Enter');
  await log(page).getByText('Who leads?').waitFor();
  await soon(() => message.inputValue()).toBe('');
  const [sent] = (await plane.client.call('listMessages', {
    params: { team_id: flat, task_id },
  })) as unknown[];
  expect(sent).toMatchObject({ route: 'to_member', to_actor_id: `two@${flat}`, text: 'Who leads?' });
});

browserTest('a draft is the same in all tabs, so that none sends it again', async () => {
  const id = await create('Said in one tab');
  const { page } = await open(`/tasks?team=${team_id}&task=${id}`);
  const other = await page.context().newPage();
  await other.goto(page.url());
  const [message, same] = [page, other].map((tab) => tab.getByRole('textbox', { name: 'Message' }));
  await same!.waitFor();
  await message!.fill('once');
  await soon(() => same!.inputValue()).toBe('once');
  await same!.press('End');
  await same!.pressSequentially(' and for all');
  await soon(() => message!.inputValue()).toBe('once and for all');
  await page.getByText('Everyone', { exact: true }).click();
  await message!.press('Control+Enter');
  await soon(() => same!.inputValue()).toBe('');
  expect(await message!.inputValue()).toBe('');
  expect(await listTexts(id)).toEqual(['once and for all']);
});

longBrowserTest(
  'a draft survives a reload, and a lost response does not send the message twice',
  async () => {
    const id = await create('Say it once');
    const { page } = await open(`/tasks?team=${team_id}&task=${id}`);
    const message = page.getByRole('textbox', { name: 'Message' });
    await message.fill('only once');
    await page.reload();
    await soon(() => message.inputValue()).toBe('only once');
    await page.route(
      '**/messages',
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 1 },
    );
    await message.press('Control+Enter');
    await page.getByText('The service is not responding.').waitFor();
    expect(await message.inputValue()).toBe('only once');
    await page.reload();
    await message.press('Control+Enter');
    await soon(() => message.inputValue()).toBe('');
    expect(await listTexts(id)).toEqual(['only once']);
    expect(await texts(page)).toEqual(['only once']);
    // Sending the same text again creates another message.
    await message.fill('only once');
    await message.press('Control+Enter');
    await soon(() => texts(page)).toEqual(['only once', 'only once']);
    expect(await listTexts(id)).toEqual(['only once', 'only once']);
  },
);

longBrowserTest(
  'a long task thread opens at its end, loads back to its beginning, and does not move a reader',
  async () => {
    const id = await create('Long talk');
    const all: string[] = [];
    for (let n = 1; n <= 130; n++) {
      all.push(`message ${n}`);
      await sendMessage(id, `message ${n}`);
    }
    const { page, errors } = await open(`/tasks?team=${team_id}&task=${id}`);
    await log(page).getByText('message 130', { exact: true }).waitFor();
    expect(await texts(page)).toEqual(all.slice(-50));
    const BOX = `document.querySelector('[role="log"]')`;
    const isAtEnd = () =>
      page.evaluate(`((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 2)(${BOX})`);
    await soon(isAtEnd).toBe(true);
    await sendMessage(id, 'and one more');
    await log(page).getByText('and one more').waitFor();
    await soon(isAtEnd).toBe(true);

    // A message that somebody scrolled up to keeps its position, whatever is added above or below.
    const eye = log(page).getByText('message 84', { exact: true });
    await eye.scrollIntoViewIfNeeded();
    await log(page).getByText('message 31', { exact: true }).waitFor({ state: 'attached' });
    const where = async () => (await eye.boundingBox())!.y;
    const before = await where();
    await sendMessage(id, 'unseen');
    await page.getByRole('button', { name: '1 new' }).waitFor();
    expect(await where()).toBe(before);
    await page.getByRole('button', { name: '1 new' }).click();
    await soon(isAtEnd).toBe(true);
    await page.getByRole('button', { name: '1 new' }).waitFor({ state: 'detached' });

    while ((await texts(page)).length < 132) {
      await page.evaluate(`${BOX}.scrollTop = 0`);
      await page.waitForTimeout(50);
    }
    expect(await texts(page)).toEqual([...all, 'and one more', 'unseen']);
    expect(errors).toEqual([]);
  },
);

browserTest('a search finds messages, and a thread shows a message with its replies', async () => {
  const id = await create('Found again');
  const first = await sendMessage(id, 'the chimney smokes');
  await sendMessage(id, 'the door creaks');
  await sendMessage(id, 'it needs a sweep', first.id);
  const { page } = await open(`/tasks?team=${team_id}&task=${id}`);
  await page.getByRole('searchbox', { name: 'Search this thread' }).fill('door');
  await soon(() => texts(page)).toEqual(['the door creaks']);
  expect(new URL(page.url()).searchParams.get('q')).toBe('door');
  await page.getByRole('searchbox', { name: 'Search this thread' }).fill('');
  await soon(async () => (await texts(page)).length).toBe(3);
  await page.getByRole('button', { name: 'Show thread', exact: true }).click();
  await soon(() => texts(page)).toEqual(['the chimney smokes', 'it needs a sweep']);
  await page.getByRole('button', { name: 'Show all messages' }).click();
  await page.getByRole('button', { name: /^Reply to ana: the door/ }).click();
  await page.getByRole('textbox', { name: 'Message' }).fill('oil it');
  await page.keyboard.press('Control+Enter');
  await log(page).getByRole('button', { name: 'ana: the door creaks', exact: true }).waitFor();
});

browserTest('a run can be started from its task, and its status is shown on the card', async () => {
  const id = await create('Run it');
  const { page } = await open(`/tasks?team=${team_id}&task=${id}`, 'phone');
  await page.getByRole('button', { name: 'Start run' }).click();
  await page.getByRole('link', { name: /^Open run \d+$/ }).waitFor();
  await soon(() => page.getByLabel('Status').inputValue()).toBe('in_progress');
  const { run_id } = await get(id);
  await page.getByRole('button', { name: 'Back to tasks' }).click();
  const card = column(page, 'Doing').locator('li', { hasText: 'Run it' });
  await card.getByText('running').waitFor();
  await plane.client.call('completeRun', { params: { team_id, run_id: run_id! }, body: { output: 'done' } });
  await column(page, 'In review').locator('li', { hasText: 'Run it' }).getByText('completed').waitFor();
});

browserTest('messages are shown as text, and only web URLs become links', async () => {
  const id = await create('Hostile words');
  await sendMessage(id, '<img src=x onerror="window.hit=1"> javascript:alert(1) https://example.org/pr?n=1');
  const { page, errors, foreign_requests } = await open(`/tasks?team=${team_id}&task=${id}`);
  await log(page).getByText('<img src=x').waitFor();
  const links = log(page).getByRole('link');
  expect(await links.count()).toBe(1);
  expect(await links.getAttribute('href')).toBe('https://example.org/pr?n=1');
  expect(await links.getAttribute('rel')).toBe('noreferrer noopener');
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

browserTest.for(['desk', 'phone'] as const)(
  'the menu of a card does not cover its title on the screen of a %s',
  async (screen) => {
    const id = await create('Each word of this title stays readable on its card, '.repeat(3));
    const { page } = await open(`/tasks?team=${team_id}`, screen);
    const card = page.locator(`[data-task="${id}"]`);
    const menu = (await card.getByRole('button', { name: /^Actions/ }).boundingBox())!;
    const lines = await page.evaluate<{ right: number; top: number }[]>(`(() => {
      const range = document.createRange();
      range.selectNode(document.querySelector('[data-task="${id}"] a').lastChild);
      return [...range.getClientRects()].map(({ right, top }) => ({ right, top }));
    })()`);
    expect(lines.length).toBeGreaterThan(1);
    // The letters are lower than the top of their line.
    const { x, y, height } = menu;
    expect(lines.filter(({ right, top }) => right > x + 1 && top + 2 < y + height)).toEqual([]);
  },
);
