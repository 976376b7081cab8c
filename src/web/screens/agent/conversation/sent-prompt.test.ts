import { expect, test } from 'vitest';
import { parsePrompt, withoutPrompt, withPrompt } from './sent-prompt.ts';

test('a prompt that arrives after it was put back leaves the field again, and what was typed since stays', () => {
  for (const typed of ['', 'and more', 'hi'])
    expect(withoutPrompt('hi')(withPrompt('hi')(typed))).toBe(typed);
  expect(withoutPrompt('hi')('hi there')).toBe('hi there');
  expect(withoutPrompt('hi')('')).toBe('');
});

test('a stored prompt is read, and a malformed one is ignored', () => {
  expect(parsePrompt('{"text":"hi","key":"k"}')).toEqual({ text: 'hi', key: 'k' });
  for (const stored of ['', '{']) expect(parsePrompt(stored)).toBeNull();
});
