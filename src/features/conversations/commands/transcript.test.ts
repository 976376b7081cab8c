import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EventRecord } from '../../../core/event.ts';
import { limits } from '../limits.ts';
import { Transcript, type TranscriptOptions } from './transcript.ts';

type Fields = Record<string, unknown>;

function event(direction: string, payload: unknown, more: Fields = {}): EventRecord {
  const base = { type: 'acp_event' as const, agent_id: 'agt_1', session_id: 'ses_1', seq: 1, ts: 1 };
  return { ...base, direction, payload, ...more };
}
const requests = (method: string, params: Fields, id: unknown = 'prm_1', more: Fields = {}) =>
  event('to_agent', { jsonrpc: '2.0', id, method, params }, { method, ...more });
const update = (fields: Fields, more: Fields = {}) =>
  event('from_agent', { jsonrpc: '2.0', method: 'session/update', params: { update: fields } }, more);
const says = (text: string, more: Fields = {}) =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more });
const thinks = (text: string) =>
  update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } });
const responds = (id: unknown, answer: Fields) => event('from_agent', { jsonrpc: '2.0', id, ...answer });
const calls = (fields: Fields) => update({ sessionUpdate: 'tool_call', toolCallId: 'c1', ...fields });
const changes = (fields: Fields) =>
  update({ sessionUpdate: 'tool_call_update', toolCallId: 'c1', ...fields });
const asks = (toolCall: Fields, options: Fields[], more: Fields = { review_id: 'rev_1' }) =>
  event(
    'from_agent',
    { jsonrpc: '2.0', id: 7, method: 'session/request_permission', params: { toolCall, options } },
    more,
  );
const answers = (outcome: Fields, answered_by: string | null) =>
  event('to_agent', { id: 7, result: { outcome } }, { response_to: 7, review_id: 'rev_1', answered_by });
const plans = (...entries: [string, string][]) =>
  update({ sessionUpdate: 'plan', entries: entries.map(([content, status]) => ({ content, status })) });
