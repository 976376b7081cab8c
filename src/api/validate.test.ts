import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { limits } from '../base/limits.ts';
import { Problem } from '../core/problem.ts';
import { routes } from './routes.ts';
import { validate } from './validate.ts';

function refusal(schema: z.ZodType, input: unknown): { message: string; code: string } | null {
  try {
    validate(schema, input, 'body');
    return null;
  } catch (error) {
    if (!(error instanceof Problem) || error.kind !== 'invalid') throw error;
    return { message: error.message, code: error.code };
  }
}
const ofAgent = (body: object) => refusal(routes.createAgent.body, body);
const agent = { name: 'a', command: 'true' };

describe('creating an agent', () => {
  test.each<[string, object, string]>([
    ['nothing', {}, 'name is required'],
    ['no name', { command: 'true' }, 'name is required'],
    ['an empty name', { ...agent, name: '' }, 'name is required'],
    ['a blank name', { ...agent, name: ' \t' }, 'name is required'],
    ['a name that is not a string', { ...agent, name: 5 }, 'name must be a string'],
    ['a name that is null', { ...agent, name: null }, 'name must be a string'],
    ['a long name', { ...agent, name: 'a'.repeat(201) }, 'name must be at most 200 characters'],
    ['a name of two lines', { ...agent, name: 'a\nb' }, 'name must not contain control characters'],
    [
      'a name that moves the cursor',
      { ...agent, name: '\u001b[2J' },
      'name must not contain control characters',
    ],
    ['no command', { name: 'a' }, 'command is required'],
    ['an empty command', { name: 'a', command: '  ' }, 'command is required'],
    ['a command with NUL', { ...agent, command: 'a\0b' }, 'command must not contain NUL'],
    ['two commands', { ...agent, argv: ['false'] }, 'command must not be given together with argv'],
    ['an empty argv', { name: 'a', argv: [] }, 'argv must not be empty'],
    ['an argv without a program', { name: 'a', argv: ['', 'x'] }, 'argv must begin with a program'],
    ['an argv of numbers', { name: 'a', argv: ['a', 1] }, 'argv[] must be a string'],
    [
      'an unknown mode',
      { ...agent, worktree_mode: 'x' },
      'worktree_mode must be one of: use_existing, create_worktree',
    ],
    ['a flag as text', { ...agent, start: 'yes' }, 'start must be true or false'],
    ['a variable that is not a string', { ...agent, env: { A: 1 } }, 'env.A must be a string'],
    ['a bad variable name', { ...agent, env: { 'A=B': '1' } }, 'env.A=B must be the name of a variable'],
    ['variables as a list', { ...agent, env: [] }, 'env must be an object'],
    [
      'a bad label',
      { ...agent, labels: { 'a b': '1' } },
      'labels.a b must be 1 to 64 characters: letters, digits, ".", "_", "/" and "-"',
    ],
    [
      'a bad node id',
      { ...agent, node_id: '../x' },
      'node_id must be 1 to 64 characters from A-Z, a-z, 0-9, ".", "_" and "-", but not "." or ".."',
    ],
  ])('rejects %s with a one-line message', (_what, body, message) => {
    expect(ofAgent(body)?.message).toBe(message);
  });

  test("the contract's fixed messages have their own codes", () => {
    expect(ofAgent({})?.code).toBe('name_required');
    expect(ofAgent({ name: 'a' })?.code).toBe('command_required');
    expect(ofAgent({ ...agent, start: 1 })?.code).toBe('invalid_request');
  });

  test('rejects too many variables', () => {
    const env = Object.fromEntries(Array.from({ length: limits.env_items_max + 1 }, (_, i) => [`A${i}`, '']));
    expect(ofAgent({ ...agent, env })?.message).toBe(`env must have at most ${limits.env_items_max} entries`);
  });

  test('fills in defaults and drops unknown fields', () => {
    expect(validate(routes.createAgent.body, { ...agent, colour: 'red' }, 'body')).toEqual({
      name: 'a',
      command: 'true',
      argv: null,
      preset: null,
      permission_mode: 'ask',
      workdir: null,
      worktree_repo: null,
      worktree_ref: null,
      env: {},
      protocol: 'auto',
      labels: {},
      restart_policy: 'never',
      stdin: false,
      on_exit: 'kill',
      prompt: null,
      start: false,
    });
  });
});

