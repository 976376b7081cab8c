/** An agent's page in a real browser, with real agents: conversation, prompts, permission reviews and sub-agents. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import type { EventRecord } from '../src/core/event.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import type { Prompt } from '../src/features/conversations/rules.ts';
import type { ScenarioName } from '../src/testing/acp-scenarios.ts';
import {
  browserTest,
  longBrowserTest,
  pressComposing,
  pressSequence,
  sharedBrowser,
  signIn,
  type WatchedPage,
} from '../src/testing/browser.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';

type Update = Record<string, unknown>;

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

function scene(name: ScenarioName, argument?: unknown, prompt?: string): Promise<Agent> {
  const argv = [
    process.execPath,
    scripted,
    name,
    ...(argument === undefined ? [] : [JSON.stringify(argument)]),
  ];
  return plane.agent(argv, { name: `${name}-agent`, protocol: 'acp', ...(prompt && { prompt }) });
}

/** An agent that sends these updates, one list per turn. */
const scriptedAgent = (turns: Update[][], prompt?: string) => scene('sends_updates', turns, prompt);

let gates = 0;
/** A pause in a turn until `open` is called. */
function makeGate(): { pause: Update; open: () => void } {
  const until_file = join(plane.folder, `gate-${++gates}`);
  return { pause: { until_file }, open: () => writeFileSync(until_file, '') };
}

function message(text: string, messageId = text): Update {
  return { sessionUpdate: 'agent_message_chunk', messageId, content: { type: 'text', text } };
}

async function openAgentPage(agent: Pick<Agent, 'id'>, more = '', options = {}): Promise<WatchedPage> {
  const watched = await browser.open(plane, options);
  await signIn(watched.page, plane);
  await watched.page.goto(`${plane.url}/agents/${agent.id}${more}`);
  return watched;
}

const field = (page: Page) => page.getByRole('textbox', { name: /^Prompt for/ });
const log = (page: Page) => page.getByRole('log');
const focused = (page: Page, element: Locator) => element.and(page.locator(':focus'));

async function sendPrompt(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press('ControlOrMeta+Enter');
}

browserTest(
  'a review shows the agent’s options in their order, takes no focus, and accepts digits only when focused',
  async () => {
    const options = [
      { optionId: 'z', name: 'Ja, klar', kind: 'allow_once' },
      { optionId: 'a', name: ' odd  name ', kind: 'of_another_world' },
      { optionId: 'm', name: 'Immer', kind: 'allow_always' },
      { optionId: 'n', name: 'Nein', kind: 'reject_once' },
    ];
    const toolCall = {
      toolCallId: 't',
      title: 'npm publish \u202e',
      kind: 'execute',
      rawInput: { command: 'npm publish' },
    };
    const agent = await scriptedAgent([[{ sleep: 300 }, { toolCall, options }, message('Thank you.')]]);
    const { page, errors } = await openAgentPage(agent);
    await sendPrompt(page, 'Go on.');
    await field(page).pressSequentially('1');
    const card = page.getByRole('article');
    await card.getByText('npm publish ⟦U+202E⟧').waitFor();
    expect(await page.evaluate('document.activeElement.tagName')).toBe('TEXTAREA');
    const names = await card.locator('button bdi').evaluateAll((all) => all.map((one) => one.textContent));
    expect(names).toEqual(options.map(({ name }) => name));
    // In one row: the note about *Immer* is below them.
    const tops = await card
      .locator('button:has(bdi)')
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top));
    expect(new Set(tops).size).toBe(1);
    await page.keyboard.press('1');
    await field(page).blur();
    await page.keyboard.press('1');
    expect(await field(page).inputValue()).toBe('11');
    expect((await plane.get(agent.id)).pending_reviews).toBe(1);
    await card.focus();
    await page.keyboard.press('2');
    await card.getByText('odd name · ana').waitFor();
    await log(page).getByText('Thank you.').waitFor();
    const [review] = (await plane.client.call('listReviews', { query: { agent_id: agent.id } })) as never as [
      { option_id: string },
    ];
    expect(review.option_id).toBe('a');
    expect(errors).toEqual([]);
  },
);

browserTest('a draft survives a reload, and queued prompts can be edited and removed', async () => {
  const again = [message('Second.', 'again')];
  const agent = await scriptedAgent([[{ sleep: 600_000 }], [message('Second.')], again], 'First');
  const { page } = await openAgentPage(agent);
  await field(page).fill('half a thought');
  await page.reload();
  await expect.poll(() => field(page).inputValue(), SOON).toBe('half a thought');
  await field(page).focus();
  await pressComposing(page, 'Enter');
  // Until its turn begins, the first prompt is in the queue too.
  await log(page).getByText('First', { exact: true }).waitFor();
  await sendPrompt(page, 'also run lint');
  const waiting = page.getByRole('list', { name: 'Queued prompts' });
  await waiting.getByText('also run lint').waitFor();
  await expect.poll(() => field(page).inputValue(), SOON).toBe('');
  const item = (text: string) => waiting.getByRole('listitem').filter({ hasText: text });
  expect(await item('half a thought').count()).toBe(0);
  await item('also run lint').getByRole('button', { name: 'Edit prompt' }).press('Enter');
  const edited = waiting.getByRole('textbox', { name: 'Queued prompt' });
  await focused(page, edited).waitFor();
  await edited.fill('also run the tests');
  await page.reload();
  await expect.poll(() => edited.inputValue(), SOON).toBe('also run the tests');
  await waiting.getByRole('button', { name: 'Save' }).press('Enter');
  await waiting.getByText('also run the tests').waitFor();
  const edit = item('also run the tests').getByRole('button', { name: 'Edit prompt' });
  await focused(page, edit).waitFor();
  await sendPrompt(page, 'and this');
  await waiting.getByText('and this').waitFor();
  await item('and this').getByRole('button', { name: 'Remove prompt' }).press('Enter');
  await waiting.getByText('and this').waitFor({ state: 'detached' });
  await focused(page, edit).waitFor();
  await item('also run the tests').getByRole('button', { name: 'Send now' }).click();
  await log(page).getByText('Turn cancelled').waitFor();
  await log(page).getByText('also run the tests').waitFor();
  await log(page).getByText('Second.').waitFor();
  await waiting.waitFor({ state: 'detached' });
  // Screen readers hear the first message too, and the same text again, as a new element.
  const heard = page.locator('[aria-live=polite].sr-only > p', { hasText: 'Second.' });
  await heard.waitFor({ state: 'attached', ...SOON });
  await heard.evaluate((element) => element.setAttribute('data-first', ''));
  await sendPrompt(page, 'Once more');
  await page.locator('[aria-live=polite].sr-only > p:not([data-first])', { hasText: 'Second.' }).waitFor({
    state: 'attached',
    ...SOON,
  });
});

