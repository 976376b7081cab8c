import { expect, test } from 'vitest';
import { readDraft, toDraft, unsaved } from './draft.ts';

test('a saved draft is removed, and what was typed meanwhile stays as a change of the saved version', () => {
  expect(unsaved(toDraft('{"a":1}', 3), '{"a":1}', 4)).toBe('');
  expect(unsaved('', '{"a":1}', 4)).toBe('');
  expect(readDraft(unsaved(toDraft('{"a":2}', 3), '{"a":1}', 4))).toEqual({ text: '{"a":2}', version: 4 });
});

test('a malformed draft counts as none', () => {
  for (const held of ['', '{', 'null', '{"version":1}']) expect(readDraft(held)).toBeNull();
  expect(readDraft('{"text":"x","version":"1"}')).toEqual({ text: 'x', version: null });
});
