import { expect, test } from 'vitest';
import { membersAtWork } from './shown.ts';

const run = (members: string[], steps: string[] = []) =>
  ({
    spec: {
      members: members.map((member_id) => ({ member_id })),
      steps: steps.map((member_id) => ({ member_id })),
    },
  }) as Parameters<typeof membersAtWork>[0];

test('a card names the members that have steps, at most three', () => {
  expect(membersAtWork(run(['lead', 'api', 'ui'], ['api', 'ui', 'api']))).toBe('api ui');
  expect(membersAtWork(run(['lead', 'api']))).toBe('lead api');
  expect(membersAtWork(run([], ['a', 'b', 'c', 'd', 'e']))).toBe('a b c +2');
});