longBrowserTest(
  'tool calls share a group, an answered review is a note in it, and the turn’s end has links',
  async () => {
    const workdir = makeRepository(join(plane.work, 'linked'), { 'a.txt': 'a\n' });
    const edit = { toolCallId: 'edit', title: `Edit ${workdir}/a.txt`, kind: 'edit' };
    const content = [{ type: 'diff', path: `${workdir}/a.txt`, oldText: 'a\n', newText: 'b\nc\n' }];
    const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }];
    const updates = [
      { sessionUpdate: 'tool_call', toolCallId: 'look', title: 'Look', kind: 'search', status: 'completed' },
      { sessionUpdate: 'tool_call', ...edit, status: 'pending', content },
      { toolCall: edit, options },
      { sessionUpdate: 'tool_call_update', toolCallId: 'edit', status: 'completed' },
      message('Done.'),
    ];
    const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([updates])];
    const agent = await plane.agent(argv, {
      name: 'linked',
      protocol: 'acp',
      workdir,
      prompt: 'Change a.txt',
    });
    const { page, errors } = await openAgentPage(agent);
    await page.getByRole('article').waitFor();
    await page.keyboard.press('n');
    await page.keyboard.press('1');
    const line = log(page).getByRole('button', {
      name: /^edit Edit .*allowed by ana after .*\+2 lines added/,
    });
    await line.waitFor();
    // The focus stays where the card was.
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toContain('allowed by ana');
    expect(await page.getByRole('article').count()).toBe(0);
    const tops = await log(page)
      .getByRole('button', { name: /^(search|edit) / })
      .evaluateAll((lines) => lines.map((each) => each.getBoundingClientRect().top));
    expect(tops[1] - tops[0]).toBe(29);
    // Links to rows are in the gutter and are no tab stops.
    await line.hover();
    const link = log(page).getByRole('link', { name: 'Link to event' }).last();
    const [left, right] = [await link.boundingBox(), await line.boundingBox()];
    expect([left!.x + left!.width <= right!.x, await link.getAttribute('tabindex')]).toEqual([true, '-1']);
    const end = log(page).getByText('Turn ended').locator('xpath=..');
    await end.getByRole('link', { name: '2 tools' }).waitFor();
    await end.getByRole('link', { name: /\+2 lines added/ }).click();
    await page.waitForURL(`${plane.url}/agents/${agent.id}/changes`);
    expect(errors).toEqual([]);
  },
);

