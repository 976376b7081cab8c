import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import type { EventRecord } from '../domain/event.ts';
import { Transcript } from './transcript.ts';

type Fields = Record<string, unknown>;

function event(direction: string, payload: unknown, more: Fields = {}): EventRecord {
  const base = { type: 'acp_event' as const, agent_id: 'agt_1', session_id: 'ses_1', seq: 1, ts: 1 };
  return { ...base, direction, payload, ...more };
}
const told = (method: string, params: Fields, id: unknown = 'prm_1', more: Fields = {}) =>
  event('to_agent', { jsonrpc: '2.0', id, method, params }, { method, ...more });
const update = (fields: Fields, more: Fields = {}) =>
  event('from_agent', { jsonrpc: '2.0', method: 'session/update', params: { update: fields } }, more);
const says = (text: string, more: Fields = {}) =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more });
const thinks = (text: string) =>
  update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } });
const heard = (id: unknown, answer: Fields) => event('from_agent', { jsonrpc: '2.0', id, ...answer });
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

function text(events: EventRecord[], options = { colours: false, plumbing: false }): string {
  const transcript = new Transcript(options);
  return events.map((one) => transcript.event(one)).join('') + transcript.close();
}

test('a turn reads as a conversation', () => {
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
      told('initialize', {}),
      heard('prm_1', { result: { protocolVersion: 1 } }),
      told('session/prompt', {
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
      heard('prm_1', { result: { stopReason: 'end_turn' } }),
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

test('a question that no plain decision answers says how an option is named', () => {
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

test('an update shows what changes and nothing else; a call that begins again is shown whole', () => {
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

test('long diffs are cut, new files have no old side', () => {
  const newText = Array.from({ length: limits.transcript_diff_lines + 5 }, (_, at) => `${at}\n`).join('');
  const lines = text([calls({ title: 'Write', content: [{ type: 'diff', path: '/n', newText }] })]).split(
    '\n',
  );
  expect(lines.slice(1, 5)).toEqual(['┃ --- /dev/null', '┃ +++ /n', '┃ @@ -0,0 +1,105 @@', '┃ +0']);
  expect(lines.slice(-2)).toEqual(['┃ … 6 more lines', '']);
  expect(lines).toHaveLength(limits.transcript_diff_lines + 5);
});

test('a diff shows what changes, with a little of what is around it', () => {
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

test('what an agent says of itself is told when it changes, what nobody knows in one line', () => {
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
      told('session/set_mode', { modeId: 'ask' }, 's.1'),
      heard('s.1', { error: { code: 1, message: 'no such\nmode' } }),
      told('session/cancel', {}, undefined),
      heard('prm_1', { result: { stopReason: 'cancelled' } }),
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

test('what is replayed was shown before, and a new session knows nothing of the one before it', () => {
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

test('frames of the service itself are shown when they are asked for', () => {
  const shown = text([told('session/new', { cwd: '/w' }), heard('prm_1', { result: { sessionId: 's' } })], {
    colours: false,
    plumbing: true,
  });
  expect(shown).toBe(
    '┃ svc      -> session/new  {"cwd":"/w"}\n┃ svc      <- answer to session/new  {"sessionId":"s"}\n',
  );
});

test('nothing that an agent says drives the terminal or passes for a line of ours', () => {
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

test('colours are ours alone', () => {
  const shown = text([thinks('hm'), says('\x1b[31mred')], { colours: true, plumbing: false });
  expect(shown).toBe('\x1b[2m~ hm\x1b[22m\n\\x1b[31mred\n');
});

test('no form of a frame is too odd to be shown', () => {
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
