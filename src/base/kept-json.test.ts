import { expect, test } from 'vitest';
import { keepJson, toJson } from './kept-json.ts';

test('gives the same JSON with and without a kept text', () => {
  const value = () => ({ a: 1, b: [null, { c: 'ä' }], d: undefined });
  const kept = keepJson(value());
  for (let time = 0; time < 2; time++) expect(toJson(kept)).toBe(JSON.stringify(value()));
  expect(toJson(value())).toBe(JSON.stringify(value()));
  for (const plain of [null, 1, 'text', []]) expect(toJson(plain)).toBe(JSON.stringify(plain));
});

test('a value with a kept text cannot change', () => {
  const kept = keepJson({ a: 1 });
  expect(() => {
    kept.a = 2;
  }).toThrow();
});
