import { expect, test } from 'vitest';
import { detectLanguage } from './languages.ts';
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
