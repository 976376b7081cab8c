/** Elicitations in a real browser: filling in forms and opening URLs, in Approvals and in the conversation. */
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { EventRecord } from '../src/core/event.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import type { Elicitation } from '../src/features/elicitations/rules.ts';
import { browserTest, longBrowserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

const SOON = { timeout: 30_000 };
const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
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

async function startEliciting(params?: object): Promise<Elicitation> {
  const argv = [process.execPath, scripted, 'elicits', ...(params ? [JSON.stringify(params)] : [])];
  const agent = await plane.agent(argv, { name: 'deploys', protocol: 'acp', prompt: 'Go on' });
  await expect.poll(async () => (await plane.get(agent.id)).pending_elicitations, SOON).toBe(1);
  const query = { agent_id: agent.id };
  const [elicitation] = (await plane.client.call('listElicitations', { query })) as never as [Elicitation];
  return elicitation;
}

async function openPage(path: string): Promise<Page> {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(plane.url + path);
  return page;
}

const get = ({ id: elicitation_id }: Elicitation) =>
  plane.client.call('getElicitation', { params: { elicitation_id } });
const link = (url: string) => ({ mode: 'url', elicitationId: 'e', message: 'Sign in to the registry', url });

/** The WCAG violations that axe finds. */
async function violations(page: Page): Promise<unknown[]> {
  await page.evaluate(axe.source);
  const runOnly = JSON.stringify(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']);
  const found = (await page.evaluate(`axe.run(document, { runOnly: ${runOnly} })`)) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}

browserTest(
  'a form is opened from its notification, filled in with the keyboard, corrected and sent',
  async () => {
    const elicitation = await startEliciting();
    const page = await openPage(`/approvals?elicitation=${elicitation.id}`);
    const focused = () => page.evaluate('document.activeElement.dataset.elicitation ?? null');
    await expect.poll(focused, SOON).toBe(elicitation.id);
    await expect.poll(() => page.title(), SOON).toBe('(1) Approvals · svc');
    const card = page.getByRole('article', { name: 'How shall I deploy it?' });
    await card.getByText('deploys').waitFor();
    expect(await card.getByLabel('Port (optional)').inputValue()).toBe('3000');
    expect(await card.getByLabel('Notify the team').isChecked()).toBe(true);
    expect(await violations(page)).toEqual([]);
    await card.getByRole('button', { name: 'Send' }).press('Enter');
    const name = card.getByLabel('Name');
    await expect.poll(() => name.getAttribute('aria-invalid'), SOON).toBe('true');
    const name_id = await name.getAttribute('id');
    await expect.poll(() => page.evaluate('document.activeElement.id'), SOON).toBe(name_id);
    const described = await name.getAttribute('aria-describedby');
    const [error_id] = described!.split(' ');
    expect(await page.locator(`[id="${error_id}"]`).innerText()).toBe('Name is required');
    expect(await violations(page)).toEqual([]);
    await name.fill('v1');
    await card.getByLabel('E-mail (optional)').fill('ana@example.org');
    await card.getByLabel('Region').selectOption({ label: 'Europe' });
    await card.getByRole('group', { name: 'Checks' }).getByLabel('test').press('Space');
    await card.getByLabel('Notify the team').press('Space');
    // A reload loses nothing.
    await page.reload();
    await expect.poll(() => name.inputValue(), SOON).toBe('v1');
    await name.press('Enter');
    const settled = page.getByRole('article', { name: 'How shall I deploy it?: Sent · ana' });
    await settled.waitFor();
    const drafts = () =>
      page.evaluate('Object.keys(localStorage).filter((key) => key.includes("elicitation"))');
    await expect.poll(drafts, SOON).toEqual([]);
    await expect.poll(async () => (await get(elicitation)).delivery, SOON).toBe('written');
    await page.goto(`${plane.url}/agents/${elicitation.agent_id}`);
    const content = {
      name: 'v1',
      mail: 'ana@example.org',
      port: 3000,
      notify: false,
      region: 'eu',
      checks: ['test'],
    };
    const log = plane.client.all('getLog', { params: { agent_id: elicitation.agent_id } });
    let answer: EventRecord | undefined;
    for await (const event of log as AsyncIterable<EventRecord>) {
      if (event.direction === 'to_agent' && event.elicitation_id === elicitation.id) answer = event;
    }
    expect(answer).toMatchObject({ answered_by: 'ana', payload: { result: { action: 'accept', content } } });
    await settled.waitFor();
  },
);

longBrowserTest(
  'a URL is shown with its real host, opens in an isolated page, and is done when the agent says so',
  async () => {
    const elicitation = await startEliciting(link('https://p\u0430ypal.example/login?x=1'));
    const page = await openPage(`/agents/${elicitation.agent_id}`);
    const card = page.getByRole('article', { name: 'Sign in to the registry' });
    await card.getByText('xn--pypal-4ve.example', { exact: true }).waitFor();
    await card.getByText('https://xn--pypal-4ve.example/login?x=1', { exact: true }).waitFor();
    const open = card.getByRole('link', { name: /^Open/ });
    expect(await open.getAttribute('rel')).toBe('noopener noreferrer');
    expect(await violations(page)).toEqual([]);
    // Showing the URL neither fetches nor answers it.
    expect((await get(elicitation)).status).toBe('pending');
    await page
      .context()
      .route('https://xn--pypal-4ve.example/**', (route) => route.fulfill({ body: 'hello' }));
    const [opened] = await Promise.all([page.context().waitForEvent('page'), open.click()]);
    await opened.waitForLoadState();
    expect(opened.url()).toBe('https://xn--pypal-4ve.example/login?x=1');
    expect(await opened.evaluate('[window.opener, document.referrer]')).toEqual([null, '']);
    await page.getByRole('article', { name: 'Sign in to the registry: Done · ana' }).waitFor();
    expect(await get(elicitation)).toMatchObject({ status: 'accepted', answered_by: 'ana' });
  },
);

browserTest('a form’s content is shown as text, and one click declines it', async () => {
  const evil = '<img src=x onerror="document.title=1">\u202e';
  const evil_texts = { title: evil, description: evil };
  const property = { type: 'string', ...evil_texts, oneOf: [{ const: 'a', ...evil_texts }] };
  const elicitation = await startEliciting({
    message: evil,
    requestedSchema: { ...evil_texts, properties: { a: property } },
  });
  const page = await openPage('/approvals');
  const card = page.getByRole('article');
  const shown = '<img src=x onerror="document.title=1">⟦U+202E⟧';
  await card.getByText(shown, { exact: true }).first().waitFor();
  expect(await card.locator('img').count()).toBe(0);
  expect(await card.innerText()).not.toContain('\u202e');
  await card.getByRole('button', { name: 'Decline' }).click();
  await page.getByText('Declined · ana').waitFor();
  expect(await get(elicitation)).toMatchObject({ status: 'declined' });
  await expect.poll(() => page.title(), SOON).toBe('Approvals · svc');
});

browserTest('a second answer shows who was first instead of an error', async () => {
  const elicitation = await startEliciting(link('https://example.org/'));
  const page = await openPage('/approvals');
  const decline = page.getByRole('article').getByRole('button', { name: 'Decline' });
  await decline.waitFor();
  await page.route('**/api/elicitations/*/respond', async (route) => {
    const params = { elicitation_id: elicitation.id };
    await plane.client.call('respondElicitation', { params, body: { action: 'cancel' } });
    await route.continue();
  });
  await decline.click();
  await page.getByText('Cancelled · ana').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

browserTest('a date that is not complete is reported at its field and not left out', async () => {
  const requestedSchema = {
    type: 'object',
    properties: { due: { type: 'string', title: 'Due', format: 'date' } },
  };
  const elicitation = await startEliciting({ mode: 'form', message: 'When?', requestedSchema });
  const page = await openPage('/approvals');
  const card = page.getByRole('article', { name: 'When?' });
  const due = card.getByLabel('Due (optional)');
  await due.focus();
  await page.keyboard.type('12');
  await card.getByRole('button', { name: 'Send' }).click();
  await card.getByText('Due is incomplete').waitFor();
  expect(await due.and(page.locator(':focus')).count()).toBe(1);
  expect(await get(elicitation)).toMatchObject({ status: 'pending' });
  await due.fill('2031-12-24');
  await card.getByText('Due is incomplete').waitFor({ state: 'detached' });
  await card.getByRole('button', { name: 'Send' }).click();
  await expect.poll(async () => (await get(elicitation)).status, SOON).toBe('accepted');
});

browserTest('a request that cannot be shown leaves the others', async () => {
  const field = { type: 'string', format: 'date-time', default: '2026-02-28T10:00:00Z' };
  const broken = { message: 'When?', requestedSchema: { type: 'object', properties: { at: field } } };
  const [, shown] = [await startEliciting({ mode: 'form', ...broken }), await startEliciting()];
  const { page } = await browser.open(plane);
  await page.addInitScript('Date.prototype.toJSON = () => { throw new RangeError("Invalid time value"); }');
  await signIn(page, plane);
  await page.goto(`${plane.url}/approvals`);
  await page.getByRole('alert').filter({ hasText: 'Invalid time value' }).waitFor(SOON);
  await page.locator(`[data-elicitation="${shown.id}"]`).waitFor(SOON);
});
