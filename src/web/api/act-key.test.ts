import { expect, test } from 'vitest';
import { keyPerRequest } from './act-key.ts';

test('a request keeps its idempotency key, also after other requests', () => {
  const keyOf = keyPerRequest();
  const key = keyOf({ action: 'accept', content: { name: 'Ana' } });
  const other = keyOf({ action: 'accept', content: { name: 'Ben' } });
  expect(other).not.toBe(key);
  expect(keyOf({ action: 'accept', content: { name: 'Ana' } })).toBe(key);
  expect(keyPerRequest()({ action: 'accept', content: { name: 'Ana' } })).not.toBe(key);
});
