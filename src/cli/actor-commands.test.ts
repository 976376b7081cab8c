/** The commands of `svc actor`: their calls, and the output for one answer and for several. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { configKeys } from '../core/config.ts';
import { type Problem, problems } from '../core/problem.ts';
import { type ActorListener, openActorListener } from '../server/actors/listener.ts';
import { type RunResult, run } from '../testing/cli.ts';

let home: string;
let listener: ActorListener;
let calls: { method: string; params: Record<string, unknown> }[];
/** The plane's answer; by default, the request. */
let answers: (method: string, params: Record<string, unknown>) => unknown;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-actor-'));
  await writeFile(join(home, 'token'), 'ses_a.secret\n');
  calls = [];
  answers = (_method, params) => params;
  listener = await openActorListener({
    ...{ host: '127.0.0.1', port: 0, certificate: null, log: silentLog },
    call: async ({ method, params }) => {
      const call = { method, params: JSON.parse(params) as Record<string, unknown> };
      calls.push(call);
      return answers(method, call.params);
    },
  });
});
afterEach(async () => {
  await listener.close();
  await rm(home, { recursive: true, force: true });
});

function actor(args: string[], env: Record<string, string> = {}): Promise<RunResult> {
  const config = { get: (key: keyof typeof configKeys) => configKeys[key].default };
  const endpoint = { SVC_ACTOR_ENDPOINT: `http://127.0.0.1:${listener.port}` };
  return run(['actor', ...args], {
    home,
    env: { ...endpoint, SVC_ACTOR_TOKEN_FILE: join(home, 'token'), ...env },
    local: { loadConfig: () => config as never },
  });
}

/** The last call of a command. */
async function runActorCommand(...args: string[]): Promise<unknown> {
  const { code, stderr } = await actor(args);
  expect([code, stderr]).toEqual([0, '']);
  const { method, params } = calls.at(-1)!;
  return { method, ...params };
}

test('each command sends its options', async () => {
  const as = ['--actor-id', 'hand@team_x'];
  const actor_id = 'hand@team_x';
  const payload = ['--payload', '{"a":1}'];
  expect(await runActorCommand('team-members', ...as)).toEqual({ method: 'team-members', actor_id });
  expect(await runActorCommand('run-members', ...as, '--run-id', 'r')).toEqual({
    ...{ method: 'run-members', actor_id, run_id: 'r' },
  });
  expect(await runActorCommand('inbox', '--run-id', 'r', '--limit', '3', '--all')).toEqual({
    ...{ method: 'inbox', run_id: 'r', limit: 3, status: 'all' },
  });
  expect(await runActorCommand('ack', ...as, '--message-id', '7')).toEqual({
    method: 'ack',
    actor_id,
    message_id: 7,
  });
  expect(await runActorCommand('send', '--to', 'leader', ...payload, '--idempotency-key', 'k')).toEqual({
    ...{ method: 'send', to: 'leader', payload: { a: 1 }, idempotency_key: 'k' },
  });
  expect(await runActorCommand('step-list')).toEqual({ method: 'step-list' });
  expect(await runActorCommand('step-list', '--step-key', 's')).toEqual({
    method: 'step-list',
    step_key: 's',
  });
  const needs = ['--depends-on', 'a', '--depends-on', 'b'];
  const what = ['--prompt', 'do', '--input', '[1]'];
  expect(await runActorCommand('step-add', '--step-key', 's', '--member', 'hand', ...needs, ...what)).toEqual(
    {
      ...{ method: 'step-add', step_key: 's', member_id: 'hand', depends_on: ['a', 'b'] },
      ...{ prompt: 'do', input: [1] },
    },
  );
  expect(await runActorCommand('step-complete', '--step-key', 's', '--output', '{"n":1}')).toEqual({
    ...{ method: 'step-complete', step_key: 's', output: { n: 1 } },
  });
  expect(await runActorCommand('step-complete', '--step-key', 's', '--output', 'well done')).toMatchObject({
    ...{ output: 'well done' },
  });
  expect(await runActorCommand('step-fail', '--step-key', 's', '--error-text', 'no')).toEqual({
    ...{ method: 'step-fail', step_key: 's', error_text: 'no' },
  });
  expect(await runActorCommand('run-complete')).toEqual({ method: 'run-complete', output: null });
  expect(await runActorCommand('run-fail', '--error-text', 'no')).toEqual({
    method: 'run-fail',
    error_text: 'no',
  });
  expect(await runActorCommand('time-trigger-list', ...as)).toEqual({
    method: 'time-trigger-list',
    actor_id,
  });
  const cron = ['--cron', '0 9 * * *', '--timezone', 'Europe/Berlin'];
  expect(await runActorCommand('time-trigger-set', ...cron, ...payload)).toEqual({
    ...{ method: 'time-trigger-set', cron: '0 9 * * *', timezone: 'Europe/Berlin', payload: { a: 1 } },
  });
  expect(await runActorCommand('time-trigger-cancel', '--trigger-id', 't')).toEqual({
    ...{ method: 'time-trigger-cancel', trigger_id: 't' },
  });
  expect(await runActorCommand('permission-review-list')).toEqual({ method: 'permission-review-list' });
  const respond = (...more: string[]) =>
    runActorCommand('permission-review-respond', '--request-id', 'rev', ...more);
  const method = 'permission-review-respond';
  expect(await respond('--decision', 'allow')).toEqual({ method, review_id: 'rev', decision: 'allow' });
  expect(await respond('--option-id', 'o')).toEqual({ method, review_id: 'rev', option_id: 'o' });
  expect(await respond('--outcome', 'cancelled')).toEqual({ method, review_id: 'rev', outcome: 'cancelled' });
});

