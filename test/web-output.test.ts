/**
 * The output of an agent in a real browser: a hundred thousand lines of which few are rendered, a search in all of them, a
 * URL for every line, exact copies, and hostile output that stays text.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  browserTest,
  sharedBrowser,
  signIn,
  type WatchedPage,
  type WatchedPageOptions,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
const browser = sharedBrowser();
/** Prints a hundred thousand lines. */
let long: string;
const LONG = `awk 'BEGIN { for (i = 1; i <= 100000; i++)
  if (i == 3) print "a rare needle, here"
  else if (i >= 200 && i <= 240) printf "line %d of the\\tlog \\033[32mgreen\\033[0m \\n", i
  else print "line " i " of the log" }'`;
const coloredLine = (n: number) => `line ${n} of the\tlog \x1b[32mgreen\x1b[0m `;

beforeAll(async () => {
  plane = await TestPlane.open();
  long = (await plane.agent(LONG)).id;
  await plane.finished(long);
}, 120_000);
afterAll(async () => {
  await plane.close();
});

async function opened(path: string, options: WatchedPageOptions = {}): Promise<WatchedPage> {
  const watched = await browser.open(plane, options);
  await signIn(watched.page, plane);
  await watched.page.goto(plane.url + path);
  return watched;
}

const slow = { timeout: 30_000 };
const SCROLLER = `document.querySelector('section[aria-label="Output"]')`;
const scroller = (page: Page) => page.getByRole('region', { name: 'Output' });
const line = (page: Page, n: number) => page.locator(`[data-line="${n}"]`);
const nodes = (page: Page) => page.evaluate('document.querySelectorAll("*").length');

browserTest('a search covers all of a hundred thousand lines, of which few are rendered', async () => {
  const { page, errors } = await opened(`/agents/${long}/output`);
  await page.getByText('100,000 lines').waitFor(slow);
  await line(page, 100_000).waitFor();
  expect(await nodes(page)).toBeLessThanOrEqual(400);
  await page.keyboard.press('Control+f');
  await page.getByLabel('Find in output').fill('RARE needle');
  await page.getByText('1 of 1 line').waitFor();
  await line(page, 3).locator('mark', { hasText: 'rare needle' }).waitFor();

  await page.getByRole('button', { name: 'Regular expression' }).click();
  await page.getByLabel('Find in output').fill('line \\d*99 ');
  await page.getByText(/of 1,000 lines/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Previous match' }).click();
  await page.keyboard.press('n');
  await page.locator('mark').first().waitFor();
  await page.getByRole('button', { name: 'Match case' }).click();
  await page.getByLabel('Find in output').fill('RARE needle');
  await page.getByText('No matching lines').waitFor();

  await page.evaluate(`${SCROLLER}.scrollTop = ${SCROLLER}.scrollHeight / 2`);
  await line(page, 50_000).waitFor();
  expect(await nodes(page)).toBeLessThanOrEqual(400);
  expect(errors).toEqual([]);
});

browserTest('a range of lines has a URL that opens in a new tab, and is copied exactly', async () => {
  const { page } = await opened(`/agents/${long}/output#L200-L240`);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: plane.url });
  await line(page, 200).waitFor(slow);
  await page.getByText('Lines 200 to 240').waitFor();
  expect(await line(page, 200).getAttribute('data-chosen')).toBe('true');
  expect(await line(page, 199).getAttribute('data-chosen')).toBeNull();
  await page.getByRole('button', { name: 'Copy lines' }).click();
  await page.getByText('Copied').waitFor();
  const expected = Array.from({ length: 41 }, (_, at) => coloredLine(200 + at)).join('\n');
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(expected);
  // Without a secure context there is no clipboard API. The keyboard stays where it is.
  await page.evaluate(
    `navigator.clipboard.writeText('').then(() => Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }))`,
  );
  const copy = page.getByRole('button', { name: /^Cop(y lines|ied)$/ });
  await copy.press('Enter');
  expect(await page.evaluate('document.activeElement.textContent')).toMatch(/^Cop(y lines|ied)$/);
  expect(await page.evaluate('delete navigator.clipboard && navigator.clipboard.readText()')).toBe(expected);

  await line(page, 205).getByRole('link').click();
  await line(page, 207)
    .getByRole('link')
    .click({ modifiers: ['Shift'] });
  await page.getByText('Lines 205 to 207').waitFor();
  expect(new URL(page.url()).hash).toBe('#L205-L207');
  await page.getByLabel(/^Go to line/).fill('900000');
  await page.getByLabel(/^Go to line/).press('Enter');
  await page.getByText(/^Line 900000 · the last line is \d+$/).waitFor();
  expect(await page.getByRole('button', { name: 'Copy lines' }).count()).toBe(0);
});