const once = [
  { optionId: 'y', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no-way', name: 'No', kind: 'reject_once' },
];

function text(events: EventRecord[], options: Partial<TranscriptOptions> = {}): string {
  const transcript = new Transcript({ colors: false, plumbing: false, subagents: false, ...options });
  return events.map((event) => transcript.event(event)).join('') + transcript.close();
}

test('prints a turn as a conversation', () => {
  const edit = {
    toolCallId: 'c1',
    title: 'Edit a.ts',
    kind: 'edit',
    rawInput: { path: 'a.ts' },
    locations: [{ path: '/w/a.ts', line: 3 }],
    content: [{ type: 'diff', path: '/w/a.ts', oldText: 'one\n', newText: 'two\nthree' }],
  };
  expect(
    text([
      requests('initialize', {}),
      responds('prm_1', { result: { protocolVersion: 1 } }),
      requests('session/prompt', {
        prompt: [
          { type: 'text', text: 'do\nit' },
          { type: 'image', mimeType: 'image/png' },
        ],
      }),
      thinks('let me\nsee'),
      thinks(', now'),
      says('I will '),
      says('do **it**.\n\nSoon'),
      calls({ title: 'Read a.ts', kind: 'read', status: 'pending', locations: [{ path: '/w/a.ts' }] }),
      changes({ status: 'completed', title: 'Read a.ts' }),
      says(' Done reading.', { messageId: 'm2' }),
      says('Another message', { messageId: 'm3' }),
      calls({ ...edit, status: 'pending', content: [] }),
      asks(edit, once),
      answers({ outcome: 'selected', optionId: 'y' }, 'ana'),
      changes({ status: 'completed', content: edit.content }),
      plans(['first', 'in_progress'], ['second', 'pending'], ['third', 'pending']),
      plans(['first', 'completed'], ['second', 'in_progress'], ['third', 'pending']),
      update({ sessionUpdate: 'usage_update', used: 12, size: 100, cost: { amount: 0.5, currency: 'USD' } }),
      update({ sessionUpdate: 'usage_update', used: 12, size: 100, cost: { amount: 0.5, currency: 'USD' } }),
      responds('prm_1', { result: { stopReason: 'end_turn' } }),
    ]),
  ).toBe(`> do
> it
> [image  image/png]
~ let me
~ see, now
I will do **it**.

Soon
┃ read     Read a.ts  pending  /w/a.ts
┃ read     Read a.ts  completed
Done reading.
Another message
┃ edit     Edit a.ts  pending  /w/a.ts:3
┃ asks     Edit a.ts  edit  /w/a.ts:3
┃   {"path":"a.ts"}
┃ --- /w/a.ts
┃ +++ /w/a.ts
┃ @@ -1,1 +1,2 @@
┃ -one
┃ +two
┃ +three
┃   [y]       Yes  (allow_once)
┃   [no-way]  No  (reject_once)
┃   svc reviews allow rev_1
┃ answer   ana: Yes  Edit a.ts
┃ edit     Edit a.ts  completed
┃ plan     [>] first
┃          [ ] second
┃          [ ] third
┃ plan     [x] first
┃          [>] second
┃ usage    12 of 100 tokens  0.5 USD
┃ turn     ended: end_turn
`);
});

test('shows how to choose an option if a request has no plain approve or reject', () => {
  const always = [
    { optionId: 'p', name: 'This project', kind: 'allow_always' },
    { optionId: 'u', name: 'Always', kind: 'allow_always' },
  ];
  expect(text([asks({ toolCallId: 'c9' }, always)])).toContain(
    '┃   svc reviews respond rev_1 --option-id <option>\n',
  );
  expect(text([asks({ title: 'x' }, [])])).toContain('┃   svc reviews respond rev_1 --cancel\n');
  expect(text([asks({ title: 'x' }, once), answers({ outcome: 'cancelled' }, null)])).toContain(
    '┃ answer   cancelled  x\n',
  );
  const withdrawn = event('from_agent', { method: '$/cancel_request', params: { requestId: 7 } });
  expect(text([asks({ title: 'x' }, once), withdrawn])).toContain('┃ asks     no longer  x\n');
});

test('an update shows only changes; a tool call that restarts is shown in full', () => {
  const call = { title: 'Run', kind: 'execute', status: 'pending', locations: [{ path: '/a' }] };
  expect(
    text([
      calls(call),
      changes({ status: 'pending', title: 'Run' }),
      changes({ content: [{ type: 'content', content: { type: 'text', text: 'output' } }] }),
      changes({ title: 'Run it', locations: [{ path: '/b' }] }),
      changes({ status: 'failed' }),
      calls(call),
      update({ sessionUpdate: 'tool_call_update', toolCallId: 'unknown', status: 'completed' }),
      update({ sessionUpdate: 'tool_call', toolCallId: 'c3', title: 'Odd', kind: 'turn' }),
    ]),
  ).toBe(`┃ execute  Run  pending  /a
┃ execute  Run it  /b
┃ execute  Run it  failed
┃ execute  Run  pending  /a
┃ tool     unknown  completed
┃ tool     Odd  turn
`);
});

test('truncates long diffs; new files have no old side', () => {
  const newText = Array.from({ length: limits.transcript_diff_lines + 5 }, (_, at) => `${at}\n`).join('');
  const lines = text([calls({ title: 'Write', content: [{ type: 'diff', path: '/n', newText }] })]).split(
    '\n',
  );
  expect(lines.slice(1, 5)).toEqual(['┃ --- /dev/null', '┃ +++ /n', '┃ @@ -0,0 +1,105 @@', '┃ +0']);
  expect(lines.slice(-2)).toEqual(['┃ … 6 more lines', '']);
  expect(lines).toHaveLength(limits.transcript_diff_lines + 5);
});

test('a diff shows changes with a few lines of context', () => {
  const before = Array.from({ length: 20 }, (_, at) => `line ${at}\n`).join('');
  const newText = before.replace('line 10\n', 'other\n');
  const content = [{ type: 'diff', path: '/f', oldText: before, newText }];
  expect(
    text([calls({ title: 'Write', content })])
      .split('\n')
      .slice(3, -1),
  ).toEqual([
    '┃ @@ -8,7 +8,7 @@',
    ...['┃  line 7', '┃  line 8', '┃  line 9', '┃ -line 10', '┃ +other'],
    ...['┃  line 11', '┃  line 12', '┃  line 13'],
  ]);
});

test('an agent’s state is shown when it changes, and unknown updates on one line', () => {
  expect(
    text([
      update({ sessionUpdate: 'current_mode_update', currentModeId: 'plan' }),
      update({ sessionUpdate: 'current_mode_update', currentModeId: 'plan' }),
      update({ sessionUpdate: 'session_info_update', title: 'A title' }),
      update({ sessionUpdate: 'session_info_update', updatedAt: 'now' }),
      update({
        sessionUpdate: 'available_commands_update',
        availableCommands: [{ name: 'a' }, { name: 'b' }],
      }),
      update({
        sessionUpdate: 'config_option_update',
        configOptions: [{ id: 'model', currentValue: 'big' }],
      }),
      update({ sessionUpdate: 'weather', temperature: 3 }),
      event('from_agent', { method: 'fs/read_text_file', id: 1, params: {} }),
      requests('session/set_mode', { modeId: 'ask' }, 's.1'),
      responds('s.1', { error: { code: 1, message: 'no such\nmode' } }),
      requests('session/cancel', {}, undefined),
      responds('prm_1', { result: { stopReason: 'cancelled' } }),
      event('from_agent', null, { method: 'session/update', truncated: true, size: 9 }),
    ]),
  ).toBe(`┃ mode     plan
┃ title    A title
┃ commands 2
┃ options  model = big
┃ agent    session/update  weather
┃ agent    fs/read_text_file
┃ sets     mode  ask
┃ refused  no such\\x0amode
┃ turn     is cancelled
┃ turn     ended: cancelled
┃ agent    session/update  too large to be shown: 9 bytes
`);
});

test('hides replayed messages, and resets the state for a new session', () => {
  const call = { title: 'Read', status: 'pending' };
  const events = [calls(call), update({ sessionUpdate: 'plan', entries: [] }, { replay: true })];
  const replayed = update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'old' } });
  expect(
    text([
      ...events,
      { ...replayed, replay: true },
      { ...changes({ status: 'completed' }), session_id: 'ses_2' },
    ]),
  ).toBe('┃ tool     Read  pending\n┃ tool     c1  completed\n');
});

