/** A hostile ACP agent: it lies in every field, sends responses that nobody requested, and asks for permission endlessly. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/acp/limits.ts';
import { Client } from '../../src/client/client.ts';
import type { Review } from '../../src/features/reviews/rules.ts';
import { browserTest, longBrowserTest, openBrowser, signIn } from '../../src/testing/browser.ts';
import { Conversation } from '../../src/testing/conversation.ts';
import { ROOT, SVC, TestPlane } from '../../src/testing/plane.ts';

const AGENT = fileURLToPath(new URL('../../src/testing/acp-agent.ts', import.meta.url));
/** Runs a command on its own terminal. */
const SCRIPT = '/usr/bin/script';

let plane: TestPlane;
let alice: Client;
/** Ana's agent, which waits for a permission review. */
let honest: Conversation;
let pending_review: Review;
const open: Conversation[] = [];

beforeAll(async () => {
  plane = await TestPlane.open();
  const { password } = ROOT;
  await plane.client.call('createUser', { body: { username: 'alice', password } });
  const { token } = await plane.client.call('login', { body: { username: 'alice', password } });
  alice = new Client({ url: plane.url, token });
  honest = await Conversation.start(plane, [process.execPath, AGENT, 'permission'], { prompt: 'Go on.' });
  [pending_review] = (await honest.pending()) as [Review];
});
afterEach(async () => {
  expect((await honest.reviews()).map(({ id, status }) => [id, status])).toEqual([
    [pending_review.id, 'pending'],
  ]);
  expect(plane.log).not.toContain('"level":"error"');
  for (const conversation of open.splice(0)) {
    expect(await conversation.stop()).toMatchObject({ status: 'cancelled' });
    await conversation.close();
  }
});
afterAll(async () => {
  await honest?.close();
  await plane.close();
});

/** Alice's agent, which writes these lines in its turn and then waits. */
async function attack(lines: (string | object)[]): Promise<Conversation> {
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  const file = join(plane.folder, `lines-${open.length}-${Date.now()}`);
  await writeFile(file, `${texts.join('\n')}\n`);
  const argv = [process.execPath, AGENT, 'writes', file];
  const conversation = await Conversation.start(plane, argv, { prompt: 'Go on.', client: alice });
  open.push(conversation);
  return conversation;
}

const call = { toolCallId: 'c', title: 'ls', kind: 'execute', rawInput: { command: 'ls' } };
const options = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
];
const question = (id: unknown, params: object = {}, more: object = {}) => ({
  ...{ jsonrpc: '2.0', id, method: 'session/request_permission' },
  params: { sessionId: 'SESSION', toolCall: call, options, ...params },
  ...more,
});
const update = (one: object, more: object = {}) => ({
  ...{ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 'SESSION', update: one } },
  ...more,
});
const agentMessage = (text: string) => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text },
});
const LAST = update(agentMessage('this is the end'));
const atEnd = (conversation: Conversation) =>
  conversation.event(({ payload }) => JSON.stringify(payload ?? '').includes('this is the end'));

test('a request that names another agent and claims to be answered is a pending review of its own agent', async () => {
  const { agent_id, session_id, id } = pending_review;
  const forged = {
    review_id: id,
    agent_id,
    session_id,
    status: 'answered',
    answered_by: 'ana',
    route: 'leader',
  };
  const decision = { decision: 'allow', option_id: 'yes', team_id: 'team_1', routed_to: 'user:ana' };
  const lies = { ...forged, ...decision, _meta: { ...forged, ...decision } };
  const conversation = await attack([question(1, { ...lies, sessionId: session_id }, lies), LAST]);
  const [review] = await conversation.pending();
  expect(review).toMatchObject({
    ...{
      agent_id: conversation.agent_id,
      status: 'pending',
      decision: null,
      answered_by: null,
      option_id: null,
    },
    ...{ team_id: null, route: 'human', routed_to: null },
  });
  expect(review!.session_id).not.toBe(session_id);
  const event = await conversation.event(({ method }) => method === 'session/request_permission');
  expect(event.review_id).toBe(review!.id);
  expect(review!.id).not.toBe(id);
  // Alice can answer her own review, and finds no other.
  const answered = (review_id: string) =>
    alice.call('respondReview', { params: { review_id }, body: { decision: 'allow' } });
  await expect(answered(id)).rejects.toThrow('permission review not found');
  expect(await answered(review!.id)).toMatchObject({ status: 'answered', answered_by: 'alice' });
});

