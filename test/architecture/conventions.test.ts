/** Conventions that readers rely on: large files begin with a description, all tests run, and no work is left as a TODO. */
import { expect, test } from 'vitest';
import { callsOf, isForTests, sourceFiles } from './source.ts';

const folders = ['src', 'test', 'scripts', 'bench'];
const files = folders
  .flatMap((folder) => sourceFiles(folder))
  .filter((file) => !file.path.includes('/architecture/'));

test('no file contains a TODO or FIXME', () => {
  const unfinished = files.filter((file) => /\b(TODO|FIXME|XXX|HACK)\b/.test(file.text));
  expect(unfinished.map((file) => file.path)).toEqual([]);
});

test('no test is skipped or focused', () => {
  const skipped = files.filter(
    (file) =>
      /\.test\.tsx?$/.test(file.path) && /\b(test|it|describe)\.(skip|only|todo|fails)\b/.test(file.text),
  );
  expect(skipped.map((file) => file.path)).toEqual([]);
});

/** Vitest gives up after one second otherwise, which is too short for a slow machine. `expect.poll` waits longer by default. */
test('each vi.waitFor and vi.waitUntil has a timeout', () => {
  const impatient = files
    .filter((file) => /\bvi\s*\.\s*wait/.test(file.text))
    .flatMap((file) => callsOf(file, /^vi\s*\.\s*wait(For|Until)$/))
    .filter(({ options }) => !/^([A-Z\d_]+|\{.*\btimeout\b.*\})$/s.test(options ?? ''));
  expect(impatient.map(({ place }) => place)).toEqual([]);
});

test('no file suppresses compiler errors', () => {
  const suppressing = files.filter((file) => /@ts-(ignore|nocheck)|biome-ignore-all/.test(file.text));
  expect(suppressing.map((file) => file.path)).toEqual([]);
});

test('a source file of more than 100 lines begins with a doc comment', () => {
  const undescribed = files.filter(
    (file) =>
      file.path.startsWith('src/') &&
      !file.text.includes('@generated') &&
      !isForTests(file.path) &&
      file.text.split('\n').length > 100 &&
      !/^(#!.*\n)?(import[^;]+;\s*)*\/\*\*/.test(file.text),
  );
  expect(undescribed.map((file) => file.path)).toEqual([]);
});

test('no published module uses console', () => {
  const using_console = files.filter(
    (file) => file.path.startsWith('src/') && !isForTests(file.path) && /\bconsole\.\w+\(/.test(file.text),
  );
  expect(using_console.map((file) => file.path)).toEqual([]);
});

/** Keys come from agents. An object literal would find `constructor`, which it inherits. `hasOwn` in the same file is as good. */
test('the web UI looks texts up in tables without inherited keys', () => {
  const inheriting = files.filter(
    ({ path, text }) =>
      path.startsWith('src/web/') &&
      !isForTests(path) &&
      /^const \w+: (Readonly<)?Record<string, [^=]*=\s*\{/m.test(text) &&
      !text.includes('Object.hasOwn('),
  );
  expect(inheriting.map(({ path }) => path)).toEqual([]);
});
