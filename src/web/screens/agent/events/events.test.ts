import { describe, expect, test } from 'vitest';
import { bounds } from '../../../../acp/transcript/bounds.ts';
import {
  agentMessage,
  errorEvent,
  fromAgent,
  numbered,
  outputEvent,
  permissionRequest,
  promptRequest,
  response,
  statusEvent,
  toAgent,
} from '../../../../acp/transcript/testing.ts';
import { formatCount, withCounts } from './counts.ts';
import { groupEvents, groupWith, joined, singleEvents } from './groups.ts';
import { EVENTS_MAX, nothing, withNewer, withOlder } from './log-range.ts';
import { formatJson, summarizeEvent } from './summary.ts';

const events = (first: number, last: number) =>
  numbered(
    Array.from({ length: last - first + 1 }, () => outputEvent('x\n')),
    first,
  );
const seqs = (range: { events: readonly { seq: number }[] }) => range.events.map(({ seq }) => seq);

describe('the loaded part of a log', () => {
  test('grows at both ends without duplicates', () => {
    let range = withNewer(nothing, events(10, 12), true);
    range = withOlder(range, events(7, 10), true);
    range = withNewer(range, events(12, 14), false);
    expect(seqs(range)).toEqual([7, 8, 9, 10, 11, 12, 13, 14]);
    expect(range).toMatchObject({ older: true, newer: false });
  });

  test('drops events at the other end if it is too long, and records that it did', () => {
    const full = withNewer(nothing, events(101, 100 + EVENTS_MAX), false);
    const back = withOlder(full, events(91, 100), false);
    expect([seqs(back)[0], seqs(back).at(-1), back.events.length]).toEqual([91, 90 + EVENTS_MAX, EVENTS_MAX]);
    expect(back).toMatchObject({ older: false, newer: true });
    const on = withNewer(full, events(101 + EVENTS_MAX, 105 + EVENTS_MAX), false);
    expect([seqs(on)[0], seqs(on).at(-1)]).toEqual([106, 105 + EVENTS_MAX]);
    expect(on).toMatchObject({ older: true, newer: false });
  });
});

describe('the pieces of a message', () => {
  const piece = (text: string, messageId = 'm1') => agentMessage(text, { messageId });
  const all = numbered([
    promptRequest('Go'),
    piece('Hel'),
    piece('lo'),
    piece('Next', 'm2'),
    outputEvent('x\n'),
    piece('Next', 'm2'),
  ]);

  test('are one row, unless another event is between them', () => {
    const groups = groupEvents(all);
    expect(groups.map(({ events }) => events.length)).toEqual([1, 2, 1, 1, 1]);
    expect(summarizeEvent(joined(groups[1]!)).text).toBe('Hello');
    expect(joined(groups[0]!)).toBe(all[0]);
    expect(groupWith(groups, all[2]!.seq)).toBe(1);
    expect(groupWith(groups, 99)).toBe(-1);
  });

  test('are separate rows on request', () => {
    expect(singleEvents(all).map(({ first }) => first)).toEqual(all);
  });
});

describe('a response', () => {
  const request = (id: unknown, method: string) => ({ id, method, params: { sessionId: 's1' } });
  const answer = (id: unknown) => fromAgent({ id, result: {} }, { response_to: id });
  const all = numbered([
    toAgent(request('ses_1/1', 'initialize')),
    fromAgent(request(1, 'fs/read_text_file')),
    toAgent(request(1, 'session/prompt')),
    answer(1),
    answer('ses_1/1'),
    answer(7),
  ]);

  test.each([
    ['whole messages', groupEvents],
    ['raw events', singleEvents],
  ])('has the name of the request that it answers, in a list of %s', (_, rowsOf) => {
    const names = rowsOf(all).map((row) => summarizeEvent(row.first, row.request_method).what);
    expect(names.slice(3)).toEqual(['response to session/prompt', 'response to initialize', 'response to 7']);
  });
});

