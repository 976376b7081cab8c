import { expect, test } from 'vitest';
import { toV1Content } from './diffs.ts';
import { PATCH_CHARS_MAX } from './patch.ts';

const patch = `diff --git a/src/a.json b/src/a.json
--- a/src/a.json
+++ b/src/a.json
@@ -1,3 +1,3 @@
 {
-  "debug": false
+  "debug": true
 }
@@ -9,1 +9,2 @@
 end
+more
diff --git a/old b/old
deleted file mode 100644
--- a/old
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+hello
`;
const git = (text: string) => ({ format: 'git_patch', text });
const diff = (path: string, oldText: string | null, newText: string) => ({
  type: 'diff',
  path,
  oldText,
  newText,
});

test('a patch becomes the old and the new lines of each file', () => {
  const changes = [
    { operation: 'modify', path: '/w/src/a.json' },
    { operation: 'delete', path: '/w/old' },
  ];
  const block = { type: 'content', content: { type: 'text', text: 'Done.' } };
  expect(toV1Content([block, { type: 'diff', changes, patch: git(patch) }])).toEqual([
    block,
    diff('/w/src/a.json', '{\n  "debug": false\n}\n⋯\nend\n', '{\n  "debug": true\n}\n⋯\nend\nmore\n'),
    diff('/w/old', 'bye\n', ''),
    // Not listed in the changes, but still shown.
    diff('new', null, 'hello\n'),
  ]);
});

test('changes without lines say what happens to the file', () => {
  const changes = [
    { operation: 'delete', path: '/w/a' },
    { operation: 'move', oldPath: '/w/a', path: '/w/b' },
    { operation: 'copy', oldPath: '/w/a', path: '/w/c' },
    { operation: 'add', path: '/w/d', fileType: 'binary' },
    { operation: '_seal', path: '/w/e' },
  ];
  expect(toV1Content([{ type: 'diff', changes, patch: null }])).toEqual([
    diff('/w/a (delete)', '', ''),
    diff('/w/a → /w/b', '', ''),
    diff('/w/a → /w/c (copy)', '', ''),
    diff('/w/d', null, ''),
    diff('/w/e (_seal)', '', ''),
  ]);
});

test.each([
  ['no patch', 'just words'],
  ['a broken patch', 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n {\n'],
  ['too long a patch', `${patch}${' '.repeat(PATCH_CHARS_MAX)}`],
])('%s is shown as it is', (_what, text) => {
  const content = toV1Content([{ type: 'diff', changes: [], patch: git(text) }]);
  expect(content).toEqual([{ type: 'content', content: { type: 'text', text } }]);
});

test('content that is not a version 2 diff is unchanged', () => {
  const old = diff('/w/a', 'x', 'y');
  for (const content of [[old, 'x', null, { type: 'terminal', terminalId: 't' }], null, 'x', undefined]) {
    expect(toV1Content(content)).toEqual(content);
  }
});
