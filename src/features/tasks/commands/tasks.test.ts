/** `svc tasks` against a server with fixed answers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Handlers } from '../../../server/call.ts';
import type { HttpServer } from '../../../server/server.ts';
import { type RunOptions, run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { RedactedSpec, Team } from '../../teams/rules/team.ts';

let home: string;
let server: HttpServer | null;
let env: Record<string, string>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-tasks-'));
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
const team: Team = {
  ...{ id: 'team_1', name: 'site', key: 'SIT', description: '', spec, version: 7, human_members: [] },
  ...{ created_by: 'usr_1', created_at: time, updated_at: time },
};
const taskRecord = {
  ...{
    id: 'task_1',
    number: 1,
    key: 'SIT-1',
    team_id: 'team_1',
    title: 't',
    description: '',
    status: 'open' as const,
  },
  ...{ assignee_member_id: null, conversation_id: 'conv_1', run_id: null, version: 1 },
  run_steps: { completed: 0, total: 0 },
  ...{ created_by: 'usr_1', created_at: time, updated_at: time },
};
const message = {
  ...{
    id: 3,
    team_id: 'team_1',
    task_id: 'task_1',
    conversation_id: 'conv_1',
    run_id: null,
    delivered: false,
  },
  ...{ from_actor_id: 'user:ana', route: 'broadcast' as const, to_actor_id: null, payload: {} },
  ...{ text: 'one\nt\x1bwo', reply_to: null, thread: 3, created_at: time },
};

async function open(handlers: Partial<Handlers>): Promise<void> {
  server = await openFakeHttp({ listTeams: () => ({ items: [team] }), ...handlers });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

const cli = (argv: string[], options: Partial<RunOptions> = {}) => run(argv, { home, env, ...options });

test('messages go to all members, to the leader or to one member if they are about a task', async () => {
  const routes: unknown[] = [];
  await open({
    listTasks: () => ({ items: [taskRecord] }),
    sendMessage: ({ body }) => {
      routes.push([body.route, body.to_actor_id]);
      return { location: '/x', body: message };
    },
    listMessages: () => ({ items: [message] }),
  });
  await cli(['tasks', 'say', 'site#1', 'x']);
  await cli(['tasks', 'say', 'site#1', 'x', '--to', 'leader']);
  const ran = await cli(['tasks', 'say', 'site#1', 'x', '--to', 'dev']);
  expect(ran).toMatchObject({ stdout: '3\n', stderr: "the message waits for the task's next run\n" });
  expect(routes).toEqual([
    ['broadcast', undefined],
    ['to_leader', undefined],
    ['to_member', 'dev'],
  ]);
  const { stdout } = await cli(['tasks', 'messages', 'site#1']);
  expect(stdout).toBe(`3  ${time}  user:ana -> all\n  one\n  t\\x1bwo\n`);
});

test('a task is found by its key, in any case, and not by the key of no team', async () => {
  await open({ listTasks: () => ({ items: [taskRecord] }) });
  const found = await cli(['tasks', 'show', 'sit-1', '--json']);
  expect(JSON.parse(found.stdout)).toEqual(taskRecord);
  const { stdout } = await cli(['tasks', 'ls', 'site']);
  expect(stdout).toContain('SIT-1');
  for (const ref of ['SIT-2', 'WEB-1']) {
    expect(await cli(['tasks', 'show', ref])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`task not found: ${ref}`),
    });
  }
});

test('messages are followed with -f as the thread grows, one record per line with --json', async () => {
  const stop = new AbortController();
  await open({
    listTasks: () => ({ items: [taskRecord] }),
    followMessages: (call) => {
      const response = call.hijack().writeHead(200, { 'content-type': 'text/event-stream' });
      const data = JSON.stringify({ type: 'message', ts: 1, record: message });
      response.write(`id: 3\nevent: message\ndata: ${data}\n\n`);
      return undefined;
    },
  });
  const options = { signal: stop.signal, onStdout: () => stop.abort() };
  const ran = await cli(['tasks', 'messages', 'site#1', '-f', '--json'], options);
  expect(ran).toMatchObject({ code: 130, stdout: `${JSON.stringify(message)}\n` });
});
