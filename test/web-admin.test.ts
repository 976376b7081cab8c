/**
 * Administration and account pages in a real browser: users, the audit log, tokens, devices, live settings, renewal of the
 * session, and the API explorer. Errors of the service appear next to the field or action that they are about.
 */
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { Client } from '../src/client/client.ts';
import { browserTest, longBrowserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';
import { SESSION_KEY } from '../src/web/api/session-key.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

/** A page of a user, with its own sign-in. */
async function pageOf({ username, password } = ROOT): Promise<{ page: Page; token: string }> {
  const { token } = await new Client({ url: plane.url }).call('login', { body: { username, password } });
  const { page } = await browser.open(plane);
  await signIn(page, plane, { token });
  return { page, token };
}

const storedToken = async (page: Page): Promise<string> =>
  JSON.parse((await page.evaluate(`localStorage.getItem('${SESSION_KEY}')`)) as string).token;
const alter = (page: Page, change: string) =>
  page.evaluate(
    `localStorage.setItem('${SESSION_KEY}', JSON.stringify({ ...JSON.parse(localStorage.getItem('${SESSION_KEY}')), ${change} }))`,
  );
/** In pages opened from now on, changes by other tabs are visible with a delay, as between processes. */
const delayStorage = (page: Page) =>
  page.addInitScript(`{
    const { getItem } = Storage.prototype;
    let seen;
    let changed_at = null;
    Storage.prototype.getItem = function (key) {
      const now = getItem.call(this, key);
      if (key !== '${SESSION_KEY}') return now;
      seen ??= now;
      if (now !== seen) changed_at ??= performance.now();
      if (changed_at !== null && performance.now() - changed_at > 200) [seen, changed_at] = [now, null];
      return seen;
    };
  }`);
const slow = { timeout: 30_000 };

browserTest('root creates and changes users, and errors appear next to their fields', async () => {
  const { page } = await pageOf();
  await page.goto(`${plane.url}/users`);
  await page.getByRole('button', { name: 'New user' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Username').fill('Léo');
  await dialog.getByLabel('Password').fill('short');
  await dialog.getByRole('button', { name: 'Create user' }).click();
  await dialog.getByText('username must be 1 to 64 characters from a-z, 0-9, ".", "_" and "-"').waitFor();
  await dialog.getByLabel('Username').fill('leo');
  await dialog.getByRole('button', { name: 'Create user' }).click();
  await dialog.getByText('password must be at least 12 characters').waitFor();
  expect(await dialog.getByLabel('Password').getAttribute('aria-invalid')).toBe('true');
  expect(await dialog.getByLabel('Username').inputValue()).toBe('leo');
  await dialog.getByLabel('Password').fill('a long enough one');
  await dialog.getByRole('button', { name: 'Create user' }).click();
  await page.getByRole('row', { name: /^leo user/ }).waitFor();

  const act = async (user: string, item: string) => {
    await page.getByRole('button', { name: `Actions for ${user}` }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await act('leo', 'Rename');
  await dialog.getByLabel('Username').fill('leonie');
  await dialog.getByRole('button', { name: 'Rename' }).click();
  await act('leonie', 'Make root');
  await dialog.getByRole('button', { name: 'Make root' }).click();
  await page.getByRole('row', { name: /^leonie root/ }).waitFor();
  await act('leonie', 'Set password');
  await dialog.getByLabel('Password').fill('another long one');
  await dialog.getByRole('button', { name: 'Set password' }).click();
  await dialog.waitFor({ state: 'detached' });
  const { user } = await new Client({ url: plane.url }).call('login', {
    body: { username: 'leonie', password: 'another long one' },
  });
  expect(user.role).toBe('root');
  await act('leonie', 'Delete');
  await dialog.getByRole('button', { name: 'Delete user' }).click();
  await page.getByRole('row', { name: /^leonie/ }).waitFor({ state: 'detached' });

  await act('ana', 'Make regular user');
  await dialog.getByRole('button', { name: 'Make regular user' }).click();
  await dialog.getByText('the last root user can be neither deleted nor demoted').waitFor();
  // Her role and her sign-in are unchanged.
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('row', { name: /^ana.* root/ }).waitFor();
});

browserTest('pages for root are neither linked nor shown for other users', async () => {
  const body = { username: 'mia', password: 'mia has a password', role: 'user' as const };
  await plane.client.call('createUser', { body });
  const { page } = await pageOf(body);
  for (const path of ['/users', '/audit', '/settings/config']) {
    await page.goto(plane.url + path);
    await page.getByText('root required').waitFor();
  }
  const offered = await page.getByRole('navigation').getByRole('link').allTextContents();
  expect(offered).toContain('Agents');
  expect(offered.filter((name) => /Nodes|Users|Audit|Configuration/.test(name))).toEqual([]);
});

longBrowserTest(
  'the audit log takes its filter from the URL, updates live, and exports the filtered records',
  async () => {
    const agents = [];
    for (let at = 0; at < 230; at++)
      agents.push(await plane.create({ name: `quiet-${at}`, command: 'true', start: false }));
    const { page } = await pageOf();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(`${plane.url}/audit?event=agent_created`);
    const list = page.getByRole('list', { name: 'Audit records' });
    await list.getByText('created agent quiet-229').waitFor();
    expect(await list.getByText('user_created').count()).toBe(0);

    // New records appear at the top without a reload.
    await plane.create({ name: 'newcomer', command: 'true', start: false });
    await list.getByText('created agent newcomer').waitFor();

    // Scrolling reaches the oldest of 231 records, and they are never all rendered at once.
    const oldest = list.getByText(/created agent quiet-0$/);
    await expect
      .poll(async () => {
        await list.hover();
        await page.mouse.wheel(0, 3000);
        return oldest.count();
      }, slow)
      .toBe(1);
    expect(await list.getByRole('listitem').count()).toBeLessThan(80);

    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export NDJSON' }).click();
    const lines = (await readFile(await (await saving).path(), 'utf8')).trimEnd().split('\n');
    const records = lines.map((line) => JSON.parse(line) as { event: string; agent_id: string });
    expect(records.length).toBe(231);
    expect(new Set(records.map(({ event }) => event))).toEqual(new Set(['agent_created']));
    expect(records.at(-1)!.agent_id).toBe(agents[0]!.id);
    const token = await storedToken(page);
    expect(requests.filter((url) => url.includes(token))).toEqual([]);

    await page.getByRole('combobox', { name: 'Event' }).selectOption('user_created');
    await page.waitForURL(/event=user_created/);
    const row = list.getByRole('button', { name: /created user|joined as the first user/ }).first();
    await row.click();
    await list.getByText('"event": "user_created"', { exact: false }).waitFor();
    await page.reload();
    await row.waitFor();
    expect(await page.getByRole('combobox', { name: 'Event' }).inputValue()).toBe('user_created');

    // An agent is found by its name, and the time by a period.
    await page.getByRole('button', { name: 'Clear filter' }).click();
    await page.getByRole('combobox', { name: 'Agent' }).fill('newcom');
    await page.getByRole('option', { name: /newcomer/ }).click();
    await page.waitForURL(/agent_id=agt_/);
    await list.getByText('created agent newcomer').waitFor();
    await list.getByText(/created agent quiet-/).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Clear filter' }).click();
    await page.waitForURL((url) => !url.search.includes('agent_id'));
    await page.getByRole('combobox', { name: 'Agent' }).fill('NEWCO');
    await page.getByRole('combobox', { name: 'Event' }).focus();
    await page.waitForURL(/agent_id=agt_/);
    await page.getByRole('button', { name: '15 min' }).click();
    await page.waitForURL(/last=15m/);
    await list.getByText('created agent newcomer').waitFor();
    await page.getByRole('button', { name: 'Custom' }).click();
    await page.getByLabel('To').fill('2001-01-01T00:00');
    await page.getByText('No records match this filter.').waitFor();
    await page.getByLabel('To').focus();
    for (const key of ['ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
    await page.keyboard.type('2024');
    await page.waitForURL(/until=2024-01-01T00:00|until=2024-01-01T00%3A00/);
    expect(await page.getByLabel('To').inputValue()).toBe('2024-01-01T00:00');
    // An incomplete time is no time, and its field stays.
    await page.reload();
    await page.getByLabel('To').focus();
    await page.keyboard.press('Backspace');
    await page.waitForURL((url) => !url.search.includes('until'));
    await page.getByLabel('To').waitFor();
  },
);

browserTest(
  'the audit log shows each minute once, and nothing moves when a newer record takes it',
  async () => {
    const { page } = await browser.open(plane, { screen: 'phone', time_zone: 'UTC' });
    await signIn(page, plane);
    const record = (id: number, time: string) => ({
      ...{ id, timestamp: `2026-11-22T${time}Z`, level: 'info', event: 'user_login', user_id: null },
      ...{ agent_id: null, ip: null, details: { username: 'somebody with a name of two lines' } },
    });
    let items = [record(4, '10:31:07'), record(3, '10:31:05'), record(2, '10:30:59')];
    await page.route(/\/api\/.*audit/, (route) => route.fulfill({ json: { items } }));
    await page.goto(`${plane.url}/audit`);
    const list = page.getByRole('list', { name: 'Audit records' });
    const times = () =>
      list.locator('li time[title]').evaluateAll((all) =>
        all.map((time) => ({
          text: time.textContent!.replace(/\s/g, ' '),
          title: time.getAttribute('title')!.replace(/\s/g, ' '),
          visible: time.ownerDocument.defaultView!.getComputedStyle(time).opacity === '1',
          height: time.closest('li')!.clientHeight,
        })),
      );
    await expect.poll(async () => (await times()).length).toBe(3);
    const before = await times();
    expect(before).toMatchObject([
      { text: '10:31 AM', title: '11/22/2026, 10:31:07 AM', visible: true },
      { text: '10:31 AM', title: '11/22/2026, 10:31:05 AM', visible: false },
      { text: '10:30 AM', title: '11/22/2026, 10:30:59 AM', visible: true },
    ]);
    // Screen readers get the time of each row.
    expect(await list.ariaSnapshot()).toMatch(/10:31 AM.*10:31 AM.*10:30 AM/s);

    items = [record(5, '10:31:40'), ...items];
    await expect.poll(async () => (await times()).length, slow).toBe(4);
    const after = await times();
    expect(after.map(({ visible }) => visible)).toEqual([true, false, false, true]);
    expect(after.slice(1).map(({ height }) => height)).toEqual(before.map(({ height }) => height));
  },
);

browserTest('the filter of the audit log tells agents with the same name apart', async () => {
  const twins = ['', ''];
  for (const at of [0, 1]) {
    const { id } = await plane.create({ name: 'twin', command: 'true', start: false });
    twins[at] = id;
  }
  const { page } = await pageOf();
  await page.goto(`${plane.url}/audit`);
  const agent = page.getByRole('combobox', { name: 'Agent' });
  const chosen = () => new URL(page.url()).searchParams.get('agent_id');
  const user = page.getByRole('combobox', { name: 'User' });
  for (const [at, id] of twins.entries()) {
    await agent.click();
    await page.getByRole('option', { name: id }).click();
    await expect.poll(chosen, slow).toBe(id);
    await page.getByRole('combobox', { name: 'Event' }).selectOption(at === 0 ? 'agent_created' : '');
    await page.waitForURL((url) => url.searchParams.has('event') === (at === 0));
    expect(chosen()).toBe(id);
    await agent.press('End');
    await page.keyboard.type('s');
    await page.keyboard.press('Backspace');
    await user.focus();
    expect([await agent.inputValue(), chosen()]).toEqual([`twin (${id})`, id]);
  }

  // The name alone chooses neither: the list offers both, and the filter stays as it is.
  await agent.fill('twin');
  await agent.press('Enter');
  const offered = page.getByRole('listbox', { name: 'Agents' }).getByRole('option');
  await expect.poll(() => offered.count()).toBe(2);
  expect(chosen()).toBe(twins[1]);
  await user.focus();
  expect([await agent.inputValue(), chosen()]).toEqual([`twin (${twins[1]})`, twins[1]]);
});

browserTest('the audit log names agents that were deleted in all their records', async () => {
  const { id } = await plane.agent('true', { name: 'short-lived' });
  await plane.client.call('deleteAgent', { params: { agent_id: id }, query: { force: true } });
  const { page } = await pageOf();
  // The shown records do not contain the name.
  await page.goto(`${plane.url}/audit?event=agent_started&agent_id=${id}`);
  const list = page.getByRole('list', { name: 'Audit records' });
  await list.getByText('started agent short-lived').waitFor();
});

browserTest('root can verify the audit log, and sees which record breaks the chain', async () => {
  const { page } = await pageOf();
  await page.goto(`${plane.url}/audit`);
  await page.getByRole('button', { name: 'Verify log' }).click();
  const found = page.getByRole('status').filter({ hasText: 'head' });
  await found.getByText(/Verified to #\d+, \d+ s ago/).waitFor();
  const verdict = { records: 3, broken_id: 4, head: '0'.repeat(64), holds_head: null };
  await page.route('**/api/admin/audit/verify', (route) => route.fulfill({ json: verdict }));
  await page.getByRole('button', { name: 'Verify again' }).click();
  await found
    .getByText('Record #4 was changed, or records before it are missing.', { exact: false })
    .waitFor();
});

browserTest(
  'an API token is shown once, has the chosen scopes, and stops working when it is deleted',
  async () => {
    const { page } = await pageOf();
    await page.goto(`${plane.url}/settings/tokens`);
    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('backup');
    expect(await dialog.getByLabel('admin').isChecked()).toBe(false);
    for (const scope of ['operate', 'manage', 'metrics']) await dialog.getByLabel(scope).uncheck();
    await dialog.getByRole('button', { name: 'Create token' }).click();
    const shown = page.getByRole('status').filter({ hasText: 'never shown again' });
    const token = (await shown.locator('code').textContent())!;
    const program = new Client({ url: plane.url, token });
    expect((await program.call('getMe')).username).toBe(ROOT.username);
    const body = { name: 'made', workdir: plane.work, command: 'true' };
    await expect(program.call('createAgent', { body })).rejects.toThrow('token lacks scope manage');
    const agent = await plane.create({ command: 'true' });
    const narrow = await plane.client.call('createToken', {
      body: { name: 'narrow', agent_ids: [agent.id] },
    });
    await page.reload();
    await page.getByRole('listitem').filter({ hasText: 'backup' }).getByText('read · created').waitFor();
    await page
      .getByRole('listitem')
      .filter({ hasText: 'narrow' })
      .getByText(`limited to agent ${agent.name}`)
      .waitFor();
    await plane.client.call('deleteToken', { params: { token_id: narrow.id } });
    expect(await page.content()).not.toContain(token);
    await page.getByRole('button', { name: 'Revoke backup' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click();
    await page.getByText('No API tokens yet.').waitFor();
    await expect(program.call('getMe')).rejects.toThrow('invalid token');
  },
);

browserTest('an API token can be limited to selected agents and teams', async () => {
  const picked = await plane.create({ name: 'picked', command: 'true' });
  const other = await plane.create({ name: 'other', command: 'true' });
  const team = await plane.client.call('createTeam', {
    body: { name: 'release', spec: { members: [{ member_id: 'hand' }] } },
  });
  const { page } = await pageOf();
  await page.goto(`${plane.url}/settings/tokens`);
  await page.getByRole('button', { name: 'New token' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('limited');
  await dialog.getByLabel('metrics').waitFor();
  await dialog.getByLabel('Only certain agents or teams').check();
  // Scopes that only root may grant do not apply to agents.
  expect(await dialog.getByLabel('metrics').count()).toBe(0);
  await dialog.getByRole('button', { name: 'Create token' }).click();
  await dialog.getByText('Choose at least one agent or team.').waitFor();
  await dialog.getByLabel('release team').check();
  await dialog.getByLabel('Find agents and teams').fill('pick');
  await dialog.getByLabel('picked agent').check();
  await dialog.getByRole('button', { name: 'Create token' }).click();
  const shown = page.getByRole('status').filter({ hasText: 'never shown again' });
  const program = new Client({ url: plane.url, token: (await shown.locator('code').textContent())! });
  expect((await program.call('getAgent', { params: { agent_id: picked.id } })).id).toBe(picked.id);
  expect((await program.call('getTeam', { params: { team_id: team.id } })).id).toBe(team.id);
  await expect(program.call('getAgent', { params: { agent_id: other.id } })).rejects.toThrow(
    'agent not found',
  );
  const row = page.getByRole('listitem').filter({ hasText: 'limited' });
  await row.getByText('read, operate, manage · limited to team release, agent picked').waitFor();
  await page.getByRole('button', { name: 'Revoke limited' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click();
  await page.getByText('No API tokens yet.').waitFor();
});

browserTest('signing out everywhere else keeps this device signed in', async () => {
  const noa = { username: 'noa', password: 'noa has a password' };
  await plane.client.call('createUser', { body: noa });
  const elsewhere = await pageOf(noa);
  const { page, token } = await pageOf(noa);
  await page.goto(`${plane.url}/settings/devices`);
  await page.getByText('This device').waitFor();
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click();
  await expect.poll(() => page.getByRole('listitem').filter({ hasText: 'signed in' }).count(), slow).toBe(1);
  await expect(new Client({ url: plane.url, token: elsewhere.token }).call('getMe')).rejects.toThrow(
    'invalid',
  );
  expect((await new Client({ url: plane.url, token }).call('getMe')).username).toBe('noa');
});

browserTest(
  'a wrong current password shows an error and ends no session, and signing out ends the token',
  async () => {
    const { page, token } = await pageOf();
    await page.goto(`${plane.url}/settings/account`);
    await page.getByLabel('Current password').fill('not this one');
    await page.getByLabel('New password').fill('some other password');
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.getByText('invalid username or password').waitFor();
    expect(await page.getByLabel('New password').inputValue()).toBe('some other password');
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.waitForURL(/\/login/);
    await expect(new Client({ url: plane.url, token }).call('getMe')).rejects.toThrow('invalid token');
  },
);

browserTest(
  'a live setting can be changed and reset, and an invalid value shows the service’s error',
  async () => {
    const { page } = await pageOf();
    await page.goto(`${plane.url}/settings/config`);
    const setting = page.getByRole('listitem').filter({ hasText: 'auth.min_password_length' });
    await setting.getByText('default').waitFor();
    await setting.getByRole('button', { name: /^Edit/ }).click();
    await setting.getByLabel(/New value/).fill('many');
    await setting.getByRole('button', { name: 'Save' }).click();
    await setting.getByText(/auth\.min_password_length must be an integer/).waitFor();
    await setting.getByLabel(/New value/).fill('14');
    await setting.getByRole('button', { name: 'Save' }).click();
    await setting.getByText('live', { exact: true }).waitFor();
    const value = async () =>
      (await plane.client.call('getConfig')).find(({ key }) => key === 'auth.min_password_length')?.value;
    expect(await value()).toBe(14);
    await setting.getByRole('button', { name: /^Edit/ }).click();
    await setting.getByRole('button', { name: 'Reset' }).click();
    await setting.getByText('default', { exact: true }).waitFor();
    expect(await value()).toBe(12);
    const fixed = page.getByRole('listitem').filter({ hasText: 'data_dir' }).first();
    expect(await fixed.getByRole('button').count()).toBe(0);
  },
);

longBrowserTest('a token is renewed after half of its lifetime, once for all tabs', async () => {
  const { page, token } = await pageOf();
  await alter(page, 'since: Date.now() - 8 * 3600_000, expires_at: Date.now() + 4 * 3600_000');
  const second = await page.context().newPage();
  await delayStorage(second);
  const renewals: string[] = [];
  page.context().on('response', (response) => {
    if (response.url().endsWith('/api/token/refresh')) renewals.push(String(response.status()));
  });
  await Promise.all([page.goto(`${plane.url}/users`), second.goto(`${plane.url}/settings/devices`)]);
  await expect.poll(() => storedToken(page), slow).not.toBe(token);
  for (const each of [page, second]) {
    await each.getByRole('link', { name: 'API', exact: true }).click();
    await each.getByRole('link', { name: /^Create a user/ }).waitFor();
  }
  expect(renewals).toEqual(['200']);
  await expect(new Client({ url: plane.url, token }).call('getMe')).rejects.toThrow('invalid token');
  await page.reload();
  await page.getByRole('link', { name: /^Create a user/ }).waitFor();
});

browserTest(
  'before a session finally expires, a dialog asks for the password without leaving the page',
  async () => {
    const { page, token } = await pageOf();
    await alter(page, 'last: true, since: Date.now() - 3600_000, expires_at: Date.now() + 5 * 60_000');
    await page.goto(`${plane.url}/settings/account`);
    const dialog = page.getByRole('dialog', { name: 'Stay signed in?' });
    await dialog.getByLabel(`Password for ${ROOT.username}`).fill('not this one');
    await dialog.getByRole('button', { name: 'Stay signed in' }).click();
    await dialog.getByText('invalid username or password').waitFor();
    await dialog.getByLabel(`Password for ${ROOT.username}`).fill(ROOT.password);
    await dialog.getByRole('button', { name: 'Stay signed in' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await storedToken(page)).not.toBe(token);
    expect(new URL(page.url()).pathname).toBe('/settings/account');
  },
);

browserTest(
  'a tab in which another user is signed in now keeps nothing that the first one has read',
  async () => {
    const { page } = await pageOf();
    const nadia = { username: 'nadia', password: 'a long enough one' };
    await plane.client.call('createUser', { body: { ...nadia, role: 'user' } });
    await page.goto(`${plane.url}/settings/account`);
    await page.getByLabel('Current password').fill('half');
    const { token, user } = await new Client({ url: plane.url }).call('login', { body: nadia });
    await alter(page, `token: '${token}', user: ${JSON.stringify(user)}`);
    await page.evaluate('window.before = true');
    // As if this tab had been suspended while the first user signed out and the other one signed in.
    await page.evaluate(`dispatchEvent(new StorageEvent('storage', { key: '${SESSION_KEY}' }))`);
    await page.waitForFunction('window.before === undefined');
    expect(await page.getByLabel('Current password').inputValue()).toBe('');
    await page.getByText('nadia', { exact: true }).first().waitFor();
  },
);

browserTest('while the user types, a bar says that the session ends, and takes no focus', async () => {
  const { page } = await pageOf();
  await page.goto(`${plane.url}/settings/account`);
  const field = page.getByLabel('Current password');
  await field.pressSequentially('half');
  await alter(page, 'last: true, since: Date.now() - 3600_000, expires_at: Date.now() + 5 * 60_000');
  // As if another tab had stored it.
  await page.evaluate(`dispatchEvent(new StorageEvent('storage', { key: '${SESSION_KEY}' }))`);
  const bar = page.getByRole('alert').filter({ hasText: 'Your session ends at' });
  await bar.waitFor();
  await page.keyboard.type(' done');
  expect(await field.inputValue()).toBe('half done');
  await bar.getByRole('button', { name: 'Stay signed in' }).click();
  const dialog = page.getByRole('dialog', { name: 'Stay signed in?' });
  await dialog.getByLabel(`Password for ${ROOT.username}`).fill(ROOT.password);
  await dialog.getByRole('button', { name: 'Stay signed in' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await bar.count()).toBe(0);
  expect(await field.inputValue()).toBe('half done');
});

longBrowserTest(
  'the API explorer sends requests with the session’s token, and shows a stream live until it is stopped',
  async () => {
    const { page } = await pageOf();
    await page.goto(`${plane.url}/docs?operation=createAgent`);
    const body = JSON.stringify({
      name: '<img src=x onerror=alert(1)>',
      command: 'true',
      workdir: plane.work,
    });
    await page.getByLabel('Body (JSON)').fill('{');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Body (JSON)').fill(body);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('201 Created').waitFor();
    const answer = page.getByRole('region', { name: 'Response' });
    const { id } = JSON.parse((await answer.textContent())!) as { id: string };
    expect(await page.locator('main img').count()).toBe(0);

    await page.getByRole('link', { name: /GET \/api\/agents\/\{agent_id\}$/ }).click();
    await page.getByLabel('agent_id').fill('agt_nobody');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('404 Not Found').waitFor();
    await answer.getByText('agent not found').waitFor();

    await page.goto(`${plane.url}/docs?operation=followAgent`);
    await page.getByLabel('agent_id').fill(id);
    await page.getByRole('button', { name: 'Send' }).click();
    await answer.getByText('retry: 1000').waitFor();
    await plane.client.call('startAgent', { params: { agent_id: id } });
    await answer
      .getByText('event: exit', { exact: false })
      .or(answer.getByText('completed'))
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped.').waitFor();
    // A filled-in form keeps its values.
    await page
      .getByRole('link', { name: /the caller/ })
      .first()
      .click();
    await page.goBack();
    await expect.poll(() => page.getByLabel('agent_id').inputValue(), slow).toBe(id);
  },
);
