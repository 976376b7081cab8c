import { describe, expect, test } from 'vitest';
import {
  type Comment,
  parseComments,
  parseDraftKeys,
  toPrompt,
  withAnchored,
  withComment,
  withoutComments,
} from './comments.ts';
import { findGaps, isContextIgnored } from './context.ts';
import {
  anchorAt,
  describeMode,
  type FileChange,
  findAnchor,
  findChange,
  getPlace,
  linesUpTo,
  paired,
  parsed,
  visible,
} from './parsed.ts';
import { buildTree, countFiles, type Folder, isFolder } from './tree.ts';
import { isViewed, parseViewed, withViewed } from './viewed.ts';

const head = 'diff --git a/a b.ts b/a b.ts\nindex 1..2 100644\n--- a/a b.ts\n+++ b/a b.ts\n';
const change = (diff: string, more: Partial<FileChange> = {}): FileChange => ({
  path: 'a b.ts',
  from: null,
  status: 'modified',
  additions: 1,
  deletions: 1,
  version: null,
  diff,
  truncated: false,
  ...more,
});
const simple = change(`${head}@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n`);

describe('a diff', () => {
  test('is parsed into hunks whose lines have a side and a line number', () => {
    const shown = parsed(simple);
    expect(shown).toMatchObject({ type: 'hunks' });
    if (shown.type !== 'hunks') return;
    expect(shown.hunks[0]!.changes.map((change) => [change.content, getPlace(change)])).toEqual([
      ['one', { side: 'new', line: 1 }],
      ['two', { side: 'old', line: 2 }],
      ['2', { side: 'new', line: 2 }],
      ['three', { side: 'new', line: 3 }],
    ]);
    expect(findChange(shown.hunks, { side: 'old', line: 2 })?.content).toBe('two');
    expect(findChange(shown.hunks, { side: 'old', line: 1 })).toBeNull();
  });

  test.each([
    ['old mode 100644\nnew mode 100755\n', 'The file is now executable.'],
    [
      `old mode 100755\nnew mode 100644\nindex 1..2\n@@ -1 +1 @@\n-a\n+b\n`,
      'The file is no longer executable.',
    ],
    ['new file mode 100755\n', 'The file is executable.'],
    ['deleted file mode 100644\n@@ -1 +0,0 @@\n-a\ndiff\nnew file mode 120000\n', 'This is a symbolic link.'],
    ['new file mode 100644\n@@ -0,0 +1 @@\n+new mode 100755\n', null],
    ['deleted file mode 100755\n@@ -1 +0,0 @@\n-a\n', null],
  ])('says whether the file is a link or a program: %j', (diff, text) => {
    expect(describeMode(diff)).toBe(text);
  });

  test('is not shown for a binary file, a rename without changes, or too much text', () => {
    expect(parsed(change('', { additions: null, deletions: null })).type).toBe('binary');
    const renamed = 'diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n';
    expect(parsed(change(renamed, { additions: 0, deletions: 0 })).type).toBe('same');
    expect(parsed(change(simple.diff, { truncated: true })).type).toBe('large');
    const lines = (count: number) => `${head}@@ -0,0 +1,${count} @@\n${'+x\n'.repeat(count)}`;
    expect(parsed(change(lines(2_990))).type).toBe('hunks');
    expect(parsed(change(lines(3_001))).type).toBe('large');
    expect(parsed(change(`${head}@@ -0,0 +1 @@\n+${'x'.repeat(6_000)}\n`)).type).toBe('large');
  });
});

test('the lines up to a place are those of its side in its hunk', () => {
  const shown = parsed(change(`${head}@@ -7,4 +7,4 @@\n a\n-b\n-c\n+1\n+2\n d\n@@ -20 +20 @@\n-x\n+y\n`));
  if (shown.type !== 'hunks') throw new Error('no hunks');
  const upTo = (side: 'old' | 'new', line: number) =>
    linesUpTo(shown.hunks, { side, line }).map(({ line, text }) => `${line} ${text}`);
  expect(upTo('new', 10)).toEqual(['7 a', '8 1', '9 2', '10 d']);
  expect(upTo('new', 8)).toEqual(['7 a', '8 1']);
  expect(upTo('old', 9)).toEqual(['7 a', '8 b', '9 c']);
  expect(upTo('new', 20)).toEqual(['20 y']);
  expect(upTo('new', 15)).toEqual([]);
});