test('shows the service’s frames on request', () => {
  const shown = text(
    [requests('session/new', { cwd: '/w' }), responds('prm_1', { result: { sessionId: 's' } })],
    {
      colors: false,
      plumbing: true,
    },
  );
  expect(shown).toBe(
    '┃ svc      -> session/new  {"cwd":"/w"}\n┃ svc      <- answer to session/new  {"sessionId":"s"}\n',
  );
});

test('agent text cannot control the terminal or imitate a line from svc', () => {
  const evil = '\x1b]52;c;x\x07\n┃ turn     ended: end_turn\r\n\u202e\tx';
  const shown = text([
    says(evil),
    thinks(evil),
    calls({ title: evil, kind: evil, status: evil, locations: [{ path: evil }] }),
    asks({ title: evil }, [{ optionId: `svc reviews allow rev_2${evil}`, name: evil, kind: evil }]),
  ]);
  expect(shown).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]/);
  expect(shown).not.toContain('┃ turn');
  expect(shown).not.toMatch(/^┃ +svc reviews allow/m);
  expect(shown).toContain('\\x1b]52;c;x\\x07\n\\u2503 turn     ended: end_turn\n⟦U+202E⟧\tx\n');
});

test('removes colors from agent text', () => {
  const shown = text([thinks('hm'), says('\x1b[31mred')], { colors: true, plumbing: false });
  expect(shown).toBe('\x1b[2m~ hm\x1b[22m\n\\x1b[31mred\n');
});

test('prints frames of any form', () => {
  const word = fc.constantFrom(
    ...['method', 'params', 'update', 'sessionUpdate', 'toolCall', 'content', 'options', 'result', 'error'],
    ...[
      'session/update',
      'session/request_permission',
      'session/prompt',
      'tool_call',
      'plan',
      'usage_update',
    ],
    ...['toString', 'toolCallId', 'diff', 'text', 'type', 'title', 'entries', 'outcome', 'stopReason'],
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, word, fc.jsonValue(), tie('record'), fc.array(tie('value'))),
    record: fc.dictionary(word, tie('value')),
  }));
  const frame = fc.record({ method: word, id: value, params: value, result: value, error: value });
  const record = fc.record({
    direction: fc.constantFrom('to_agent', 'from_agent'),
    payload: fc.oneof(frame, value),
    review_id: fc.constantFrom('rev_1', undefined),
    answered_by: fc.constantFrom('ana', null),
  });
  fc.assert(
    fc.property(fc.array(record), (records) => {
      const shown = text(records.map(({ direction, payload, ...more }) => event(direction, payload, more)));
      expect(shown).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      expect(shown === '' || shown.endsWith('\n')).toBe(true);
    }),
  );
});

