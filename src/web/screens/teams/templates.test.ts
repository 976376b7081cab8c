import { expect, test } from 'vitest';
import { readSpec } from '../../../features/teams/contract/spec.ts';
import { blank, templates } from './templates.ts';

test.each(templates.map(({ id, team }) => [id, team]))('%s is a valid team', (_, team) => {
  expect(readSpec(team.spec).members.length).toBeGreaterThan(0);
  expect(team.name).toMatch(/^[a-z-]+$/);
});

test('the blank team needs only a name', () => {
  expect(readSpec(blank.spec).members).toHaveLength(1);
});