describe('a comment that is being written while the file changes', () => {
  const hunksOf = (diff: string) => {
    const shown = parsed(change(`${head}${diff}`));
    if (shown.type !== 'hunks') throw new Error('no hunks');
    return shown.hunks;
  };
  const before = hunksOf('@@ -7,3 +7,5 @@\n a {\n+  one();\n+}\n b {\n }\n');
  const now = (diff: string, line: number, side: 'old' | 'new' = 'new') =>
    findAnchor(hunksOf(diff), anchorAt(before, { side, line }));

  test('follows its line', () => {
    expect(findAnchor(before, anchorAt(before, { side: 'new', line: 9 }))).toEqual({ side: 'new', line: 9 });
    const below = '@@ -7,3 +7,7 @@\n+x {\n+}\n a {\n+  one();\n+}\n b {\n }\n';
    expect(now(below, 8)).toEqual({ side: 'new', line: 10 });
    // Not the bracket that is nearer.
    expect(now(below, 9)).toEqual({ side: 'new', line: 11 });
  });

  test('has no place if its line is gone, even if another line looks like it', () => {
    const gone = '@@ -7,3 +7,3 @@\n a {\n+  two();\n b {\n';
    expect(now(gone, 8)).toBeNull();
    expect(now('@@ -7,3 +7,3 @@\n b {\n+  two();\n }\n', 9)).toEqual({ side: 'new', line: 9 });
    expect(now('@@ -6,3 +6,3 @@\n b {\n+  two();\n }\n', 9)).toBeNull();
  });

  test('quotes the lines that the user has seen', () => {
    const open = anchorAt(before, { side: 'new', line: 9 });
    const list = [comment(9, 'Old', { path: 'a b.ts' }), comment(3, 'Other')];
    const put = { path: 'a b.ts', open, text: 'Why?', first: 8 };
    const quoted = { path: 'a b.ts', side: 'new', code: '  one();\n}', text: 'Why?' };
    const moved = withAnchored(list, { ...put, now: { side: 'new', line: 19 } });
    expect(moved).toEqual([{ ...quoted, first: 18, line: 19 }, comment(3, 'Other')]);
    const gone = withAnchored(list, { ...put, now: null });
    expect(gone).toEqual([{ ...quoted, first: 8, line: 9 }, comment(3, 'Other')]);
  });

  test('keeps the quote of the comment that it changes if its line is not in the diff', () => {
    const open = anchorAt(before, { side: 'new', line: 90 });
    const put = { path: 'a.ts', open, now: null, text: 'Why?', first: undefined };
    expect(withAnchored([comment(90, 'Old')], put)).toEqual([comment(90, 'Why?')]);
    expect(withAnchored([], put)).toEqual([comment(90, 'Why?', { code: '' })]);
  });

  test('keeps a comment on the line that its line has moved to', () => {
    const open = anchorAt(before, { side: 'new', line: 9 });
    const there = comment(19, 'Mine', { path: 'a b.ts', first: 17, code: 'three lines' });
    const put = { path: 'a b.ts', open, text: 'Why?', now: { side: 'new', line: 19 } as const };
    expect(withAnchored([there], { ...put, first: 8 })).toEqual([{ ...there, text: 'Mine\n\nWhy?' }]);
    const longer = { first: 16, line: 19, text: 'Mine\n\nWhy?' };
    expect(withAnchored([there], { ...put, first: 6 })).toMatchObject([longer]);
  });
});

describe('hidden lines of a diff', () => {
  const gaps = (diff: string, context = 3) => {
    const shown = parsed(change(`${head}${diff}`));
    if (shown.type !== 'hunks') throw new Error('no hunks');
    return [findGaps(shown.hunks, context), isContextIgnored(shown.hunks, context)];
  };
  const around = ' a\n b\n c\n';

  test('are above and below hunks that do not reach the next one or the end of the file', () => {
    expect(gaps(`@@ -1,7 +1,7 @@\n${around}-x\n+y\n${around}`)).toEqual([[false, true], false]);
    const two = `@@ -2,7 +2,6 @@\n${around}-x\n${around}@@ -9,6 +8,6 @@\n${around}-x\n+y\n a\n b\n`;
    expect(gaps(two)).toEqual([[true, false, false], false]);
    expect(gaps('@@ -0,0 +1 @@\n+x\n')).toEqual([[false, false], false]);
    expect(gaps('@@ -1 +0,0 @@\n-x\n')).toEqual([[false, false], false]);
  });

  test('are not shown by a node that ignores the number of lines', () => {
    const diff = `@@ -30,7 +30,7 @@\n${around}-x\n+y\n${around}`;
    expect(gaps(diff)).toEqual([[true, true], false]);
    expect(gaps(diff, 20)).toEqual([[true, false], true]);
  });
});

