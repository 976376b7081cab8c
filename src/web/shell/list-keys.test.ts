import { describe, expect, it } from 'vitest';
import { nextRow } from './list-keys.ts';

describe('moving through a list', () => {
  it('begins at its first row', () => {
    expect([nextRow(-1, 1, 3), nextRow(-1, -1, 3)]).toEqual([0, 0]);
  });
  it('stays within the list', () => {
    expect([nextRow(1, 1, 3), nextRow(2, 1, 3), nextRow(1, -1, 3), nextRow(0, -1, 3)]).toEqual([2, 2, 0, 0]);
  });
  it('leads nowhere in an empty one', () => {
    expect(nextRow(-1, 1, 0)).toBe(-1);
  });
});
