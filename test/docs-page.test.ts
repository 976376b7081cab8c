/**
 * The API page in a real browser against the real program: a person signs in, calls an endpoint and sees the answer,
 * the page keeps to its policy, and nothing asks another host. Not run where there is no Chromium, except in CI, which
 * installs it.
 */
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, openBrowser, type TestBrowser } from '../src/testing/browser.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
let browser: TestBrowser | undefined;
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await browser?.close();
  await plane.close();
});

const INLINE_SCRIPT = `{
  const script = document.createElement('script');
  script.textContent = 'globalThis.ran = true';
  document.body.append(script);
}`;

async function openPage(headers: Record<string, string> = {}) {
  browser ??= await openBrowser();
  return browser.open(plane, { headers });
}

browserTest('a person signs in, calls endpoints, and the page asks nobody else', async () => {
  const { page, complaints, elsewhere } = await openPage();
  await page.goto(`${plane.url}/docs`);
  await page.getByLabel('Username').fill(ROOT.username);
  await page.getByLabel('Password').fill(ROOT.password);
  await page.getByRole('button', { name: 'Sign in' }).click();

  await page.locator('a[href="#createAgent"]').click();
  await page.getByRole('heading', { name: 'Create an agent' }).waitFor();
  const body = { name: 'from the page', workdir: plane.work, command: 'echo hello', start: true };
  await page.locator('textarea').fill(JSON.stringify(body));
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('[role=status].good').waitFor();
  const agent = JSON.parse((await page.locator('form pre').textContent())!);
  expect(agent).toMatchObject({ name: 'from the page', owner_id: expect.stringMatching(/^usr_/) });
  await plane.finished(agent.id);

  await page.locator('a[href="#followAgent"]').click();
  await page.getByLabel('agent_id').fill(agent.id);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('form pre', { hasText: '"status":"completed"' }).waitFor();
  expect(await page.locator('form pre').textContent()).toContain('"data":"hello\\n"');
  await page.getByRole('button', { name: 'Stop' }).click();
  expect({ complaints, elsewhere }).toEqual({ complaints: [], elsewhere: [] });

  await page.locator('a[href="#getMe"]').click();
  const ended = page.waitForResponse(`${plane.url}/api/logout`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  expect((await ended).status()).toBe(204);
  await page.close();
});

browserTest('the page that comes with a token shows the description at once, within the policy', async () => {
  const { page, complaints, elsewhere } = await openPage({ authorization: `Bearer ${plane.token}` });
  await page.goto(`${plane.url}/api/openapi/docs`);
  await page.locator('a[href="#listAgents"]').click();
  await page.getByRole('heading', { name: 'Agents, newest first' }).waitFor();
  expect({ complaints, elsewhere }).toEqual({ complaints: [], elsewhere: [] });
  await page.close();
});

browserTest('the policy is one that a browser enforces', async () => {
  const { page, complaints } = await openPage();
  await page.goto(`${plane.url}/docs`);
  await page.evaluate(INLINE_SCRIPT);
  expect(await page.evaluate(`'ran' in globalThis`)).toBe(false);
  expect(complaints.join()).toContain('policy: script-src');
  await page.close();
});