test('a repeated option with one value is an error that names it', async () => {
  const result = await actor(['send', '--to', 'a', '--payload', '{}', '--to=b']);
  expect(result).toEqual({ code: 2, stdout: '', stderr: 'svc: --to may be given only once\n' });
  expect(
    await runActorCommand('permission-review-respond', '--permission-id', 'a', '--decision', 'deny'),
  ).toEqual({
    ...{ method: 'permission-review-respond', review_id: 'a', decision: 'deny' },
  });
});

test('actor, run and step are the agent’s unless flags name others', async () => {
  const env = { SVC_ACTOR_ID: 'hand@team_x', SVC_RUN_ID: 'run_x', SVC_STEP_KEY: 's' };
  await actor(['step-complete'], env);
  await actor(['step-complete', '--step-key', 't', '--run-id', 'run_y'], env);
  expect(calls.map(({ params }) => params)).toEqual([
    { actor_id: 'hand@team_x', run_id: 'run_x', step_key: 's', output: null },
    { actor_id: 'hand@team_x', run_id: 'run_y', step_key: 't', output: null },
  ]);
});

test('prints an object for one message, and an array in order for several', async () => {
  expect((await actor(['ack', '--message-id', '7'])).stdout).toBe('{"message_id":7}\n');
  const { code, stdout } = await actor(['ack', '--message-id', '9', '--message-id', '8']);
  expect([code, JSON.parse(stdout)]).toEqual([0, [{ message_id: 9 }, { message_id: 8 }]]);
});

test('reports a failed call in its position and in the exit code, and makes the other calls', async () => {
  answers = (_method, params) => {
    if (params.message_id === 8 || params.review_id === 'b') throw problems.messageNotFound();
    return params;
  };
  const ids = ['7', '8', '9'].flatMap((id) => ['--message-id', id]);
  const acked = await actor(['ack', ...ids]);
  expect([acked.code, acked.stderr]).toEqual([1, '']);
  expect(JSON.parse(acked.stdout)).toEqual([
    ...[{ message_id: 7 }, { error: 'message not found', message_id: 8 }, { message_id: 9 }],
  ]);
  const reviews = ['a', 'b'].flatMap((id) => ['--permission-id', id]);
  const answered = await actor(['permission-review-respond', ...reviews, '--decision', 'deny']);
  expect(answered.code).toBe(1);
  expect(JSON.parse(answered.stdout)).toEqual([
    ...[
      { review_id: 'a', decision: 'deny' },
      { error: 'message not found', permission_id: 'b' },
    ],
  ]);
  expect(await actor(['ack', '--message-id', '8'])).toEqual({
    code: 1,
    stdout: '{"error":"message not found","message_id":8}\n',
    stderr: 'svc: message not found\n',
  });
  answers = () => {
    throw problems.actorUnauthorized();
  };
  expect((await actor(['whoami'])).code).toBe(4);
  expect(await actor(['ack', '--message-id', '8'])).toEqual({
    code: 1,
    stdout: '{"error":"unauthorized","message_id":8}\n',
    stderr: 'svc: unauthorized\n',
  });
});

test('a message whose answer was lost is sent again with the same key, but not the next one', async () => {
  const lost: Problem[] = [problems.nodeUnreachable(), problems.upcallFailed()];
  answers = (_method, params) => {
    const problem = lost.shift();
    if (problem) throw problem;
    return params;
  };
  const send = ['send', '--to', 'boss', '--payload', '{}'];
  expect((await actor(send)).code).toBe(0);
  const keys = calls.map(({ params }) => params.idempotency_key);
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(1);
  await actor(send);
  expect(calls.at(-1)!.params.idempotency_key).not.toBe(keys[0]);
});

test('receive polls until there is a message, or the time is over', async () => {
  const heard: unknown[][] = [[], [], [{ id: 1 }]];
  answers = () => ({ messages: heard.shift() });
  expect((await actor(['receive'])).stdout).toBe('{"messages":[{"id":1}]}\n');
  expect(calls.map(({ method }) => method)).toEqual(['receive', 'receive', 'receive']);
  answers = () => ({ messages: [] });
  expect((await actor(['receive', '--wait', '0'])).stdout).toBe('{"messages":[]}\n');
  expect(calls.at(-1)!.method).toBe('inbox');
});

test.each([
  [['ack']],
  [['ack', '--message-id', 'x']],
  [['send', '--to', 'boss']],
  [['send', '--to', 'boss', '--payload', '{']],
  [['step-complete']],
  [['step-add', '--step-key', 's']],
  [['time-trigger-set', '--payload', '{}']],
  [['time-trigger-set', '--payload', '{}', '--at', 'x', '--cron', 'y']],
  [['permission-review-respond', '--decision', 'allow']],
  [['permission-review-respond', '--request-id', 'a', '--permission-id', 'b', '--decision', 'allow']],
  [['permission-review-respond', '--request-id', 'a']],
  [['permission-review-respond', '--request-id', 'a', '--decision', 'maybe']],
  [['permission-review-respond', '--request-id', 'a', '--outcome', 'selected']],
  [['permission-review-respond', '--request-id', 'a', '--outcome', 'cancelled', '--decision', 'allow']],
  [['permission-review-respond', '--request-id', 'a', '--request-id', 'b', '--decision', 'allow']],
  [['permission-review-respond', '--request-id', 'a', '--decision', 'allow', '--decision', 'deny']],
  [['inbox', '--actor-id', 'a', '--actor-id', 'b']],
  [['inbox', '--limit', '1', '--limit', '1']],
])('rejects %j', async (args) => {
  expect((await actor(args)).code).toBe(2);
  expect(calls).toEqual([]);
});
