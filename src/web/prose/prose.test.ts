import { expect, test } from 'vitest';
import { visible } from '../../domain/visible.ts';
import { webAddress } from './links.ts';

test('only addresses of the web are links', () => {
  expect(webAddress('https://example.org/a?b#c')).toBe('https://example.org/a?b#c');
  for (const address of [
    'javascript:alert(1)',
    'data:text/html,x',
    '/agents',
    'mailto:a@b',
    ' java\nscript:1',
  ])
    expect(webAddress(address), address).toBeNull();
});

test('what would hide in a command is named', () => {
  expect(visible('rm \u202e-rf\u001b[2K')).toBe('rm ⟦U+202E⟧-rf⟦U+001B⟧[2K');
  expect(visible('a\tb\nc ü 👩‍💻')).toBe('a\tb\nc ü 👩‍💻');
});
