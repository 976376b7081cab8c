import { expect, test } from 'vitest';
import { problems } from '../../core/problem.ts';
import { endsSession } from './ends-session.ts';

test('only an invalid or missing token ends the session', () => {
  const ending = Object.entries(problems).filter(([, make]) => endsSession((make as () => Error)()));
  expect(ending.map(([name]) => name).sort()).toEqual(['invalidToken', 'missingToken']);
  expect(endsSession(new Error('invalid token'))).toBe(false);
});
