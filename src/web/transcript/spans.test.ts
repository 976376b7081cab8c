import { expect, test } from 'vitest';
import { filesOf, toolSpans, waitSpans } from './spans.ts';
import { calls, changes, decides, prompts, viewOf, wants } from './testing.ts';

test('a tool takes from its call to its end, a question from its asking to its answer', () => {
  const { items } = viewOf(
    prompts('go'),
    calls('c1', { title: 'npm test' }),
    wants('rev_1'),
    decides('rev_1', { outcome: 'selected', optionId: 'y' }),
    changes('c1', { status: 'completed' }),
    wants('rev_2'),
  );
  expect(toolSpans(items)).toEqual([
    { key: '2', seq: 2, turn: 1, label: 'npm test', started_ts: 2, ended_ts: 5 },
  ]);
  expect(waitSpans(items).map(({ started_ts, ended_ts }) => [started_ts, ended_ts])).toEqual([
    [3, 4],
    [6, null],
  ]);
});

test('files are those that tools named, with the lines of the changes that did not fail', () => {
  const diff = (path: string, newText: string) => ({ type: 'diff', path, oldText: 'one\n', newText });
  const { items } = viewOf(
    calls('c1', { kind: 'read', locations: [{ path: '/a' }, { path: '/b' }] }),
    calls('c2', { status: 'completed', content: [diff('/a', 'one\ntwo\n')] }),
    calls('c3', { status: 'completed', content: [diff('/a', '1\n'), diff('/c', '')] }),
    calls('c4', { status: 'failed', content: [diff('/b', 'never\n')] }),
  );
  expect(filesOf(items)).toEqual([
    { path: '/a', added: 2, removed: 1, edited: true, seq: 3 },
    { path: '/b', added: 0, removed: 0, edited: false, seq: 4 },
    { path: '/c', added: 0, removed: 1, edited: true, seq: 3 },
  ]);
});