describe('the summary of an event', () => {
  test.each([
    ['output', outputEvent('one\ntwo\n', { stream: 'stderr' }), 'stderr', null, 'one ⏎ two'],
    [
      'a status',
      statusEvent('failed', { exit_code: 3, reason: 'exit' }),
      'failed',
      null,
      'was running · exit 3 · exit',
    ],
    ['an error', errorEvent('turn_lost'), 'turn_lost', null, 'turn_lost happened'],
    ['a prompt', promptRequest('Fix it'), 'session/prompt', 'to_agent', 'Fix it'],
    ['a message', agentMessage('Hello'), 'agent_message_chunk', 'from_agent', 'Hello'],
    [
      'a message of a sub-agent',
      agentMessage('Hi', {}, { subagent: 's1\u202e' }),
      'agent_message_chunk',
      'from_agent',
      'sub-agent s1⟦U+202E⟧ · Hi',
    ],
    [
      'a message in an unknown session',
      agentMessage('Hi', {}, { subagent: 's1', unknown_session: true }),
      'agent_message_chunk',
      'from_agent',
      'unknown session s1 · Hi',
    ],
    [
      'a permission request',
      permissionRequest('rev_1', { title: 'Run it' }),
      'session/request_permission',
      'from_agent',
      'Run it',
    ],
    [
      'a response',
      response({ result: { stopReason: 'end_turn' } }),
      'response to ?',
      'from_agent',
      'end_turn',
    ],
  ])('is one line for %s', (_, fields, what, direction, text) => {
    expect(summarizeEvent(numbered([fields])[0]!)).toEqual({ what, direction, text });
  });

  test('leaves out the session of a request', () => {
    const textOf = (params: object) =>
      summarizeEvent(numbered([toAgent({ method: 'session/set_mode', params })])[0]!).text;
    expect(textOf({ sessionId: 's1', modeId: 'plan' })).toBe('{ "modeId": "plan" }');
    expect(textOf({ sessionId: 's1' })).toBe('');
  });

  test('accepts any message from an agent', () => {
    for (const payload of [null, 7, 'x', [], {}, { method: 7 }, { method: 'session/update', params: [] }]) {
      expect(summarizeEvent(numbered([fromAgent(payload)])[0]!).direction).toBe('from_agent');
    }
  });

  test('removes terminal commands and shows marks that reorder text', () => {
    const [event] = numbered([outputEvent('a\x1b]52;c;aGk=\x07b\u202ec\x1b[31md\n')]);
    expect(summarizeEvent(event!).text).toBe('ab<U+202E>cd');
  });

  test('is truncated if it is too long', () => {
    const [event] = numbered([outputEvent('x'.repeat(10_000))]);
    expect(summarizeEvent(event!).text).toBe(`${'x'.repeat(300)}…`);
  });
});

test('the JSON of an event is valid, with characters that reorder text escaped', () => {
  const [event] = numbered([outputEvent('\u202e\u2066\u0085')]);
  const text = formatJson(event!);
  expect(text).toContain('\\u202e\\u2066\\u0085');
  expect(JSON.parse(text)).toEqual(event);
});

test('the JSON of a large event is complete', () => {
  const [event] = numbered([outputEvent('x'.repeat(bounds.text_chars))]);
  expect(JSON.parse(formatJson(event!))).toEqual(event);
});

describe('the counts of types', () => {
  const log = numbered([statusEvent('running'), outputEvent('x\n'), outputEvent('y\n')], 1);

  test('are those of the part that was read, and are kept while only one type is read', () => {
    const all = withCounts({}, withNewer(nothing, log, false), undefined, 3);
    const texts = (last_seq: number) =>
      Object.entries(all).map(([type, count]) => `${type} ${formatCount(count, last_seq)}`);
    expect(texts(3)).toEqual(['all 3', 'output 2', 'status 1', 'acp_event 0', 'error 0']);
    const one = withCounts(all, withOlder(nothing, events(1, 5), true), 'output', 9);
    expect([one.output, one.status].map((count) => formatCount(count, 9))).toEqual(['5+', '1+']);
  });

  test('say when there may be more, and nothing when that is all they know', () => {
    const { all, error } = withCounts({}, withOlder(nothing, log, true), undefined, 3);
    expect([all, error, undefined].map((count) => formatCount(count))).toEqual(['3+', '', '']);
  });
});
