import { describe, expect, it } from 'vitest';
import { KeySequence } from './key-sequence.ts';
import { jumps } from './key-table.ts';

describe('key sequences', () => {
  it('open a page with g and a letter', () => {
    for (const [letter, { to }] of Object.entries(jumps)) {
      const keys = new KeySequence();
      expect(keys.press('g', 1000)).toBeNull();
      expect(keys.press(letter, 2000)).toEqual({ do: 'go', to });
    }
  });

  it('expire, so that a later letter counts as a single key', () => {
    const keys = new KeySequence();
    keys.press('g', 1000);
    expect(keys.press('a', 2500)).toBeNull();
    keys.press('g', 3000);
    expect(keys.press('c', 9000)).toEqual({ do: 'new_agent' });
  });

  it('do nothing if the letter after g opens no page', () => {
    const keys = new KeySequence();
    keys.press('g', 1000);
    expect(keys.press('c', 1100)).toBeNull();
    expect(keys.press('c', 1200)).toEqual({ do: 'new_agent' });
  });

  it('are not needed for single keys', () => {
    const keys = new KeySequence();
    expect(['?', '/', 'x', 'a'].map((key) => keys.press(key, 1))).toEqual([
      { do: 'sheet' },
      { do: 'filter' },
      null,
      null,
    ]);
  });
});
