/** The page of one run in a browser: to whom its mail goes, and where the focus goes when its requests are answered. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

/** A run whose members have no agents, each with a step of the same name. */
async function startRun(name: string, members: readonly string[]) {
  const spec = {
    leader_member_id: members[0],
    members: members.map((member_id) => ({ member_id, executor: 'human' })),
    steps: members.map((member_id) => ({ step_key: member_id, member_id })),
  };
  const { id: team_id } = await plane.client.call('createTeam', { body: { name, spec } as never });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  return { team_id, run_id };
}

type Run = Awaited<ReturnType<typeof startRun>>;

const ask = (run: Run, step_key: string) =>
  plane.client.call('requireStepInput', { params: { ...run, step_key }, body: { reason: `${step_key}?` } });

async function openRun({ team_id, run_id }: Run): Promise<Page> {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/teams/${team_id}/runs/${run_id}`);
  return page;
}

const requestOf = (page: Page, step_key: string) =>
  page.getByRole('region', { name: 'Pending requests' }).getByRole('article', { name: `${step_key}?` });

browserTest('mail goes to the member that the page shows, until the user chooses another', async () => {
  const run = await startRun('writes', ['ann', 'bob', 'cid']);
  const page = await openRun(run);
  const mailbox = page.getByRole('region', { name: 'Mailbox' });
  const receiver = mailbox.getByLabel('To', { exact: true });
  const receives = (member_id: string) =>
    expect.poll(() => receiver.inputValue()).toBe(`${member_id}@${run.team_id}`);
  await receives('ann');
  await page.getByRole('tab', { name: 'bob' }).click();
  await receives('bob');
  // If the sender is the member that the page shows, the mail goes to another.
  await mailbox.getByLabel('From').selectOption('bob');
  await receives('ann');
  await receiver.selectOption('cid');
  await page.getByRole('tab', { name: 'ann' }).click();
  await page.getByRole('region', { name: 'Member ann' }).waitFor();
  await receives('cid');
});

browserTest('the receiver of mail does not change while the user writes', async () => {
  const run = await startRun('writes on', ['ann', 'bob']);
  const page = await openRun(run);
  const mailbox = page.getByRole('region', { name: 'Mailbox' });
  await mailbox.getByLabel('Message').pressSequentially('Where is the key?');
  // The page would show a step that waits for an answer.
  await ask(run, 'bob');
  await requestOf(page, 'bob').waitFor();
  await mailbox.getByRole('button', { name: 'Send' }).click();
  await mailbox.getByRole('listitem').getByText('Where is the key?').waitFor();
  const params = { actor_id: `ann@${run.team_id}` };
  expect(await plane.client.call('listMail', { params, query: { run_id: run.run_id } })).toHaveLength(1);
});

browserTest('after an answer, the focus goes to the next request, and then to the heading', async () => {
  const run = await startRun('asks', ['ann', 'bob', 'cid']);
  for (const step_key of ['ann', 'bob', 'cid']) await ask(run, step_key);
  const page = await openRun(run);
  const isFocused = (step_key: string) => requestOf(page, step_key).and(page.locator(':focus')).waitFor();
  const heading = page.locator('h1:focus');
  await requestOf(page, 'ann').getByLabel('Answer').fill('Yes');
  await requestOf(page, 'ann').getByRole('button', { name: 'Send answer' }).press('Enter');
  await isFocused('bob');
  // What the user types while somebody else answers must not answer the next request.
  await requestOf(page, 'bob').getByLabel('Answer').fill('No');
  await plane.client.call('resumeStep', { params: { ...run, step_key: 'bob' }, body: { input: 'Yes' } });
  await heading.waitFor();
  await requestOf(page, 'cid').getByLabel('Answer').fill('Yes');
  await requestOf(page, 'cid').getByLabel('Answer').press('ControlOrMeta+Enter');
  await requestOf(page, 'cid').waitFor({ state: 'detached' });
  await heading.waitFor();
});