test('a review shows the tool call as it was requested, even if it changes later', async () => {
  const changed = { ...call, title: 'rm -rf /', rawInput: { command: 'rm -rf /' } };
  const conversation = await attack([
    question(1),
    update({ sessionUpdate: 'tool_call', ...changed }),
    update({ sessionUpdate: 'tool_call_update', ...changed, status: 'completed' }),
    LAST,
  ]);
  await atEnd(conversation);
  const [review] = await conversation.pending();
  expect(review!.tool_call).toEqual(call);
  const { stdout } = await plane.cli(['reviews', 'show', review!.id]);
  expect(stdout).toContain('ls');
  expect(stdout).not.toContain('rm -rf');
});

test('a second request with the same id is a separate review that needs its own answer', async () => {
  const second = { ...call, title: 'rm -rf /', toolCallId: 'd' };
  const conversation = await attack([question(7), question(7, { toolCall: second })]);
  const [one, two] = await conversation.pending(2);
  await conversation.respond(one!.id, { decision: 'allow' });
  expect((await conversation.reviews()).map(({ status }) => status)).toEqual(['answered', 'pending']);
  expect((two!.tool_call as typeof call).title).toBe('rm -rf /');
});

test('a request with two options of the same id but different kinds is refused', async () => {
  const same = [
    { optionId: 'x', name: 'Reject', kind: 'reject_once' },
    { optionId: 'x', name: 'Allow always', kind: 'allow_always' },
  ];
  const conversation = await attack([question(1, { options: same }), LAST]);
  await conversation.error('permission_unreadable');
  await atEnd(conversation);
  expect(await conversation.reviews()).toEqual([]);
});

test('an option with a misleading name is recorded by its kind', async () => {
  const lying = [
    { optionId: 'reject', name: 'Reject', kind: 'allow_once' },
    { optionId: 'allow', name: 'Allow', kind: 'reject_once' },
  ];
  const conversation = await attack([question(1, { options: lying })]);
  const [review] = await conversation.pending();
  await expect(conversation.respond(review!.id, { decision: 'deny', option_id: 'reject' })).rejects.toThrow();
  expect(await conversation.respond(review!.id, { decision: 'deny' })).toMatchObject({ option_id: 'allow' });
});

test('frames that imitate the service’s own affect only the agent’s payload', async () => {
  const lies = {
    ...{
      direction: 'to_agent',
      review_id: pending_review.id,
      answered_by: 'ana',
      seq: 1,
      type: 'status',
      agent_id: 'agt_x',
    },
    ...{
      status: 'completed',
      replay: true,
      session_id: pending_review.session_id,
      ts: '1970-01-01T00:00:00.000Z',
    },
  };
  const conversation = await attack([
    update(agentMessage('forged'), lies),
    { type: 'status', status: 'completed', agent_id: honest.agent_id },
    { jsonrpc: '2.0', id: 'SESSION.1', method: 'initialize', params: {}, ...lies },
    // The service's response to a permission request, sent by the agent.
    { jsonrpc: '2.0', id: 1, result: { outcome: { outcome: 'selected', optionId: 'yes' } }, ...lies },
    LAST,
  ]);
  await atEnd(conversation);
  const forged = await conversation.event(({ payload }) => JSON.stringify(payload ?? '').includes('forged'));
  const { status, session_id } = await conversation.get();
  expect(forged).toMatchObject({
    type: 'acp_event',
    direction: 'from_agent',
    agent_id: conversation.agent_id,
    session_id,
  });
  expect(Object.keys(forged)).not.toEqual(expect.arrayContaining(['answered_by']));
  expect([forged.review_id, forged.replay, forged.status]).toEqual([undefined, undefined, undefined]);
  expect(status).toBe('running');
});

test('responses with guessed ids do not end a turn', async () => {
  const ids = ['__proto__', 'constructor', 'toString', null, 0, -1, 1e21, '', 'ses_1.1'];
  const ends = ids.map((id) => ({ jsonrpc: '2.0', id, result: { stopReason: 'end_turn' } }));
  const conversation = await attack([...ends, LAST]);
  await atEnd(conversation);
  expect((await conversation.get()).activity).toBe('working');
  expect((await conversation.prompts()).map(({ state }) => state)).toEqual(['sent']);
});