browserTest('hostile output stays text', async () => {
  const hostile = [
    '<img src=http://198.51.100.1/x onerror=document.title="owned">',
    '\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b[Hafter escapes',
    '\u202edetrevni',
    '\x1b]8;;http://198.51.100.1/\x07a link\x1b]8;;\x07',
    'javascript:alert(1)',
  ].join('\n');
  await writeFile(join(plane.work, 'hostile.txt'), `${hostile}\n`);
  const { id } = await plane.agent('cat hostile.txt');
  await plane.finished(id);
  const { page, errors, foreign_requests } = await opened(`/agents/${id}/output`);
  await line(page, 1).getByText('<img src=http://198.51.100.1/x').waitFor(slow);
  await line(page, 2).getByText('after escapes').waitFor();
  await line(page, 3).getByText('<U+202E>detrevni').waitFor();
  expect(await line(page, 4).textContent()).toBe('4a link');
  expect(await scroller(page).locator('img, script, a:not([href^="#L"])').count()).toBe(0);
  expect(await page.title()).not.toContain('owned');
  await page.goto(`${plane.url}/agents/${id}/events`);
  await page.getByRole('button', { name: /output.*img/ }).click();
  await page.locator('pre', { hasText: '\\u202edetrevni' }).waitFor();
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

browserTest('new lines do not move a reader who scrolled up, and End jumps to them', async () => {
  const { id } = await plane.agent('cat', { stdin: true });
  const print = (from: number, to: number) =>
    plane.client.call('sendInput', {
      params: { agent_id: id },
      body: { data: Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join('') },
    });
  await print(1, 300);
  const { page } = await opened(`/agents/${id}/output`);
  await line(page, 300).waitFor(slow);
  await scroller(page).hover();
  await page.mouse.wheel(0, -2000);
  await page.getByRole('button', { name: 'Jump to latest' }).waitFor();
  const top = () => page.evaluate(`${SCROLLER}.scrollTop`);
  const before = await top();
  expect(before).toBeGreaterThan(0);
  await print(301, 800);
  await page.getByRole('button', { name: '500 new' }).waitFor(slow);
  expect(await top()).toBe(before);
  await page.keyboard.press('End');
  await line(page, 800).waitFor();

  const input = page.getByLabel('Standard input');
  await input.fill('a line of mine');
  const answered = Promise.withResolvers<void>();
  const isInput = '**/input';
  await page.route(
    isInput,
    async (route) => {
      const response = await route.fetch();
      await answered.promise;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  await input.press('Enter');
  await line(page, 801).getByText('a line of mine').waitFor(slow);
  // What is typed while the line is sent stays.
  await input.pressSequentially(' more');
  answered.resolve();
  await expect.poll(() => input.inputValue()).toBe(' more');
  await input.fill('another line');
  await page.getByRole('button', { name: 'Send' }).click();
  await line(page, 802).getByText('another line').waitFor(slow);
  // The line may appear before the response to its request.
  await expect.poll(() => page.getByLabel('Standard input').inputValue()).toBe('');
  await page.getByRole('button', { name: 'Close input' }).click();
  await page.getByText('exit code 0').waitFor(slow);
  expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
});

browserTest('on a phone, two rows are above the output of a failed agent', async () => {
  const { id } = await plane.agent('echo "error: one"; seq 200; echo "error: two"; exit 3', {
    name: 'small',
  });
  await plane.finished(id);
  const { page } = await opened(`/agents/${id}/output`, { screen: 'phone' });
  await line(page, 202).waitFor(slow);
  const failure = page.getByRole('region', { name: 'Failure' });
  await failure.getByText('Exit code 3').waitFor();
  await failure.getByRole('button', { name: 'Restart' }).waitFor();
  const tabs = (await page.getByRole('navigation', { name: 'Views' }).boundingBox())!;
  const lines = (await scroller(page).boundingBox())!;
  // A button that can be touched is 44 px high.
  expect(lines.y - tabs.y - tabs.height).toBeLessThan(3 * 44);
  const errors = page.getByRole('button', { name: '2 errors, next error' });
  // The first one below the top of the screen, then from the beginning again.
  await errors.tap();
  await line(page, 202).getByText('error: two').waitFor();
  await errors.tap();
  await line(page, 1).getByText('error: one').waitFor();
});

browserTest('on a phone, the output of a failed agent that printed nothing shows the failure', async () => {
  const { id } = await plane.agent('exit 3', { name: 'silent' });
  await plane.finished(id);
  const { page } = await opened(`/agents/${id}/output`, { screen: 'phone' });
  await page.getByText('This agent printed nothing.').waitFor(slow);
  const failure = page.getByRole('region', { name: 'Failure' });
  await failure.getByText('Exit code 3').waitFor();
  await failure.getByRole('button', { name: 'Restart' }).waitFor();
});

browserTest('an event has a URL, which search results and the timeline link to', async () => {
  const { page, errors } = await opened(`/agents/${long}/events#e5`);
  const marked = page.locator('[data-marked]');
  await marked.waitFor(slow);
  expect(await marked.getAttribute('data-seq')).toBe('5');
  await marked.locator('pre', { hasText: '"seq": 5' }).waitFor();
  // A click marks an event where it is.
  const list = page.getByRole('region', { name: 'Events' });
  const top = () => list.evaluate((element) => element.scrollTop);
  const before = await top();
  const next = list.locator('[data-marked] + li');
  const seq = await next.getAttribute('data-seq');
  await next.getByRole('link').click();
  await page.locator(`[data-marked][data-seq="${seq}"] pre`).waitFor();
  expect(await top()).toBe(before);
  await page.getByLabel('Search what the agent wrote').fill('needle');
  await expect
    .poll(async () => {
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await page.getByRole('button', { name: 'Close search results' }).waitFor();
      const found = await page.getByRole('link', { name: /rare needle/ }).count();
      if (found === 0) await page.getByRole('button', { name: 'Close search results' }).click();
      if (found === 0) await page.getByLabel('Search what the agent wrote').fill('needle');
      return found;
    }, slow)
    .toBe(1);
  await page.getByRole('link', { name: /rare needle/ }).click();
  await page.locator('[data-marked]', { hasText: 'rare needle' }).waitFor();
  await page.goto(`${plane.url}/agents/${long}/timeline`);
  await page.getByRole('row', { name: /Session 1 .* Completed, exit 0/ }).waitFor();
  const bar = page.getByRole('link', { name: /^Session 1 · completed, exit 0/ });
  await bar.hover();
  // The time at the pointer.
  expect(await page.locator('[data-crosshair] time').textContent()).toMatch(/\d:\d\d/);
  await bar.click();
  await page.locator('[data-marked][data-seq="1"]').waitFor(slow);
  expect(errors).toEqual([]);
});

browserTest('a switch follows the output of a live agent, and buttons step through its errors', async () => {
  const { id } = await plane.agent('cat', { stdin: true });
  const print = (data: string) =>
    plane.client.call('sendInput', { params: { agent_id: id }, body: { data } });
  const fill = (count: number) => 'x\n'.repeat(count);
  await print(`error: one\n${fill(200)}error: two\n${fill(200)}`);
  const { page, errors } = await opened(`/agents/${id}/output`);
  await line(page, 402).waitFor(slow);
  await page.locator(`button[title="Ctrl+F"], button[title="⌘F"]`).getByText('Find').waitFor();

  const following = page.getByRole('switch', { name: 'Following' });
  const state = () => following.getAttribute('aria-checked');
  expect(await state()).toBe('true');
  await following.focus();
  await page.keyboard.press('Enter');
  expect(await state()).toBe('false');
  const top = () => page.evaluate(`${SCROLLER}.scrollTop`);
  const before = await top();
  await print(fill(300));
  await page.getByRole('button', { name: '300 new' }).waitFor(slow);
  expect(await top()).toBe(before);
  await following.click();
  await line(page, 702).waitFor();
  expect(await state()).toBe('true');

  await page.getByText('2 errors').waitFor();
  await page.getByRole('button', { name: 'Previous error' }).click();
  await line(page, 202).getByText('error: two').waitFor();
  expect(await state()).toBe('false');
  await page.getByRole('button', { name: 'Previous error' }).click();
  await line(page, 1).getByText('error: one').waitFor();
  await page.getByRole('button', { name: 'Next error' }).click();
  await line(page, 202).getByText('error: two').waitFor();

  await page.getByRole('button', { name: 'Close input' }).click();
  await following.waitFor({ state: 'detached', ...slow });
  expect(errors).toEqual([]);
});

browserTest('events are filtered with chips that have counts, and rows are 28 px high', async () => {
  const { id } = await plane.agent('echo one; echo two');
  await plane.finished(id);
  const { page, errors } = await opened(`/agents/${id}/events`);
  const types = page.getByRole('group', { name: 'Event type' });
  const list = page.getByRole('region', { name: 'Events' });
  await list.getByText('two').waitFor(slow);
  const chips = async () => (await types.getByRole('button').allTextContents()).map((text) => text.trim());
  const all = await list.getByRole('listitem').count();
  const outputs = await list.getByRole('button', { name: / output / }).count();
  expect(outputs).toBeGreaterThan(0);
  await expect
    .poll(chips, slow)
    .toEqual([`All${all}`, `Output${outputs}`, `Status${all - outputs}`, 'Errors0']);
  const boxes = await list.getByRole('listitem').all();
  for (const row of boxes) expect((await row.boundingBox())?.height).toBe(28);

  await types.getByRole('button', { name: 'Output' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => list.getByRole('listitem').count()).toBe(outputs);
  expect(new URL(page.url()).searchParams.get('type')).toBe('output');
  // Every row has the same type.
  expect(await list.getByRole('button', { name: / output / }).count()).toBe(0);
  await expect.poll(chips).toEqual([`All${all}`, `Output${outputs}`, `Status${all - outputs}`, 'Errors0']);
  await page.goBack();
  await types.getByRole('button', { name: 'All', pressed: true }).waitFor();
  expect(errors).toEqual([]);

  // Without a match, only newer events are read. Requests of a shared worker could not be seen here.
  await page.addInitScript('delete window.SharedWorker');
  const stream = /\/events\?after=/;
  await page.route(stream, (route) => route.fulfill({ status: 404, body: 'no such page' }));
  const following = page.waitForRequest(stream);
  await page.goto(`${plane.url}/agents/${id}/events?type=error`);
  const after = new URL((await following).url()).searchParams.get('after');
  expect(Number(after)).toBe((await plane.get(id)).last_seq);
  const note = page.getByText('Live updates ended: the server answered 404');
  await note.waitFor(slow);
  await page.unroute(stream);
  await page.getByRole('button', { name: 'Try again' }).click();
  await note.waitFor({ state: 'detached' });

  // At midnight, the times of today get a date.
  await page.clock.install();
  await page.goto(`${plane.url}/agents/${id}/events`);
  const time = list.locator('time').first();
  const short = await time.textContent();
  await page.clock.fastForward('24:00:00');
  await expect.poll(() => time.textContent(), slow).toMatch(new RegExp(`.+ ${short}$`));
});
