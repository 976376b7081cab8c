import { expect, test } from 'vitest';
import { membersAtWork } from './shown.ts';

const team = (members: string[], steps: string[] = []) =>
  ({
    updated_at: '2026-01-02T03:04:05.000Z',
    spec: {
      members: members.map((member_id) => ({ member_id })),
      steps: steps.map((member_id) => ({ member_id })),
    },
  }) as Parameters<typeof membersAtWork>[0];

const run = { created_at: '2026-01-02T03:04:05.000Z' };

test('a card names the members that have steps, at most three', () => {
  expect(membersAtWork(team(['lead', 'api', 'ui'], ['api', 'ui', 'api']), run)).toBe('api ui');
  expect(membersAtWork(team(['lead', 'api']), run)).toBe('lead api');
  expect(membersAtWork(team([], ['a', 'b', 'c', 'd', 'e']), run)).toBe('a b c +2');
});

test('a card names no members of a run that is older than the definition of its team', () => {
  expect(membersAtWork(team(['lead', 'api']), { created_at: '2026-01-02T03:04:04.999Z' })).toBe('');
});
