/**
 * The API page in a real browser against the real program: a person signs in, calls an endpoint and sees the answer,
 * the page keeps to its policy, and nothing asks another host. Not run where there is no Chromium, except in CI, which
 * installs it.
 */
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
);
const browserTest = test.runIf(executablePath !== undefined || Boolean(process.env.CI));

let plane: TestPlane;
let browser: Browser | undefined;
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await browser?.close();
  await plane.close();
});

const TELL_VIOLATIONS = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`;
const INLINE_SCRIPT = `{
  const script = document.createElement('script');
  script.textContent = 'globalThis.ran = true';
  document.body.append(script);
}`;

interface Watched {
  page: Page;
  /** What the browser complained of: scripts that failed, and everything that the policy refused. */
  complaints: string[];
  elsewhere: string[];
}

async function openPage(headers: Record<string, string> = {}): Promise<Watched> {
  // Without its sandbox, because tests may run as root.
  browser ??= await chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox'] });
  const page = await browser.newPage({ extraHTTPHeaders: headers });
  const watched: Watched = { page, complaints: [], elsewhere: [] };
  page.on('pageerror', (error) => watched.complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') watched.complaints.push(message.text());
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'data:' && origin !== plane.url) watched.elsewhere.push(request.url());
  });
  await page.addInitScript(TELL_VIOLATIONS);
  return watched;
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
