/** Retired words in the names of the code and in the documentation. The messages say what to write instead. */
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root, sourceFiles } from './source.ts';
import { phrases, retiredNames } from './words.ts';
import { known_words } from './words-known.ts';

const files = ['src', 'test', 'scripts', 'bench']
  .flatMap((folder) => sourceFiles(folder))
  .filter(({ path, text }) => !text.includes('@generated') && !path.startsWith('test/architecture/'));
const found = files.flatMap(({ path, text }) =>
  retiredNames(path, text).map((one) => ({ ...one, path, place: placeOf(path) })),
);

/** The module or feature that a file belongs to. */
function placeOf(path: string): string {
  const depth = path.startsWith('src/features/') ? 3 : path.startsWith('src/') ? 2 : 1;
  return path.split('/').slice(0, depth).join('/');
}

test('no name contains a retired word', () => {
  const fresh = found.filter(({ place, parts }) => !known_words[place]?.includes(parts));
  expect(fresh.map(({ path, name, instead }) => `${path}: ${name}; instead: ${instead}`)).toEqual([]);
});

test('every known word is still in use', () => {
  const gone = Object.entries(known_words).flatMap(([place, words]) =>
    words
      .filter((parts) => !found.some((one) => one.place === place && one.parts === parts))
      .map((word) => `${place}: ${word}`),
  );
  expect(gone, 'remove these from words-known.ts').toEqual([]);
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
