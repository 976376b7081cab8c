import { expect, test } from 'vitest';
import { PATCH_CHARS_MAX, readPatch } from './patch.ts';

const changed = 'diff --git a/a b b/a b\n--- a/a b\n+++ b/a b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n';
const added = 'diff --git a/c b/c\nnew file mode 100644\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+new\n';
const deleted = 'diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n';

test('a patch is parsed into files, hunks and lines', () => {
  expect(readPatch(changed + added + deleted)).toEqual([
    { old_name: 'a b', new_name: 'a b', hunks: [[' one', '-two', '+three']] },
    { old_name: '/dev/null', new_name: 'c', hunks: [['+new']] },
    { old_name: 'd', new_name: '/dev/null', hunks: [['-old']] },
  ]);
});

test('text that is not a patch, or is too long or malformed, gives null', () => {
  expect(readPatch('just words')).toBe(null);
  expect(readPatch(changed + ' '.repeat(PATCH_CHARS_MAX))).toBe(null);
  expect(readPatch('diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n {\n')).toBe(null);
});
