import { expect, test } from 'vitest';
import { lacksActorCalls } from './calls.ts';
import type { Doc } from './document.ts';
import { templates } from './templates.ts';

const off = [{ id: 'main', actor_calls: false }];
const on = [{ id: 'main', actor_calls: true }];

test('templates whose agents talk to each other need actor calls', () => {
  const lacking = (nodes: typeof off) =>
    templates.filter(({ team }) => lacksActorCalls(team.spec as Doc, nodes)).map(({ id }) => id);
  expect(lacking(off)).toEqual(['writer-reviewer', 'leader-workers']);
  expect(lacking(on)).toEqual([]);
  expect(lacking([])).toEqual([]);
  // A plane of an earlier version.
  expect(lacking([{ id: 'main' } as (typeof off)[number]])).toEqual([]);
});

test('an agent needs them if it can talk to another member', () => {
  const lacks = (agents: (Doc | null)[], more: Doc = {}) =>
    lacksActorCalls({ members: agents.map((agent, at) => ({ member_id: `m${at}`, agent })), ...more }, off);
  const acp = { argv: ['x'], protocol: 'acp', node_id: 'main' };
  const plain = { command: 'true', protocol: 'plain', node_id: 'main' };
  expect(lacks([acp])).toBe(false);
  expect(lacks([acp, null])).toBe(true);
  expect(lacks([plain, { preset: 'plain', command: 'true' }, null])).toBe(false);
  // Such a leader plans the work: it adds steps for the others.
  expect(lacks([plain, plain], { leader_member_id: 'm0' })).toBe(true);
  expect(lacks([plain, plain], { leader_member_id: 'm0', steps: [{ step_key: 'a' }] })).toBe(false);
  expect(lacks([null, null])).toBe(false);
  // A definition that is being written, whose leader and one member are not entered yet.
  const members = [
    { member_id: '', agent: plain },
    { member_id: 'm1', agent: plain },
  ];
  expect(lacksActorCalls({ members, leader_member_id: '' }, off)).toBe(false);
});
