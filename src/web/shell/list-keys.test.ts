import { describe, expect, it } from 'vitest';
import { nextRow } from './list-keys.ts';

describe('moving through a list', () => {
  it('starts at the first row', () => {
    expect([nextRow(-1, 1, 3), nextRow(-1, -1, 3)]).toEqual([0, 0]);
  });
  it('stays within the list', () => {
    expect([nextRow(1, 1, 3), nextRow(2, 1, 3), nextRow(1, -1, 3), nextRow(0, -1, 3)]).toEqual([2, 2, 0, 0]);
  });
  it('does nothing in an empty list', () => {
    expect(nextRow(-1, 1, 0)).toBe(-1);
  });
});