test('accepts the two forms of one command that a record shows', () => {
  const { createAgent, createTeam, updateAgent } = routes;
  const command = { command: "echo 'a b'", argv: ['echo', 'a b'] };
  expect(refusal(createAgent.body, { name: 'a', ...command })).toBeNull();
  expect(refusal(updateAgent.body, command)).toBeNull();
  const team = (agent: object) => ({ name: 't', spec: { members: [{ member_id: 'm', agent }] } });
  expect(refusal(createTeam.body, team(command))).toBeNull();
  expect(refusal(createTeam.body, team({ ...command, command: 'true' }))?.message).toBe(
    'spec.members[].agent.command must not be given together with argv',
  );
  expect(refusal(updateAgent.body, { ...command, command: 'true' })?.message).toBe(
    'command must not be given together with argv',
  );
});

describe('other input', () => {
  test.each<[string, z.ZodType, unknown]>([
    ['nothing', routes.stopAgent.body, {}],
    ['grace_seconds must be an integer from 0 to 60', routes.stopAgent.body, { grace_seconds: 61 }],
    ['grace_seconds must be an integer from 0 to 60', routes.stopAgent.body, { grace_seconds: -1 }],
    ['grace_seconds must be an integer from 0 to 60', routes.stopAgent.body, { grace_seconds: 1.5 }],
    ['grace_seconds must be an integer from 0 to 60', routes.stopAgent.body, { grace_seconds: '5' }],
    ['data is required', routes.sendInput.body, {}],
    ['nothing', routes.sendInput.body, { eof: true }],
    ['expires_at must be an RFC 3339 time', routes.createToken.body, { name: 'a', expires_at: 'tomorrow' }],
    [
      'expires_at must be before the year 10000',
      routes.createToken.body,
      { name: 'a', expires_at: '9999-12-31T23:59:59-01:00' },
    ],
    ['force must be true or false', routes.deleteAgent.query, { force: 'maybe' }],
    ['force must be true or false', routes.deleteAgent.query, { force: ['true', 'true'] }],
    [
      'type must be one of: output, status, acp_event, error',
      routes.getLog.query,
      { type: 'output,nonsense' },
    ],
    ['after must be an integer of at least 0', routes.getLog.query, { after: '-1' }],
    ['q is required', routes.searchLog.query, {}],
    ['q is required', routes.searchLog.query, { q: ' ' }],
    ['q must have at most 32 words', routes.searchLog.query, { q: `"${'a-'.repeat(33)}"` }],
    ['q must have at most 32 words', routes.listMessages.query, { q: 'a '.repeat(33) }],
    ['since must be an RFC 3339 time', routes.listAudit.query, { since: '2026-13-01T00:00:00Z' }],
    ['invalid cursor', routes.listAgents.query, { cursor: ['a', 'b'] }],
    ['invalid cursor', routes.listAgents.query, { cursor: 'a'.repeat(513) }],
    ['invalid last event id', routes.followAgent.query, { after: 'x' }],
    ['invalid last event id', routes.followAgent.query, { after: '-1' }],
    ['invalid last event id', routes.followAgent.query, { after: '1.5' }],
  ])('reports: %s (%#)', (message, schema, input) => {
    expect(refusal(schema, input)?.message ?? 'nothing').toBe(message);
  });

  test('replaces control characters in a key from the client', () => {
    expect(ofAgent({ ...agent, env: { '\u001b[2J\n': '' } })?.message).toBe(
      'env.?[2J? must be the name of a variable',
    );
  });

  test('accepts a position beyond the safe integers', () => {
    const position = (text: string) => validate(routes.followAgent.query, { after: text }, 'query').after;
    expect(position('9223372036854775808')).toBe(Number.MAX_SAFE_INTEGER);
    expect(position('9'.repeat(400))).toBe(Number.MAX_SAFE_INTEGER);
    expect(position('007')).toBe(7);
  });

  test('a key named __proto__ changes nothing', () => {
    const labels = JSON.parse('{"__proto__":"x","a":"b"}');
    const body = validate(routes.createAgent.body, { ...agent, labels }, 'body');
    expect(Object.getPrototypeOf(body.labels)).toBe(Object.prototype);
    expect(body.labels).toEqual({ a: 'b' });
  });
});
