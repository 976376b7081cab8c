import { expect, test } from 'vitest';
import { limits } from './limits.ts';
import { Search, snippet } from './search.ts';
import type { SearchPart, SearchRequest } from './search-index.ts';
import { SEARCHER } from './testing.ts';

const agent = { num: 1, id: 'agt_1' };

/** A search in a log of 100 events. `worker` answers for the worker. */
function openSearch(
  worker: (kind: string, request: SearchRequest) => Promise<SearchPart>,
  batch: readonly object[] = [],
): Search {
  return new Search(
    { read: async () => ({ first_seq: 1, last_seq: 100 }) } as never,
    { call: worker } as never,
    {
      async *at() {
        yield batch;
      },
    } as never,
    {} as never,
  );
}

/** Parts of searches that the worker carries out when the test ends them. */
class Parts {
  readonly begun: SearchRequest[] = [];
  readonly #ends: ((part: SearchPart) => void)[] = [];

  readonly worker = (_kind: string, request: SearchRequest) =>
    new Promise<SearchPart>((resolve) => {
      this.begun.push(request);
      this.#ends.push(resolve);
    });

  get texts(): string[] {
    return this.begun.map(({ text }) => text);
  }

  async end(part: SearchPart = { seqs: [], before: 1 }): Promise<void> {
    this.#ends.shift()!(part);
    await settled();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

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
  const worker = async () => ({ seqs, before: 1 });
  const search = openSearch(worker, batch);
  let turns = 0;
  let counting = setImmediate(function count() {
    turns++;
    counting = setImmediate(count);
  });
  const { hits } = await search.find(agent, { ...SEARCHER, text: 'e', limit: 5 });
  clearImmediate(counting);
  expect(hits.map(({ seq }) => seq)).toEqual(seqs);
  expect(turns).toBeGreaterThanOrEqual(seqs.length - 1);
});

test("a user's searches run one after the other, and do not delay those of other users", async () => {
  const parts = new Parts();
  const search = openSearch(parts.worker);
  const find = (user_id: string, text: string) =>
    search.find(agent, { ...SEARCHER, user_id, text, limit: 5 });
  const hers = ['a1', 'a2'].map((text) => find('alice', text));
  const his = find('bob', 'b1');
  await settled();
  expect(parts.texts).toEqual(['a1', 'b1']);
  await parts.end();
  expect(parts.texts).toEqual(['a1', 'b1', 'a2']);
  await parts.end();
  await parts.end();
  expect(await Promise.all([...hers, his])).toEqual(Array(3).fill({ hits: [], next: null }));
});

test('skips searches whose request has aborted, and refuses those beyond the limit', async () => {
  const parts = new Parts();
  const search = openSearch(parts.worker);
  const leave = new AbortController();
  const find = (text: string, signal = leave.signal) =>
    search.find(agent, { ...SEARCHER, signal, text, limit: 5 });
  const first = find('first', SEARCHER.signal);
  const many = Array.from({ length: limits.searches.waiting_per_owner }, () => find('aborted'));
  const failed = Promise.allSettled(many);
  await expect(find('too many')).rejects.toMatchObject({ code: 'too_many_searches', retry_after_s: 1 });
  leave.abort();
  expect(new Set((await failed).map(({ status }) => status))).toEqual(new Set(['rejected']));
  const last = find('last', SEARCHER.signal);
  await parts.end();
  await parts.end();
  await Promise.all([first, last]);
  expect(parts.texts).toEqual(['first', 'last']);
});

test('a search continues where its last part ended, until it has all hits or its request aborts', async () => {
  const parts = new Parts();
  const search = openSearch(parts.worker);
  const find = (signal: AbortSignal) => search.find(agent, { ...SEARCHER, signal, text: 'x', limit: 2 });
  const found = find(SEARCHER.signal);
  await expect.poll(() => parts.begun.length).toBe(1);
  await parts.end({ seqs: [90], before: 80 });
  await expect.poll(() => parts.begun.length).toBe(2);
  await parts.end({ seqs: [70, 60], before: 60 });
  expect((await found).next).toBe(70);
  expect(parts.begun).toMatchObject([
    { before: 101, limit: 3 },
    { before: 80, limit: 2 },
  ]);
  const leave = new AbortController();
  const left = expect(find(leave.signal)).rejects.toThrow('aborted');
  await expect.poll(() => parts.begun.length).toBe(3);
  leave.abort();
  await parts.end({ seqs: [], before: 80 });
  await left;
  expect(parts.begun.length).toBe(3);
});
