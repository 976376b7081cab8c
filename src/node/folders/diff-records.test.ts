import { expect, test } from 'vitest';
import { diffRecords, fields, pathspec, shownName } from './diff-records.ts';

const hash = '0'.repeat(40);
const raw = (status: string, ...names: string[]) =>
  [`:100644 100644 ${hash} ${hash} ${status}`, ...names].map((part) => `${part}\0`).join('');

test('joins raw and numstat records by path, including renames', () => {
  const output = `${raw('M', 'a.txt')}${raw('R086', 'old', 'new\tname\n')}${raw('A', 'x.bin')}3\t1\ta.txt\x002\t0\t\0old\0new\tname\n\0-\t-\tx.bin\0`;
  expect(diffRecords(Buffer.from(output))).toEqual([
    { status: 'modified', path: Buffer.from('a.txt'), from: null, additions: 3, deletions: 1 },
    {
      status: 'renamed',
      path: Buffer.from('new\tname\n'),
      from: Buffer.from('old'),
      additions: 2,
      deletions: 0,
    },
    { status: 'added', path: Buffer.from('x.bin'), from: null, additions: null, deletions: null },
  ]);
});

test('reports a path that is conflicted and modified as conflicted', () => {
  const records = diffRecords(Buffer.from(raw('U', 'a') + raw('M', 'a')));
  expect(records.map((each) => each.status)).toEqual(['conflicted']);
});

test('returns the complete records of truncated output', () => {
  const whole = Buffer.from(raw('M', 'a') + raw('R100', 'b', 'c'));
  for (let cut = 0; cut < whole.length; cut++) {
    const records = diffRecords(whole.subarray(0, cut));
    expect(records.length).toBeLessThanOrEqual(1);
  }
  expect(fields(Buffer.from('a\0b'))).toEqual([Buffer.from('a')]);
});

test('shows names that are not UTF-8 as git quotes them, and others unchanged', () => {
  expect(shownName(Buffer.from('café\n"x'))).toBe('café\n"x');
  expect(shownName(Buffer.from([0x63, 0xe9, 0x5c, 0x22]))).toBe('"c\\351\\\\\\""');
  expect(shownName(Buffer.from('"a"'))).toBe('"\\"a\\""');
  expect(pathspec(Buffer.from('*?'))).toBe(':(literal)*?');
  expect(pathspec(Buffer.from([0x2a, 0xe9, 0x5b]))).toBe(':(glob)\\*?\\[');
});
