import { describe, expect, it } from 'vitest';
import { placed } from './placed.ts';

const fields = ['username', 'password'] as const;

describe('the words of an error', () => {
  it('stand beside the field that they begin with', () => {
    expect(placed(new Error('password must be at least 12 characters'), fields)).toEqual({
      password: 'password must be at least 12 characters',
    });
  });
  it('stand with the whole where they name no field of it', () => {
    expect(placed(new Error('passwords differ'), fields)).toEqual({ rest: 'passwords differ' });
  });
  it('are none where nothing failed', () => {
    expect(placed(null, fields)).toEqual({});
  });
});
