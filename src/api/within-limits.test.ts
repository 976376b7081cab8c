import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { dictionary } from './fields.ts';
import { validate } from './validate.ts';
import { withinLimits } from './within-limits.ts';

const seen = vi.fn((value: string) => value !== 'bad');
const word = z.string().refine(seen, { error: 'must be good' });
const member = z.object({ env: dictionary(word, word, 3).default({}) }).transform((all) => all);
const body = z.object({
  words: z.array(word).max(2).nullable().default(null),
  members: z.array(member).max(2).optional(),
});

const entries = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, `v${n}`]));

test('checks at most one entry above the limit', () => {
  seen.mockClear();
  const words = Array.from({ length: 10_000 }, () => 'good');
  expect(() => validate(body, { words }, 'body')).toThrow('words must have at most 2 entries');
  const members = [{ env: entries(10_000) }];
  expect(() => validate(body, { members }, 'body')).toThrow('members[].env must have at most 3 entries');
  const many = Array.from({ length: 10_000 }, () => ({ env: { k: 'v' } }));
  expect(() => validate(body, { members: many }, 'body')).toThrow('members must have at most 2 entries');
  expect(seen.mock.calls.length).toBeLessThan(30);
});

test('reports an invalid entry within the limit with its specific message', () => {
  const members = [{ env: { k: 1, ...entries(9) } }];
  expect(() => validate(body, { members }, 'body')).toThrow('members[].env.k must be a string');
});

test('leaves values within the limits and unknown fields unchanged', () => {
  const value = { words: ['a', 'b'], members: [{ env: entries(3), other: [1, 2, 3] }], more: { a: [1] } };
  expect(withinLimits(body, value)).toBe(value);
  for (const other of [null, 'text', [], [[1]], { words: { a: 1 }, members: 'none' }]) {
    expect(withinLimits(body, other)).toEqual(other);
  }
});

test('does not mutate the value that it truncates', () => {
  const value = { members: [{ env: entries(9) }], words: null };
  const before = structuredClone(value);
  expect(withinLimits(body, value)).toEqual({ members: [{ env: entries(4) }], words: null });
  expect(value).toEqual(before);
});