test('shows an elicitation with its command, its answer and its completion', () => {
  const more = { elicitation_id: 'eli_1' };
  const elicits = (params: Fields, fields: Fields = more) =>
    event('from_agent', { id: 9, method: 'elicitation/create', params }, fields);
  const answered = (result: Fields) =>
    event('to_agent', { id: 9, result }, { response_to: 9, answered_by: 'ana', ...more });
  const properties = { name: {}, 'x\u001b[2J': {} };
  const form = elicits({ message: 'Where to?', requestedSchema: { properties } });
  expect(text([form])).toBe('┃ asks     Where to?  form: name, x\\x1b[2J\n┃   svc elicitations show eli_1\n');
  expect(text([form, answered({ action: 'accept', content: { name: 'v1' } })])).toContain(
    '┃ answer   ana: accept  Where to?\n┃   {"name":"v1"}\n',
  );
  const link = elicits({ mode: 'url', url: 'https://example.org/', message: '' });
  expect(text([link, answered({ action: 'decline' })])).toBe(
    '┃ asks     https://example.org/\n┃   svc elicitations show eli_1\n┃ answer   ana: decline\n',
  );
  const withdrawn = event('from_agent', { method: '$/cancel_request', params: { requestId: 9 } });
  expect(text([form, withdrawn])).toContain('┃ asks     no longer  Where to?\n');
  expect(text([elicits({ mode: 'voice' }, {})])).toBe('┃ asks     form\n');
});

const of = (subagent: string, fields: Fields, more: Fields = {}) =>
  event(
    'from_agent',
    { jsonrpc: '2.0', method: 'session/update', params: { sessionId: subagent, update: fields } },
    { subagent, ...more },
  );
const chunk = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const announced = (sessionId: string, fields: Fields) => ({
  sessionUpdate: 'subagent_update',
  sessionId,
  ...fields,
});
const idle = { state: 'idle', stopReason: 'end_turn' };
const search = { sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'Look', kind: 'search' };
const delegation = [
  update(announced('s1', { title: 'explorer', description: 'Find it', state: { state: 'running' } })),
  update({
    ...{ sessionUpdate: 'session_message', senderSessionId: 'main', recipientSessionId: 's1' },
    content: [{ type: 'text', text: 'Please\nlook' }],
  }),
  says('I wait.'),
  calls({ title: 'Mine', kind: 'read', status: 'pending' }),
  of('s1', { ...search, status: 'pending' }),
  of('s1', chunk('I look\nevery')),
  of('s1', chunk('where')),
  of('s1', { sessionUpdate: 'current_mode_update', currentModeId: 'yolo' }),
  of('s1', announced('s2', { title: 'reader', state: { state: 'running' } })),
  of('s2', chunk('I read')),
  of('s1', { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'completed' }),
  changes({ status: 'completed' }),
  asks({ toolCallId: 'c9', title: 'Write' }, once, { review_id: 'rev_1', subagent: 's2' }),
  update(announced('s1', { state: idle })),
  of('s9', chunk('Who am I?'), { unknown_session: true }),
];

test('shows each sub-agent in one line, with its requests; shows an unknown session in full', () => {
  expect(text(delegation)).toBe(`┃ subagent explorer  running  Find it
┃ message  agent → explorer  Please…
I wait.
┃ read     Mine  pending
┃ subagent explorer/reader  running
┃ read     Mine  completed
┃ asks     explorer/reader: Write
┃   [y]       Yes  (allow_once)
┃   [no-way]  No  (reject_once)
┃   svc reviews allow rev_1
┃ subagent explorer  ended: end_turn  1 tool call
unknown session s9 │ Who am I?
`);
});

test('--subagents shows sub-agents in full, with their names before each line', () => {
  const full_text = text(delegation.slice(3, 12), { subagents: true });
  expect(full_text).toBe(`┃ read     Mine  pending
┃ search   sub-agent s1: Look  pending
sub-agent s1 │ I look
sub-agent s1 │ everywhere
┃ mode     sub-agent s1: yolo
┃ subagent sub-agent s1/reader  running
sub-agent s1/reader │ I read
┃ search   sub-agent s1: Look  completed
┃ read     Mine  completed
`);
});

test('shows a sub-agent launched by a tool call after its first message', () => {
  const rawInput = { subagent_type: 'Explore', description: 'Find it' };
  const marked = (fields: Fields) => update(fields, { subagent: 'c1' });
  expect(
    text([
      calls({ title: 'Task', kind: 'think', status: 'pending', rawInput }),
      marked({ ...search, toolCallId: 'c2' }),
      marked(chunk('found')),
      changes({ status: 'completed' }),
    ]),
  ).toBe(`┃ think    Task  pending
┃ subagent Explore  running  1 tool call  Find it
┃ subagent Explore  ended: end_turn  1 tool call
┃ think    Task  completed
`);
});