browserTest('a prompt whose response was lost is not cancelled when it is sent again', async () => {
  const agent = await scriptedAgent(
    [[{ sleep: 600_000 }], [message('Second.'), { sleep: 600_000 }]],
    'First',
  );
  const { page } = await openAgentPage(agent);
  await log(page).getByText('First', { exact: true }).waitFor();
  const sendNow = async () => {
    await page.getByRole('button', { name: 'More ways to send' }).click();
    await page.getByRole('menuitem', { name: 'Send now' }).click();
  };
  await field(page).fill('Do this.');
  await page.route(
    '**/prompt',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await sendNow();
  await page.getByText('The service is not responding.').waitFor();
  await expect.poll(() => field(page).inputValue(), SOON).toBe('Do this.');
  // The service has the prompt, whose turn begins as soon as the other one ends.
  const params = { agent_id: agent.id };
  await plane.client.call('cancelTurn', { params });
  await log(page).getByText('Second.').waitFor();
  await page.reload();
  await sendNow();
  await expect.poll(() => field(page).inputValue(), SOON).toBe('');
  const prompts = (await plane.client.call('listPrompts', { params })) as never as Prompt[];
  expect(prompts.map(({ state, content }) => [state, content[0]!.text])).toEqual([['sent', 'Do this.']]);
  expect(await log(page).getByText('Turn cancelled').count()).toBe(1);
});

browserTest(
  'a slow prompt that another page has restored is neither doubled nor left in the field',
  async () => {
    const agent = await scriptedAgent([[{ sleep: 600_000 }]], 'First');
    const { page } = await openAgentPage(agent);
    await log(page).getByText('First', { exact: true }).waitFor();
    const held: (() => void)[] = [];
    /** Sends a text, whose request continues or fails when the result is called. */
    const hold = async (text: string, act: 'continue' | 'abort') => {
      await page.route('**/prompt', (route) => void held.push(() => void route[act]()), { times: 1 });
      await field(page).fill(text);
      await page.getByRole('button', { name: 'Queue' }).click();
      await expect.poll(() => held.length, SOON).toBe(1);
      return held.pop()!;
    };
    const release = await hold('Once', 'continue');
    const other = await page.context().newPage();
    await other.goto(page.url());
    await expect.poll(() => field(other).inputValue(), SOON).toBe('Once');
    release();
    const waiting = page.getByRole('list', { name: 'Queued prompts' });
    await waiting.getByText('Once').waitFor();
    await expect.poll(() => field(other).inputValue(), SOON).toBe('');
    await expect.poll(() => field(page).inputValue(), SOON).toBe('');
    await other.close();

    const fail = await hold('Again', 'abort');
    await page.getByRole('link', { name: 'Events' }).click();
    await page.getByRole('link', { name: 'Conversation' }).click();
    await expect.poll(() => field(page).inputValue(), SOON).toBe('Again');
    const failed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/prompt'));
    fail();
    await failed;
    await page.evaluate('new Promise((resolve) => setTimeout(resolve))');
    expect(await field(page).inputValue()).toBe('Again');
  },
);

browserTest('what is typed into a queued prompt while it is saved stays', async () => {
  const agent = await scriptedAgent([[{ sleep: 600_000 }]], 'First');
  const { page } = await openAgentPage(agent);
  await log(page).getByText('First', { exact: true }).waitFor();
  await sendPrompt(page, 'Run lint');
  const waiting = page.getByRole('list', { name: 'Queued prompts' });
  await waiting.getByRole('button', { name: 'Edit prompt' }).click();
  const edited = waiting.getByRole('textbox', { name: 'Queued prompt' });
  await edited.fill('Run the tests');
  let save = () => {};
  const saving = new Promise<void>((resolve) => {
    void page.route(/\/prompts\/\w+$/, async (route) => {
      if (route.request().method() === 'GET') return await route.continue();
      save = () => void route.continue();
      return resolve();
    });
  });
  await waiting.getByRole('button', { name: 'Save' }).click();
  await saving;
  await edited.fill('Run the tests, then lint');
  const saved = page.waitForResponse((response) => response.request().method() === 'PATCH');
  save();
  await saved;
  await page.unroute(/\/prompts\/\w+$/);
  await waiting.getByRole('button', { name: 'Save' }).click();
  await waiting.getByText('Run the tests, then lint').waitFor();
  await edited.waitFor({ state: 'detached' });
});

longBrowserTest('Enter sends or starts a new line, and a prompt can replace the current turn', async () => {
  const agent = await scriptedAgent(
    [[{ sleep: 600_000 }], [message('Second.')], [message('Third.')]],
    'First',
  );
  const { page, errors } = await openAgentPage(agent);
  await log(page).getByText('First', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Queue' }).waitFor();
  await field(page).pressSequentially('Stop that.');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('Do this.');
  expect(await field(page).inputValue()).toBe('Stop that.\nDo this.');
  await page.getByRole('button', { name: 'More ways to send' }).click();
  await page.getByRole('menuitem', { name: 'Send now' }).click();
  await log(page).getByText('Turn cancelled').waitFor();
  await log(page).getByText('Do this.').waitFor();
  await log(page).getByText('Second.').waitFor();
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
  await page.goto(`${plane.url}/settings/appearance`);
  await page.getByRole('radio', { name: /\+Enter$/ }).check();
  await page.goto(`${plane.url}/agents/${agent.id}`);
  await field(page).fill('One');
  await page.keyboard.press('Enter');
  await page.keyboard.type('Two');
  expect(await field(page).inputValue()).toBe('One\nTwo');
  await page.keyboard.press('ControlOrMeta+Enter');
  await log(page).getByText('Third.').waitFor();
  expect(errors).toEqual([]);
});

browserTest(
  'new messages are counted without moving a reader who scrolled up, and End jumps to them',
  async () => {
    const first = Array.from({ length: 80 }, (_, n) => message(`Old line ${n}`));
    const later = Array.from({ length: 120 }, (_, n) => message(`New line ${n}`));
    const gate = makeGate();
    const agent = await scriptedAgent([first, [gate.pause, ...later]], 'Begin');
    const { page } = await openAgentPage(agent);
    await log(page).getByText('Old line 79').waitFor();
    await log(page).getByText('Turn ended').waitFor();
    await sendPrompt(page, 'More');
    await log(page).getByText('More', { exact: true }).waitFor();
    await log(page).hover();
    await page.mouse.wheel(0, -600);
    const pill = page.getByRole('button', { name: /new$|^Jump to latest$/ });
    await pill.waitFor();
    const topOf = () => log(page).evaluate((box) => box.scrollTop);
    const before = await topOf();
    gate.open();
    await page.getByRole('button', { name: /^1[0-9][0-9] new$/ }).waitFor();
    expect(await topOf()).toBe(before);
    await field(page).blur();
    await page.keyboard.press('End');
    await pill.waitFor({ state: 'detached' });
    await expect.poll(() => log(page).getByText('New line 119').isVisible(), SOON).toBe(true);
    const below = await log(page).evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    expect(below).toBeLessThanOrEqual(1);
  },
);

longBrowserTest('a growing message leaves its earlier paragraphs in the page untouched', async () => {
  const paragraph = (n: number) =>
    `Paragraph ${n} with *some* words, \`code\` and a [link](https://example.org/${n}).\n\n`;
  const chunks = Array.from({ length: 40 }, (_, n) => [message(paragraph(n), 'one'), { sleep: 5 }]).flat();
  const gate = makeGate();
  const agent = await scriptedAgent([
    [...chunks.slice(0, 20), gate.pause, ...chunks.slice(20), message('The end.', 'one')],
  ]);
  const { page } = await openAgentPage(agent);
  await sendPrompt(page, 'Tell me');
  await log(page).getByText('Paragraph 5 ').waitFor();
  await page.evaluate(`
    window.touched = 0;
    const row = [...document.querySelectorAll('[data-row]')].find((one) => one.textContent.includes('Paragraph 0 '));
    const finished = row.querySelectorAll('p');
    for (let at = 0; at < 3; at++) new MutationObserver((all) => { window.touched += all.length; })
      .observe(finished[at], { subtree: true, childList: true, characterData: true, attributes: true });
    window.first = finished[0];`);
  gate.open();
  await log(page).getByText('The end.').waitFor();
  expect(await page.evaluate('[window.touched, document.contains(window.first)]')).toEqual([0, true]);
});

browserTest('the last paragraph of a message is the same element when the message has ended', async () => {
  const gate = makeGate();
  const agent = await scriptedAgent([
    [message('The first.\n\nThe *last* paragraph', 'one'), gate.pause, message('.', 'one')],
  ]);
  const { page } = await openAgentPage(agent);
  await sendPrompt(page, 'Tell me');
  const last = log(page).locator('p', { hasText: 'The last paragraph' });
  const paragraph = await last.elementHandle();
  const caret = log(page).locator('.with-caret');
  await caret.waitFor();
  gate.open();
  await last.filter({ hasText: /\.$/ }).waitFor();
  await caret.waitFor({ state: 'detached' });
  expect(await paragraph!.evaluate((one) => one.isConnected)).toBe(true);
});

browserTest('hostile text runs nothing, loads nothing, and links only to web pages', async () => {
  const evil = [
    '<img src="https://evil.example/a.png" onerror="document.title=1"> <script>document.title=2</script>',
    '![picture](https://evil.example/b.png) [bad](javascript:document.title=3) [data](data:text/html,x)',
    '[good](https://example.org/page)',
  ].join('\n\n');
  const svg = 'data:image/svg+xml,<svg onload="document.title=4"/>';
  const agent = await scriptedAgent([
    [
      message(evil, 'one'),
      {
        sessionUpdate: 'agent_message_chunk',
        messageId: 'two',
        content: { type: 'resource_link', uri: svg, name: 'x' },
      },
      {
        sessionUpdate: 'tool_call',
        toolCallId: 't',
        title: '<b onmouseover=alert(1)>\u001b[31mred\u202e',
        kind: 'execute',
        status: 'failed',
        content: [{ type: 'content', content: { type: 'text', text: evil } }],
      },
      { sessionUpdate: 'of_another_world', html: '<img src=x onerror=alert(1)>' },
      message('Done.'),
    ],
  ]);
  const { page, errors, foreign_requests } = await openAgentPage(agent);
  await sendPrompt(page, 'Go on <img src=x onerror=alert(1)>');
  await log(page).getByText('Done.').waitFor();
  await log(page).getByText('Unrecognized update: of_another_world').click();
  await log(page).getByText('onerror=alert(1)').first().waitFor();
  const links = await log(page)
    .locator(`a:not([href^="#"], [href="/agents/${agent.id}/timeline"])`)
    .evaluateAll((all) =>
      all.map((a) => [a.getAttribute('href')!, a.getAttribute('rel'), a.getAttribute('target')].join(' ')),
    );
  for (const link of links)
    expect(link).toMatch(/^https:\/\/(evil\.example\/b\.png|example\.org\/page) noreferrer noopener _blank$/);
  expect(links.length).toBeGreaterThan(2);
  expect(await log(page).locator('img, script, iframe, b').count()).toBe(0);
  await log(page).getByText('<b onmouseover=alert(1)>⟦U+001B⟧[31mred⟦U+202E⟧').waitFor();
  expect(await page.title()).toContain('sends_updates-agent');
  expect({ errors, foreign_requests }).toEqual({ errors: [], foreign_requests: [] });
});

browserTest(
  'a cancelled turn is marked at once, its tool calls are cancelled, and late messages are shown',
  async () => {
    const tool = (status: string) => ({
      sessionUpdate: 'tool_call',
      toolCallId: 't',
      title: 'npm test',
      kind: 'execute',
      status,
    });
    const gate = makeGate();
    const agent = await scriptedAgent([[tool('in_progress'), gate.pause, message('Too late.')]]);
    const { page } = await openAgentPage(agent);
    await sendPrompt(page, 'Test it');
    await log(page).getByText('npm test').waitFor();
    await page.getByRole('button', { name: 'Cancel turn' }).waitFor();
    // Delays the request until the button shows that it is in progress.
    await page.route('**/cancel', async (route) => {
      await page.getByRole('button', { name: 'Cancelling…' }).waitFor();
      await route.continue();
    });
    await field(page).blur();
    const cancelled = log(page).getByText('Turn cancelled');
    const cancelling = page.getByRole('button', { name: 'Cancelling…' });
    await pressSequence(page, ['.', '.'], cancelling.or(cancelled).first());
    await cancelled.waitFor();
    await log(page)
      .getByRole('button', { name: /npm test.*cancelled/i })
      .waitFor();
    gate.open();
    await log(page).getByText('Too late.').waitFor();
  },
);

browserTest('a link to an event opens the conversation there and highlights the event', async () => {
  const agent = await scriptedAgent([Array.from({ length: 400 }, (_, n) => message(`Line ${n}.`))], 'Begin');
  const frames = await plane.frames(agent.id, (all) => JSON.stringify(all.at(-1)).includes('stopReason'));
  const event_id = frames.find(({ data }) => JSON.stringify(data).includes('Line 30.'))!.id;
  const { page } = await openAgentPage(agent, `/conversation#e${event_id}`);
  const row = page.locator(`[data-item="${event_id}"]`);
  await row.getByText('Line 30.').waitFor();
  const seen = `(() => {
    const row = document.querySelector('[data-item="${event_id}"]');
    const { top, bottom } = row.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight && getComputedStyle(row).outlineStyle === 'solid';
  })()`;
  await expect.poll(() => page.evaluate(seen), SOON).toBe(true);
  await page.getByRole('button', { name: /^(Jump to latest|\d+ new)$/ }).waitFor();
});

longBrowserTest('a linked event at the end stays on the screen while more arrives', async () => {
  const lines = (first: number) => Array.from({ length: 60 }, (_, n) => message(`Line ${first + n}.`));
  const agent = await scriptedAgent([lines(0), lines(60), lines(120)], 'Begin');
  const frames = await plane.frames(agent.id, (all) => JSON.stringify(all.at(-1)).includes('stopReason'));
  const event_id = frames.find(({ data }) => JSON.stringify(data).includes('Line 59.'))!.id;
  const { page } = await openAgentPage(agent, '/conversation');
  await log(page).getByText('Line 59.').hover();
  // The conversation must have scrolled to its end before.
  await expect.poll(() => log(page).evaluate((box) => box.scrollTop)).toBeGreaterThan(0);
  await page.mouse.wheel(0, -20_000);
  await page.getByRole('button', { name: 'Jump to latest' }).waitFor();
  await page.evaluate(`location.hash = 'e${event_id}'`);
  const isOnScreen = `(() => {
    const { top, bottom } = document.querySelector('[data-item="${event_id}"]').getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  })()`;
  await expect.poll(() => page.evaluate(isOnScreen), SOON).toBe(true);
  await plane.client.call('promptAgent', { params: { agent_id: agent.id }, body: { text: 'More' } });
  await page.getByRole('button', { name: /^\d+ new$/ }).waitFor();
  expect(await page.evaluate(isOnScreen)).toBe(true);
  await page.getByRole('button', { name: /^\d+ new$/ }).click();
  await log(page).getByText('Line 119.').waitFor();
  await sendPrompt(page, 'And more');
  await log(page).getByText('Line 179.').waitFor();
});

browserTest('typing a slash offers the agent’s commands, which can be chosen with keys', async () => {
  const availableCommands = [
    { name: 'plan', description: 'Plans', input: { hint: 'what' } },
    { name: 'clear', description: 'Forgets' },
  ];
  const agent = await scriptedAgent(
    [[{ sessionUpdate: 'available_commands_update', availableCommands }, message('Hi.')]],
    'Hello',
  );
  const { page } = await openAgentPage(agent);
  await log(page).getByText('Hi.').waitFor();
  await field(page).pressSequentially('/');
  await page.getByRole('option', { name: /plan/ }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  expect(await field(page).inputValue()).toBe('/clear ');
  expect(await page.getByRole('listbox').count()).toBe(0);
});

longBrowserTest(
  'typing @ offers files, which are inserted into the prompt in the form that agents read',
  async () => {
    const files = { 'src/cart.ts': '', 'src/cart.test.ts': '', 'a la carte.md': '', 'other.ts': '' };
    const workdir = makeRepository(join(plane.work, 'shop'), files);
    const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify([[message('Seen.')]])];
    const agent = await plane.agent(argv, { name: 'reader', protocol: 'acp', workdir });
    const { page, errors } = await openAgentPage(agent);
    await field(page).fill('Look at ');
    await field(page).pressSequentially('@CART');
    const options = page.getByRole('listbox', { name: 'Files in the agent’s folder' }).getByRole('option');
    await expect
      .poll(() => options.allTextContents(), SOON)
      .toEqual(['cart.tssrc', 'cart.test.tssrc', 'a la carte.md']);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Tab');
    expect(await field(page).inputValue()).toBe('Look at @src/cart.test.ts ');
    expect(await options.count()).toBe(0);
    await field(page).pressSequentially('and @a');
    await options.getByText('a la carte.md').click();
    await field(page).pressSequentially('now');
    expect(await field(page).inputValue()).toBe('Look at @src/cart.test.ts and @"a la carte.md" now');
    await field(page).pressSequentially(' @none');
    await expect.poll(() => options.count(), SOON).toBe(0);
    expect(errors).toEqual([]);
  },
);

longBrowserTest('an agent that completed with changes offers to review them first', async () => {
  const workdir = makeRepository(join(plane.work, 'reviewed'), { 'a.txt': 'a' });
  const agent = await plane.agent('echo b >a.txt', { name: 'editor', workdir });
  await plane.finished(agent.id);
  const { page } = await openAgentPage(agent);
  await page.getByRole('link', { name: 'Review changes' }).click();
  await page.waitForURL(`${plane.url}/agents/${agent.id}/changes`);
  await page.getByRole('button', { name: 'Restart' }).waitFor();
});

longBrowserTest(
  'Stop does not take the place of Cancel turn, and the second . does what the first offered',
  async () => {
    const workdir = makeRepository(join(plane.work, 'idle'), { 'a.txt': 'a' });
    const turns = [[message('Begun.'), { sleep: 60_000 }], [message('Again.')]];
    const argv = [process.execPath, scripted, 'sends_updates', JSON.stringify(turns)];
    const agent = await plane.agent(argv, { name: 'worker', protocol: 'acp', workdir, prompt: 'Begin' });
    const { page } = await openAgentPage(agent);
    await log(page).getByText('Begun.').waitFor();
    await page.getByRole('button', { name: 'Cancel turn' }).first().waitFor();
    writeFileSync(join(workdir, 'a.txt'), 'b');
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('.');
    await page.getByText('Press . again to cancel the turn').first().waitFor({ state: 'attached' });
    await plane.client.call('cancelTurn', { params: { agent_id: agent.id } });
    // Where the button was is now a harmless one, and the offer of the first press is gone.
    await page.getByRole('link', { name: 'Review changes' }).waitFor();
    const stops: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/stop')) stops.push(request.url());
    });
    await page.keyboard.press('.');
    expect(await page.getByText(/Press . again/).count()).toBe(0);
    await page.keyboard.press('.');
    expect(await page.getByRole('button', { name: 'Stop', exact: true }).count()).toBe(0);
    await page.getByRole('link', { name: 'Review changes' }).click();
    await page.waitForURL(`${plane.url}/agents/${agent.id}/changes`);
    expect(stops).toEqual([]);
    await page.getByRole('button', { name: 'More' }).last().click();
    await page.getByRole('menuitem', { name: /Stop agent/ }).click();
    await plane.finished(agent.id);
  },
);

