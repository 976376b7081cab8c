import { expect, test } from 'vitest';
import { noticeTone, stopWords } from './words.ts';

test('a refusal and a limit are told in words, an end by itself is plain', () => {
  expect(stopWords('end_turn').tone).toBe('plain');
  expect(stopWords('refusal')).toMatchObject({ tone: 'failure', text: expect.stringContaining('refused') });
  expect(stopWords('max_tokens')).toMatchObject({ tone: 'warning', text: expect.stringContaining('tokens') });
});

test('a reason that nobody knows is told as it is, also where it has the name of something else', () => {
  expect(stopWords('tired')).toEqual({ text: 'Turn ended: tired', tone: 'warning' });
  expect(stopWords('toString').text).toBe('Turn ended: toString');
  expect(stopWords(null).text).toContain('no reason');
});

test('a notice that nobody knows is a warning', () => {
  expect(['recovered', 'turn_lost', 'made_up'].map(noticeTone)).toEqual(['plain', 'failure', 'warning']);
});