test('a sub-agent’s name cannot forge a line, and is shown with its control characters visible', () => {
  const title = '┃ answer\n\u202eana: \x1b[2JYes';
  const shown = text([
    update(announced('s1', { title, state: { state: 'running' } })),
    of('s1', chunk('x'), { unknown_session: true }),
    of('\u202e\x1b[2J┃', chunk('y'), { unknown_session: true }),
  ]);
  expect(shown).toBe(`┃ subagent \\u2503 answer\\x0a⟦U+202E⟧ana: \\x1b[2JYes  running
unknown session s1 │ x
unknown session ⟦U+202E⟧\\x1b[2J\\u2503 │ y
`);
});

const patch = 'diff --git a/a.ts b/a.ts\n--- a/a.ts\n+++ b/a.ts\n@@ -1,1 +1,1 @@\n-one\n+two\n';

test('prints a turn of ACP version 2 like one of version 1', () => {
  const block = (words: string) => ({ type: 'text', text: words });
  const message = (messageId: string, ...words: string[]) =>
    update({ sessionUpdate: 'agent_message', messageId, content: words.map(block) });
  const idle = { sessionUpdate: 'state_update', state: 'idle', stopReason: 'end_turn' };
  const changed = [{ operation: 'modify', path: '/w/a.ts' }];
  const diff = { type: 'diff', changes: changed, patch: { format: 'git_patch', text: patch } };
  const toolCall = { toolCallId: 'c1', title: 'Edit a.ts', kind: 'edit', content: [diff] };
  const subject = { type: 'tool_call', toolCall };
  const params = { title: 'Change it?', description: 'It is safe.', subject, options: once };
  const data = Buffer.from('output').toString('base64');
  expect(
    text([
      requests('session/prompt', { prompt: [block('do it')] }),
      responds('prm_1', { result: { messageId: 'u' } }),
      update({ sessionUpdate: 'user_message', messageId: 'u', content: [block('do it')] }),
      update({ sessionUpdate: 'state_update', state: 'running' }),
      update({ sessionUpdate: 'agent_thought', messageId: 't', content: [block('hm')] }),
      says('I will', { messageId: 'm1' }),
      message('m1', 'I will', ' do it.'),
      update({ sessionUpdate: 'agent_message', messageId: 'm1' }),
      update({
        sessionUpdate: 'plan_update',
        plan: { type: 'items', planId: 'p', entries: [{ content: 'one' }] },
      }),
      update({
        sessionUpdate: 'config_option_update',
        configOptions: [{ configId: 'how', currentValue: 'ask' }],
      }),
      update({ sessionUpdate: 'terminal_output_chunk', terminalId: 't', data }),
      event('from_agent', { id: 7, method: 'session/request_permission', params }, { review_id: 'rev_1' }),
      answers({ outcome: 'selected', optionId: 'y' }, 'ana'),
      update({ sessionUpdate: 'tool_call_content_chunk', toolCallId: 'c1', content: diff }),
      changes({ title: 'Edit a.ts', kind: 'edit', status: 'completed' }),
      message('m2', 'Wrong.'),
      message('m2', 'Right.'),
      update({ sessionUpdate: 'notice', severity: 'error', title: 'Low', description: 'Few tokens.' }),
      update({ sessionUpdate: '_weather' }),
      update(idle, { turn_ended: { prompt_id: 'prm_1', stop_reason: 'end_turn' } }),
      update(idle),
    ]),
  ).toMatchInlineSnapshot(`
    "> do it
    ~ hm
    I will do it.
    ┃ plan     [ ] one
    ┃ options  how = ask
    ┃ edit     Edit a.ts
    ┃ --- /w/a.ts
    ┃ +++ /w/a.ts
    ┃ @@ -1,1 +1,1 @@
    ┃ -one
    ┃ +two
    ┃ asks     Change it?  edit
    ┃   It is safe.
    ┃   Edit a.ts
    ┃   [y]       Yes  (allow_once)
    ┃   [no-way]  No  (reject_once)
    ┃   svc reviews allow rev_1
    ┃ answer   ana: Yes  Change it?
    ┃ edit     Edit a.ts  completed
    Wrong.
    Right.
    ┃ notice   Low  Few tokens.
    ┃ agent    session/update  _weather
    ┃ turn     ended: end_turn
    "
  `);
});
