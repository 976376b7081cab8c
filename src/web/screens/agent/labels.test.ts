import { expect, test } from 'vitest';
import { formatLabels, parseLabels } from './labels.ts';

test('labels can be written as text and parsed again', () => {
  const labels = { team: 'shop', 'a/b': 'x=y', empty: '' };
  expect(parseLabels(formatLabels(labels))).toEqual(labels);
  expect(parseLabels('\n a = b \n\nc')).toEqual({ a: 'b', c: '' });
});
