/** `svc mail` and `svc triggers` against a server with fixed answers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { problems } from '../../../core/problem.ts';
import type { Handlers } from '../../../server/call.ts';
import type { HttpServer } from '../../../server/server.ts';
import { type RunOptions, run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { Run } from '../../runs/rules/run.ts';
import type { RedactedSpec } from '../../teams/rules/team.ts';

let home: string;
let server: HttpServer | null;
let env: Record<string, string>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-mail-'));
  server = null;
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

const time = '2026-01-01T00:00:00.000Z';
const spec: RedactedSpec = {
  ...{ spec_version: 1, entrypoint: { type: 'task' }, leader_member_id: null, steps: [] },
  ...{ members: [], review_route: 'human', max_rounds: 20 },
};
const runRecord: Run = {
  ...{ id: 'run_1', number: 1, team_id: 'team_1', task_id: 'task_1', status: 'running', spec, input: {} },
  ...{ output: null, error: null, attempt: 1, version: 1, attention: null, created_by: 'usr_1' },
  created_by_name: 'ana',
  ...{ created_at: time, started_at: time, ended_at: null },
};

async function open(handlers: Partial<Handlers>): Promise<void> {
  server = await openFakeHttp({
    findRun: () => runRecord,
    getMe: () => ({ id: 'usr_1', username: 'ana', role: 'root', created_at: time, passkeys: [] }),
    ...handlers,
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

const cli = (argv: string[], options: Partial<RunOptions> = {}) => run(argv, { home, env, ...options });

describe('messages', () => {
  test('are sent as the user by default; text becomes a payload with a text', async () => {
    const sent: unknown[] = [];
    await open({
      sendMail: ({ body }) => {
        sent.push(body);
        const times = { created_at: time, delivered_at: null, acknowledged_at: null };
        return {
          location: '/x',
          body: { id: 5, ...body, status: 'dead_letter', reason: 'no\x07', ...times },
        };
      },
    });
    const ran = await cli(['mail', 'send', 'dev', 'hello', 'you', '--run', 'run_1']);
    expect(ran).toMatchObject({ code: 0, stdout: '5\n', stderr: 'dead_letter: no\\x07\n' });
    await cli(['mail', 'send', 'dev', '--run', 'run_1', '--from', 'ops', '--payload', '{"a": 1}']);
    const both = { run_id: 'run_1', to_actor_id: 'dev' };
    expect(sent).toEqual([
      { ...both, from_actor_id: 'user:ana', payload: { text: 'hello you' } },
      { ...both, from_actor_id: 'ops', payload: { a: 1 } },
    ]);
    expect((await cli(['mail', 'send', 'dev', '--run', 'run_1'])).code).toBe(2);
  });

  test('have a text, a text from standard input, or a payload if a trigger sends them', async () => {
    const payloads: unknown[] = [];
    await open({
      setTrigger: ({ body, params }) => {
        payloads.push(body.payload);
        const when = { at: null, every_seconds: 60, cron: null, timezone: null, next_at: time, fired: 0 };
        const { run_id, payload } = body;
        const created = { last_at: null, created_by: 'usr_1', created_at: time };
        return { location: '/x', body: { id: 'trg_1', run_id, payload, ...params, ...when, ...created } };
      },
    });
    const set = ['triggers', 'set', '--run', 'run_1', '--every', '1m'];
    expect((await cli([...set, 'wake', 'up'])).code).toBe(0);
    await cli([...set, '-'], { input: 'from\nhere' });
    await cli([...set, '--payload', '{"a": 1}']);
    expect(payloads).toEqual([{ text: 'wake up' }, { text: 'from\nhere' }, { a: 1 }]);
    expect((await cli([...set, 'x', '--payload', '{}'])).code).toBe(2);
  });

  test('are listed with the actors of a run that scheduled them', async () => {
    await open({
      listRunTriggers: () => ({
        items: [
          {
            ...{ id: 'trg_1', run_id: 'run_1', actor_id: 'dev@team_1', payload: { a: 1 }, next_at: time },
            ...{ at: null, every_seconds: null, cron: '0 9 * * *', timezone: 'Asia/Kolkata' },
            ...{ fired: 2, last_at: time, created_by: 'usr_1', created_at: time },
          },
        ],
      }),
    });
    const { stdout } = await cli(['runs', 'triggers', 'run_1']);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}|\t/))).toEqual([
      ['trg_1', 'dev@team_1', '0 9 * * * Asia/Kolkata', time, '2', '{"a":1}'],
      [''],
    ]);
  });

  test('are each acknowledged, even if others fail', async () => {
    await open({
      ackMail: ({ params: { message_id } }) => {
        if (message_id === '8') throw problems.messageNotFound();
        const who = { run_id: 'run_1', from_actor_id: 'dev', to_actor_id: 'user:ana' };
        const times = { created_at: time, delivered_at: time, acknowledged_at: time };
        return { id: Number(message_id), ...who, payload: {}, status: 'acknowledged', ...times };
      },
    });
    expect(await cli(['mail', 'ack', '7', '8', '9'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'acknowledged 7\nacknowledged 9\nsvc: 8: message not found\n',
    });
    env.SVC_TOKEN = 'nobody';
    expect(await cli(['mail', 'ack', '7', '8'])).toMatchObject({ code: 4, stderr: 'svc: invalid token\n' });
  });
});
