import { describe, expect, it } from 'vitest';
import { formOf, readValue, textOf } from './config-value.ts';

describe('a setting', () => {
  it('stays the same when it is converted to text and back', () => {
    for (const value of [true, false, 12, 0, '/srv/wt', ['/a', '/b c'], []]) {
      expect(readValue(textOf(value), formOf(value))).toEqual(value);
    }
  });
  it('becomes a number if it was unset and the text is a number', () => {
    expect([textOf(null), readValue(' 60 ', formOf(null)), readValue('/60', formOf(null))]).toEqual([
      '',
      60,
      '/60',
    ]);
  });
  it('is sent unchanged if it is not a valid number, so that the server rejects it', () => {
    expect(readValue('twelve', 'number')).toBe('twelve');
  });
});
