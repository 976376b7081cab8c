import { expect, test } from 'vitest';
import { bytesText, fileName } from './save.ts';

test('a file is named after its agent, without characters that a system does not allow', () => {
  expect(fileName('fix-checkout', 2, 'both')).toBe('fix-checkout-2.log');
  expect(fileName('../../etc/pass wd\u202e', 1, 'stderr')).toBe('etc-pass-wd-1-stderr.log');
  expect(fileName('…', 1, 'both')).toBe('agent-1.log');
});

test('formats sizes with at most three digits', () => {
  expect([0, 999, 1000, 15_340, 999_600, 1_500_000].map(bytesText)).toEqual([
    '0 B',
    '999 B',
    '1.0 KB',
    '15.3 KB',
    '1.0 MB',
    '1.5 MB',
  ]);
});
