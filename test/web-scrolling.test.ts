/** Lists that follow their end while rows keep arriving. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Agent } from '../src/features/agents/rules.ts';
import { browserTest, mainScreens, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
let plane: TestPlane;
let agent: Agent;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterEach(async () => {
  // It would slow down the next test.
  await plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query: { force: true } });
});
afterAll(async () => {
  await plane.close();
});

/** An agent that prints lines all the time. */
async function printingAgent(): Promise<Agent> {
  agent = await plane.agent('while :; do echo more; sleep 0.01; done', { name: 'prints' });
  return agent;
}

/** An agent that sends a message which is long enough to scroll, and more of it all the time once the file exists. */
async function talkingAgent(until_file: string): Promise<Agent> {
  const chunk = {
    sessionUpdate: 'agent_message_chunk',
    messageId: 'long',
    content: { type: 'text', text: 'More.\n\n' },
  };
  const updates = [...Array.from({ length: 60 }, () => chunk), { until_file }, { ...chunk, every_ms: 20 }];
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([updates])];
  agent = await plane.agent(argv, { name: 'talks', protocol: 'acp', prompt: 'Go on' });
  return agent;
}

const topOf = (list: Locator) => list.evaluate((box) => box.scrollTop);
const fromEnd = (list: Locator) =>
  list.evaluate((box) => Math.round(box.scrollHeight - box.clientHeight - box.scrollTop));
const heightOf = (list: Locator) => list.evaluate((box) => box.scrollHeight);
/** Visible while the list does not follow its end. */
const pill = (page: Page) => page.getByRole('button', { name: /^Jump to latest$| new$/ });

/** Scrolls up in small steps, on a trackpad or with a finger. The steps do not wait for the page, like those of a person. */
async function scrollUp(page: Page, list: Locator, screen: string): Promise<void> {
  const steps = Array.from({ length: 30 }, (_, n) => (n + 1) * 4);
  const { x, y, width, height } = (await list.boundingBox())!;
  const center = { x: x + width / 2, y: y + height / 2 };
  if (screen === 'desk') {
    await page.mouse.move(center.x, center.y);
    await Promise.all(steps.map(() => page.mouse.wheel(0, -4)));
    return;
  }
  const cdp = await page.context().newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove', moved: number) =>
    cdp.send('Input.dispatchTouchEvent', { type, touchPoints: [{ x: center.x, y: center.y + moved }] });
  await Promise.all([touch('touchStart', 0), ...steps.map((moved) => touch('touchMove', moved))]);
  await cdp.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await cdp.detach();
}

/** Expects that the list grows without moving what is in view. */
async function expectStays(page: Page, list: Locator): Promise<void> {
  await pill(page).waitFor();
  const movement = async () => {
    const [top, height] = [await topOf(list), await heightOf(list)];
    await expect.poll(() => heightOf(list)).toBeGreaterThan(height + 100);
    return (await topOf(list)) - top;
  };
  // The last movement may still be on its way.
  await expect.poll(movement).toBe(0);
}

for (const screen of mainScreens) {
  browserTest(`on a ${screen}, a reader can leave the end of output that keeps arriving`, async () => {
    const { page } = await browser.open(plane, { screen });
    await signIn(page, plane);
    await page.goto(`${plane.url}/agents/${(await printingAgent()).id}/output`);
    const list = page.getByRole('region', { name: 'Output' });
    await expect.poll(() => topOf(list)).toBeGreaterThan(200);
    await scrollUp(page, list, screen);
    await expectStays(page, list);
    await pill(page).click();
    const at_end = await topOf(list);
    await expect.poll(() => topOf(list)).toBeGreaterThan(at_end + 100);
  });

  browserTest(`on a ${screen}, a reader can leave the end of a conversation that goes on`, async () => {
    const { page } = await browser.open(plane, { screen });
    await signIn(page, plane);
    const until_file = join(plane.folder, `go-${screen}`);
    await page.goto(`${plane.url}/agents/${(await talkingAgent(until_file)).id}/conversation`);
    const list = page.getByRole('log', { name: 'Conversation' });
    await expect.poll(() => topOf(list)).toBeGreaterThan(200);
    await expect.poll(() => fromEnd(list)).toBe(0);
    writeFileSync(until_file, '');
    const before = await topOf(list);
    await expect.poll(() => topOf(list)).toBeGreaterThan(before);
    await scrollUp(page, list, screen);
    await expectStays(page, list);
  });
}

browserTest('a list that does not change stays where it is after a small scroll at its end', async () => {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  const never = join(plane.folder, 'never');
  await page.goto(`${plane.url}/agents/${(await talkingAgent(never)).id}/conversation`);
  const conversation = page.getByRole('log', { name: 'Conversation' });
  const lines = await plane.agent('seq 200; sleep 600', { name: 'waits' });
  for (const list of [conversation, page.getByRole('region', { name: 'Output' })]) {
    if (list !== conversation) await page.goto(`${plane.url}/agents/${lines.id}/output`);
    await expect.poll(() => topOf(list)).toBeGreaterThan(200);
    await expect.poll(() => fromEnd(list)).toBe(0);
    await list.hover();
    await page.mouse.wheel(0, -8);
    await expect.poll(() => fromEnd(list)).toBe(8);
    await page.waitForTimeout(500);
    expect(await fromEnd(list)).toBe(8);
  }
});

browserTest(
  'a conversation that grew while the reader scrolled at its end follows it afterwards',
  async () => {
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    const until_file = join(plane.folder, 'go');
    await page.goto(`${plane.url}/agents/${(await talkingAgent(until_file)).id}/conversation`);
    const list = page.getByRole('log', { name: 'Conversation' });
    await expect.poll(() => topOf(list)).toBeGreaterThan(200);
    await expect.poll(() => fromEnd(list)).toBe(0);
    await list.evaluate((box) => {
      const { setInterval, WheelEvent } = box.ownerDocument.defaultView!;
      const scroll = () => box.dispatchEvent(new WheelEvent('wheel'));
      scroll();
      Object.assign(globalThis, { scrolling: setInterval(scroll, 50) });
    });
    const top = await topOf(list);
    writeFileSync(until_file, '');
    await expect.poll(() => fromEnd(list)).toBeGreaterThan(100);
    expect(await topOf(list)).toBe(top);
    await plane.client.call('cancelTurn', { params: { agent_id: agent.id } });
    await list.getByText('Turn cancelled').waitFor({ state: 'attached' });
    const growth = async () => {
      const before = await heightOf(list);
      await page.waitForTimeout(500);
      return (await heightOf(list)) - before;
    };
    await expect.poll(growth).toBe(0);
    await page.evaluate('clearInterval(scrolling)');
    await expect.poll(() => fromEnd(list)).toBe(0);
  },
);

browserTest('output does not follow its end again just after Following was turned off', async () => {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/${(await printingAgent()).id}/output`);
  const list = page.getByRole('region', { name: 'Output' });
  await expect.poll(() => topOf(list)).toBeGreaterThan(200);
  const following = page.getByRole('switch', { name: 'Following' });
  // The browser reports only now that the list has scrolled to its end.
  await following.evaluate((button) => {
    const { document, Event } = button.ownerDocument.defaultView!;
    button.click();
    document.querySelector('section[aria-label="Output"]')!.dispatchEvent(new Event('scroll'));
  });
  await expectStays(page, list);
});
