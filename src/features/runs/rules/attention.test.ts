import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { attentionText, withoutReasons, withReason } from './attention.ts';

test('a reason stays when another one is over', () => {
  const both = withReason(withReason(null, 'ann: a sign-in'), 'message 1\nwaits');
  expect(withReason(both, 'ann: a sign-in')).toBe(both);
  expect(attentionText(both)).toBe('ann: a sign-in; message 1 waits');
  const one = withoutReasons(both, (reason) => reason === 'message 1 waits');
  expect(attentionText(one)).toBe('ann: a sign-in');
  expect(withoutReasons(one, (reason) => reason.startsWith('ann: '))).toBe(null);
  expect(withoutReasons(null, () => true)).toBe(null);
  expect(attentionText(null)).toBe(null);
});

test('only the newest reasons are kept', () => {
  let stored: string | null = null;
  for (let n = 0; n <= limits.attention_reasons_max; n++) stored = withReason(stored, `reason ${n}`);
  expect(stored!.split('\n')).toHaveLength(limits.attention_reasons_max);
  expect(attentionText(stored)).toMatch(/^reason 1; /);
});
