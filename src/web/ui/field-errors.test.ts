import { describe, expect, it } from 'vitest';
import { assignErrorToField } from './field-errors.ts';

const fields = ['username', 'password'] as const;

describe('an error message', () => {
  it('is shown at the field whose name it starts with', () => {
    expect(assignErrorToField(new Error('password must be at least 12 characters'), fields)).toEqual({
      password: 'password must be at least 12 characters',
    });
  });
  it('is shown for the whole form if it names no field', () => {
    expect(assignErrorToField(new Error('passwords differ'), fields)).toEqual({ rest: 'passwords differ' });
  });
  it('is empty without an error', () => {
    expect(assignErrorToField(null, fields)).toEqual({});
  });
});
