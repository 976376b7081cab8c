import { expect, test } from 'vitest';
import { formatLabels, parseLabels, withLabelChanges } from './labels.ts';

test('labels can be written as text and parsed again', () => {
  const labels = { team: 'shop', 'a/b': 'x=y', empty: '' };
  expect(parseLabels(formatLabels(labels))).toEqual(labels);
  expect(parseLabels('\n a = b \n\nc')).toEqual({ a: 'b', c: '' });
});

test('saving labels changes only those that the user has changed', () => {
  const before = { team: 'shop', env: 'test', old: '1' };
  const now = { team: 'shop', env: 'prod', set: 'meanwhile', old: '1' };
  expect(withLabelChanges(now, before, before)).toBeNull();
  const after = { team: 'cart', env: 'test', mine: '2' };
  expect(withLabelChanges(now, before, after)).toEqual({
    ...{ team: 'cart', env: 'prod' },
    ...{ set: 'meanwhile', mine: '2' },
  });
});
