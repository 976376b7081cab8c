/** Approvals in real browsers: a review is shown to everybody who may answer it, and is answered once. */
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Agent } from '../src/features/agents/rules.ts';
import type { Review } from '../src/features/reviews/rules.ts';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

/** Generous, for slow machines. */
const SOON = { timeout: 30_000 };
const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const PASSWORD = 'another correct horse';
let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterEach(async () => {
  for (const agent of (await plane.client.call('listAgents')) as never as Agent[]) {
    await plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query: { force: true } });
  }
});
afterAll(async () => {
  await plane.close();
});

const once = { optionId: 'once', name: 'Allow once', kind: 'allow_once' };
const always = { optionId: 'always', name: 'Always allow', kind: 'allow_always' };
const reject = { optionId: 'no', name: 'Reject', kind: 'reject_once' };

async function requestReview(
  title: string,
  kind = 'execute',
  options = [once, always, reject],
): Promise<Review> {
  const toolCall = { toolCallId: title, title, kind };
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([[{ toolCall, options }]])];
  const agent = await plane.agent(argv, { name: `asks ${title}`, protocol: 'acp', prompt: 'Go on' });
  await expect.poll(async () => (await plane.get(agent.id)).pending_reviews, SOON).toBe(1);
  const query = { agent_id: agent.id };
  const [review] = (await plane.client.call('listReviews', { query })) as never as [Review];
  return review;
}

async function openApprovals(more = '', options: { token?: string; screen?: 'phone' } = {}): Promise<Page> {
  const { page } = await browser.open(plane, options.screen ? { screen: options.screen } : {});
  await signIn(page, plane, options.token ? { token: options.token } : {});
  await page.goto(`${plane.url}/approvals${more}`);
  return page;
}

const waiting = (page: Page) => page.getByRole('list', { name: 'Waiting' });
const card = (page: Page, title: string) => waiting(page).getByRole('article').filter({ hasText: title });
const get = (review: Review) => plane.client.call('getReview', { params: { review_id: review.id } });

browserTest(
  'of two people who answer at the same time, one wins and the other sees who, without an error',
  async () => {
    const body = { username: 'leo', password: PASSWORD, role: 'root' as const };
    await plane.client.call('createUser', { body });
    const { token } = await plane.client.call('login', { body: { username: 'leo', password: PASSWORD } });
    const review = await requestReview('npm publish');
    const [ana, leo] = await Promise.all([openApprovals(), openApprovals('', { token })]);
    const buttons = [ana, leo].map((page) =>
      card(page, 'npm publish').getByRole('button', { name: 'Allow once' }),
    );
    for (const button of buttons) await button.waitFor();
    // Both answers are given before either is sent.
    const both_clicked = Promise.withResolvers<void>();
    let answers = 0;
    for (const page of [ana, leo]) {
      await page.route('**/api/permission-reviews/*/respond', async (route) => {
        if (++answers === 2) both_clicked.resolve();
        await both_clicked.promise;
        await route.continue();
      });
    }
    await Promise.all(buttons.map((button) => button.click()));
    await expect.poll(async () => (await get(review)).status, SOON).toBe('answered');
    const { answered_by } = await get(review);
    const [winner, other] = answered_by === 'ana' ? [ana, leo] : [leo, ana];
    await card(winner, `Allow once · ${answered_by} · waited`).waitFor();
    await card(other, `Answered by ${answered_by}: Allow once`).waitFor();
    for (const page of [ana, leo]) expect(await page.getByRole('alert').count()).toBe(0);
  },
);

browserTest('a link focuses its review, and keys move between reviews and answer them', async () => {
  const first = await requestReview('first thing');
  const second = await requestReview('second thing', 'edit');
  const page = await openApprovals(`?review=${second.id}`);
  const focused = () => page.evaluate('document.activeElement.dataset.review ?? null');
  await expect.poll(focused, SOON).toBe(second.id);
  await page.keyboard.press('k');
  await expect.poll(focused).toBe(first.id);
  await page.keyboard.press('j');
  await expect.poll(focused).toBe(second.id);
  await page.keyboard.press('3');
  await card(page, 'Reject · ana').waitFor();
  expect((await get(second)).option_id).toBe('no');
  expect((await get(first)).status).toBe('pending');
});

