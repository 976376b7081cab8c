import { describe, expect, test } from 'vitest';
import {
  at,
  type Doc,
  drawable,
  freeName,
  type Json,
  parse,
  placeMembers,
  put,
  removeStep,
  renameMember,
  renameStep,
  write,
} from './document.ts';
import { findFault, pathInMessage } from './faults.ts';

const team = (): Doc => ({
  name: 'site',
  spec: {
    leader_member_id: 'lead',
    members: [{ member_id: 'lead' }, { member_id: 'api', agent: { command: 'make' } }],
    steps: [
      { step_key: 'a', member_id: 'api' },
      { step_key: 'b', member_id: 'lead', depends_on: ['a'] },
      { step_key: 'c', depends_on: ['a', 'b'] },
    ],
  },
});

describe('a document', () => {
  test('stays the same when it is written as text and parsed', () => {
    expect(parse(write(team())).doc).toEqual(team());
  });

  test('is rejected with a reason if it is not a JSON object', () => {
    expect(parse('{"name": ').fault).not.toBeNull();
    expect(parse('[]').fault).toBe('The definition must be an object.');
  });

  test('changes only in one field; all others, even unknown ones, keep their place', () => {
    const before = { first: 1, name: 'site', __proto__x: [1], spec: { odd: true } };
    const after = put(before, ['name'], 'shop');
    expect(Object.entries(after)).toEqual([
      ['first', 1],
      ['name', 'shop'],
      ['__proto__x', [1]],
      ['spec', { odd: true }],
    ]);
    expect(before.name).toBe('site');
  });

  test('gets the missing parents of a new field, and loses a field that is set to undefined', () => {
    const value = put({}, ['spec', 'members', 0, 'member_id'], 'a');
    expect(value).toEqual({ spec: { members: [{ member_id: 'a' }] } });
    expect(put(value, ['spec', 'members', 0], undefined)).toEqual({ spec: { members: [] } });
  });
});

describe('renaming', () => {
  test('a member updates its steps and the leader', () => {
    const doc = renameMember(team(), 0, 'chief');
    expect(at(doc, ['spec', 'leader_member_id'])).toBe('chief');
    expect(at(doc, ['spec', 'steps', 1, 'member_id'])).toBe('chief');
    expect(at(doc, ['spec', 'steps', 0, 'member_id'])).toBe('api');
  });

  test('a step updates the steps that depend on it', () => {
    const doc = renameStep(team(), 0, 'begin');
    expect(drawable(doc).map(({ depends_on }) => depends_on)).toEqual([[], ['begin'], ['begin', 'b']]);
  });

  test('one of two members with the same name changes nothing else', () => {
    const doc = put(team(), ['spec', 'members', 1, 'member_id'], 'lead');
    expect(at(renameMember(doc, 1, 'api'), ['spec', 'leader_member_id'])).toBe('lead');
  });
});

test('agents of members get a node only if they have none', () => {
  const agents: Json[] = [{ command: 'a' }, { command: 'b', node_id: 'box' }, null];
  const doc = placeMembers({ spec: { members: agents.map((agent) => ({ agent })) } }, 'gpu-1');
  expect(doc).toEqual({
    spec: {
      members: [
        { agent: { command: 'a', node_id: 'gpu-1' } },
        { agent: { command: 'b', node_id: 'box' } },
        { agent: null },
      ],
    },
  });
});

test('removing a step also removes it from the dependencies of other steps', () => {
  expect(drawable(removeStep(team(), 0)).map(({ step_key, depends_on }) => [step_key, depends_on])).toEqual([
    ['b', []],
    ['c', ['b']],
  ]);
});

test('suggests a name that is not taken', () => {
  expect(freeName('step', ['step-2'])).toBe('step-3');
});

test('draws the valid steps, and assigns steps without a member to the leader', () => {
  expect(
    drawable({ spec: { members: [{ member_id: 'm' }], steps: [{ step_key: 'a' }, 7, { step_key: '' }] } }),
  ).toEqual([{ step_key: 'a', member_id: 'm', depends_on: [] }]);
});

describe('the field of an error', () => {
  test.each<[string, (doc: Doc) => Doc, string]>([
    ['team name is required', (doc) => put(doc, ['name'], ''), 'name'],
    ['team name already exists', (doc) => doc, 'name'],
    [
      'spec.members[].member_id is required',
      (doc) => put(doc, ['spec', 'members', 1, 'member_id'], ''),
      'spec.members.1.member_id',
    ],
    [
      'spec.members[].member_id must be unique',
      (doc) => put(doc, ['spec', 'members', 1, 'member_id'], 'lead'),
      'spec.members.1.member_id',
    ],
    [
      'spec.members[].agent needs command, argv or a preset that runs one',
      (doc) => put(doc, ['spec', 'members', 1, 'agent'], {}),
      'spec.members.1.agent',
    ],
    [
      'step_key is required',
      (doc) => put(doc, ['spec', 'steps', 2, 'step_key'], ' '),
      'spec.steps.2.step_key',
    ],
    [
      'spec.steps[].depends_on must reference a defined step',
      (doc) => put(doc, ['spec', 'steps', 1, 'depends_on'], ['nobody']),
      'spec.steps.1.depends_on',
    ],
    [
      'spec.steps[].max_attempts must be an integer from 1 to 100',
      (doc) => put(doc, ['spec', 'steps', 1, 'max_attempts'], 0),
      'spec.steps.1.max_attempts',
    ],
    [
      'spec.members[].agent.workdir must be a string',
      (doc) => put(doc, ['spec', 'members', 1, 'agent', 'workdir'], 5),
      'spec.members.1.agent.workdir',
    ],
    [
      'spec.steps must not contain a dependency cycle',
      (doc) => put(doc, ['spec', 'steps', 1, 'depends_on'], ['c']),
      'spec.steps.1.depends_on',
    ],
    ['spec.leader_member_id must reference a defined member', (doc) => doc, 'spec.leader_member_id'],
    ['key must be 2 to 5 uppercase letters', (doc) => put(doc, ['key'], 'shop'), 'key'],
  ])('is found for: %s', (message, invalidate, place) => {
    expect(pathInMessage(message, invalidate(team()))?.join('.')).toBe(place);
  });

  test('is null for an error that is not about the definition', () => {
    expect(pathInMessage('user not found', team())).toBeNull();
    expect(pathInMessage('team definition changed concurrently; reload and retry', team())).toBeNull();
  });
});

describe('validation while the user types', () => {
  test('accepts a valid definition, and one with missing fields', () => {
    expect(findFault(team())).toBeNull();
    expect(findFault({ spec: { members: [{}] } })).toBeNull();
    expect(findFault({})).toBeNull();
  });

  test('returns the message of the service, with the field', () => {
    expect(findFault(put(team(), ['spec', 'steps', 0, 'depends_on'], ['c']))).toEqual({
      path: ['spec', 'steps', 0, 'depends_on'],
      message: 'spec.steps must not contain a dependency cycle',
    });
    expect(findFault(put(team(), ['spec', 'steps', 1, 'member_id'], 'nobody'))).toEqual({
      path: ['spec', 'steps', 1, 'member_id'],
      message: 'spec.steps[].member_id must reference a defined member',
    });
  });
});
