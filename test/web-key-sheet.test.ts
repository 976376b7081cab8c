/** Every key on the sheet of keyboard shortcuts does what the sheet says. */
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Agent } from '../src/features/agents/rules.ts';
import { browserTest, pressSequence, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';

const scripted = fileURLToPath(new URL('../src/testing/acp-agent.ts', import.meta.url));
let plane: TestPlane;
const browser = sharedBrowser();
let agents: Agent[];
let run: { team_id: string; run_id: string };

beforeAll(async () => {
  plane = await TestPlane.open();
  agents = [];
  for (const name of ['one', 'two', 'three'])
    agents.unshift(await plane.create({ name, command: 'true', start: false }));
  const step = { step_key: 'wait', member_id: 'dev', prompt: 'Wait', executor: 'human' };
  const spec = { members: [{ member_id: 'dev', executor: 'human' }], steps: [step] };
  const team = await plane.client.call('createTeam', { body: { name: 'crew', spec } as never });
  const params = { team_id: team.id };
  await plane.client.call('createTask', { params, body: { title: 'Paint the shed' } });
  const { id: run_id } = await plane.client.call('createRun', { params, body: { input: {} } });
  run = { team_id: team.id, run_id };
});
afterAll(async () => {
  await plane.close();
});

/** Expects that an expression becomes true in the page. */
const becomes = (page: Page, expression: string) =>
  expect.poll(() => page.evaluate(`Boolean(${expression})`)).toBe(true);
const rowOf = (agent: Agent) => `document.activeElement.closest('[data-row="${agent.id}"]')`;

const open_cards = "document.querySelectorAll('[data-waiting][data-open]')";
const focused_card = "document.activeElement.matches('[data-waiting][data-open]')";

/**
 * Presses `e` in the row of an agent until the page sends the request, because a second press counts only within 5 s of the
 * first.
 */
async function pressUntilSent(page: Page, agent: Agent, sent: Promise<unknown>): Promise<void> {
  for (let is_sent = false; !is_sent; ) {
    await page.locator(`[data-row="${agent.id}"] a`).first().focus();
    await page.keyboard.press('e');
    is_sent = await Promise.race([sent.then(() => true), setTimeout(1_000, false)]);
  }
}

async function openList(page: Page, path: string): Promise<void> {
  await page.goto(plane.url + path);
  await page.locator('[data-row]').locator('visible=true').first().waitFor();
}

async function focusFirst(page: Page): Promise<void> {
  await openList(page, '/agents');
  await page.keyboard.press('j');
  await becomes(page, rowOf(agents[0]!));
}

/** A conversation with a failed tool call, sixty lines and an open permission review. */
async function openConversation(page: Page): Promise<Agent> {
  const toolCall = { toolCallId: 'ask', title: 'npm publish', kind: 'execute' };
  const options = [
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'no', name: 'No', kind: 'reject_once' },
  ];
  const lines = Array.from({ length: 60 }, (_, n) => ({
    sessionUpdate: 'agent_message_chunk',
    messageId: String(n),
    content: { type: 'text', text: `Line ${n}.` },
  }));
  const failed = { sessionUpdate: 'tool_call', toolCallId: 'bad', title: 'bad call', status: 'failed' };
  const turn = [failed, ...lines, { toolCall, options }, { sleep: 60_000 }];
  const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([turn])];
  const agent = await plane.agent(argv, { name: 'talker', protocol: 'acp', prompt: 'Begin' });
  await page.goto(`${plane.url}/agents/${agent.id}/conversation`);
  await page.getByRole('article').waitFor();
  return agent;
}

const jumps: Record<string, string> = {
  i: '/approvals',
  a: '/agents',
  t: '/teams',
  r: '/runs',
  m: '/mail',
  k: '/tasks',
  n: '/nodes',
};

