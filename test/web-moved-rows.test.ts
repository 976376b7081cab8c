/** Lists that change while somebody is about to press a button in them. */
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, clickUntil, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';
import { blocksOf } from '../src/web/screens/agents/blocks.ts';

/** Generous, for slow machines. */
const SOON = { timeout: 30_000 };
const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

async function openPage(path: string): Promise<{ page: Page; posts: string[] }> {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(plane.url + path);
  const posts: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') posts.push(new URL(request.url()).pathname);
  });
  return { page, posts };
}

/**
 * From now on, clicks as a mouse does as soon as the button has moved, or once the user can have seen that. Returns a function that
 * waits until it has.
 */
async function clickWhenMoved(button: Locator, when: 'at once' | 'painted' = 'at once') {
  await button.evaluate((element, when) => {
    const view = element.ownerDocument.defaultView!;
    const row = element.closest('[data-row]')!.getAttribute('data-row');
    // Its row may be mounted again.
    const find = () =>
      [...view.document.querySelectorAll(`[data-row="${row}"] button`)].find(
        ({ ariaLabel, textContent }) =>
          ariaLabel === element.ariaLabel && textContent === element.textContent,
      )!;
    const { top } = element.getBoundingClientRect();
    const clicked = (async () => {
      while (Math.abs(find().getBoundingClientRect().top - top) < 20)
        await new Promise((resolve) => view.requestAnimationFrame(resolve));
      if (when === 'painted') await new Promise((resolve) => view.setTimeout(resolve));
      find().dispatchEvent(new view.MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 }));
    })();
    Object.assign(view, { clicked });
  }, when);
  return () => button.page().evaluate('clicked');
}
/** Waits until no row has moved for so long that clicks count again: `src/web/ui/moved-rows.ts`. */
const untilSteady = (page: Page) =>
  page.evaluate(`(async () => {
    const places = () =>
      JSON.stringify([...document.querySelectorAll('[data-row]')].map((row) => row.getBoundingClientRect()));
    let [last, since] = [places(), performance.now()];
    while (performance.now() < since + 600) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      const now = places();
      if (now !== last) [last, since] = [now, performance.now()];
    }
  })()`);

async function requestReview(title: string): Promise<string> {
  const options = [
    { optionId: 'once', name: 'Allow once', kind: 'allow_once' },
    { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  ];
  const toolCall = { toolCallId: title, title, kind: 'execute' };
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([[{ toolCall, options }]])];
  const { id } = await plane.agent(argv, { name: title, protocol: 'acp', prompt: 'Go on' });
  const query = { agent_id: id };
  const read = async () => (await plane.client.call('listReviews', { query })) as never as { id: string }[];
  await expect.poll(async () => (await read()).length, SOON).toBe(1);
  return (await read())[0]!.id;
}

browserTest('requests that arrive or are answered elsewhere put no button under the pointer', async () => {
  const first = await requestReview('first thing');
  const { page, posts } = await openPage('/approvals');
  const buttonOf = (title: string) =>
    page.getByRole('article').filter({ hasText: title }).getByRole('button', { name: 'Allow once' });
  await buttonOf('first thing').waitFor();
  const before = await buttonOf('first thing').boundingBox();
  const second = await requestReview('second thing');
  await buttonOf('second thing').waitFor();
  const now = await buttonOf('first thing').boundingBox();
  expect(now!.x).toBe(before!.x);

  await untilSteady(page);
  const clicked = await clickWhenMoved(buttonOf('second thing'));
  await plane.client.call('respondReview', { params: { review_id: first }, body: { option_id: 'no' } });
  await clicked();
  await untilSteady(page);
  expect(posts).toEqual([]);
  await clickUntil(buttonOf('second thing'), () => posts.length > 0);
  expect(posts).toEqual([`/api/permission-reviews/${second}/respond`]);
});

for (const scrolls of [false, true]) {
  const when = scrolls ? ' while the page scrolls' : '';
  browserTest(`a click on Stop in a row that has just moved${when} is ignored`, async () => {
    const command = `exec sleep ${scrolls ? 603 : 602}`;
    const above = await plane.agent(command, { name: 'above' });
    const below = await plane.agent(command, { name: 'below' });
    const { page, posts } = await openPage(`/agents?q=${encodeURIComponent(command)}`);
    const stop = page.getByRole('button', { name: 'Stop below' });
    await stop.waitFor({ state: 'attached' });
    await untilSteady(page);
    if (scrolls)
      await page.evaluate(`{
        const box = document.querySelector('main .scroll-y');
        globalThis.scrolling = setInterval(() => box.dispatchEvent(new Event('scroll')), 20);
      }`);
    const clicked = await clickWhenMoved(stop);
    // The agent that has started last comes first.
    await plane.client.call('restartAgent', { params: { agent_id: above.id } });
    await clicked();
    if (scrolls) await page.evaluate('clearInterval(scrolling)');
    await untilSteady(page);
    expect(posts).toEqual([]);
    await clickUntil(stop, () => posts.length > 0);
    expect(posts).toEqual([`/api/agents/${below.id}/stop`]);
  });
}