longBrowserTest('n and p jump between failures from any position', async () => {
  const call = (toolCallId: string, status: string): Update => ({
    ...{ sessionUpdate: 'tool_call', toolCallId, title: `call ${toolCallId}`, kind: 'execute', status },
  });
  const lines = (prefix: string) => Array.from({ length: 200 }, (_, n) => message(`${prefix} ${n}.`));
  const updates = [call('one', 'failed'), ...lines('Line'), call('two', 'failed'), ...lines('Next')];
  const agent = await scriptedAgent([updates], 'Begin');
  await plane.frames(agent.id, (all) => JSON.stringify(all.at(-1)).includes('stopReason'));
  const { page } = await openAgentPage(agent);
  await log(page).getByText('Next 199.').waitFor();
  const marked = log(page).locator('[data-row].bg-marked');
  for (const [key, title] of [
    ['p', 'call two'],
    ['p', 'call one'],
    ['n', 'call two'],
  ] as const) {
    await page.keyboard.press(key);
    await marked.getByText(title).waitFor();
  }
  await field(page).pressSequentially('np');
  expect(await field(page).inputValue()).toBe('np');
  await marked.getByText('call two').waitFor();
});

browserTest(
  'a failed agent shows why it failed, in the list and on its page, and can be restarted from there',
  async () => {
    const agent = await plane.agent('echo "no such model" >&2; exit 3', { name: 'broken', protocol: 'acp' });
    await plane.finished(agent.id);
    const { page } = await openAgentPage(agent);
    await page.goto(`${plane.url}/agents?q=broken`);
    const row = page.getByRole('row', { name: /broken/ });
    await row.getByText('Exit code 3 · no such model').waitFor();
    // From the list to the line that explains the failure.
    await page.keyboard.press('j');
    await page.keyboard.press('o');
    await page.waitForURL('**/output');
    await page.getByRole('region', { name: 'Failure' }).getByText('no such model').waitFor();
    await page.getByText('no such model').last().waitFor();
    await page.goto(`${plane.url}/agents/${agent.id}`);
    const failure = page.getByRole('region', { name: 'Failure' });
    await failure.getByText('broken failed: Exit code 3').waitFor();
    await failure.getByText('no such model').waitFor();
    await field(page).fill('still here?');
    expect(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true);
    await page.getByText('broken is not running.').waitFor();
    // In the header, or on a phone, where the header's actions are in a sheet, next to the error.
    const restart = page.getByRole('button', { name: 'Restart' });
    expect(await restart.count()).toBe(1);
    await restart.click();
    await expect.poll(async () => (await plane.get(agent.id)).session_count, SOON).toBe(2);
    await expect.poll(async () => (await plane.get(agent.id)).status, SOON).toBe('failed');
    const { page: phone } = await openAgentPage(agent, '', { screen: 'phone' });
    await phone.getByRole('region', { name: 'Failure' }).getByRole('button', { name: 'Restart' }).waitFor();
    expect(await phone.getByRole('button', { name: 'Restart' }).count()).toBe(1);
    await phone.getByRole('button', { name: 'Restart' }).tap();
    await expect.poll(async () => (await plane.get(agent.id)).session_count, SOON).toBe(3);
  },
);