browserTest(
  'a review survives a reload and a restart of the plane, and is closed when its agent stops',
  async () => {
    const review = await requestReview('rm -r build');
    const page = await openApprovals();
    await card(page, 'rm -r build').waitFor();
    await plane.kill();
    await plane.start();
    await page.reload();
    const open = card(page, 'rm -r build');
    await open.getByRole('button', { name: 'Allow once' }).waitFor();
    await plane.client.call('stopAgent', {
      params: { agent_id: review.agent_id },
      body: { grace_seconds: 0 },
    });
    await card(page, 'No longer needed').waitFor();
    await page.getByText('No approvals are waiting.').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Recent decisions' }).waitFor();
    await page.getByRole('article').filter({ hasText: 'No longer needed' }).first().waitFor();
  },
);

browserTest('a review can be read while offline, with disabled buttons and the reason', async () => {
  await requestReview('npm test');
  const page = await openApprovals('', { screen: 'phone' });
  const button = card(page, 'npm test').getByRole('button', { name: 'Allow once' });
  await button.waitFor();
  await page.context().setOffline(true);
  await card(page, 'You are offline. Answer when you are back online.').waitFor();
  expect(await button.isDisabled()).toBe(true);
  await page.context().setOffline(false);
  await expect.poll(() => button.isEnabled(), SOON).toBe(true);
});

browserTest(
  'several reviews can be answered together, but only with one-time options that all of them have',
  async () => {
    const reviews = [
      await requestReview('one'),
      await requestReview('two', 'edit'),
      await requestReview('three'),
    ];
    const page = await openApprovals();
    for (const title of ['one', 'two']) await page.getByRole('checkbox', { name: `Select ${title}` }).check();
    const many = page.getByRole('region', { name: 'Answer the selected requests' });
    const names = await many.locator('bdi').evaluateAll((all) => all.map((one) => one.textContent));
    expect(names).toEqual(['Allow once', 'Reject']);
    await many.getByRole('button', { name: 'Allow once' }).click();
    await many.waitFor({ state: 'detached' });
    const statuses = await Promise.all(reviews.map(async (review) => (await get(review)).option_id));
    expect(statuses).toEqual(['once', 'once', null]);
  },
);

browserTest('filters are part of the URL, and cancelling the turn cancels its review', async () => {
  const edit = await requestReview('an edit', 'edit');
  await requestReview('a command');
  const page = await openApprovals('?kind=edit');
  await card(page, 'an edit').waitFor();
  expect(await waiting(page).getByRole('article').count()).toBe(1);
  await card(page, 'an edit').getByRole('button', { name: 'Cancel turn' }).click();
  await card(page, 'Turn cancelled · ana').waitFor();
  expect(await get(edit)).toMatchObject({ status: 'cancelled', answered_by: 'ana' });
  await page.getByLabel('Filter by kind').selectOption('');
  await card(page, 'a command').waitFor();
  expect(new URL(page.url()).search).toBe('');
});

browserTest(
  'agents that act without asking are marked on Approvals and on their page, and so are those that ask',
  async () => {
    await requestReview('a command');
    const argv = [process.execPath, scripted, 'acts_alone'];
    const { id } = await plane.agent(argv, { name: 'alone', protocol: 'acp', prompt: 'Go on' });
    await expect.poll(async () => (await plane.get(id)).asks, SOON).toBe('acts');
    const page = await openApprovals();
    await card(page, 'a command').getByText('asks before acting').waitFor();
    await page.getByText('alone acts on its own: its actions do not wait for approval.').waitFor();
    await page.getByRole('link', { name: 'alone' }).click();
    await page.getByRole('heading', { name: 'alone' }).getByText('acts on its own').waitFor();
  },
);