browserTest('another agent on top takes neither the focus nor clicks from rows that stay', async () => {
  const create = async (name: string) => {
    let agent = await plane.agent('exec sleep 601', { name });
    // The rows after such an agent move with it.
    while (blocksOf([{ id: '' }, agent]).length > 1) agent = await plane.agent('exec sleep 601', { name });
    return agent;
  };
  const stays = await create('stays');
  // Below those that run, also while one of them restarts.
  await plane.client.call('stopAgent', { params: { agent_id: stays.id } });
  const rises = await create('rises');
  await create('falls');
  const { page, posts } = await openPage('/agents?q=sleep+601');
  const link = page.getByRole('link', { name: 'stays', exact: true });
  await page.getByRole('button', { name: 'Restart stays' }).waitFor({ state: 'attached' });
  await link.focus();
  await untilSteady(page);
  const clicked = link.evaluate(
    async (element, [stays, rises]) => {
      const { document, requestAnimationFrame, MouseEvent } = element.ownerDocument.defaultView!;
      const rowOf = (id: string) => document.querySelector(`[data-row="${id}"]`)!;
      while (rowOf(rises).previousElementSibling)
        await new Promise((resolve) => requestAnimationFrame(resolve));
      const button = rowOf(stays).querySelector('button[aria-label="Restart stays"]')!;
      button.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 }));
    },
    [stays.id, rises.id] as const,
  );
  await plane.client.call('restartAgent', { params: { agent_id: rises.id } });
  await clicked;
  expect(await link.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
  await expect.poll(() => posts, SOON).toEqual([`/api/agents/${stays.id}/start`]);
});

/** Sends mail to root from a member of a new run. */
async function sendMail(name: string, texts: string[]): Promise<{ run_path: string; ids: number[] }> {
  const spec = { members: [{ member_id: 'ann', executor: 'human' }], steps: [] };
  const { id: team_id } = await plane.client.call('createTeam', { body: { name, spec } as never });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: { input: {} } });
  const mail = { run_id, from_actor_id: `ann@${team_id}`, to_actor_id: `user:${ROOT.username}` };
  const ids: number[] = [];
  for (const text of texts)
    ids.push((await plane.client.call('sendMail', { body: { ...mail, payload: { text } } })).id);
  return { run_path: `/teams/${team_id}/runs/${run_id}`, ids };
}

browserTest('the second click of a double click on Acknowledge acknowledges no other message', async () => {
  await sendMail('mail', ['older', 'newer']);
  const { page, posts } = await openPage('/mail');
  const buttonOf = (text: string) =>
    page.locator('[data-row]').filter({ hasText: text }).getByRole('button', { name: 'Acknowledge' });
  await buttonOf('older').waitFor();
  await untilSteady(page);
  const clicked = await clickWhenMoved(buttonOf('older'));
  await clickUntil(buttonOf('newer'), () => posts.length > 0);
  await clicked();
  await untilSteady(page);
  expect(posts).toHaveLength(1);
  await clickUntil(buttonOf('older'), () => posts.length > 1);
  expect(posts).toHaveLength(2);
});

browserTest('a click on Acknowledge in a run is ignored if a message above it has just grown', async () => {
  const { run_path, ids } = await sendMail('long mail', ['one\ntwo\nthree\nfour', 'newer']);
  const { page, posts } = await openPage('/agents');
  const loads = Promise.withResolvers<void>();
  await page.route(`**/api/actor/mailbox/${ids[0]}`, async (route) => {
    await loads.promise;
    await route.continue();
  });
  await page.goto(plane.url + run_path);
  const row = page.locator('[data-row]').filter({ hasText: 'newer' });
  const button = row.getByRole('button', { name: 'Acknowledge' });
  await button.waitFor();
  await untilSteady(page);
  const clicked = await clickWhenMoved(button, 'painted');
  loads.resolve();
  await clicked();
  await untilSteady(page);
  expect(posts).toEqual([]);
  await clickUntil(button, () => posts.length > 0);
  expect(posts).toEqual([`/api/actor/mailbox/${ids[1]}/ack`]);
});

browserTest('clicks in the queue of Approvals work after the page was scrolled', async () => {
  const answered = await requestReview('answered thing');
  await plane.client.call('respondReview', { params: { review_id: answered }, body: { option_id: 'no' } });
  for (const title of ['third thing', 'fourth thing', 'fifth thing']) await requestReview(title);
  const { page } = await openPage('/approvals');
  await page.setViewportSize({ width: 1280, height: 300 });
  const box = page.getByRole('navigation', { name: 'Queue' }).getByRole('checkbox').last();
  await box.waitFor();
  await untilSteady(page);
  const cards = page.getByRole('list', { name: 'Waiting' });
  const [of_box, of_cards] = [await box.boundingBox(), await cards.boundingBox()];
  const movedUp = async () => ({
    box: of_box!.y - (await box.boundingBox())!.y,
    cards: of_cards!.y - (await cards.boundingBox())!.y,
  });
  await cards.hover();
  await page.mouse.wheel(0, 10_000);
  // At the end, the sticky queue leaves with the cards.
  await expect.poll(async () => (await movedUp()).box, SOON).toBeGreaterThan(10);
  await untilSteady(page);
  const moved = await movedUp();
  expect(moved.cards).toBeGreaterThan(moved.box + 10);
  await box.click();
  expect(await box.isChecked()).toBe(true);
});
