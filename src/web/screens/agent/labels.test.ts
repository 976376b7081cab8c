import { expect, test } from 'vitest';
import { labelsIn, labelsText } from './labels.ts';

test('labels can be written as text and parsed again', () => {
  const labels = { team: 'shop', 'a/b': 'x=y', empty: '' };
  expect(labelsIn(labelsText(labels))).toEqual(labels);
  expect(labelsIn('\n a = b \n\nc')).toEqual({ a: 'b', c: '' });
});
