/** Retired words in the names of the code and in the documentation. The messages say what to write instead. */
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root, sourceFiles } from './source.ts';
import { phrases, retiredNames } from './words.ts';

const files = ['src', 'test', 'scripts', 'bench']
  .flatMap((folder) => sourceFiles(folder))
  .filter(({ path, text }) => !text.includes('@generated') && !path.startsWith('test/architecture/'));

test('no name contains a retired word', () => {
  const found = files.flatMap(({ path, text }) =>
    retiredNames(path, text).map(({ name, instead }) => `${path}: ${name}; instead: ${instead}`),
  );
  expect(found).toEqual([]);
});

test('the documentation contains no retired phrase', async () => {
  const pages: string[] = [];
  for await (const page of glob(['*.md', 'docs/**/*.md', 'deploy/*.md', 'examples/*.md'], { cwd: root })) {
    if (page !== join('docs', 'glossary.md')) pages.push(page);
  }
  expect(pages.length).toBeGreaterThan(20);
  const used = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    return phrases.flatMap(({ pattern, instead }) => {
      const match = pattern.exec(text);
      return match ? [`${page}: ${match[0]}; instead: ${instead}`] : [];
    });
  });
  expect(used).toEqual([]);
});

test('retired words are found in names, however they are written, and not in other words', () => {
  const names = (text: string) => retiredNames('x.ts', text).map(({ name }) => name);
  expect(names('export function wordsOf() {}')).toEqual(['wordsOf']);
  expect(names('const { farewell } = x; class NodeDoor {}')).toEqual(['farewell', 'NodeDoor']);
  expect(names('interface A { spoiled: 0; said_to_step(): void }')).toEqual(['spoiled', 'said_to_step']);
  expect(names('function f(errand: string, { roster = 1 }) {}')).toEqual(['errand', 'roster']);
  expect(names('const outdoors = Math.floor(1); const forecast = broadcast; const words = 1;')).toEqual([]);
  expect(names('let attached = true; class Attached {}')).toEqual(['Attached']);
  expect(names("log('nobody was told of the door')")).toEqual([]);
  expect(retiredNames('src/x/lateness.ts', '').map(({ instead }) => instead)).toEqual(['stale attempt']);
});