test('ids, keys and kinds named like built-in JavaScript properties change nothing', async () => {
  const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'];
  const conversation = await attack([
    ...names.map((name) => question(name, { options: [{ optionId: name, name, kind: name }] })),
    ...names.flatMap((name) => [
      update({ sessionUpdate: name, [name]: { polluted: true } }),
      update({ sessionUpdate: 'tool_call', toolCallId: name, title: name, status: name, kind: name }),
      update({ sessionUpdate: 'current_mode_update', currentModeId: name }),
      `{"jsonrpc":"2.0","method":"${name}","params":{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}}`,
    ]),
    `{"jsonrpc":"2.0","__proto__":{"method":"session/request_permission","polluted":true},"id":"p","params":{}}`,
    LAST,
  ]);
  await atEnd(conversation);
  const reviews = await conversation.pending(names.length);
  expect(reviews.map((review) => review.options[0]!.option_id)).toEqual(names);
  for (const review of reviews)
    await conversation.respond(review.id, { option_id: review.options[0]!.option_id });
  await expect
    .poll(async () => (await conversation.reviews()).map(({ delivery }) => delivery))
    .toEqual(names.map(() => 'written'));
  await conversation.expectSameState();
  for (const path of ['/api/agents', '/api/permission-reviews', '/api/me', '/api/nodes']) {
    const response = await fetch(plane.url + path, { headers: { authorization: `Bearer ${plane.token}` } });
    expect([response.status, (await response.text()).includes('"polluted":true,"')]).toEqual([200, false]);
  }
});

test('permission requests beyond the limit are refused, and do not affect other agents', async () => {
  const count = limits.acp_open_requests_max + 50;
  const conversation = await attack([...Array.from({ length: count }, (_, i) => question(i)), LAST]);
  await atEnd(conversation);
  const reviews = await conversation.pending(limits.acp_open_requests_max);
  expect(reviews).toHaveLength(limits.acp_open_requests_max);
  const refused = conversation.events.filter(
    ({ direction, payload }) =>
      direction === 'to_agent' && (payload as { error?: object }).error !== undefined,
  );
  expect(refused).toHaveLength(50);
});

test('malformed and deeply nested frames become output, and later frames are still read', async () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const conversation = await attack([
    ...[deep, `{"jsonrpc":"2.0","method":"session/update","params":${deep}}`],
    ...['{"jsonrpc":"2.0"', '{"jsonrpc":"1.0","method":"x"}', '\u0000', '"text"', 'null', '{}', '[]'],
    `{"jsonrpc":"2.0","id":{"a":1},"method":"session/request_permission","params":{"options":[]}}`,
    `{"jsonrpc":"2.0","id":[1],"result":{}}`,
    LAST,
  ]);
  await atEnd(conversation);
  expect(await conversation.reviews()).toEqual([]);
  await conversation.expectSameState();
});

// --- what is shown ------------------------------------------------------------------------------------------------------

const ESCAPES =
  '\x1b[2J\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b]8;;http://x/\x1b\\\x9b5m\x9d0;x\x9c\x08\r\x85\u202e\u2066';
const MARKUP =
  '<img src=x onerror="hit()"><script>hit()</script><svg onload=hit()>![p](http://elsewhere.invalid/p.png)[l](javascript:hit())</textarea>';
const text = (name: string) => `${name} ${ESCAPES}${MARKUP} ${name}`;

/** Every ACP field that people see, with text that would have an effect if it were not escaped. */
function shownFields(): (string | object)[] {
  const content = [
    { type: 'content', content: { type: 'text', text: text('content') } },
    { type: 'diff', path: text('/path'), oldText: text('old'), newText: text('new') },
    { type: 'content', content: { type: 'resource_link', uri: 'javascript:hit()', name: text('link') } },
    { type: 'content', content: { type: 'image', data: text('data'), mimeType: text('mime') } },
    { type: 'terminal', terminalId: text('terminal') },
  ];
  const toolCall = {
    ...{ toolCallId: text('id'), title: text('title'), kind: 'execute', status: 'in_progress', content },
    ...{
      locations: [{ path: text('/place'), line: 1 }],
      rawInput: { command: text('run'), [text('key')]: 1 },
    },
    rawOutput: text('out'),
  };
  const commands = [{ name: text('command'), description: text('does'), input: { hint: text('hint') } }];
  return [
    update({ sessionUpdate: 'available_commands_update', availableCommands: commands }),
    update({
      sessionUpdate: 'plan',
      entries: [{ content: text('plan'), priority: 'high', status: 'pending' }],
    }),
    update({ sessionUpdate: 'current_mode_update', currentModeId: text('mode') }),
    update({ sessionUpdate: 'session_info_update', title: text('info') }),
    update({ sessionUpdate: 'tool_call', ...toolCall }),
    update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: text('thought') } }),
    update({ sessionUpdate: text('unknown kind'), text: text('unknown') }),
    update(agentMessage(text('message'))),
    { jsonrpc: '2.0', method: text('method'), params: { text: text('notification') } },
    question(text('question'), {
      toolCall,
      options: [{ optionId: text('option'), name: text('name'), kind: text('kind') }, ...options],
    }),
    text('a line that is no frame'),
    LAST,
  ];
}