browserTest(
  'an agent whose start is refused shows the reason, and can be started from its page',
  async () => {
    const { page } = await browser.open(plane);
    await signIn(page, plane);
    const refusal = { error: 'not enough disk space to start an agent' };
    await page.route('**/start', (route) => route.fulfill({ status: 503, json: refusal }), { times: 1 });
    await page.goto(`${plane.url}/agents/new`);
    await page.getByRole('combobox', { name: 'Agent' }).selectOption({ label: 'Command' });
    await page.getByRole('textbox', { name: 'Command' }).fill('echo at last');
    await page.getByRole('combobox', { name: 'Where' }).selectOption({ label: 'Empty folder' });
    await page.getByRole('button', { name: 'Start agent' }).click();
    await page.getByText(refusal.error).waitFor();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByRole('region', { name: 'Output' }).getByText('at last').waitFor();
  },
);

browserTest('a refused path shows the allowed folders for workdirs and repositories', async () => {
  const { page } = await browser.open(plane);
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents/new`);
  await page.getByRole('combobox', { name: 'Where' }).selectOption({ label: 'Existing folder' });
  await page.getByRole('combobox', { name: 'Folder' }).fill('/etc');
  const start = page.getByRole('button', { name: 'Start agent' });
  await start.click();
  await page.getByText('The folder must be in one of these folders:').waitFor();
  await page.getByRole('listitem').getByText(plane.work, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Use a worktree instead' }).click();
  await page.getByText('The folder must be in one of these folders:').waitFor({ state: 'detached' });
  await start.click();
  await page.getByText('The repository must be in one of these folders:').waitFor();
  await page.getByRole('listitem').getByText(plane.work, { exact: true }).waitFor();
});

browserTest(
  'n, p and Esc visit the open question, and the focus stays on it once it is answered',
  async () => {
    const lines = Array.from({ length: 60 }, (_, n) => ({
      sessionUpdate: 'agent_message_chunk',
      messageId: String(n),
      content: { type: 'text', text: `Line ${n}.` },
    }));
    const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }];
    const toolCall = { toolCallId: 'ask', title: 'npm publish', kind: 'execute' };
    const turn = [...lines, { toolCall, options }, { sleep: 60_000 }] as unknown as Update[];
    const agent = await scriptedAgent([turn], 'Begin');
    const { page } = await openAgentPage(agent);
    const card = page.getByRole('article');
    await card.waitFor();
    const focused = () => page.evaluate('document.activeElement.matches("[data-waiting]")');
    const pill = page.getByRole('button', { name: '1 question' });
    await card.getByText('Press n to select, then 1').waitFor();
    await pill.waitFor({ state: 'detached' });
    // The card is out of view, and a digit does not answer it.
    await log(page).evaluate((box) => box.scrollTo(0, 0));
    await pill.waitFor();
    await page.keyboard.press('1');
    await page.keyboard.press('n');
    await expect.poll(focused).toBe(true);
    await pill.waitFor({ state: 'detached' });
    await card.getByText('1 answer · Esc leaves').waitFor();
    await page.keyboard.press('Escape');
    expect(await focused()).toBe(false);
    const field = page.getByRole('textbox', { name: /^Prompt for/ });
    await field.fill('1 more');
    expect(await focused()).toBe(false);
    await field.press('Escape');
    await expect.poll(focused).toBe(true);
    await page.keyboard.press('1');
    await card.getByText('Yes · ana').waitFor();
    expect(await focused()).toBe(true);
    expect(await field.inputValue()).toBe('1 more');
  },
);

browserTest('an agent that needs a sign-in offers its own methods, and continues afterwards', async () => {
  const agent = await scene('auth', undefined, 'Hello?');
  const { page } = await openAgentPage(agent);
  const card = page.getByRole('article', { name: /^Sign in to use/ });
  await card.getByRole('button', { name: 'Sign in' }).click();
  await log(page).getByText('Hello.', { exact: true }).waitFor();
  await card.waitFor({ state: 'detached' });
});

longBrowserTest('the palette opens on what waits and on the actions for the agent of the page', async () => {
  const agent = await scene('two_always', undefined, 'Ask');
  const { page } = await openAgentPage(agent);
  await page.getByRole('article').locator('button:has(bdi)').first().waitFor();
  await page.keyboard.press('Control+k');
  const chosen = page.getByRole('option', { selected: true });
  await chosen.getByText('Approvals').waitFor();
  // The name that screen readers read has a space before what follows the label.
  expect(await page.getByRole('option', { name: /^Approvals \d+ waiting/ }).count()).toBe(1);
  await page.keyboard.press('ArrowDown');
  await chosen.getByText(agent.name).waitFor();
  // Once, with what it asks; a search also finds its page.
  const named = page.getByRole('option').filter({ hasText: agent.name });
  expect(await named.count()).toBe(1);
  await page.keyboard.type(agent.name);
  await expect.poll(() => named.count()).toBe(2);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.press('Backspace');
  await chosen.getByText('Approvals').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${plane.url}/approvals?review=*`);
  await page.goBack();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('cancel turn');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await plane.get(agent.id)).pending_reviews).toBe(0);
});

