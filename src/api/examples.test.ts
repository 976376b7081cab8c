import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readSpec } from '../features/teams/contract/spec.ts';
import { teamRoutes } from '../features/teams/contract/teams.ts';
import { validate } from './validate.ts';

const folder = new URL('../../examples/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));

test.each(files)('the example %s is a valid team, named like its file', (file) => {
  const body = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
  const { name, spec } = validate(teamRoutes.createTeam.body, body, 'body');
  expect(`${name}.json`).toBe(file);
  expect(spec).toEqual(readSpec(body.spec));
});