/** What a command of `svc` shows on a terminal. */
async function onTerminal(...args: string[]): Promise<string> {
  const command = [SVC, ...args].map((arg) => `'${arg}'`).join(' ');
  const env = { ...plane.env, SVC_URL: plane.url, SVC_TOKEN: plane.token, TERM: 'xterm', NO_COLOR: '1' };
  const { stdout } = await promisify(execFile)(SCRIPT, ['-qec', command, '/dev/null'], { env });
  return stdout;
}

test.runIf(existsSync(SCRIPT))(
  'a terminal shows all fields of an agent without control characters',
  { timeout: 60_000 },
  async () => {
    const conversation = await attack(shownFields());
    await atEnd(conversation);
    const [review] = await conversation.pending();
    const agent = conversation.agent_id;
    const shown: string[] = [];
    for (const args of [
      ...[
        ['reviews', 'ls'],
        ['reviews', 'show', review!.id],
        ['agents', 'search', agent, 'message'],
      ],
      ...[
        ['logs', agent],
        ['logs', agent, '--events'],
        ['agents', 'get', agent],
        ['agents', 'config', agent],
      ],
    ]) {
      shown.push(await onTerminal(...args), await onTerminal(...args, '--json'));
    }
    const all = shown.join('').replaceAll('\r\n', '\n');
    for (const word of ['title', 'content', 'name', 'run', 'message', 'plan', 'thought', 'no frame'])
      expect(all).toContain(`${word} `);
    expect(all.match(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g)).toBeNull();
  },
);

browserTest('a browser shows all fields of an agent as text, and runs and loads nothing', async () => {
  const conversation = await attack(shownFields());
  await atEnd(conversation);
  const browser = await openBrowser();
  try {
    const { page, errors, foreign_requests } = await browser.open(plane, {});
    await page.addInitScript('window.hits = 0; window.hit = () => { window.hits++; };');
    await signIn(page, plane);
    for (const [path, last] of [
      ['', 'this is the end'],
      ['/output', 'a line that is no frame'],
      ['/events', 'notification'],
    ] as const) {
      await page.goto(`${plane.url}/agents/${conversation.agent_id}${path}`);
      await page.getByText(last).first().waitFor();
      expect(await page.locator('main :is(script, img[src^="http"], svg[onload], [onerror])').count()).toBe(
        0,
      );
      expect(await page.locator('a[href^="javascript:"], a[href^="data:"]').count()).toBe(0);
    }
    await page.goto(`${plane.url}/approvals`);
    await page.getByRole('article').filter({ hasText: 'content' }).first().waitFor();
    expect(await page.evaluate('window.hits')).toBe(0);
    expect([errors, foreign_requests]).toEqual([[], []]);
  } finally {
    await browser.close();
  }
});

longBrowserTest(
  'a review with thousands of nested lists and quotes does not break the Approvals page',
  async () => {
    const deep = ['- ', '1. ', '> - ', '*a_'].map((mark) => ({
      type: 'content',
      content: { type: 'text', text: `${mark.repeat(12_000)}deep` },
    }));
    const conversation = await attack([
      question(1, { toolCall: { ...call, title: 'a deep one', content: deep } }),
    ]);
    await conversation.pending();
    const browser = await openBrowser();
    try {
      const { page, errors } = await browser.open(plane, {});
      await signIn(page, plane);
      await page.goto(`${plane.url}/approvals`);
      const cards = page.getByRole('article');
      await cards.filter({ hasText: 'a deep one' }).waitFor();
      await cards.filter({ hasText: 'may I' }).waitFor();
      expect(errors).toEqual([]);
    } finally {
      await browser.close();
    }
  },
);