describe('hidden characters in a diff', () => {
  const linesOf = (diff: string) => {
    const shown = parsed(change(`${head}${diff}`));
    if (shown.type !== 'hunks') throw new Error('no hunks');
    const all = [shown.hunks, visible(shown.hunks)].map((hunks) => hunks.flatMap(({ changes }) => changes));
    return all.map((changes) => changes.map(({ content }) => content));
  };

  test('are shown as their code points, and stay in the text for comments', () => {
    expect(linesOf('@@ -1 +1 @@\n-a\n+b\u202e\u200bc\tü\n')).toEqual([
      ['a', 'b\u202e\u200bc\tü'],
      ['a', 'b⟦U+202E⟧⟦U+200B⟧c\tü'],
    ]);
    const [hunk] = visible([
      { content: '@@ -1 +1 @@ f\u202e()\r', changes: [], oldStart: 1, newStart: 1, oldLines: 1, newLines: 1 },
    ]);
    expect(hunk!.content).toBe('@@ -1 +1 @@ f⟦U+202E⟧()');
  });

  test('do not include the line ends of a file that uses CRLF throughout', () => {
    const same = (diff: string, lines: string[]) => expect(linesOf(diff)).toEqual([lines, lines]);
    same('@@ -1,2 +1,2 @@\n one\r\n-a\r\n+b\r\n', ['one', 'a', 'b']);
    same('@@ -1,2 +1,2 @@ f()\n one\r\n-a\n\\ No newline at end of file\n+b\r\n', ['one', 'a', 'b']);
    const end = '⟦U+000D⟧';
    expect(linesOf('@@ -1 +1 @@\n-a\r\n+a\n')[1]).toEqual([`a${end}`, 'a']);
    expect(linesOf('@@ -1,2 +1,2 @@\n \n-a\n+a\r\n')[1]).toEqual(['', 'a', `a${end}`]);
  });
});

test('the side-by-side view pairs removed lines with added lines', () => {
  const shown = parsed(change(`${head}@@ -1,5 +1,5 @@\n-a\n-b\n-c\n+1\n+2\n same\n+new\n-d\n`));
  if (shown.type !== 'hunks') throw new Error('no hunks');
  const contents = paired(shown.hunks).flatMap(({ changes }) => changes.map((change) => change.content));
  expect(contents).toEqual(['a', '1', 'b', '2', 'c', 'same', 'new', 'd']);
});

const comment = (line: number, text: string, more: Partial<Comment> = {}): Comment => ({
  path: 'a.ts',
  side: 'new',
  line,
  code: `line ${line}`,
  text,
  ...more,
});

