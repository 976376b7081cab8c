import { expect, test } from 'vitest';
import { afterCreation, readDraft, toDraft as toText, unsaved } from './draft.ts';

const toDraft = (text: string, version: number | null, id = 'one') => toText({ text, version, id });

test('a saved draft is removed, and what was typed meanwhile stays as a change of the saved version', () => {
  expect(unsaved(toDraft('{"a":1}', 3), '{"a":1}', 4)).toBe('');
  expect(unsaved('', '{"a":1}', 4)).toBe('');
  expect(readDraft(unsaved(toDraft('{"a":2}', 3), '{"a":1}', 4))).toEqual({
    ...{ text: '{"a":2}', version: 4, id: 'one' },
  });
});

test('what was typed while a team was created becomes its draft, unless it is for another team', () => {
  const sent = { text: '{"a":1}', version: null, id: 'one' };
  const rest = toDraft('{"a":2}', 1);
  expect(afterCreation(toDraft('{"a":2}', null), sent, 1)).toEqual({ rest, next: '' });
  expect(afterCreation(toDraft('{"a":1}', null), sent, 1)).toEqual({ rest: '', next: '' });
  expect(afterCreation('', sent, 1)).toEqual({ rest: '', next: '' });
  const next = toDraft('{"b":1}', null, 'two');
  expect(afterCreation(next, sent, 1)).toEqual({ rest: '', next });
});

test('a malformed draft counts as none', () => {
  for (const held of ['', '{', 'null', '{"version":1}']) expect(readDraft(held)).toBeNull();
  expect(readDraft('{"text":"x","version":"1"}')).toEqual({ text: 'x', version: null, id: '' });
});
