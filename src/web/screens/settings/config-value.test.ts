import { describe, expect, it } from 'vitest';
import { formOf, readValue, textOf } from './config-value.ts';

describe('a setting', () => {
  it('that is shown as text and sent again is the same', () => {
    for (const value of [true, false, 12, 0, '/srv/wt', ['/a', '/b c'], []]) {
      expect(readValue(textOf(value), formOf(value))).toEqual(value);
    }
  });
  it('that was unset becomes a number where it is written as one', () => {
    expect([textOf(null), readValue(' 60 ', formOf(null)), readValue('/60', formOf(null))]).toEqual([
      '',
      60,
      '/60',
    ]);
  });
  it('that is no number is left to the server to refuse', () => {
    expect(readValue('twelve', 'number')).toBe('twelve');
  });
});
