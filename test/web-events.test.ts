/** The Events tab in a real browser: what happens when the log becomes shorter, a page cannot be read, or an event is missing. */
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Agent } from '../src/features/agents/rules.ts';
import { browserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

/** Generous, for slow machines. */
const SOON = { timeout: 30_000 };
const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
const LOG = /\/log\?/;
let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

/** An agent that is idle after a turn with this many messages. */
async function talker(messages: number): Promise<Agent> {
  const message = (text: string) => ({
    ...{ sessionUpdate: 'agent_message_chunk', messageId: text },
    content: { type: 'text', text },
  });
  const turns = [
    Array.from({ length: messages }, (_, n) => message(`Number ${n}.`)),
    [message('Once more.')],
  ];
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify(turns)];
  const agent = await plane.agent(argv, { protocol: 'acp', prompt: 'Begin' });
  await expect.poll(async () => (await plane.get(agent.id)).activity, SOON).toBe('idle');
  return agent;
}

async function openPage(): Promise<Page> {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  return page;
}

const list = (page: Page) => page.getByRole('region', { name: 'Events' });
const prompt = (agent: Agent) =>
  plane.client.call('promptAgent', { params: { agent_id: agent.id }, body: { text: 'More' } });

browserTest('the list starts over, and is live, after the log became shorter', async () => {
  const agent = await talker(2);
  const page = await openPage();
  // As if it had read a log that was longer than that of the backup.
  await page.route(
    LOG,
    async (route) => {
      const response = await route.fetch();
      const { items, ...more } = (await response.json()) as { items: { seq: number }[] };
      const later = items.map((event) => ({ ...event, seq: event.seq + 1000 }));
      await route.fulfill({ response, json: { ...more, items: later } });
    },
    { times: 1 },
  );
  await page.goto(`${plane.url}/agents/${agent.id}/events`);
  await list(page).getByRole('link', { name: 'Event 1', exact: true }).waitFor(SOON);
  expect(
    await list(page)
      .getByRole('link', { name: /^Event 10\d\d$/ })
      .count(),
  ).toBe(0);
  await prompt(agent);
  await list(page).getByText('Once more.').waitFor(SOON);
});

browserTest('the list stays live if older events cannot be read', async () => {
  const agent = await talker(300);
  const page = await openPage();
  // The first page is the one before the largest number.
  const older = /\/log\?(.*&)?before=\d{1,6}(&|$)/;
  await page.route(older, (route) => route.fulfill({ status: 404, body: 'no such page' }));
  await page.goto(`${plane.url}/agents/${agent.id}/events`);
  await list(page).getByText('Number 299.').waitFor(SOON);
  await list(page).evaluate((box) => box.scrollTo(0, 0));
  const alert = list(page).getByRole('alert');
  await alert.waitFor(SOON);
  await page.keyboard.press('End');
  await prompt(agent);
  await list(page).getByText('Once more.').waitFor(SOON);
  await page.unroute(older);
  await list(page).evaluate((box) => box.scrollTo(0, 0));
  await alert.getByRole('button', { name: 'Try again' }).click();
  await alert.waitFor({ state: 'detached', ...SOON });
});

browserTest('a link to an event after the end of the log says that it does not exist', async () => {
  const agent = await talker(2);
  const page = await openPage();
  for (const tab of ['conversation', 'events']) {
    await page.goto(`${plane.url}/agents/${agent.id}/${tab}#e99999`);
    await page.getByText('Event 99999 does not exist').first().waitFor(SOON);
  }
});

browserTest('a link to an event that has not arrived yet leads to it once it has', async () => {
  const agent = await talker(2);
  const page = await openPage();
  const { last_seq } = await plane.get(agent.id);
  await page.goto(`${plane.url}/agents/${agent.id}/conversation#e${last_seq + 1}`);
  await page
    .getByText(`Event ${last_seq + 1} does not exist`)
    .first()
    .waitFor(SOON);
  await prompt(agent);
  const marked = page.getByRole('log', { name: 'Conversation' }).locator('.bg-marked');
  await marked.filter({ hasText: 'More' }).waitFor(SOON);
});

browserTest('an event is not called missing while the page cannot read the log', async () => {
  const agent = await talker(2);
  const page = await openPage();
  await page.route(LOG, (route) => route.abort());
  await page.goto(`${plane.url}/agents/${agent.id}/events#e99999`);
  const again = page.getByRole('button', { name: 'Try again' });
  await again.waitFor(SOON);
  const missing = page.getByText('Event 99999 does not exist').first();
  // Longer than the page waits for the event.
  await expect(missing.waitFor({ timeout: 4_000 })).rejects.toThrow('Timeout');
  await page.unroute(LOG);
  await again.click();
  await missing.waitFor(SOON);
});
