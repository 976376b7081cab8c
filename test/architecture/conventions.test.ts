/** Habits that a reader relies on: files that say what they are, tests that all run, nothing left for later. */
import { expect, test } from 'vitest';
import { isForTests, sourceFiles } from './source.ts';

const folders = ['src', 'test', 'scripts', 'bench'];
const files = folders
  .flatMap((folder) => sourceFiles(folder))
  .filter((file) => !file.path.includes('/architecture/'));

test('nothing is left for later', () => {
  const later = files.filter((file) => /\b(TODO|FIXME|XXX|HACK)\b/.test(file.text));
  expect(later.map((file) => file.path)).toEqual([]);
});

test('every test runs', () => {
  const off = files.filter(
    (file) =>
      /\.test\.tsx?$/.test(file.path) && /\b(test|it|describe)\.(skip|only|todo|fails)\b/.test(file.text),
  );
  expect(off.map((file) => file.path)).toEqual([]);
});

test('nothing is committed that silences the compiler', () => {
  const silenced = files.filter((file) => /@ts-(ignore|nocheck)|biome-ignore-all/.test(file.text));
  expect(silenced.map((file) => file.path)).toEqual([]);
});

test('a source file of any size begins by saying what it is', () => {
  const silent = files.filter(
    (file) =>
      file.path.startsWith('src/') &&
      !file.text.includes('@generated') &&
      !isForTests(file.path) &&
      file.text.split('\n').length > 100 &&
      !/^(#!.*\n)?(import[^;]+;\s*)*\/\*\*/.test(file.text),
  );
  expect(silent.map((file) => file.path)).toEqual([]);
});

test('a published program never writes with console', () => {
  const loud = files.filter(
    (file) => file.path.startsWith('src/') && !isForTests(file.path) && /\bconsole\.\w+\(/.test(file.text),
  );
  expect(loud.map((file) => file.path)).toEqual([]);
});
