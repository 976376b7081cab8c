/** A conversation in version 2 of ACP on an agent's page, with a real agent. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, isInView, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

const SOON = { timeout: 30_000 };
const speaks_v2 = fileURLToPath(new URL('../src/testing/acp-v2-agent.ts', import.meta.url));
let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open({ env: { SVC_AGENTS_ACP_VERSION: '2' } });
});
afterAll(async () => {
  await plane.close();
});

browserTest(
  'a turn, its permission review and its end are shown as in version 1',
  async () => {
    const agent = await plane.agent([process.execPath, speaks_v2], { protocol: 'acp', prompt: 'change' });
    const { page, errors } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/${agent.id}`);
    const log = page.getByRole('log');
    const card = page.getByRole('article', { name: /Change the configuration/ });
    await card.waitFor(SOON);
    expect(await card.innerText()).toMatch(/It turns debugging on\.[\s\S]*Write config\.json/);
    await card.getByText('"debug": true').first().waitFor(SOON);
    await card.getByRole('button', { name: /Allow/ }).click();
    await log.getByText('It is changed.').waitFor(SOON);
    await page.getByText('ACP version 2 (preview)').waitFor(SOON);
    await log.getByRole('button', { name: /cat config\.json/ }).click();
    await log.getByText('{ "debug": false }', { exact: true }).waitFor(SOON);
    expect(await log.getByText('cat config.json', { exact: true }).count()).toBe(2);
    await log.getByText('exit code 0').waitFor(SOON);
    await log.getByText('_weather').waitFor(SOON);
    const field = page.getByRole('textbox', { name: /^Prompt for/ });
    await field.fill('and now?');
    await field.press('ControlOrMeta+Enter');
    await log.getByText('You said: and now?').waitFor(SOON);
    expect(errors).toEqual([]);
  },
  60_000,
);

browserTest(
  'a turn that the agent refused is marked and comes into view',
  async () => {
    const agent = await plane.agent([process.execPath, speaks_v2], { protocol: 'acp', prompt: 'refuse' });
    const { page, errors } = await browser.open(plane);
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/${agent.id}`);
    const log = page.getByRole('log');
    await log.getByText('The agent refused').waitFor(SOON);
    const field = page.getByRole('textbox', { name: /^Prompt for/ });
    const long_prompt = Array.from({ length: 60 }, (_, n) => `Line ${n}`).join('\n\n');
    await field.fill(long_prompt);
    await field.press('ControlOrMeta+Enter');
    await log.getByText('You said: Line 0').waitFor(SOON);
    const refusal = log.getByText('The agent refused');
    await expect.poll(() => isInView(refusal, log), SOON).toBe(false);
    await field.blur();
    await page.keyboard.press('p');
    await expect.poll(() => isInView(refusal, log), SOON).toBe(true);
    await log.locator('[data-row].bg-marked').getByText('The agent refused').waitFor(SOON);
    expect(errors).toEqual([]);
  },
  60_000,
);
