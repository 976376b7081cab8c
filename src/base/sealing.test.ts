import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { seal, unseal } from './sealing.ts';

const key = randomBytes(32);
const plain = Buffer.from('a secret');

test('opens what was sealed', () => {
  expect(unseal(key, 'use', seal(key, 'use', plain))).toEqual(plain);
  expect(unseal(key, 'use', seal(key, 'use', Buffer.alloc(0)))).toEqual(Buffer.alloc(0));
});

test('does not seal twice in the same way, and shows nothing of the text', () => {
  const [first, second] = [seal(key, 'use', plain), seal(key, 'use', plain)];
  expect(first).not.toEqual(second);
  expect(first.includes(plain)).toBe(false);
});

test('refuses another key, another use, and changed bytes', () => {
  const sealed = seal(key, 'use', plain);
  expect(() => unseal(randomBytes(32), 'use', sealed)).toThrow();
  expect(() => unseal(key, 'other', sealed)).toThrow();
  for (const at of [0, 14, sealed.length - 1]) {
    const changed = Buffer.from(sealed);
    changed[at]! ^= 1;
    expect(() => unseal(key, 'use', changed)).toThrow();
  }
  expect(() => unseal(key, 'use', sealed.subarray(0, 20))).toThrow();
});
