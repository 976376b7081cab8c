import { expect, test } from 'vitest';
import { applyToLongTexts } from '../../../testing/long-input.ts';
import {
  composerFieldFor,
  excerpt,
  filterShown,
  formatReceiver,
  type MessageRecord,
  mergeMessages,
  payloadRest,
  pieces,
  shortActorName,
  taskFieldFor,
} from './thread.ts';

const message = (id: number, more: Partial<MessageRecord> = {}): MessageRecord => ({
  ...{ id, team_id: 'team_1', task_id: 'task_1', conversation_id: 'conv_1', run_id: null, delivered: false },
  ...{ from_actor_id: 'user:ana', route: 'broadcast', to_actor_id: null, payload: { text: `${id}` } },
  ...{ text: `${id}`, reply_to: null, thread: id, created_at: '2026-01-01T00:00:00Z' },
  ...more,
});
const ids = (messages: readonly MessageRecord[]) => messages.map(({ id }) => id);

test('merges pages and streamed messages into one conversation without duplicates', () => {
  const pages = [
    [message(9), message(7)],
    [message(4), message(2)],
  ];
  expect(ids(mergeMessages(pages, [message(7), message(12)]))).toEqual([2, 4, 7, 9, 12]);
});

test('a message shows the run that received it, in whatever order its versions arrive', () => {
  const waits = message(1);
  const taken = message(1, { run_id: 'run_1', delivered: true });
  expect(mergeMessages([[waits]], [taken])).toEqual([taken]);
  expect(mergeMessages([[taken]], [waits])).toEqual([taken]);
});

test('a search shows only what it found, and a thread only its own messages', () => {
  const received = [message(3, { thread: 1 }), message(4)];
  expect(ids(filterShown(received, [], {}))).toEqual([3, 4]);
  expect(ids(filterShown(received, [], { thread: 1 }))).toEqual([3]);
  expect(ids(filterShown(received, [message(4)], { q: 'words' }))).toEqual([4]);
});

test('shows the short names of actors', () => {
  expect([
    shortActorName('dev@team_1'),
    shortActorName('user:ana'),
    shortActorName('user:a@b.c'),
    shortActorName('lead'),
  ]).toEqual([...['dev', 'ana', 'a@b.c', 'lead']]);
  expect(formatReceiver({ route: 'broadcast', to_actor_id: null })).toBe('everyone');
  expect(formatReceiver({ route: 'to_member', to_actor_id: 'dev@team_1' })).toBe('dev');
});

test('shows the whole payload, and its text only once', () => {
  expect(payloadRest(message(1))).toBe(null);
  expect(payloadRest(message(1, { payload: { text: 'a', n: 1 }, text: 'a' }))).toBe('{\n  "n": 1\n}');
  expect(payloadRest(message(1, { payload: { n: 1 }, text: null }))).toBe('{\n  "n": 1\n}');
  expect(payloadRest(message(1, { payload: {}, text: null }))).toBe('{}');
  expect(payloadRest(message(1, { payload: { text: 7 }, text: null }))).toBe('{\n  "text": 7\n}');
});

test('only http and https URLs become links, without punctuation, and no text is lost', () => {
  const text = 'see https://a.example/b?c=1#d, (http://x.example). javascript:alert(1) https://[ <b>';
  const parts = pieces(text);
  expect(parts.map(({ text }) => text).join('')).toBe(text);
  expect(parts.flatMap(({ href }) => href ?? [])).toEqual(['https://a.example/b?c=1#d', 'http://x.example']);
  expect(parts.every(({ text, href }) => href === null || href === text)).toBe(true);
  expect(new Set(parts.map(({ at }) => at)).size).toBe(parts.length);
});

test('an excerpt is one short line', () => {
  expect(excerpt({ text: 'a\n  b', payload: {} })).toBe('a b');
  expect(excerpt({ text: 'x'.repeat(500), payload: {} })).toHaveLength(80);
  expect(excerpt({ text: null, payload: { n: 1 } })).toBe('{"n":1}');
});

test('an error of the server is shown at the field that it is about', () => {
  expect(composerFieldFor('route=to_leader requires a leader member in spec.members')).toBe('route');
  expect(composerFieldFor('to_actor_id is required when route=to_member')).toBe('member');
  expect(composerFieldFor('unknown actor: nobody')).toBe('member');
  expect(composerFieldFor('text is required')).toBe('text');
  expect(taskFieldFor('title is required')).toBe('title');
  expect(taskFieldFor('assignee_member_id must reference a defined member')).toBe('assignee');
  expect(taskFieldFor('task changed concurrently; reload and retry')).toBe('form');
});

test('finds links in linear time, whatever is repeated', () => applyToLongTexts(pieces));
