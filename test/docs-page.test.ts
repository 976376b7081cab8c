/**
 * The API explorer in a real browser against the real program: at `/docs` for a user who signs in, and at
 * `/api/openapi/docs` for a client that sends its token with every request. These tests need Chromium, which CI installs.
 */
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, longBrowserTest, sharedBrowser } from '../src/testing/browser.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

const INLINE_SCRIPT = `{
  const script = document.createElement('script');
  script.textContent = 'globalThis.ran = true';
  document.body.append(script);
}`;

async function openPage(headers: Record<string, string> = {}) {
  return browser.open(plane, { headers });
}

browserTest('a user signs in, calls endpoints and signs out, without requests to other hosts', async () => {
  const { page, errors, foreign_requests } = await openPage();
  await page.goto(`${plane.url}/docs`);
  await page.getByLabel('Username').fill(ROOT.username);
  await page.getByLabel('Password').fill(ROOT.password);
  await page.getByRole('button', { name: 'Sign in' }).click();

  const response = page.getByRole('region', { name: 'Response' });
  await page.locator('a[href*="operation=createAgent"]').click();
  await page.getByRole('heading', { name: 'Create an agent' }).waitFor();
  const body = { name: 'from the page', workdir: plane.work, command: 'echo hello', start: true };
  await page.getByLabel('Body (JSON)').fill(JSON.stringify(body));
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('201 Created').waitFor();
  const agent = JSON.parse((await response.textContent())!);
  expect(agent).toMatchObject({ name: 'from the page', owner_id: expect.stringMatching(/^usr_/) });
  await plane.finished(agent.id);

  await page.locator('a[href*="operation=followAgent"]').click();
  await page.getByLabel('agent_id').fill(agent.id);
  await page.getByRole('button', { name: 'Send' }).click();
  await response.getByText('"status":"completed"').waitFor();
  expect(await response.textContent()).toContain('"data":"hello\\n"');
  await page.getByRole('button', { name: 'Stop' }).click();
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });

  await page.locator('a[href*="operation=logout"]').click();
  const ended = page.waitForResponse(`${plane.url}/api/logout`);
  await page.getByRole('button', { name: 'Send' }).click();
  expect((await ended).status()).toBe(204);
  await page.getByLabel('Password').waitFor();
  await page.close();
});

longBrowserTest('requests can use an API token instead of the session', async () => {
  const { page } = await openPage();
  await page.goto(`${plane.url}/docs?operation=getMe`);
  await page.getByLabel('Username').fill(ROOT.username);
  await page.getByLabel('Password').fill(ROOT.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText(`Sent as ${ROOT.username}`).click();
  await page.getByLabel('API token').fill('svc_no_such_token');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('401 Unauthorized').waitFor();
  // An invalid API token does not end the session.
  await page.getByLabel('API token').fill('');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('200 OK').waitFor();
  await page.close();
});

browserTest(
  'the page with the embedded description needs no session and follows the content security policy',
  async () => {
    const { page, errors, foreign_requests } = await openPage({ authorization: `Bearer ${plane.token}` });
    await page.goto(`${plane.url}/api/openapi/docs`);
    await page.locator('a[href*="operation=listAgents"]').click();
    await page.getByRole('heading', { name: 'List agents, newest first' }).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('200 OK').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'List agents, newest first' }).waitFor();
    expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
    await page.close();
  },
);

browserTest('the browser enforces the content security policy', async () => {
  const { page, errors } = await openPage();
  await page.goto(`${plane.url}/docs`);
  await page.getByLabel('Password').waitFor();
  await page.evaluate(INLINE_SCRIPT);
  expect(await page.evaluate(`'ran' in globalThis`)).toBe(false);
  expect(errors.join()).toContain('policy: script-src');
  await page.close();
});