describe('comments', () => {
  test('are sorted by file and line, with one for each line', () => {
    let list = withComment([], comment(9, 'nine'));
    list = withComment(list, comment(2, 'first'));
    list = withComment(list, comment(2, ' second '));
    list = withComment(list, comment(2, 'removed', { side: 'old' }));
    list = withComment(list, comment(1, 'b', { path: 'b.ts' }));
    expect(list.map(({ text }) => text)).toEqual(['removed', 'second', 'nine', 'b']);
    expect(withComment(list, comment(9, ' ')).map(({ text }) => text)).toEqual(['removed', 'second', 'b']);
  });

  test('that were added or changed while others were sent are kept', () => {
    const sent = [comment(2, 'Why?'), comment(7, 'Keep it.')];
    const now = [comment(2, 'Why not?'), comment(7, 'Keep it.'), comment(9, 'Another.')];
    expect(withoutComments(now, sent).map(({ text }) => text)).toEqual(['Why not?', 'Another.']);
    expect(withoutComments(sent, sent)).toEqual([]);
  });

  test('are sent to the agent with the location and the text of their line', () => {
    const list = [comment(2, 'Why?'), comment(7, 'Keep it.\nPlease.', { side: 'old' })];
    expect(toPrompt(list)).toBe(
      '2 comments on your changes:\n\na.ts:2\n> line 2\n\nWhy?\n\na.ts:7 (a line that you removed)\n> line 7\n\nKeep it.\nPlease.',
    );
    const range = comment(7, 'Shorten.', { first: 6, code: 'six\nseven' });
    expect(toPrompt([range])).toBe('A comment on your changes:\n\na.ts:6-7\n> six\n> seven\n\nShorten.');
    expect(toPrompt([{ ...range, side: 'old' }])).toContain(
      '\n\na.ts:6-7 (lines of the file before your changes)\n> six\n',
    );
    const long = { ...range, code: Array.from({ length: 41 }, (_, at) => `${at}`).join('\n') };
    expect(toPrompt([long])).toContain('\n> 39\n> …\n\n');
    expect(toPrompt([comment(7, 'Why?', { code: '' })])).toBe('A comment on your changes:\n\na.ts:7\n\nWhy?');
    expect(toPrompt(list.slice(0, 1))).toMatch(/^A comment on your changes:\n\na\.ts:2\n/);
  });

  test('that are not added yet have drafts whose keys name their places', () => {
    const keys = ['a.new1.ts.old12', 'a.new1.ts.old12.from', 'b c\nd.new3', 'b.new'];
    const found = parseDraftKeys(
      keys.map((key) => `x.agt_1.${key}`),
      'x.agt_1.',
    );
    expect(found).toEqual([
      { path: 'a.new1.ts', side: 'old', line: 12 },
      { path: 'b c\nd', side: 'new', line: 3 },
    ]);
  });

  test('are restored from storage without invalid entries', () => {
    const stored = { list: [comment(2, 'Why?'), comment(9, 'All', { first: 3 })], key: 'k' };
    expect(parseComments(JSON.stringify(stored))).toEqual(stored);
    expect(
      parseComments(
        JSON.stringify({
          list: [null, { path: 1 }, { ...stored.list[0], first: 'x' }, ...stored.list],
          key: 'k',
        }),
      ),
    ).toEqual(stored);
    for (const text of [null, '', '{', '{}', '{"list":{},"key":"k"}']) expect(parseComments(text)).toBeNull();
  });
});

test('a file stays marked as viewed until it changes or the branch moves', () => {
  const file = { path: '__proto__', additions: 2, deletions: null, version: 'v1' };
  const marks = withViewed(parseViewed(null, 'h1'), file, true);
  const again = parseViewed(JSON.stringify(marks), 'h1');
  expect(isViewed(again, file)).toBe(true);
  expect(isViewed(again, { ...file, additions: 3 })).toBe(false);
  expect(isViewed(again, { ...file, version: 'v2' })).toBe(false);
  expect(isViewed(again, { ...file, path: 'toString' })).toBe(false);
  expect(isViewed(parseViewed(JSON.stringify(marks), 'h2'), file)).toBe(false);
  expect(isViewed(withViewed(again, file, false), file)).toBe(false);
});

describe('the tree of changed files', () => {
  const files = (...paths: string[]) => paths.map((path) => change('', { path }));
  const labels = (nodes: ReturnType<typeof buildTree>): unknown[] =>
    nodes.map((node) => (isFolder(node) ? { [node.name]: labels(node.children) } : node.path));

  test('groups files by folder, in their listed order', () => {
    expect(
      labels(buildTree(files('a.md', 'src/a.ts', 'src/b/c.ts', 'src/b/d.ts', 'src/e.ts', 'test/x.ts'))),
    ).toEqual([
      'a.md',
      { src: ['src/a.ts', { b: ['src/b/c.ts', 'src/b/d.ts'] }, 'src/e.ts'] },
      { test: ['test/x.ts'] },
    ]);
    expect(buildTree([])).toEqual([]);
  });

  test('joins a folder that contains only one folder with it', () => {
    const tree = buildTree(files('src/web/ui/a.ts', 'src/web/ui/b.ts', 'src2/x.ts'));
    expect(labels(tree)).toEqual([
      { 'src/web/ui': ['src/web/ui/a.ts', 'src/web/ui/b.ts'] },
      { src2: ['src2/x.ts'] },
    ]);
    expect((tree[0] as Folder).path).toBe('src/web/ui');
    expect(tree.map(countFiles)).toEqual([2, 1]);
  });
});
