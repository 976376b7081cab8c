import { expect, test } from 'vitest';
import { limits } from './limits.ts';
import { Search, snippet } from './search.ts';

const before = 'é 😀 other words\n'.repeat(40);
const after = ' and more words'.repeat(40);

test.for([
  ['a phrase', '"disk is full"', 'disk is full'],
  ['a phrase with other separators', 'disk-is-full', 'Disk is\tfull'],
  ['other diacritics', 'uber', 'ÜBER'],
  ['diacritics of the query', 'ÜBER', 'uber'],
  ['combining marks', 'café', 'cafe\u0301'],
  ['words, with one that has no letters', '-- full', 'full'],
  ['whole words', 'full', 'full'],
  ['an unclosed quotation mark', '"full', 'full'],
] as const)('a snippet shows the match of %s', ([, query, match]) => {
  const text = `${before}fuller is the cafeteria; uberous diskettes: ${'x'.repeat(limits.snippet_chars)} ${match}${after}`;
  const found = snippet(text, query);
  expect(found).toContain(match.replaceAll(/\s/g, ' '));
  expect(found.length).toBeLessThanOrEqual(limits.snippet_chars + 2);
  expect([found.startsWith('…'), found.endsWith('…')]).toEqual([true, true]);
});

test('a snippet of a long text shows the match, whatever characters are before it', () => {
  for (const length of [1, 1_000, 10_001]) {
    const text = `${'é ﬁ Ü😀 e\u0301 İ '.repeat(length)}${'x'.repeat(limits.snippet_chars)} full${after}`;
    expect(snippet(text, 'full')).toMatch(/^…x{49} full and more/);
  }
});

test('a snippet begins with the text if it has no match', () => {
  expect(snippet('one\ntwo', 'three')).toBe('one two');
  expect(snippet('one\ntwo', '""')).toBe('one two');
});

test('other work continues between the snippets of long texts', async () => {
  const seqs = [9, 8, 7, 6, 5];
  const data = 'é '.repeat(limits.search_chars_per_event / 2);
  const batch = seqs.map((seq) => ({ record: { type: 'output', stream: 'stdout', seq, ts: 1, data } }));
  const search = new Search(
    { read: async () => undefined } as never,
    { call: async () => seqs } as never,
    {
      async *at() {
        yield batch;
      },
    } as never,
    {} as never,
  );
  let turns = 0;
  let counting = setImmediate(function count() {
    turns++;
    counting = setImmediate(count);
  });
  const { hits } = await search.find({ num: 1 } as never, { text: 'e', limit: 5 });
  clearImmediate(counting);
  expect(hits.map(({ seq }) => seq)).toEqual(seqs);
  expect(turns).toBeGreaterThanOrEqual(seqs.length - 1);
});
