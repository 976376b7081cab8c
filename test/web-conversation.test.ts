/** The rows of a conversation in a real browser: loading earlier ones, and links to what sub-agents did. */
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Agent } from '../src/features/agents/rules.ts';
import { browserTest, sharedBrowser, signIn, type WatchedPage } from '../src/testing/browser.ts';
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

/** A call that launches a sub-agent of the same name, and the messages of that sub-agent. */
function subagent(toolCallId: string, messages: number): Update[] {
  const marked = (call: string) => ({ _meta: { claudeCode: { parentToolUseId: call } } });
  const rawInput = { subagent_type: toolCallId, description: 'Work', prompt: 'Work.' };
  const launch = { toolCallId, title: 'Delegate', kind: 'think', status: 'in_progress', rawInput };
  return [
    { sessionUpdate: 'tool_call', ...launch },
    ...Array.from({ length: messages }, (_, n) => ({
      ...{ sessionUpdate: 'agent_message_chunk', messageId: `${toolCallId} ${n}` },
      content: { type: 'text', text: `${toolCallId}: step ${n}.` },
      ...marked(toolCallId),
    })),
  ];
}

async function openAgent(updates: Update[]): Promise<WatchedPage & { agent: Agent }> {
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([updates])];
  const agent = await plane.agent(argv, { protocol: 'acp', prompt: 'Begin' });
  await plane.frames(agent.id, (all) => JSON.stringify(all.at(-1)).includes('stopReason'));
  const watched = await browser.open(plane);
  await signIn(watched.page, plane);
  return { ...watched, agent };
}

const log = (page: Page): Locator => page.getByRole('log');

browserTest('earlier rows are loaded above the closed row of a sub-agent with many items', async () => {
  const { page, errors, agent } = await openAgent(subagent('explorer', 200));
  await page.goto(`${plane.url}/agents/${agent.id}/conversation`);
  await log(page).getByRole('button', { name: 'Sub-agent explorer' }).waitFor();
  await log(page).getByText('Begin', { exact: true }).waitFor();
  expect(errors).toEqual([]);
});
