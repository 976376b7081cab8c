import { expect, test } from 'vitest';
import { noticeTone, stopText } from './status-text.ts';

test('explains a refusal and a limit, and shows a normal end plainly', () => {
  expect(stopText('end_turn').tone).toBe('plain');
  expect(stopText('refusal')).toMatchObject({ tone: 'failure', text: expect.stringContaining('refused') });
  expect(stopText('max_tokens')).toMatchObject({
    tone: 'warning',
    text: expect.stringContaining('token limit'),
  });
});

test('shows an unknown reason unchanged, even if it is the name of an object property', () => {
  expect(stopText('tired')).toEqual({ text: 'Turn ended: tired', tone: 'warning' });
  expect(stopText('toString').text).toBe('Turn ended: toString');
  expect(stopText(null).text).toContain('no reason');
});

test('an unknown notice is a warning', () => {
  expect(['recovered', 'turn_lost', 'made_up'].map(noticeTone)).toEqual(['plain', 'failure', 'warning']);
});
