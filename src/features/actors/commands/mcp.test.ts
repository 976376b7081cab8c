/** `svc mcp --actor`, used like an MCP client: JSON lines on stdin and stdout. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../../base/log.ts';
import { configKeys } from '../../../core/config.ts';
import { problems } from '../../../core/problem.ts';
import { type ActorListener, openActorListener } from '../../../server/actors/listener.ts';
import { run } from '../../../testing/cli.ts';
import { withParentEnv } from './mcp.ts';

let home: string;
let listener: ActorListener;
let calls: object[];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-mcp-'));
  await writeFile(join(home, 'token'), 'ses_a.secret\n');
  calls = [];
  listener = await openActorListener({
    ...{ host: '127.0.0.1', port: 0, certificate: null, log: silentLog },
    call: async ({ method, params, token }) => {
      calls.push({ method, params: JSON.parse(params) as unknown, token });
      if (method === 'step-add') throw problems.notAllowed();
      return { messages: [{ id: 1 }] };
    },
  });
});
afterEach(async () => {
  await listener.close();
  await rm(home, { recursive: true, force: true });
});

interface Answer {
  id: number;
  result: Record<string, unknown>;
}

/** Answers by request number, from 1; the client disconnects when it has all of them. */
async function exchange(...requests: { method: string; params?: object }[]): Promise<Answer[]> {
  const initialize = {
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  };
  const lines = [initialize, ...requests].map((item, id) => JSON.stringify({ jsonrpc: '2.0', id, ...item }));
  lines.splice(1, 0, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
  const leaving = new AbortController();
  let output = '';
  const config = { get: (key: keyof typeof configKeys) => configKeys[key].default };
  await run(['mcp', '--actor'], {
    home,
    env: {
      SVC_ACTOR_ENDPOINT: `http://127.0.0.1:${listener.port}`,
      SVC_ACTOR_TOKEN_FILE: join(home, 'token'),
    },
    local: { loadConfig: () => config as never },
    open_input: `${lines.join('\n')}\n`,
    signal: leaving.signal,
    onStdout: (text) => {
      output += text;
      if (output.split('\n').length > lines.length - 1) leaving.abort();
    },
  });
  const answers = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer);
  return answers.toSorted((a, b) => a.id - b.id).slice(1);
}

test('the tools are those of an actor, and none has a parameter for actor or run', async () => {
  const [listed] = await exchange({ method: 'tools/list' });
  const tools = listed!.result.tools as { name: string; description: string; inputSchema: object }[];
  expect(tools.map(({ name }) => name)).toEqual([
    ...['whoami', 'team_members', 'run_members', 'inbox', 'receive', 'ack', 'send'],
    ...['time_trigger_list', 'time_trigger_set', 'time_trigger_cancel'],
    ...[
      'step_list',
      'step_add',
      'step_complete',
      'step_fail',
      'step_input_required',
      'run_complete',
      'run_fail',
    ],
    ...['permission_review_list', 'permission_review_respond'],
  ]);
  for (const { inputSchema, description } of tools) {
    expect(description).not.toBe('');
    expect(JSON.stringify(inputSchema)).not.toMatch(/actor_id|run_id/);
  }
  const send = tools.find(({ name }) => name === 'send')!;
  expect(send.inputSchema).toMatchObject({ type: 'object', required: ['to', 'payload'] });
});

test('a tool calls the plane with the session’s own token, and returns its answer', async () => {
  const [answer] = await exchange({
    method: 'tools/call',
    params: { name: 'inbox', arguments: { limit: 3 } },
  });
  expect(calls).toMatchObject([{ method: 'inbox', params: { limit: 3 }, token: 'ses_a.secret' }]);
  expect(answer!.result.content).toEqual([{ type: 'text', text: '{"messages":[{"id":1}]}' }]);
});

test('returns the plane’s error messages to the model', async () => {
  const step = { step_key: 's', member_id: 'hand' };
  const [answer, wrong] = await exchange(
    { method: 'tools/call', params: { name: 'step_add', arguments: step } },
    { method: 'tools/call', params: { name: 'step_add', arguments: {} } },
  );
  expect(answer!.result).toEqual({ content: [{ type: 'text', text: 'not allowed' }], isError: true });
  expect(wrong!.result).toMatchObject({ isError: true });
  expect(calls).toHaveLength(1);
});

test('requires --actor', async () => {
  expect(await run(['mcp'], { home })).toMatchObject({ code: 2 });
});

test('reads the agent’s environment from a parent process if the client passes none on', () => {
  const own = { SVC_ACTOR_TOKEN_FILE: '/own' };
  expect(withParentEnv(own, process.pid)).toBe(own);
  const none = { PATH: '/bin' };
  expect(withParentEnv(none, 1)).toBe(none);
});
