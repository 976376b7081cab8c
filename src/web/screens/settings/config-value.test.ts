import { describe, expect, it } from 'vitest';
import { formatValue, getValueForm, readValue } from './config-value.ts';

describe('a setting', () => {
  it('stays the same when it is converted to text and back', () => {
    for (const value of [true, false, 12, 0, '/srv/wt', ['/a', '/b c'], []]) {
      expect(readValue(formatValue(value), getValueForm(value))).toEqual(value);
    }
  });
  it('becomes a number if it was unset and the text is a number', () => {
    expect([
      formatValue(null),
      readValue(' 60 ', getValueForm(null)),
      readValue('/60', getValueForm(null)),
    ]).toEqual(['', 60, '/60']);
  });
  it('is sent unchanged if it is not a valid number, so that the server rejects it', () => {
    expect(readValue('twelve', 'number')).toBe('twelve');
  });
});
