import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Handlers } from '../../../server/call.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord } from '../../../testing/agent-record.ts';
import { type RunOptions, run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import { reviewRecord } from '../../../testing/review-record.ts';
import type { Run, Step } from '../../runs/rules/run.ts';
import type { RedactedSpec, Team } from '../rules/team.ts';

let home: string;
let server: HttpServer | null;
let env: Record<string, string>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-teams-'));
  server = null;
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

const time = '2026-01-01T00:00:00.000Z';
const spec: RedactedSpec = {
  ...{ spec_version: 1, entrypoint: { type: 'task' }, leader_member_id: null, steps: [] },
  ...{ members: [{ member_id: 'dev', description: '', skills: [], prompt: '', agent: null }] },
  ...{ review_route: 'human', max_rounds: 20 },
};
const team = (fields: Partial<Team> = {}): Team => ({
  ...{ id: 'team_1', name: 'site', key: 'SIT', description: '', spec, version: 7 },
  human_members: [],
  ...{ created_by: 'usr_1', created_at: time, updated_at: time, ...fields },
});
const runRecord = (fields: Partial<Run> = {}): Run => ({
  ...{ id: 'run_1', number: 1, team_id: 'team_1', task_id: 'task_1', status: 'running', spec, input: {} },
  ...{ output: null, error: null, attempt: 1, version: 1, attention: null, created_by: 'usr_1' },
  created_by_name: 'ana',
  ...{ created_at: time, started_at: time, ended_at: null, ...fields },
});
const step = (fields: Partial<Step> = {}): Step => ({
  ...{ run_id: 'run_1', step_key: 'a', member_id: 'dev', depends_on: [], when: 'on_success', prompt: '' },
  ...{ status: 'ready', input: null, output: null, error_text: null, attempt: 0, max_attempts: 1 },
  ...{ timeout_seconds: null, agent_id: null, started_at: null, ended_at: null, waiting_since: null },
  ...{ answer: null, answered_by: null },
  ...fields,
});

async function open(handlers: Partial<Handlers>): Promise<void> {
  server = await openFakeHttp({
    listTeams: () => ({ items: [team()] }),
    findRun: () => runRecord(),
    getMe: () => ({ id: 'usr_1', username: 'ana', role: 'root', created_at: time, passkeys: [] }),
    ...handlers,
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

const cli = (argv: string[], options: Partial<RunOptions> = {}) => run(argv, { home, env, ...options });

describe('references to teams, runs and tasks', () => {
  test('find a team by its name or id; an ambiguous name is rejected', async () => {
    const requested_ids: string[] = [];
    const getTeam: Handlers['getTeam'] = ({ params }) => {
      requested_ids.push(params.team_id);
      return team({ id: params.team_id, name: 'by id' });
    };
    await open({
      getTeam,
      listTeams: () => ({
        items: [team(), team({ id: 'team_2', name: 'twice' }), team({ id: 'team_3', name: 'twice' })],
      }),
    });
    expect(JSON.parse((await cli(['teams', 'get', 'site', '--json'])).stdout)).toEqual(team());
    expect(JSON.parse((await cli(['teams', 'get', 'team_9', '--json'])).stdout).name).toBe('by id');
    expect(requested_ids).toEqual(['team_9']);
    const twice = '2 teams have the name twice: use an id (team_2, team_3)';
    expect(await cli(['teams', 'get', 'twice'])).toMatchObject({ code: 1, stderr: `svc: ${twice}\n` });
    expect((await cli(['teams', 'get', 'nope'])).stderr).toBe('svc: team not found: nope\n');
  });

  test('find a run by <team>#<number>, without searching further back than needed', async () => {
    const pages: unknown[] = [];
    await open({
      listRuns: ({ query }) => {
        pages.push(query.cursor);
        return query.cursor === undefined
          ? {
              items: [runRecord({ id: 'run_9', number: 9 }), runRecord({ id: 'run_7', number: 7 })],
              next_cursor: 'c',
            }
          : { items: [runRecord({ id: 'run_2', number: 2 })], next_cursor: 'd' };
      },
      listSteps: () => [],
    });
    const found = async (ref: string) => {
      const ran = await cli(['runs', 'show', ref, '--json']);
      return ran.code === 0 ? JSON.parse(ran.stdout).id : ran.stderr;
    };
    expect(await found('site#7')).toBe('run_7');
    expect(pages).toEqual([undefined]);
    expect(await found('site#2')).toBe('run_2');
    expect(await found('site#8')).toBe('svc: run not found: site#8\n');
    expect(pages).toEqual([undefined, undefined, 'c', undefined]);
    expect(await found('site')).toBe('svc: site: name a run by its id, or as <team>#<number>\n');
  });
});

describe('svc runs ls', () => {
  const listAllRuns: Handlers['listAllRuns'] = ({ query }) => {
    const {
      spec: _,
      input: __,
      output: ___,
      ...rest
    } = runRecord({
      ...{ id: 'run_aaaabbbbccccdddd', number: 12, status: 'failed', ended_at: time },
      error: 'step build: exit code 1: the linker ran out of memory',
    });
    const listed = { ...rest, team_name: 'nightly-integration-tests', title: 'Rain' };
    return query.cursor === undefined
      ? { items: [listed], next_cursor: 'c' }
      : { items: [{ ...listed, id: 'run_1', status: query.status ?? 'running', error: null }] };
  };

  test('lists the runs of all teams with their names, page by page', async () => {
    await open({ listAllRuns });
    const { stdout } = await cli(['runs', 'ls', '--status', 'completed']);
    expect(stdout.split('\n').map((line) => line.split('\t').slice(0, 4))).toEqual([
      ['run_aaaabbbbccccdddd', 'nightly-integration-tests', '12', 'failed'],
      ['run_1', 'nightly-integration-tests', '12', 'completed'],
      [''],
    ]);
    expect(JSON.parse((await cli(['runs', 'ls', '--json'])).stdout)).toMatchObject([
      { id: 'run_aaaabbbbccccdddd', team_name: 'nightly-integration-tests' },
      { id: 'run_1' },
    ]);
  });

  test('fits a terminal of 80 columns with a line for each run', async () => {
    await open({ listAllRuns });
    const plain = { ...env, NO_COLOR: '1' };
    const { stdout } = await cli(['runs', 'ls'], { tty: true, columns: 80, env: plain });
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^ID +TEAM +# +STATUS +TIME +ERROR$/);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(lines[1]).toMatch(/^run_aaaabbbbccccdddd {2}nightly/);
  });

  test('lists the runs of one team', async () => {
    await open({ listRuns: () => ({ items: [runRecord()] }) });
    expect((await cli(['runs', 'ls', 'site'])).stdout).toMatch(/^run_1\t1\trunning\t/);
  });
});

describe('JSON input', () => {
  const createRun: Handlers['createRun'] = ({ body }) => ({
    location: '/x',
    body: runRecord({ input: body.input }),
  });
  const input = async (argv: string[], options: Partial<RunOptions> = {}) => {
    const ran = await cli(['runs', 'create', 'site', '--json', ...argv], options);
    return ran.code === 0 ? JSON.parse(ran.stdout).input : `${ran.code} ${ran.stderr}`;
  };

  test('comes from an argument, a file, or standard input', async () => {
    await open({ createRun });
    writeFileSync(join(home, 'in.json'), '\ufeff{"a": 2}');
    expect(await input(['--input', '{"a": 1}'])).toEqual({ a: 1 });
    expect(await input(['--input-file', 'in.json'])).toEqual({ a: 2 });
    expect(await input(['--input-file', '-'], { input: '{"a": 3}\n' })).toEqual({ a: 3 });
    expect(await input([])).toEqual({});
  });

  test('causes a usage error before any request if it is not JSON, or not an object where one is required', async () => {
    await open({});
    env.SVC_URL = 'http://127.0.0.1:1';
    expect(await input(['--input', '{"a"'])).toMatch(/^2 svc: --input is not valid JSON: /);
    expect(await input(['--input-file', '-'], { input: '{' })).toMatch(/^2 svc: standard input is not valid/);
    expect(await input(['--input', '[1]'])).toBe('2 svc: --input must be a JSON object\n');
    expect(await input(['--input', '{}', '--input-file', 'x'])).toMatch(/^2 svc: give either --input or/);
    writeFileSync(join(home, 'team.json'), '{"name": "x\x1b[2J",}');
    const bad = await cli(['teams', 'create', '--file', 'team.json']);
    expect(bad.code).toBe(2);
    expect(bad.stderr).toMatch(/^svc: team\.json is not valid JSON: /);
    expect(bad.stderr).not.toContain('\x1b');
  });
});

test.each([
  ['runs', 'create', 'site'],
  ['runs', 'restart', 'run_1'],
  ['tasks', 'run', 'task_1'],
])('%s %s: a time limit requires watching, and nothing starts without it', async (...argv) => {
  env = { SVC_URL: 'http://127.0.0.1:1', SVC_TOKEN: ROOT_TOKEN };
  expect(await cli([...argv, '--timeout', '5s'])).toMatchObject({
    code: 2,
    stderr: 'svc: --timeout needs --watch\n',
  });
});

test('a team is updated from the given version, else the one in the file, else the current one', async () => {
  const versions: unknown[] = [];
  await open({
    updateTeam: ({ body }) => {
      versions.push(body.version);
      return team();
    },
  });
  writeFileSync(join(home, 'plain.json'), JSON.stringify({ name: 'site', spec }));
  writeFileSync(join(home, 'got.json'), JSON.stringify(team({ version: 3 })));
  await cli(['teams', 'update', 'site', '--file', 'plain.json']);
  await cli(['teams', 'update', 'site', '--file', 'got.json']);
  const ran = await cli(['teams', 'update', 'site', '--file', 'got.json', '--version', '5']);
  expect(ran).toMatchObject({ code: 0, stdout: 'team_1\tsite\t7\n' });
  expect(versions).toEqual([7, 3, 5]);
});

test('reports an invalid team with the messages of the contract', async () => {
  await open({});
  writeFileSync(join(home, 'team.json'), '{"name": "x", "spec": {"members": []}}');
  const ran = await cli(['teams', 'create', '--file', 'team.json']);
  expect(ran).toMatchObject({ code: 1, stderr: 'svc: spec.members must not be empty\n', stdout: '' });
});

test('delete says which agents stay, and how to delete them', async () => {
  let agents = ['agt_1', 'agt_2'];
  const calls: unknown[] = [];
  await open({
    listAgents: ({ query }) => {
      calls.push(['list', query.team_id]);
      return { items: agents.map((id) => agentRecord({ id, team_id: 'team_1' })) };
    },
    deleteTeam: ({ params }) => {
      calls.push(['delete', params.team_id]);
    },
  });
  const two = await cli(['teams', 'delete', 'site']);
  expect(calls).toEqual([
    ['list', 'team_1'],
    ['delete', 'team_1'],
  ]);
  expect(two.stderr.split('\n')).toEqual([
    'deleted team_1',
    'kept 2 agents of its runs, with logs and worktrees, for retention.run_agents_days',
    'to delete them now: svc agents delete agt_1 agt_2',
    '',
  ]);
  const json = await cli(['teams', 'delete', 'site', '--json']);
  expect(JSON.parse(json.stdout)).toEqual({ id: 'team_1', agents_kept: agents });
  agents = Array.from({ length: 30 }, (_, at) => `agt_${at}`);
  const many = (await cli(['teams', 'delete', 'site'])).stderr;
  expect(many).toMatch(/\nto delete 20 of them now: svc agents delete( agt_\d+){20}\n$/);
  agents = [];
  expect((await cli(['teams', 'delete', 'site'])).stderr).toBe('deleted team_1\n');
});

test('lists the steps that wait for an answer, in all runs', async () => {
  const waiting_since = new Date(Date.now() - 125_000).toISOString();
  const waiting = {
    ...{ team_id: 'team_1', team_name: 'site', run_id: 'run_1', run_number: 3, step_key: 'title' },
    ...{ member_id: 'dev', agent_id: null, attempt: 1, question: 'Which\ntitle?', waiting_since },
  };
  await open({ listWaitingSteps: () => ({ items: [waiting] }) });
  expect((await cli(['steps', 'waiting'])).stdout).toMatch(/^site#3\ttitle\tdev\t2m\S*\tWhich\S+title\?\n$/);
  expect(JSON.parse((await cli(['steps', 'waiting', '--json'])).stdout)).toEqual([waiting]);
});

test('shows what each member of a run changed, and the command for its diff', async () => {
  const queries: unknown[] = [];
  const members = ['dev', 'idle'].map((member_id) => ({ ...spec.members[0]!, member_id }));
  const summary = (files: number) => ({
    ...{ now: null, plan: null, usage: null, diff: { files, added: 12 * files, removed: 3 * files } },
  });
  const of_run = { run_id: 'run_1', worktree_mode: 'create_worktree' } as const;
  const nobody = { actor_id: 'dev@team_1', member_id: 'dev', role: 'worker', pending_messages: 0 } as const;
  await open({
    findRun: () => runRecord({ spec: { ...spec, members } }),
    listRunMembers: () => {
      const leader = { ...nobody, agent_id: 'agt_1', node_id: 'main', status: 'completed' } as const;
      return { run_id: 'run_1', team_id: 'team_1', leader, members: [leader] };
    },
    listSteps: () => [],
    listAgents: ({ query }) => {
      queries.push(query);
      return {
        items: [
          agentRecord({ ...of_run, id: 'agt_1', member_id: 'dev', summary: summary(4) }),
          agentRecord({ ...of_run, id: 'agt_2', member_id: 'idle', summary: summary(0) }),
        ],
      };
    },
  });
  const line = 'dev\t4\t48\t12\tsvc agents diff agt_1\n';
  expect((await cli(['runs', 'changes', 'run_1'])).stdout).toBe(line);
  expect(JSON.parse((await cli(['runs', 'changes', 'run_1', '--json'])).stdout)).toEqual([
    { member_id: 'dev', agent_id: 'agt_1', files: 4, added: 48, removed: 12 },
  ]);
  expect(queries).toMatchObject([{ run_id: 'run_1' }, { run_id: 'run_1' }]);
  expect((await cli(['runs', 'show', 'run_1'])).stdout.endsWith(`\n\n${line}`)).toBe(true);
});

test('lists the runs that are waiting, but not at any step, with the command to continue', async () => {
  const waiting_since = new Date(Date.now() - 125_000).toISOString();
  const waiting = {
    ...{ team_id: 'team_1', team_name: 'site', run_id: 'run_1', run_number: 3, waiting_since },
    ...{ version: 7, reason: 'the leader has used its 20 rounds' },
  };
  await open({ listWaitingRuns: () => ({ items: [waiting] }) });
  expect((await cli(['runs', 'waiting'])).stdout).toMatch(
    /^site#3\t2m\S*\tthe leader has used its 20 rounds\tsvc runs resume run_1\n$/,
  );
  expect(JSON.parse((await cli(['runs', 'waiting', '--json'])).stdout)).toEqual([waiting]);
});

test('adds, takes and answers steps', async () => {
  const bodies: unknown[] = [];
  await open({
    addStep: ({ body }) => {
      bodies.push(body);
      return { location: '/x', body: step() };
    },
    completeStep: ({ params, body }) => {
      bodies.push([params.step_key, body]);
      return step({ status: 'completed' });
    },
    resumeStep: ({ body }) => {
      bodies.push(body);
      return step({ status: 'running' });
    },
  });
  const add = ['steps', 'add', 'run_1', 'a', '-m', 'dev', '--needs', 'x', '--needs', 'y', '--input', '[1]'];
  expect(await cli(add)).toMatchObject({ code: 0, stdout: 'a\tready\n' });
  await cli(['steps', 'complete', 'run_1', 'a b/c', '--output', 'null']);
  await cli(['steps', 'resume', 'run_1', 'a']);
  expect(bodies).toMatchObject([
    { step_key: 'a', member_id: 'dev', depends_on: ['x', 'y'], input: [1], max_attempts: 1 },
    ['a b/c', { output: null }],
    {},
  ]);
  expect((await cli(['steps', 'fail', 'run_1', 'a'])).code).toBe(2);
});

test('shows a review of an agent of the run once while watching, with the command that answers it', async () => {
  const review = reviewRecord({
    ...{ team_id: 'team_1', run_id: 'run_1', tool_call: { title: 'write \x1b[2Ja' } },
    options: [{ option_id: 'ok', name: 'Yes', kind: 'allow_once' }],
  });
  let reported = () => {};
  const seen = new Promise<void>((resolve) => {
    reported = resolve;
  });
  await open({
    listReviews: () => ({ items: [{ ...review, id: 'rev_2', run_id: 'run_2' }, review] }),
    followRun: async (call) => {
      const response = call.hijack().writeHead(200, { 'content-type': 'text/event-stream' });
      const frame = (id: number, record: Run) =>
        response.write(`id: ${id}\nevent: run\ndata: ${JSON.stringify({ type: 'run', ts: 1, record })}\n\n`);
      frame(1, runRecord());
      await seen;
      frame(2, runRecord({ status: 'completed', version: 2, ended_at: time }));
      return undefined;
    },
  });
  const onStderr = (text: string) => text.includes('rev_1') && reported();
  const ran = await cli(['runs', 'watch', 'run_1'], { onStderr });
  expect(ran.code).toBe(0);
  expect(ran.stderr.split('\n').filter((line) => line.includes('rev'))).toEqual([
    'review rev_1  write \\x1b[2Ja',
    '  svc reviews allow rev_1   svc reviews respond rev_1 --option-id <option>   svc reviews show rev_1',
  ]);
});

test('shows a question once while it waits, and again when it is asked again', async () => {
  let stderr = '';
  let checkOutput = () => {};
  const onStderr = (text: string) => {
    stderr += text;
    checkOutput();
  };
  const requested_ids = () => stderr.split('step a waits for an answer: which one?').length - 1;
  const until = (times: number) =>
    new Promise<void>((resolve) => {
      checkOutput = () => requested_ids() === times && resolve();
      checkOutput();
    });
  await open({
    listReviews: () => ({ items: [] }),
    followRun: async (call) => {
      const response = call.hijack().writeHead(200, { 'content-type': 'text/event-stream' });
      let id = 0;
      const sendEvent = (type: string, record: object) =>
        response.write(`id: ${++id}\nevent: ${type}\ndata: ${JSON.stringify({ type, ts: 1, record })}\n\n`);
      const waiting = step({ status: 'input_required', attempt: 1, error_text: 'which one?' });
      sendEvent('step', waiting);
      await until(1);
      sendEvent('step', waiting);
      sendEvent('step', { ...waiting, status: 'running', error_text: null });
      sendEvent('step', waiting);
      await until(2);
      sendEvent('run', runRecord({ status: 'completed', version: 2, ended_at: time }));
      return undefined;
    },
  });
  expect((await cli(['runs', 'watch', 'run_1'], { onStderr })).code).toBe(0);
  expect(requested_ids()).toBe(2);
});
