import { describe, expect, it } from 'vitest';
import { KeySequence } from './key-sequence.ts';
import { jumps } from './key-table.ts';

describe('keys', () => {
  it('jump by g and a letter', () => {
    for (const [letter, { to }] of Object.entries(jumps)) {
      const keys = new KeySequence();
      expect(keys.press('g', 1000)).toBeNull();
      expect(keys.press(letter, 2000)).toEqual({ do: 'go', to });
    }
  });

  it('forget the g after a while, so that its letter is a key of its own again', () => {
    const keys = new KeySequence();
    keys.press('g', 1000);
    expect(keys.press('a', 2500)).toBeNull();
    keys.press('g', 3000);
    expect(keys.press('c', 9000)).toEqual({ do: 'new_agent' });
  });

  it('do nothing after a g that no letter of a jump follows, and that letter does nothing else', () => {
    const keys = new KeySequence();
    keys.press('g', 1000);
    expect(keys.press('c', 1100)).toBeNull();
    expect(keys.press('c', 1200)).toEqual({ do: 'new_agent' });
  });

  it('mean one thing each', () => {
    const keys = new KeySequence();
    expect(['?', '/', 'x', 'a'].map((key) => keys.press(key, 1))).toEqual([
      { do: 'sheet' },
      { do: 'filter' },
      null,
      null,
    ]);
  });
});