browserTest('an agent with events that the user has not seen is marked until they open it', async () => {
  const agent = await scriptedAgent([[message('Done.')], [message('Again.')]], 'Go on');
  await expect.poll(async () => (await plane.get(agent.id)).activity, SOON).toBe('idle');
  const { page } = await browser.open(plane);
  // Requests of a shared worker cannot be answered by the test.
  await page.addInitScript('delete window.SharedWorker');
  await signIn(page, plane);
  await page.goto(`${plane.url}/agents`);
  const row = page.locator(`[data-row="${agent.id}"]`);
  const dot = row.getByRole('img', { name: 'unread' });
  await dot.waitFor();
  // On a window of 1280 px, there is room for the repository and the branch.
  expect((await row.getByRole('cell').nth(1).boundingBox())!.width).toBeGreaterThanOrEqual(220);
  await row.getByRole('link', { name: agent.name, exact: true }).click();
  await log(page).getByText('Done.').waitFor();
  const seen = async () =>
    ((await plane.client.call('listSeen')) as unknown as { agent_id: string; last_seen: number }[]).find(
      ({ agent_id }) => agent_id === agent.id,
    )?.last_seen;
  const caughtUp = async () => (await plane.get(agent.id)).last_seq - ((await seen()) ?? 0);
  await expect.poll(caughtUp, SOON).toBe(0);

  await page.getByRole('link', { name: 'Agents', exact: true }).first().click();
  await row.waitFor();
  await dot.waitFor({ state: 'detached' });
  // What happens meanwhile is unread, until it is seen in the page of another tab.
  await plane.client.call('promptAgent', { params: { agent_id: agent.id }, body: { text: 'More' } });
  await dot.waitFor();
  const other = await page.context().newPage();
  await other.goto(`${plane.url}/agents/${agent.id}`);
  await log(other).getByText('Again.').waitFor();
  await expect.poll(caughtUp, SOON).toBe(0);

  // A proxy that rejects the stream: what was read stays, with a note.
  const stream = /\/events\?after=/;
  await page.route(stream, (route) => route.fulfill({ status: 404, body: 'no such page' }));
  await row.getByRole('link', { name: agent.name, exact: true }).click();
  const note = page.getByText('Live updates ended: the server answered 404');
  await note.waitFor(SOON);
  await log(page).getByText('Done.').waitFor();
  await page.unroute(stream);
  await page.getByRole('button', { name: 'Try again' }).click();
  await log(page).getByText('Again.').waitFor();
  await note.waitFor({ state: 'detached' });
});

browserTest('a phone has one header, with the actions in a sheet and a way back', async () => {
  const agent = await plane.agent('exec sleep 600', { name: 'pocket' });
  const { page } = await openAgentPage(agent, '', { screen: 'phone' });
  const badge = page.locator('[data-badge]:visible');
  await expect.poll(() => badge.getAttribute('aria-label')).toBe('Online · SSE connected');
  expect((await page.locator('header').boundingBox())!.height).toBeLessThan(110);
  const sheet = page.getByRole('dialog', { name: 'Actions' });
  await page.getByRole('button', { name: 'Actions' }).click();
  await sheet.getByText('Online · SSE connected').waitFor();
  await page.keyboard.press('Escape');
  await sheet.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Actions' }).click();
  await sheet.getByRole('button', { name: 'Edit name and labels' }).click();
  await sheet.waitFor({ state: 'hidden' });
  const dialog = page.getByRole('dialog', { name: 'Edit name and labels' });
  await dialog.getByLabel('Name').fill('in-pocket');
  // The dialog stays while the user turns the phone.
  const { width, height } = page.viewportSize()!;
  await page.setViewportSize({ width: height, height: width });
  await page.getByRole('button', { name: 'Actions' }).waitFor({ state: 'detached' });
  await page.setViewportSize({ width, height });
  await page.locator('[role=dialog][popover]').waitFor({ state: 'attached' });
  expect(await dialog.getByLabel('Name').inputValue()).toBe('in-pocket');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { level: 1, name: /in-pocket/ }).waitFor();
  await page.getByRole('link', { name: 'Back to agents' }).click();
  await page.waitForURL(`${plane.url}/agents`);
  await page.getByRole('link', { name: 'New agent' }).waitFor();
  // Disconnected, the header says so.
  await page.context().setOffline(true);
  await badge.getByText('Offline · SSE disconnected').waitFor();
  await page.context().setOffline(false);
});