/** What presses each key and sees its effect, by its section and keys. */
const presses: Record<string, (page: Page) => Promise<void>> = {
  'Everywhere: Ctrl K': async (page) => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search and commands' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('combobox', { name: 'Search and commands' }).waitFor({ state: 'detached' });
  },
  'Everywhere: ?': async (page) => {
    await page.keyboard.press('?');
    const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await sheet.waitFor();
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
  },
  'Everywhere: c': async (page) => {
    await page.keyboard.press('c');
    await page.waitForURL(/\/agents\/new/);
  },
  'Everywhere: /': async (page) => {
    await openList(page, '/agents');
    await page.keyboard.press('/');
    await becomes(page, "document.activeElement.matches('[data-filter]')");
    await page.keyboard.press('Escape');
    await page.getByRole('searchbox', { name: 'Filter agents' }).blur();
  },
  'Everywhere: Alt 1 … 8': async (page) => {
    const agent = await plane.agent(['sleep', '600'], { name: 'runner' });
    const active = page.getByRole('region', { name: 'Active agents' });
    await active.getByRole('link', { name: 'runner' }).waitFor();
    await page.keyboard.press('Alt+1');
    await page.waitForURL(`${plane.url}/agents/${agent.id}**`);
    await openList(page, '/agents');
    await plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query: { force: true } });
    await active.waitFor({ state: 'detached' });
  },
  'Lists: j': async (page) => {
    for (const path of ['/agents', '/nodes', '/tasks', '/tasks?view=list', '/teams', '/runs']) {
      await openList(page, path);
      await page.keyboard.press('j');
      await becomes(page, "document.activeElement.closest('[data-row]')");
    }
    await focusFirst(page);
    await page.keyboard.press('j');
    await becomes(page, rowOf(agents[1]!));
  },
  'Lists: k': async (page) => {
    await page.keyboard.press('k');
    await becomes(page, rowOf(agents[0]!));
  },
  'Lists: ⏎': async (page) => {
    await page.keyboard.press('Enter');
    await page.waitForURL(`${plane.url}/agents/${agents[0]!.id}/output`);
  },
  'Lists: Esc': async (page) => {
    await focusFirst(page);
    await page.keyboard.press('Escape');
    await becomes(page, 'document.activeElement === document.body');
  },
  'Focused agent in the list: o': async (page) => {
    await focusFirst(page);
    await page.keyboard.press('o');
    await page.waitForURL(`${plane.url}/agents/${agents[0]!.id}/output`);
  },
  'Focused agent in the list: d': async (page) => {
    await focusFirst(page);
    await page.keyboard.press('d');
    await page.waitForURL(`${plane.url}/agents/${agents[0]!.id}/changes`);
  },
  'Focused agent in the list: e e': async (page) => {
    const agent = await plane.agent(['sleep', '600'], { name: 'sleeper' });
    const requestTo = (act: string) => page.waitForRequest(`${plane.url}/api/agents/${agent.id}/${act}`);
    await openList(page, '/agents');
    await page.locator(`[data-row="${agent.id}"] a`).first().focus();
    await page.keyboard.press('e');
    await page.getByText('Press e again to stop the agent').first().waitFor();
    expect((await plane.get(agent.id)).status).toBe('running');
    await pressUntilSent(page, agent, requestTo('stop'));
    await plane.finished(agent.id);
    await page.locator(`[data-row="${agent.id}"]`).getByText('Cancelled').first().waitFor();
    await page.locator(`[data-row="${agent.id}"] a`).first().focus();
    await page.keyboard.press('e');
    await page.getByText('Press e again to start the agent').first().waitFor();
    await pressUntilSent(page, agent, requestTo('start'));
    await plane.until(agent.id, ['running']);
    await plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query: { force: true } });
  },
  'Agent page: [': async (page) => {
    await page.goto(`${plane.url}/agents/${agents[1]!.id}`);
    await page.getByRole('heading', { level: 1, name: agents[1]!.name }).waitFor();
    await page.keyboard.press('[');
    await page.getByRole('heading', { level: 1, name: agents[0]!.name }).waitFor();
  },
  'Agent page: ]': async (page) => {
    await page.keyboard.press(']');
    await page.getByRole('heading', { level: 1, name: agents[1]!.name }).waitFor();
    await page.keyboard.press(']');
    await page.getByRole('heading', { level: 1, name: agents[2]!.name }).waitFor();
  },
  'Agent page: n': async (page) => {
    await openConversation(page);
    await page.keyboard.press('n');
    await becomes(page, focused_card);
    await page.keyboard.press('n');
    await page.locator('[data-row].bg-marked').getByText('bad call').waitFor();
    // A digit must not answer a card that is out of view.
    await becomes(page, `!${focused_card}`);
  },
  'Agent page: p': async (page) => {
    await page.keyboard.press('End');
    await page.getByRole('log').getByText('Line 59.').waitFor();
    await page.keyboard.press('p');
    await becomes(page, focused_card);
    await page.goto(page.url().replace(/#.*/, ''));
    await page.getByRole('article').waitFor();
    for (let press = 0; press < 2; press++) await page.keyboard.press('p');
    await page.locator('[data-row].bg-marked').getByText('bad call').waitFor();
  },
  'Agent page: Esc': async (page) => {
    await page.getByRole('textbox', { name: /^Prompt for/ }).press('Escape');
    await becomes(page, focused_card);
  },
  'Agent page: End': async (page) => {
    await page.keyboard.press('End');
    await becomes(
      page,
      "(() => { const log = document.querySelector('[role=log]'); return log.scrollHeight - log.scrollTop - log.clientHeight < 40; })()",
    );
  },
  'Agent page: ⏎': async (page) => {
    const field = page.getByRole('textbox', { name: /^Prompt for/ });
    await field.fill('And then?');
    await field.press('Enter');
    await page.getByRole('list', { name: 'Queued prompts' }).getByText('And then?').waitFor();
  },
  'Agent page: Ctrl ⏎': async (page) => {
    const field = page.getByRole('textbox', { name: /^Prompt for/ });
    await field.fill('And later?');
    await field.press('Control+Enter');
    await page.getByRole('list', { name: 'Queued prompts' }).getByText('And later?').waitFor();
  },
  'Agent page: ⇧ ⏎': async (page) => {
    const field = page.getByRole('textbox', { name: /^Prompt for/ });
    await field.fill('One line');
    await field.press('Shift+Enter');
    await field.pressSequentially('and another');
    expect(await field.inputValue()).toBe('One line\nand another');
    await field.fill('');
    await field.blur();
  },
  'Agent page: . .': async (page) => {
    const cancelled = page.getByRole('log').getByText('Turn cancelled').first();
    const cancelling = page.getByRole('button', { name: 'Cancelling…' });
    await pressSequence(page, ['.', '.'], cancelling.or(cancelled).first());
    await cancelled.waitFor();
  },
  'Approvals and run page: j': async (page) => {
    await openConversation(page);
    await openConversation(page);
    await page.goto(`${plane.url}/approvals`);
    await page.getByRole('article').nth(1).waitFor();
    await page.keyboard.press('j');
    await becomes(page, `${open_cards}[0] === document.activeElement`);
    await page.keyboard.press('j');
    await becomes(page, `${open_cards}[1] === document.activeElement`);
  },
  'Approvals and run page: k': async (page) => {
    await page.keyboard.press('k');
    await becomes(page, `${open_cards}[0] === document.activeElement`);
  },
  'Focused request: 1 … 9': async (page) => {
    await page.keyboard.press('1');
    await page.getByRole('article').getByText('Yes · ana').waitFor();
  },
  'Focused request: r': async (page) => {
    await becomes(page, focused_card);
    await page.keyboard.press('r');
    await becomes(page, "document.activeElement.matches('article textarea')");
    await page.keyboard.press('Escape');
    await becomes(page, focused_card);
  },
  'Focused request: ⏎': async (page) => {
    const params = { ...run, step_key: 'wait' };
    await plane.client.call('requireStepInput', { params, body: { reason: 'Which color?' } });
    const card = page.getByRole('article', { name: 'Which color?' });
    await card.focus();
    await page.keyboard.press('Enter');
    await becomes(page, "document.activeElement.matches('article textarea')");
  },
  'Focused request: Esc': async (page) => {
    await page.keyboard.press('Escape');
    await becomes(page, "document.activeElement.matches('article')");
    await page.keyboard.press('Escape');
    await becomes(page, 'document.activeElement === document.body');
  },
};

browserTest('every key on the sheet does what it says', { timeout: 300_000 }, async () => {
  const { page, errors } = await browser.open(plane);
  await signIn(page, plane);
  await openList(page, '/agents');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  const rows = (await page.evaluate(`[...document.querySelectorAll('[role=dialog] section')].flatMap((part) =>
    [...part.querySelectorAll('dd')].map((keys) => part.querySelector('h3').textContent + ': ' +
      [...keys.querySelectorAll('kbd')].map((key) => key.textContent).join(' ')))`)) as string[];
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const isJump = (row: string) => row.startsWith('Everywhere: g ');
  expect(rows.filter((row) => !isJump(row))).toEqual(Object.keys(presses));
  expect(
    rows
      .filter(isJump)
      .map((row) => row.at(-1))
      .sort(),
  ).toEqual(Object.keys(jumps).sort());
  for (const row of rows.filter(isJump)) {
    const letter = row.at(-1)!;
    const url = `${plane.url}${jumps[letter]}`;
    await pressSequence(page, ['g', letter], () => page.url() === url);
  }
  for (const row of rows.filter((each) => !isJump(each))) await presses[row]!(page);
  expect(errors).toEqual([]);
});
