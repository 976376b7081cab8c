import type { Change, Hunk } from 'gitdiff-parser';
import type { TokenNode } from 'react-diff-view';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { countColored } from './colored.ts';
import { detectLanguage } from './languages.ts';
import { quickToMark } from './mark-work.ts';
import { countLines, diffTexts, firstLines } from './texts.ts';

test('the difference of two texts has numbered lines, and one hunk for changes that are close', () => {
  const before = Array.from({ length: 30 }, (_, n) => `line ${n + 1}`);
  const after = before.with(1, 'two').with(25, 'twenty-six');
  const hunks = diffTexts(before.join('\n'), after.join('\n'))!;
  expect(hunks.map(({ content }) => content)).toEqual(['@@ -1,5 +1,5 @@', '@@ -23,7 +23,7 @@']);
  const changed = hunks.flatMap(({ changes }) => changes.filter(({ type }) => type !== 'normal'));
  expect(changed).toMatchObject([
    { type: 'delete', content: 'line 2', lineNumber: 2 },
    { type: 'insert', content: 'two', lineNumber: 2 },
    { type: 'delete', content: 'line 26', lineNumber: 26 },
    { type: 'insert', content: 'twenty-six', lineNumber: 26 },
  ]);
  expect(hunks[1]!.changes.at(-1)).toMatchObject({ oldLineNumber: 29, newLineNumber: 29 });
  expect(diffTexts(null, 'a\nb\n')![0]!.changes.map(({ type }) => type)).toEqual(['insert', 'insert']);
  expect(diffTexts('a', 'b')![0]!.changes.map(({ content }) => content)).toEqual(['a', 'b']);
});

test('the first lines of a diff end within a hunk', () => {
  const text = (word: string) =>
    Array.from({ length: 30 }, (_, n) => (n % 20 === 1 ? word : `${n}`)).join('\n');
  const hunks = diffTexts(text('old'), text('new'))!;
  expect(hunks.map(({ changes }) => changes.length)).toEqual([6, 8]);
  expect(firstLines(hunks, 8).map(({ changes }) => changes.length)).toEqual([6, 2]);
  expect(firstLines(hunks, 6)).toHaveLength(1);
  expect(countLines(firstLines(hunks, 100))).toBe(14);
});

test('the colored parts of a text are counted at any depth', () => {
  const text = { type: 'text', value: 'a' };
  const part = (...children: TokenNode[]) => ({ type: 'element', tagName: 'span', children });
  expect(countColored([text, part(text), part(text, part(text, text))])).toBe(3);
});

test('the file name determines the language', () => {
  expect(['a/b.ts', 'x.test.TSX', 'Dockerfile', 'a.b/Makefile', 'run.sh'].map(detectLanguage)).toEqual([
    ...['typescript', 'tsx', 'docker', 'makefile', 'bash'],
  ]);
  expect(['LICENSE', 'a.ts/data', 'x.unknown', 'ts.', ''].map(detectLanguage)).toEqual([
    null,
    null,
    null,
    null,
    null,
  ]);
});

describe('marks within lines', () => {
  const block = (chars: number, at = 1): Change[] => [
    { type: 'delete', isDelete: true, lineNumber: at, content: 'a'.repeat(chars) },
    { type: 'insert', isInsert: true, lineNumber: at, content: 'b'.repeat(chars) },
  ];
  const same: Change = { type: 'normal', isNormal: true, oldLineNumber: 2, newLineNumber: 2, content: '' };
  const hunk = (...changes: Change[]): Hunk => ({
    ...{ content: '', oldStart: 1, newStart: 1, oldLines: 1, newLines: 1 },
    changes,
  });
  const marked = (hunks: readonly Hunk[]) =>
    quickToMark(hunks).flatMap(({ changes }) =>
      changes.flatMap((change) => (change.type === 'delete' ? change.lineNumber : [])),
    );
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.runAllTimers();
    vi.useRealTimers();
  });

  test('are left out of blocks that are too long to compare, and only of these', () => {
    const hunks = [
      hunk(...block(200), same, ...block(4_500, 3), same, ...block(200, 5)),
      hunk(...block(20, 9)),
    ];
    expect(marked(hunks)).toEqual([1, 5, 9]);
    expect(quickToMark([hunk(...block(200), same)])[0]!.changes).toHaveLength(3);
  });

  test('share the work of all diffs that are shown at once', () => {
    const diffs = Array.from({ length: 5 }, () => [hunk(...block(1_000))]);
    expect(diffs.map((hunks) => marked(hunks).length)).toEqual([1, 1, 0, 0, 0]);
    vi.runAllTimers();
    expect(marked(diffs[2]!)).toHaveLength(1);
  });
});