browserTest('the second click of a double click on Stop does not start the agent again', async () => {
  // When the agent stops, the list shows this one first, and React mounts the row again.
  await plane.agent('exec sleep 600', { name: 'above' });
  const agent = await plane.agent('exec sleep 600', { name: 'twice' });
  const { page } = await openAgentPage(agent);
  const starts: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && /\/(re)?start$/.test(request.url())) starts.push(request.url());
  });
  /** Presses the first button, and the second one as soon as that has taken its place. */
  const press = (first: string, second: string) =>
    page.evaluate(`new Promise((resolve) => {
      const find = (name) => [...document.querySelectorAll('button:enabled:not([aria-disabled])')].find(
        (one) => (one.getAttribute('aria-label') ?? one.textContent) === name);
      new MutationObserver((_, observer) => {
        const again = find(${JSON.stringify(second)});
        if (!again) return;
        observer.disconnect();
        again.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 2 }));
        requestAnimationFrame(() => requestAnimationFrame(resolve));
      }).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
      find(${JSON.stringify(first)}).click();
    })`);
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
  await press('Stop', 'Restart');
  expect(starts).toEqual([]);
  await plane.client.call('startAgent', { params: { agent_id: agent.id } });
  await page.goto(`${plane.url}/agents`);
  await page.getByRole('button', { name: 'Stop twice' }).waitFor({ state: 'attached' });
  await press('Stop twice', 'Restart twice');
  expect(starts).toEqual([]);
  expect(await plane.get(agent.id)).toMatchObject({ status: 'cancelled', session_count: 2 });

  // The list shows that the agent has stopped long before the response arrives.
  await plane.client.call('startAgent', { params: { agent_id: agent.id } });
  await page.reload();
  await page.getByRole('button', { name: 'Stop twice' }).waitFor({ state: 'attached' });
  await page.route('**/stop', async (route) => {
    const response = await route.fetch();
    await page.getByRole('button', { name: 'Restart twice' }).waitFor({ state: 'attached' });
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 500))');
    await route.fulfill({ response });
  });
  await press('Stop twice', 'Restart twice');
  expect(starts).toEqual([]);
});

longBrowserTest(
  'a phone leaves most of the screen to the conversation, and shows large options of a review',
  async () => {
    const agent = await scene('two_always', undefined, 'Ask');
    const { page } = await openAgentPage(agent, '', { screen: 'phone' });
    const buttons = page.getByRole('article').locator('button:has(bdi)');
    await buttons.first().waitFor();
    const boxes = await buttons.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
    expect(boxes.map(({ height }) => height >= 48)).toEqual([true, true, true, true]);
    const [within, apart] = boxes.slice(1).map(({ top }, at) => Number(top - boxes[at].bottom));
    // Everything apart from the conversation itself leaves it at least two thirds of the screen.
    const { height } = (await log(page).boundingBox())!;
    expect(height / page.viewportSize()!.height).toBeGreaterThan(2 / 3);
    expect(await page.getByRole('navigation', { name: 'Main' }).isVisible()).toBe(false);
    await field(page).fill('One');
    await page.keyboard.press('Enter');
    expect(await field(page).inputValue()).toBe('One\n');
    // Options of one kind are close together, with a larger gap between one-time and permanent ones.
    expect(apart).toBeGreaterThan(within!);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  },
);

longBrowserTest('on a phone, a conversation opens with the title of a long request in view', async () => {
  const lines = Array.from({ length: 40 }, (_, n) => message(`Line ${n}.`));
  const newText = Array.from({ length: 60 }, (_, n) => `const line${n} = ${n};\n`).join('');
  const content = [{ type: 'diff', path: '/work/long.ts', oldText: '', newText }];
  const toolCall = { toolCallId: 'edit', title: 'Edit long.ts', kind: 'edit', content };
  const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }];
  const turn = [...lines, { toolCall, options }, { sleep: 60_000 }] as unknown as Update[];
  const agent = await scriptedAgent([turn], 'Begin');
  const { page } = await openAgentPage(agent, '', { screen: 'phone', separate: true });
  const card = log(page).getByRole('article');
  const answer = card.getByRole('button', { name: 'Yes' });
  await answer.waitFor();
  /** Where the title is, from the top of the conversation, in pixels. */
  const titleAt = async () => {
    const [title, frame] = await Promise.all([
      card.getByText('Edit long.ts', { exact: true }).boundingBox(),
      log(page).boundingBox(),
    ]);
    return title!.y - frame!.y;
  };
  const { height } = (await log(page).boundingBox())!;
  expect((await card.boundingBox())!.height).toBeGreaterThan(height);
  await expect.poll(titleAt, SOON).toBeGreaterThan(0);
  expect(await titleAt()).toBeLessThan(height / 2);
  expect(await page.getByRole('button', { name: 'Jump to latest' }).count()).toBe(0);
  // A reader who has scrolled to the options stays there when the height of the window changes.
  await log(page).evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await expect.poll(titleAt).toBeLessThan(0);
  await page.setViewportSize({ width: 390, height: 780 });
  await expect.poll(async () => (await log(page).boundingBox())!.height).toBeLessThan(height);
  const fromEnd = () => log(page).evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
  await expect.poll(fromEnd).toBeLessThan(2);
});

longBrowserTest('on a phone on its side, a review in a conversation opens on the whole screen', async () => {
  const agent = await scene('two_always', undefined, 'Ask');
  const { page } = await openAgentPage(agent, '', { screen: 'phone', separate: true });
  const options = page.getByRole('article').locator('button:has(bdi)');
  await options.first().waitFor();
  await page.setViewportSize({ width: 844, height: 390 });
  const link = log(page).getByRole('article').getByRole('link', { name: 'Review' });
  await link.waitFor();
  expect(await options.count()).toBe(0);
  const card = (await log(page).getByRole('article').boundingBox())!;
  const { y, height } = (await log(page).boundingBox())!;
  expect(card.y).toBeGreaterThanOrEqual(y);
  expect(card.y + card.height).toBeLessThanOrEqual(y + height);
  await link.tap();
  await page.waitForURL(/\/approvals\?review=/);
  await options.first().waitFor();
  const boxes = await options.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
  expect(boxes.map(({ top, bottom }) => top >= 0 && bottom <= 390)).toEqual([true, true, true, true]);
  // Upright again, the conversation has the card.
  await page.goBack();
  await link.waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await options.first().waitFor();
  expect(await link.count()).toBe(0);
});

