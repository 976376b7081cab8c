import { expect, test } from 'vitest';
import { specOf } from '../../../testing/team.ts';
import { ACP_AGENT } from '../../../testing/team-runs.ts';
import { redactSpec, restoreEnv } from './env.ts';
import type { SpecInput, TeamSpec, UnplacedSpec } from './team.ts';

function withEnv(envs: Record<string, Record<string, string>>): TeamSpec {
  const spec = specOf(Object.keys(envs));
  const members = spec.members.map((member) => ({
    ...member,
    agent: { ...ACP_AGENT, env: envs[member.member_id]! },
  }));
  return { ...spec, members };
}

/** What a client sends back after reading the definition. */
function returned(spec: TeamSpec, rename = (id: string) => id): SpecInput {
  const members = redactSpec(spec).members.map(({ agent, ...one }) => ({
    ...one,
    member_id: rename(one.member_id),
    agent: agent && { ...agent, env: {} },
  }));
  return { ...spec, members };
}

const envs = (spec: UnplacedSpec | null) =>
  spec && Object.fromEntries(spec.members.map(({ member_id, agent }) => [member_id, agent?.env]));

test('the shown definition has names of variables and no values', () => {
  const spec = withEnv({ a: { KEY: 'value-1', REGION: 'value-2' }, b: {} });
  const shown = redactSpec(spec);
  expect(JSON.stringify(shown)).not.toContain('value-');
  expect(shown.members.map(({ agent }) => agent?.env_keys)).toEqual([['KEY', 'REGION'], []]);
});

test('a definition that is sent back unchanged keeps every value, whatever the order of its members', () => {
  const spec = withEnv({ a: { KEY: '1' }, b: { KEY: '2', toString: '3' } });
  const input = returned(spec);
  const turned = { ...input, members: input.members.toReversed() };
  expect(restoreEnv(input, spec)).toEqual({ spec, fault: null });
  expect(envs(restoreEnv(turned, spec).spec)).toEqual(envs(spec));
});

test('a renamed member keeps its values; a new one at the position of a moved member does not get them', () => {
  const spec = withEnv({ a: { KEY: '1' }, b: { KEY: '2' } });
  const renamed = returned(spec, (id) => (id === 'a' ? 'c' : id));
  expect(envs(restoreEnv(renamed, spec).spec)).toEqual({ c: { KEY: '1' }, b: { KEY: '2' } });
  const [a, b] = returned(spec).members;
  const inserted = { ...spec, members: [{ ...a!, member_id: 'new' }, a!, b!] };
  expect(restoreEnv(inserted, spec).fault).toEqual({
    path: ['members', 0, 'agent', 'env_keys'],
    message: 'has no value for KEY: set it in env',
  });
});

test.each(['MISSING', 'toString', '__proto__', 'constructor'])(
  'rejects %s in env_keys, which has no value',
  (key) => {
    const spec = withEnv({ a: { KEY: '1' } });
    const input = {
      ...spec,
      members: spec.members.map((member) => ({ ...member, agent: { ...member.agent!, env_keys: [key] } })),
    };
    expect(restoreEnv(input, spec).fault?.message).toBe(`has no value for ${key}: set it in env`);
    expect(restoreEnv(input, null).fault?.message).toBe(`has no value for ${key}: set it in env`);
  },
);
