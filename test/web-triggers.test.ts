/** Time triggers in a browser: every kind is added, shown and deleted, mail arrives on time, and refused input is explained. */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { Client } from '../src/client/client.ts';
import { COLOR_RULES, preparePage, problemsOf, RULES, type Variant } from '../src/testing/axe.ts';
import { browserTest, longBrowserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

const me = `user:${ROOT.username}`;
const FIRES_MS = 90_000;

/** A run of a team with the members `ann` and `bob`, which have no agents. */
async function startRun(name: string): Promise<{ run_id: string; team_id: string; path: string }> {
  const spec = { leader_member_id: 'ann', members: [{ member_id: 'ann' }, { member_id: 'bob' }] };
  const { id: team_id } = await plane.client.call('createTeam', { body: { name, spec } as never });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  return { run_id, team_id, path: `/teams/${team_id}/runs/${run_id}` };
}

const triggersOf = (run_id: string) => plane.client.all('listRunTriggers', { params: { run_id } });
async function listTriggers(run_id: string) {
  const found = [];
  for await (const trigger of triggersOf(run_id)) found.push(trigger);
  return found;
}
const regionOf = (page: Page) => page.getByRole('region', { name: 'Time triggers', exact: true });
const rowOf = (region: Locator, text: string) => region.getByRole('listitem').filter({ hasText: text });

async function openDialog(page: Page): Promise<Locator> {
  await regionOf(page).getByRole('button', { name: 'Add trigger…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Recipient').waitFor();
  return dialog;
}

const save = async (dialog: Locator) => {
  await dialog.getByRole('button', { name: 'Add trigger', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
};

/** A local time in UTC with seconds, which are not 0 because the browser would leave them out. */
function localTime(ms: number): string {
  const text = new Date(ms).toISOString().slice(0, 19);
  return text.endsWith(':00') ? localTime(ms + 1000) : text;
}

browserTest('a person adds triggers of each kind, sees their next times, and deletes one', async () => {
  const { page, errors, foreign_requests } = await browser.open(plane);
  const { run_id, team_id, path } = await startRun('later');
  await signIn(page, plane);
  await page.goto(plane.url + path);
  const region = regionOf(page);
  await region.getByText(/^No triggers yet/).waitFor();

  let dialog = await openDialog(page);
  await dialog.getByLabel('Recipient').selectOption('ann');
  await dialog.getByRole('button', { name: 'At an interval' }).click();
  await dialog.getByLabel('Every').fill('2');
  await dialog.getByLabel('Unit').selectOption('hours');
  const times = dialog.getByRole('region', { name: 'Next times' }).getByRole('listitem');
  await expect.poll(() => times.count()).toBe(3);
  await times.last().getByText('in 6h').or(times.last().getByText('in 5h')).waitFor();
  await dialog.getByLabel('Message').fill('Look at the build');
  await save(dialog);
  await rowOf(region, 'every 2 hours').getByText('Look at the build').waitFor();

  dialog = await openDialog(page);
  await dialog.getByLabel('Recipient').selectOption('bob');
  await dialog.getByRole('button', { name: 'Cron' }).click();
  await dialog.getByLabel('Cron pattern').fill('30 9 * * 1-5');
  await dialog.getByRole('combobox', { name: 'Time zone' }).fill('Asia/Kolkata');
  await expect.poll(() => times.count()).toBe(3);
  await dialog.getByLabel('Message').fill('Stand up');
  await save(dialog);
  const cron = rowOf(region, 'Stand up');
  await cron.getByText('weekdays at 09:30, Asia/Kolkata').waitFor();
  expect(
    (await listTriggers(run_id)).map(({ actor_id, every_seconds, cron, timezone, payload }) => ({
      ...{ actor_id, every_seconds, cron, timezone, payload },
    })),
  ).toEqual([
    {
      ...{ actor_id: `bob@${team_id}`, every_seconds: null, cron: '30 9 * * 1-5' },
      ...{ timezone: 'Asia/Kolkata', payload: { text: 'Stand up' } },
    },
    {
      ...{ actor_id: `ann@${team_id}`, every_seconds: 7200, cron: null },
      ...{ timezone: null, payload: { text: 'Look at the build' } },
    },
  ]);

  // A pattern without a short text is shown as it is.
  const body = { run_id, cron: '*/7 3 * 1,6 *', payload: { text: 'Rare' } };
  await plane.client.call('setTrigger', { params: { actor_id: me }, body });
  await page.reload();
  await rowOf(region, 'Rare').locator('code').getByText('*/7 3 * 1,6 *').waitFor();

  await cron.getByRole('button', { name: 'Delete the trigger of bob' }).click();
  const confirm = page.getByRole('dialog', { name: 'Delete this trigger?' });
  await confirm.getByText('Stand up').waitFor();
  await confirm.getByRole('button', { name: 'Delete trigger' }).click();
  // Rows behind an open dialog have no role.
  await confirm.waitFor({ state: 'detached' });
  await cron.waitFor({ state: 'detached' });
  expect((await listTriggers(run_id)).map(({ payload }) => payload.text)).toEqual([
    'Rare',
    'Look at the build',
  ]);

  // The triggers end with the run.
  await plane.client.call('cancelRun', { params: { team_id, run_id } });
  await region.waitFor({ state: 'detached' });
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

browserTest('the dialog focuses its first field, also if its code arrives after it', async () => {
  const { page, errors } = await browser.open(plane, { separate: true });
  const { path } = await startRun('focuses');
  await signIn(page, plane);
  await page.goto(plane.url + path);
  await page.route('**/assets/add-trigger-*', async (route) => {
    await page.getByRole('dialog').locator('[aria-label=Close]:focus').waitFor();
    await route.continue();
  });
  const opener = regionOf(page).getByRole('button', { name: 'Add trigger…' });
  for (const _ of ['loaded now', 'loaded before']) {
    await opener.press('Enter');
    await page.getByLabel('Time', { exact: true }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Escape');
    await opener.and(page.locator(':focus')).waitFor();
  }
  expect(errors).toEqual([]);
});

browserTest(
  "a trigger that fires once leaves the list, and its mail arrives in the user's inbox",
  { timeout: 240_000 },
  async () => {
    const { page, errors } = await browser.open(plane);
    const { run_id, path } = await startRun('once');
    await signIn(page, plane);
    await page.goto(plane.url + path);
    const region = regionOf(page);
    // Both pages are open before the time is set, because it may not pass before both have shown the trigger.
    const mail_page = await page.context().newPage();
    await mail_page.goto(`${plane.url}/mail`);
    const own = mail_page.getByRole('region', { name: 'Your time triggers' });
    await own.waitFor();
    const dialog = await openDialog(page);
    await dialog.getByLabel('Recipient').selectOption(ROOT.username);
    await dialog.getByRole('combobox', { name: 'Time zone' }).fill('UTC');
    await dialog.getByLabel('Message').fill('Call back');
    // Long enough to save it on a slow machine.
    await dialog.getByLabel('Time', { exact: true }).fill(localTime(Date.now() + 30_000));
    await save(dialog);
    const row = rowOf(region, 'Call back');
    await row.getByText('once', { exact: true }).waitFor();

    const link = rowOf(own, 'Call back').getByRole('link', { name: 'once · run 1' });
    await expect
      .poll(async () => {
        // The page reads the triggers again when the user returns to it.
        await mail_page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
        return link.isVisible();
      })
      .toBe(true);
    expect(await link.getAttribute('href')).toBe(path);

    await row.waitFor({ state: 'detached', timeout: FIRES_MS });
    const mailbox = page.getByRole('region', { name: 'Mailbox' });
    await rowOf(mailbox, 'Call back').waitFor();
    await rowOf(own, 'Call back').waitFor({ state: 'detached', timeout: FIRES_MS });
    await mail_page.locator('[data-row]').filter({ hasText: 'Call back' }).waitFor();
    expect(await listTriggers(run_id)).toEqual([]);
    expect(errors).toEqual([]);
  },
);

longBrowserTest('a user schedules mail only for themselves and for members without an agent', async () => {
  const ada = { username: 'ada', password: 'correct horse battery' };
  await plane.client.call('createUser', { body: ada });
  const { token } = await new Client({ url: plane.url, token: null }).call('login', { body: ada });
  const agent = { command: 'true', workdir: plane.work };
  const spec = { leader_member_id: 'ann', members: [{ member_id: 'ann' }, { member_id: 'robot', agent }] };
  const team = { name: 'mixed', human_members: [ada.username], spec };
  const { id: team_id } = await plane.client.call('createTeam', { body: team as never });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  for (const member of ['ann', 'robot']) {
    const params = { actor_id: `${member}@${team_id}` };
    const body = { run_id, every_seconds: 3600, payload: { text: `For ${member}` } };
    await plane.client.call('setTrigger', { params, body });
  }
  const { page } = await browser.open(plane, { separate: true });
  await signIn(page, plane, { token });
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  const region = regionOf(page);
  await rowOf(region, 'For robot').waitFor();
  await rowOf(region, 'For ann').getByRole('button', { name: 'Delete the trigger of ann' }).waitFor();
  expect(await rowOf(region, 'For robot').getByRole('button').count()).toBe(0);
  const dialog = await openDialog(page);
  const choices = dialog.getByLabel('Recipient').locator('option');
  expect(await choices.allTextContents()).toEqual(['ada', 'ann']);
  await dialog.getByRole('button', { name: 'At an interval' }).click();
  await dialog.getByLabel('Message').fill('For me');
  await save(dialog);
  await rowOf(region, 'For me').getByText('every 15 minutes').waitFor();
});

longBrowserTest('refused input is explained at its field', async () => {
  const { page } = await browser.open(plane);
  const { run_id, path } = await startRun('refuses');
  await signIn(page, plane);
  await page.goto(plane.url + path);
  const dialog = await openDialog(page);
  const add = dialog.getByRole('button', { name: 'Add trigger', exact: true });
  /** The error that the field refers to. */
  const errorOf = async (field: Locator): Promise<string | undefined> => {
    const ids = ((await field.getAttribute('aria-describedby')) ?? '').split(' ');
    const id = ids.find((one) => one.endsWith('-error'));
    return id === undefined ? undefined : await page.locator(`[id="${id}"]`).innerText();
  };
  const expectError = (field: Locator, text: string | undefined) =>
    expect.poll(() => errorOf(field)).toBe(text);
  const time = dialog.getByLabel('Time', { exact: true });
  const message = dialog.getByLabel('Message');
  await add.click();
  await expectError(time, 'Choose a date and a time.');
  await expectError(message, 'Enter a message.');
  await time.fill('2020-01-31T09:00');
  await expectError(time, 'Choose a time in the future.');
  await message.fill('x');
  await expectError(message, undefined);

  await dialog.getByRole('button', { name: 'At an interval' }).click();
  await dialog.getByLabel('Every').fill('5');
  await dialog.getByLabel('Unit').selectOption('seconds');
  await expectError(dialog.getByLabel('Every'), 'Enter at least 10 seconds.');

  await dialog.getByRole('button', { name: 'Cron' }).click();
  const cron = dialog.getByLabel('Cron pattern');
  await cron.fill('soon');
  await expectError(cron, 'Enter five fields: minute, hour, day of the month, month, and day of the week.');
  await cron.fill('0 9 * * *');
  const zone = dialog.getByRole('combobox', { name: 'Time zone' });
  await zone.fill('Mars');
  await expectError(zone, 'No time zone has this name. Choose one from the list, for example Europe/Berlin.');
  expect(await listTriggers(run_id)).toEqual([]);

  // What only the service refuses is explained at its field too.
  await zone.fill('UTC');
  await message.fill('x'.repeat(70_000));
  await add.click();
  await expectError(message, 'payload is too large');
});

longBrowserTest(
  'axe finds no problem with triggers, light and dark, on a desktop and a narrow phone',
  async () => {
    const { page } = await browser.open(plane, { separate: true });
    const { run_id, path } = await startRun('seen');
    const params = { actor_id: me };
    const text = `https://example.org/${'a'.repeat(200)}`;
    for (const when of [
      { every_seconds: 3600 },
      { cron: '*/7 3 1-7 1,6 *', timezone: 'America/Argentina/Buenos_Aires' },
    ])
      await plane.client.call('setTrigger', { params, body: { run_id, ...when, payload: { text } } });
    const variants: Variant[] = [
      { colorScheme: 'light', width: 1280, rules: RULES },
      { colorScheme: 'dark', width: 360, rules: RULES },
      { colorScheme: 'dark', width: 1280, rules: COLOR_RULES },
      { colorScheme: 'light', width: 360, rules: COLOR_RULES },
    ];
    await signIn(page, plane);
    await page.goto(`${plane.url}/mail`);
    await preparePage(page);
    await page.getByRole('region', { name: 'Your time triggers' }).getByText('every hour').waitFor();
    expect(await problemsOf(page, variants), 'mail').toEqual({});

    await page.goto(plane.url + path);
    await preparePage(page);
    const region = regionOf(page);
    await region.getByText('every hour').waitFor();
    expect(await problemsOf(page, variants), 'run').toEqual({});
    await region
      .getByRole('button', { name: /^Delete the trigger/ })
      .first()
      .click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete trigger' }).waitFor();
    expect(await problemsOf(page, variants), 'delete').toEqual({});
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    const dialog = await openDialog(page);
    await dialog.getByRole('button', { name: 'Cron' }).click();
    await dialog.getByRole('region', { name: 'Next times' }).waitFor();
    await dialog.getByRole('button', { name: 'Add trigger', exact: true }).click();
    await dialog.getByText('Enter a message.').waitFor();
    expect(await problemsOf(page, variants), 'add').toEqual({});
  },
);
