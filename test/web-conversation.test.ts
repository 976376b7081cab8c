/**
 * A conversation in a real browser: loading earlier rows, links to what sub-agents did, and the folder in its side panel.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { browserTest, isInView, sharedBrowser, signIn, type WatchedPage } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

type Update = Record<string, unknown>;

const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
let plane: TestPlane;
const browser = sharedBrowser();
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(async () => {
  await plane.close();
});

/** A call that launches a sub-agent of the same name, and the messages of that sub-agent. `parent`: the one that calls. */
function subagent(toolCallId: string, messages: number, parent?: string): Update[] {
  const marked = (call: string) => ({ _meta: { claudeCode: { parentToolUseId: call } } });
  const rawInput = { subagent_type: toolCallId, description: 'Work', prompt: 'Work.' };
  const launch = { toolCallId, title: 'Delegate', kind: 'think', status: 'in_progress', rawInput };
  return [
    { sessionUpdate: 'tool_call', ...launch, ...(parent !== undefined && marked(parent)) },
    ...Array.from({ length: messages }, (_, n) => ({
      ...{ sessionUpdate: 'agent_message_chunk', messageId: `${toolCallId} ${n}` },
      content: { type: 'text', text: `${toolCallId}: step ${n}.` },
      ...marked(toolCallId),
    })),
  ];
}

interface OpenAgent extends WatchedPage {
  /** Of its conversation. */
  url: string;
  /** The number of the frame with this text. */
  seqOf: (text: string) => number;
}

async function openAgent(updates: Update[], workdir = plane.work): Promise<OpenAgent> {
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([updates])];
  const agent = await plane.agent(argv, { protocol: 'acp', prompt: 'Begin', workdir });
  const frames = await plane.frames(agent.id, (all) => JSON.stringify(all.at(-1)).includes('stopReason'));
  const watched = await browser.open(plane);
  await signIn(watched.page, plane);
  const seqOf = (text: string) => Number(frames.find(({ data }) => JSON.stringify(data).includes(text))!.id);
  return { ...watched, url: `${plane.url}/agents/${agent.id}/conversation`, seqOf };
}

const log = (page: Page): Locator => page.getByRole('log');

browserTest('earlier rows are loaded above the closed row of a sub-agent with many items', async () => {
  const { page, errors, url } = await openAgent(subagent('explorer', 200));
  await page.goto(url);
  await log(page).getByRole('button', { name: 'Sub-agent explorer' }).waitFor();
  await log(page).getByText('Begin', { exact: true }).waitFor();
  expect(errors).toEqual([]);
});

browserTest('a sub-agent with many items leaves the page at the end', async () => {
  const text = 'Next.\n\n'.repeat(8);
  const messages = Array.from({ length: 40 }, (_, n) => ({
    ...{ sessionUpdate: 'agent_message_chunk', messageId: `m${n}` },
    content: { type: 'text', text: `Message ${n}. ${text}` },
  }));
  const { page, url } = await openAgent([...messages, ...subagent('explorer', 300)]);
  await page.goto(url);
  await log(page).getByRole('button', { name: 'Sub-agent explorer' }).waitFor();
  await log(page).getByText('Message 39.').waitFor();
  /** How many rows the page has in the next frames, and whether it is at the end. */
  const nextStates = () =>
    log(page).evaluate(async (box) => {
      const states = new Set<string>();
      for (let n = 0; n < 30; n++) {
        await new Promise((resolve) => box.ownerDocument.defaultView.requestAnimationFrame(resolve));
        const is_at_end = box.scrollHeight - box.scrollTop - box.clientHeight < 2;
        states.add(
          `${box.querySelectorAll('[data-row]').length} rows, ${is_at_end ? 'at the end' : 'above'}`,
        );
      }
      return [...states];
    });
  await expect.poll(nextStates, { timeout: 30_000 }).toEqual([expect.stringMatching(/at the end$/)]);
  expect(await page.getByRole('button', { name: 'Jump to latest' }).count()).toBe(0);
});

browserTest('earlier rows inside an open sub-agent do not move the rows in view', async () => {
  const { page, url, seqOf } = await openAgent(subagent('explorer', 300));
  await page.goto(`${url}#e${seqOf('explorer: step 200.')}`);
  const first = log(page).getByText('explorer: step 180.');
  const last_hidden = log(page).getByText('explorer: step 179.');
  await first.waitFor();
  expect(await last_hidden.count()).toBe(0);
  await log(page).hover();
  await page.mouse.wheel(0, -20_000);
  await last_hidden.waitFor();
  expect(await isInView(first, log(page))).toBe(true);
});

browserTest(
  'a link to an event of a nested sub-agent opens both sub-agents and comes into view',
  async () => {
    const updates = [...subagent('outer', 60), ...subagent('inner', 60, 'outer'), ...subagent('last', 60)];
    const { page, url, seqOf } = await openAgent(updates);
    await page.goto(`${url}#e${seqOf('inner: step 30.')}`);
    const linked = log(page).locator('[data-row].bg-marked').getByText('inner: step 30.');
    await expect.poll(() => isInView(linked, log(page))).toBe(true);
    const other = log(page).getByRole('button', { name: 'Sub-agent last' });
    expect(await other.getAttribute('aria-expanded')).toBe('false');

    // The first event of a sub-agent is also the one of its row.
    await page.evaluate(`location.hash = 'e${seqOf('last: step 0.')}'`);
    const first = log(page).locator('[data-row].bg-marked').getByText('last: step 0.');
    await expect.poll(() => isInView(first, log(page))).toBe(true);
    await log(page).hover();
    await page.mouse.wheel(0, 20_000);
    await expect.poll(() => isInView(first, log(page))).toBe(false);
    // The user can close it again.
    await other.click();
    await first.waitFor({ state: 'detached' });
    expect(await other.getAttribute('aria-expanded')).toBe('false');
  },
);

browserTest('the side panel shows the end of a long folder, and copies all of it', async () => {
  const workdir = join(plane.work, 'worktrees-of-everybody', 'fix-checkout-race-of-the-shop');
  mkdirSync(workdir, { recursive: true });
  const { page, url } = await openAgent([], workdir);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: plane.url });
  await page.goto(url);
  const panel = page.getByRole('complementary', { name: 'About this conversation' });
  const path = panel.getByTitle(workdir, { exact: true });
  for (const width of [200, 288, 400]) {
    await page.evaluate(`localStorage.setItem('svc.side', '${width}')`);
    await page.reload();
    await path.waitFor();
    const { lines, cut, end } = await path.evaluate((element) => {
      const range = element.ownerDocument.createRange();
      range.selectNodeContents(element.lastChild!);
      const all = [element, ...element.querySelectorAll('*')];
      return {
        lines: Math.round(
          element.clientHeight /
            Number.parseFloat(element.ownerDocument.defaultView!.getComputedStyle(element).lineHeight),
        ),
        cut: all.filter((one) => one.scrollWidth > one.clientWidth).length,
        end: element.getBoundingClientRect().right - range.getBoundingClientRect().right,
      };
    });
    expect({ lines, cut }).toEqual({ lines: 1, cut: 1 });
    expect(end).toBeGreaterThanOrEqual(0);
  }
  const selected = path.evaluate((element) => {
    const selection = element.ownerDocument.getSelection()!;
    selection.selectAllChildren(element);
    return selection.toString();
  });
  expect(await selected).toBe(workdir);
  await panel.getByRole('button', { name: 'Copy path' }).click();
  await page.getByText('Copied').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(workdir);
});