browserTest(
  'a plain agent opens at its output, and deleting it says what happens to its folder',
  async () => {
    const agent = await plane.agent('echo hello', { name: 'plain' });
    await plane.finished(agent.id);
    const { page } = await openAgentPage(agent);
    await page.waitForURL(`**/agents/${agent.id}/output`);
    expect(await page.getByRole('link', { name: 'Conversation' }).count()).toBe(0);
    await page.getByRole('button', { name: 'More' }).last().click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByText('The folder it works in is not changed.').waitFor();
    // Without a network, nothing is left to be done later.
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Delete agent' }).click();
    await page.getByText('The service is not responding.').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'More' }).last().click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    expect((await plane.get(agent.id)).id).toBe(agent.id);
    await page.getByRole('button', { name: 'Delete agent' }).click();
    await page.waitForURL(`${plane.url}/agents`);
    await expect(plane.get(agent.id)).rejects.toThrow('agent not found');

    const empty = await plane.client.call('createAgent', {
      body: { name: 'empty', command: 'true', worktree_mode: 'create_worktree' },
    });
    await page.goto(`${plane.url}/agents/${empty.id}/output`);
    await page.getByRole('button', { name: 'More' }).last().click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByText('The folder is empty.').waitFor();
  },
);

longBrowserTest('a slow deletion does not leave the page that was opened meanwhile', async () => {
  const repo = makeRepository(join(plane.work, 'slow'), { 'a.txt': 'a' });
  const agent = await plane.client.call('createAgent', {
    body: { name: 'slow', command: 'true', worktree_mode: 'create_worktree', worktree_repo: repo },
  });
  writeFileSync(join(agent.workdir, 'notes.md'), 'one');
  const { page } = await openAgentPage(agent);
  await page.getByRole('button', { name: 'More' }).last().click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  const answered = Promise.withResolvers<void>();
  await page.route(
    `**/api/agents/${agent.id}`,
    async (route) => {
      const response = await route.fetch();
      await answered.promise;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Delete agent' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Teams' }).click();
  await page.waitForURL(`${plane.url}/teams`);
  answered.resolve();
  await page.getByText('slow was deleted').waitFor();
  await page.getByText('Its worktree was kept').waitFor();
  expect(page.url()).toBe(`${plane.url}/teams`);
});

longBrowserTest('on a Mac, Option and a digit type a character in a text field', async () => {
  const agent = await scriptedAgent([]);
  await plane.agent('exec sleep 600', { name: 'other' });
  const { page } = await openAgentPage(agent, '', { separate: true });
  await page.addInitScript("Object.defineProperty(navigator, 'platform', { value: 'MacIntel' })");
  await page.reload();
  await page.getByRole('region', { name: 'Active agents' }).getByRole('link').nth(1).waitFor();
  const pressBoth = async () => {
    for (const key of ['Alt+1', 'Alt+2']) await page.keyboard.press(key);
  };
  await field(page).focus();
  await pressBoth();
  await field(page).press('a');
  expect(page.url()).toContain(agent.id);
  await field(page).blur();
  const visited: string[] = [];
  page.on('framenavigated', () => visited.push(page.url()));
  await pressBoth();
  await expect.poll(() => visited.some((url) => !url.includes(agent.id)), SOON).toBe(true);
});

longBrowserTest(
  'a sub-agent is collapsed until it is opened, but its reviews are shown with its name',
  async () => {
    const agent = await scene('subagents', 'explo\u202erer', 'Go');
    const { page, errors } = await openAgentPage(agent);
    const name = 'explo⟦U+202E⟧rer';
    const head = log(page).getByRole('button', { name: `Sub-agent "${name}"` });
    const card = log(page).getByRole('article');
    await card.getByText(`asked by sub-agent "${name}"`).waitFor();
    expect(await head.getAttribute('aria-expanded')).toBe('false');
    expect(await head.innerText()).toMatch(/Find the failing test.*1 tool call.*in progress/is);
    expect(await log(page).getByText('I need to write.').count()).toBe(0);
    await card.getByRole('button', { name: 'Yes' }).click();
    await log(page).getByText('answered: yes-once').waitFor();
    await head.getByText('completed').waitFor();
    expect(await card.count()).toBe(0);
    expect(await log(page).getByText('Look for tests').count()).toBe(0);

    await head.click();
    await log(page).getByText('I need to write.').waitFor();
    await log(page).getByRole('button', { name: 'Look for tests' }).waitFor();
    await card.waitFor();
    const inner = log(page).getByRole('button', { name: 'Sub-agent reader' });
    expect(await log(page).getByText('The reader reads.').count()).toBe(0);
    await inner.click();
    await log(page).getByText('The reader reads.').waitFor();
    await log(page).getByRole('button', { name: 'Unknown session unknown-1' }).waitFor();
    expect(await log(page).getByText('Nobody announced me.').count()).toBe(0);

    // A link to a message of a nested sub-agent opens it and the sub-agent around it.
    const { items } = (await plane.client.call('getLog', {
      params: { agent_id: agent.id },
      query: { limit: 200 },
    })) as unknown as { items: EventRecord[] };
    const { seq } = items.find(({ payload }) => JSON.stringify(payload)?.includes('The reader reads.'))!;
    await page.goto(`${plane.url}/agents/${agent.id}/events`);
    await page.getByText('sub-agent child-2 · The reader reads.').waitFor();
    await page.goto(`${plane.url}/agents/${agent.id}/conversation#e${seq}`);
    await log(page).getByText('The reader reads.').waitFor();
    expect(await head.getAttribute('aria-expanded')).toBe('true');
    await page.goto(`${plane.url}/agents/${agent.id}/timeline`);
    await page
      .getByRole('table')
      .getByRole('link', { name: `"${name}": Look for tests` })
      .waitFor();
    expect(errors).toEqual([]);
  },
);

browserTest('actions of a sub-agent within the agent’s session are below its row too', async () => {
  const agent = await scene('subagent_calls', undefined, 'Go');
  const { page } = await openAgentPage(agent);
  const card = log(page).getByRole('article');
  await card.getByText('asked by sub-agent Explore').waitFor();
  await card.getByRole('button', { name: 'No' }).click();
  await log(page).getByText('answered: no-once').waitFor();
  expect(await log(page).getByText('I found it.').count()).toBe(0);
  await log(page).getByRole('button', { name: 'Sub-agent Explore' }).click();
  await log(page).getByText('I found it.').waitFor();
});
