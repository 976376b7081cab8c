import { describe, expect, test } from 'vitest';
import { formatRange, includesLine, parseRange, reaching } from './range.ts';

describe('ranges of lines', () => {
  test.each([
    ['#L200-L240', { from: 200, to: 240 }],
    ['L7', { from: 7, to: 7 }],
    ['240-200', { from: 200, to: 240 }],
    [' 12 – 15 ', { from: 12, to: 15 }],
  ])('parses %s', (text, range) => {
    expect(parseRange(text)).toEqual(range);
  });

  test.each(['', '#', 'L0', 'e12', 'L1-', '1-2-3', '-5', 'L99999999999'])('rejects %j', (text) => {
    expect(parseRange(text)).toBeNull();
  });

  test('a fragment can be parsed back into its range', () => {
    for (const range of [
      { from: 3, to: 3 },
      { from: 200, to: 240 },
    ]) {
      expect(parseRange(formatRange(range))).toEqual(range);
    }
    expect(formatRange({ from: 3, to: 3 })).toBe('L3');
  });

  test('adding a line makes it an end of the range, above or below', () => {
    expect(reaching(null, 5)).toEqual({ from: 5, to: 5 });
    expect(reaching({ from: 5, to: 5 }, 9)).toEqual({ from: 5, to: 9 });
    expect(reaching({ from: 5, to: 9 }, 2)).toEqual({ from: 2, to: 9 });
    expect(reaching({ from: 5, to: 9 }, 7)).toEqual({ from: 5, to: 7 });
  });

  test('a range includes both ends', () => {
    expect([4, 5, 9, 10].map((n) => includesLine({ from: 5, to: 9 }, n))).toEqual([false, true, true, false]);
    expect(includesLine(null, 1)).toBe(false);
  });
});
