import { describe, expect, test } from 'vitest';
import { fragmentOf, isIn, rangeOf, reaching } from './range.ts';

describe('ranges of lines', () => {
  test.each([
    ['#L200-L240', { from: 200, to: 240 }],
    ['L7', { from: 7, to: 7 }],
    ['240-200', { from: 200, to: 240 }],
    [' 12 – 15 ', { from: 12, to: 15 }],
  ])('%s names lines', (text, range) => {
    expect(rangeOf(text)).toEqual(range);
  });

  test.each(['', '#', 'L0', 'e12', 'L1-', '1-2-3', '-5', 'L99999999999'])('%j names none', (text) => {
    expect(rangeOf(text)).toBeNull();
  });

  test('an address names the range that it was made of', () => {
    for (const range of [
      { from: 3, to: 3 },
      { from: 200, to: 240 },
    ]) {
      expect(rangeOf(fragmentOf(range))).toEqual(range);
    }
    expect(fragmentOf({ from: 3, to: 3 })).toBe('L3');
  });

  test('a range reaches to the line that is added to it, up or down', () => {
    expect(reaching(null, 5)).toEqual({ from: 5, to: 5 });
    expect(reaching({ from: 5, to: 5 }, 9)).toEqual({ from: 5, to: 9 });
    expect(reaching({ from: 5, to: 9 }, 2)).toEqual({ from: 2, to: 9 });
    expect(reaching({ from: 5, to: 9 }, 7)).toEqual({ from: 5, to: 7 });
  });

  test('both ends belong to a range', () => {
    expect([4, 5, 9, 10].map((n) => isIn({ from: 5, to: 9 }, n))).toEqual([false, true, true, false]);
    expect(isIn(null, 1)).toBe(false);
  });
});
