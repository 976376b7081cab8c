/** The connection badge in each of its five states, over a network that stalls, breaks and disappears. */
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, longBrowserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { FlakyProxy } from '../src/testing/flaky-proxy.ts';
import { TestPlane } from '../src/testing/plane.ts';

let proxy: FlakyProxy;
let plane: TestPlane;
const browser = sharedBrowser();
let origin: string;
beforeAll(async () => {
  proxy = await FlakyProxy.open(0);
  origin = `http://127.0.0.1:${proxy.port}`;
  plane = await TestPlane.open({ env: { SVC_WEB_RP_ORIGIN: origin } });
  proxy.target_port = Number(new URL(plane.url).port);
});
afterAll(async () => {
  await proxy.close();
  await plane.close();
});

browserTest('the badge shows each state of the connection with its exact text', async () => {
  const agent = await plane.agent('echo hello; exec sleep 600', { name: 'watched' });
  const { page } = await browser.open(plane);
  await signIn(page, plane, { origin });
  const badge = page.locator('[data-badge]:visible');
  // A failure says what the badge showed instead, and what the browser believed.
  const read = async () => [await badge.textContent(), await page.evaluate('navigator.onLine')];
  const untilBadge = (text: string) =>
    expect.poll(read, { timeout: 30_000 }).toEqual([text, !text.startsWith('Offline')]);
  await page.goto(`${origin}/agents`);
  await untilBadge('Online · SSE idle');
  expect(await badge.getAttribute('role')).toBe('status');
  // The longest text has room too.
  const box = (await badge.boundingBox())!;
  const bar = (await page.getByRole('navigation', { name: 'Main' }).boundingBox())!;
  const button = (await page.getByRole('button', { name: 'Collapse sidebar' }).boundingBox())!;
  expect(box.x + box.width).toBeLessThanOrEqual(bar.x + bar.width - 8);
  expect(box.y).toBeGreaterThanOrEqual(button.y + button.height);

  // Loads every part of the page before the network stalls.
  const link = page.getByRole('link', { name: agent.name, exact: true }).locator('visible=true');
  await link.click();
  await untilBadge('Online · SSE connected');
  await page.getByRole('link', { name: 'Agents' }).locator('visible=true').click();
  await untilBadge('Online · SSE idle');

  proxy.hold('down');
  await link.click();
  await untilBadge('Online · SSE connecting');
  proxy.release();
  await untilBadge('Online · SSE connected');

  proxy.hold('down', 'up');
  proxy.cut();
  await untilBadge('Online · SSE reconnecting');
  proxy.release();
  await untilBadge('Online · SSE connected');

  await page.context().setOffline(true);
  await untilBadge('Offline · SSE disconnected');
  await page.context().setOffline(false);
  await untilBadge('Online · SSE connected');
  await page.goto(`${origin}/agents`);
  await untilBadge('Online · SSE idle');
});

browserTest(
  'the page stays online while the service answers, even if the browser says that it is offline',
  async () => {
    const agent = await plane.agent('exec sleep 600', { name: 'near' });
    const { page } = await browser.open(plane, { separate: true });
    await signIn(page, plane, { origin });
    await page.addInitScript("Object.defineProperty(Navigator.prototype, 'onLine', { get: () => false })");
    const answered = () => page.waitForResponse(`${origin}/healthz`);
    const at_start = answered();
    await page.goto(`${origin}/agents/${agent.id}/output`);
    const badge = page.locator('[data-badge]:visible');
    const untilBadge = (text: string) =>
      expect.poll(() => badge.textContent(), { timeout: 30_000 }).toBe(text);
    await at_start;
    await untilBadge('Online · SSE connected');
    const at_once = answered();
    await page.evaluate("dispatchEvent(new Event('offline'))");
    await at_once;
    expect(await badge.textContent()).toBe('Online · SSE connected');

    proxy.hold('down', 'up');
    await untilBadge('Offline · SSE disconnected');
    proxy.release();
    await untilBadge('Online · SSE connected');
  },
);

browserTest('a line says that lists may be out of date while the stream of changes is lost', async () => {
  const { page } = await browser.open(plane);
  await signIn(page, plane, { origin });
  await page.goto(`${origin}/approvals`);
  await page.getByText('No approvals are waiting.').waitFor();
  const line = page.getByRole('status').filter({ hasText: 'out of date' });
  expect(await line.count()).toBe(0);
  proxy.hold('down', 'up');
  proxy.cut();
  await line.waitFor();
  expect(await line.textContent()).toMatch(
    /^Lists may be out of date: no connection since \d{1,2}:\d\d( [AP]M)?\.$/,
  );
  // No agent is selected.
  const badge = page.locator('[data-badge]:visible');
  expect(await badge.textContent()).toBe('Online · SSE idle');
  proxy.release();
  await line.waitFor({ state: 'detached' });
});

browserTest('on phones, the round button does not cover that line', async () => {
  await plane.agent('exec sleep 600', { name: 'listed' });
  const { page } = await browser.open(plane, { screen: 'phone' });
  await signIn(page, plane, { origin });
  await page.goto(`${origin}/agents`);
  const button = page.getByRole('link', { name: 'New agent' });
  await button.waitFor();
  proxy.hold('down', 'up');
  proxy.cut();
  const line = page.getByRole('status').filter({ hasText: 'out of date' });
  await line.waitFor();
  const [above, below] = [(await button.boundingBox())!, (await line.boundingBox())!];
  expect(above.y + above.height).toBeLessThanOrEqual(below.y);
  proxy.release();
  await line.waitFor({ state: 'detached' });
});

longBrowserTest(
  'twenty lost connections within ten thousand lines leave no gap and no duplicate',
  { timeout: 180_000 },
  async () => {
    const LINES = 10_000;
    const print = 'for i in $(seq 0 99); do seq $((i * 100 + 1)) $((i * 100 + 100)); sleep 0.25; done';
    const agent = await plane.agent(print, { name: 'counts' });
    const { page } = await browser.open(plane);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
    await signIn(page, plane, { origin });
    const badge = page.locator('[data-badge]:visible');
    await page.goto(`${origin}/agents/${agent.id}/output`);
    for (let cuts = 0; cuts < 20; cuts++) {
      await badge.getByText('Online · SSE connected', { exact: true }).waitFor();
      proxy.cut();
      await badge.getByText('Online · SSE reconnecting', { exact: true }).waitFor();
    }
    await plane.finished(agent.id);
    await page.getByText(`${LINES.toLocaleString('en')} lines`).waitFor();
    // Copies what the page already holds.
    await page.evaluate(`location.hash = '#L1-L${LINES}'`);
    await page.getByRole('button', { name: 'Copy lines' }).click();
    await page.getByText('Copied').waitFor();
    const expected = Array.from({ length: LINES }, (_, at) => at + 1).join('\n');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(expected);
  },
);
