import { expect, test } from 'vitest';
import { rowsOf } from './rows.ts';
import { calls, changes, numbered, says, viewOf } from './testing.ts';
import { Transcript } from './transcript.ts';

const read = (id: string) => calls(id, { kind: 'read', status: 'completed' });

test('reads that are done and follow each other are one row; a single one is itself', () => {
  const { items } = viewOf(
    read('a'),
    read('b'),
    says('hm'),
    read('c'),
    calls('d', { kind: 'edit' }),
    read('e'),
  );
  expect(rowsOf(items).map((row) => (row.kind === 'reads' ? row.tools.length : row.kind))).toEqual([
    2,
    'agent_message',
    'tool',
    'tool',
    'tool',
  ]);
});

test('a read that goes on or failed stands by itself', () => {
  const { items } = viewOf(
    read('a'),
    read('b'),
    calls('c', { kind: 'read' }),
    changes('b', { status: 'failed' }),
  );
  expect(rowsOf(items).map(({ kind }) => kind)).toEqual(['tool', 'tool', 'tool']);
});

test('a row that did not change is the same object', () => {
  const transcript = new Transcript();
  transcript.take(numbered([read('a'), read('b'), says('one')]));
  const [before] = rowsOf(transcript.view.items);
  transcript.take(numbered([says('two')], 4));
  expect(rowsOf(transcript.view.items)[0]).toBe(before);
  transcript.take(numbered([changes('b', { title: 'B' })], 5));
  const [after] = rowsOf(transcript.view.items);
  expect(after).not.toBe(before);
  expect(after?.key).toBe(before?.key);
});
