import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Problem, problems } from '../core/problem.ts';
import type { Agent } from '../features/agents/rules.ts';
import type { HttpServer } from '../server/server.ts';
import { agentRecord, time } from '../testing/agent-record.ts';
import { run } from '../testing/cli.ts';
import { openStream, output, status } from '../testing/event-stream.ts';
import { openFakeHttp, ROOT_TOKEN, USER_TOKEN } from '../testing/http.ts';

import type { Context } from './context.ts';
import { groups } from './main.ts';

let home: string;
let server: HttpServer | null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-cli-'));
  server = null;
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

async function open(handlers: Parameters<typeof openFakeHttp>[0]): Promise<Record<string, string>> {
  server = await openFakeHttp(handlers);
  return { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

test.each(groups)('the group adds exactly the commands $names', async ({ names, load }) => {
  const svc = new Command();
  (await load())(svc, { io: {}, local: {} } as Context);
  const added = svc.commands.flatMap((command) => [command.name(), ...command.aliases()]);
  expect(added).toEqual(names);
});

describe('output', () => {
  const two = [agentRecord({ name: 'evil\x1b]52;c;x\x07' }), agentRecord({ id: 'agt_2', name: '日本' })];
  const listAgents = () => ({ items: two });

  test('a pipe gets tab-separated rows without a heading', async () => {
    const { stdout, code } = await run(['agents', 'ls'], { home, env: await open({ listAgents }) });
    expect(code).toBe(0);
    expect(stdout.split('\n')[0]).toBe(`agt_1\tevil\\x1b]52;c;x\\x07\tcreated\tmain\t${time}\t/w`);
  });

  test('a table fits a terminal of 80 columns, and keeps ids and statuses', async () => {
    const long = agentRecord({
      id: 'agt_01234567890123456789',
      name: 'a name that is longer than its column',
      status: 'running',
      needs_you: 'permission',
      workdir: '/home/ana/.local/share/svc/worktrees/a-name-that-is-longer-agt_01234567890123456789',
    });
    const env = { ...(await open({ listAgents: () => ({ items: [long] }) })), NO_COLOR: '1' };
    const [heading, row] = (await run(['agents', 'ls'], { home, env, tty: true })).stdout.split('\n');
    expect(heading).toMatch(/^ID +NAME +STATUS +NODE$/);
    expect(row!.length).toBeLessThanOrEqual(80);
    expect(row).toMatch(/^agt_01234567890123456789 {2}a name that[^…]*… {2}running \(needs_you\) {2}main$/);
    const piped = await run(['agents', 'ls'], { home, env });
    expect(piped.stdout).toContain(`${long.name}\trunning (needs_you)\tmain\t${time}\t${long.workdir}\n`);
  });

  test('text of several lines is shown as such on a terminal, and as one line in a pipe', async () => {
    const agent = agentRecord({ reason: 'first\n\x1b[2Jsecond' as never });
    const env = { ...(await open({ getAgent: () => agent })), NO_COLOR: '1' };
    const shown = await run(['agents', 'get', 'agt_1'], { home, env, tty: true });
    expect(shown.stdout).toContain('reason\n  first\n  \\x1b[2Jsecond\n');
    const piped = await run(['agents', 'get', 'agt_1'], { home, env });
    expect(piped.stdout).toContain('first\\x0a\\x1b[2Jsecond\n');
  });

  test('what an agent does and its labels are shown as the parts that are known', async () => {
    const summary = { now: 'Reading\nnotes', plan: { done: 1, total: 3 }, diff: null, usage: null };
    const labels = { team: 'web' };
    const items = { agt_1: agentRecord({ summary: summary as never, labels }), agt_2: agentRecord({}) };
    const getAgent = ({ params }: { params: { agent_id: string } }) => items[params.agent_id as 'agt_1'];
    const env = await open({ getAgent });
    const busy = await run(['agents', 'get', 'agt_1'], { home, env });
    expect(busy.stdout).toMatch(/^summary +now=Reading\\x0anotes, plan\.done=1, plan\.total=3$/m);
    expect(busy.stdout).toMatch(/^labels +team=web$/m);
    expect((await run(['agents', 'get', 'agt_2'], { home, env })).stdout).not.toMatch(/^summary/m);
  });

  test('common options may come before the command', async () => {
    const bodies: unknown[] = [];
    const createAgent = ({ body }: { body: unknown }) => {
      bodies.push(body);
      return { location: '/api/agents/agt_1', body: agentRecord({}) };
    };
    const { SVC_URL: url, ...env } = await open({ listAgents, createAgent });
    const listed = await run(['--url', url!, '--json', 'agents', 'ls'], { home, env });
    expect(JSON.parse(listed.stdout)).toHaveLength(2);
    const argv = [`--url=${url}`, '--json', 'agents', 'create', 'x', '--', 'echo', '--url'];
    const made = await run(argv, { home, env });
    expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { id: 'agt_1' }]);
    expect(bodies).toMatchObject([{ argv: ['echo', '--url'] }]);
  });

  test('--no-runs leaves out the agents of runs', async () => {
    const items = [agentRecord({ id: 'agt_own' }), agentRecord({ id: 'agt_dev', member_id: 'dev' })];
    const env = await open({ listAgents: () => ({ items }) });
    const { stdout } = await run(['agents', 'ls', '--no-runs'], { home, env });
    expect(stdout).toMatch(/^agt_own\t[^\n]*\n$/);
  });

  test('a terminal gets an aligned table, and names cannot control it', async () => {
    const env = { ...(await open({ listAgents })), NO_COLOR: '1' };
    const { stdout } = await run(['agents', 'ls'], { home, env, tty: true });
    expect(stdout).not.toContain('\x1b');
    expect(stdout.split('\n')).toEqual([
      'ID     NAME                 STATUS   NODE  CREATED                   WORKDIR',
      `agt_1  evil\\x1b]52;c;x\\x07  created  main  ${time}  /w`,
      `agt_2  日本                 created  main  ${time}  /w`,
      '',
    ]);
  });

  test('--json prints the records', async () => {
    const { stdout } = await run(['agents', 'ls', '--json'], { home, env: await open({ listAgents }) });
    expect(JSON.parse(stdout)).toEqual(two);
  });

  test('reads every page of a list', async () => {
    const env = await open({
      listAgents: ({ query }) =>
        query.cursor === undefined
          ? { items: [two[0]!], next_cursor: 'more' }
          : { items: [agentRecord({ id: `agt_${query.cursor}` })] },
    });
    const { stdout } = await run(['agents', 'ls', '--json'], { home, env });
    expect(JSON.parse(stdout).map(({ id }: Agent) => id)).toEqual(['agt_1', 'agt_more']);
  });
});

test('svc --help lists all commands by subject, without their options', async () => {
  const { stdout } = await run(['--help'], { home });
  expect(stdout).toMatch(/\n\nAgents:\n {2}agents +create, run and inspect agents\n {2}logs <agent> +show/);
  const listed = [...stdout.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name]) => name);
  const names = groups.flatMap((group) => group.names).filter((name) => name !== '__complete');
  expect(listed.toSorted()).toEqual(names.toSorted());
});

describe('exit codes', () => {
  test('2 for wrong usage, with nothing on stdout', async () => {
    for (const argv of [
      ['agents', 'create'],
      ['agents', 'ls', '--nope'],
      ['agents', 'create', 'x'],
      ['agents', 'wait', 'x', '--timeout', 'soon'],
      ['agents', 'start', 'x', '--timeout', '5s'],
      ['prompt', 'x', 'hello', '--timeout', '5s'],
      ['stop', '--url', 'http://127.0.0.1:9'],
      ['serve', '--set', 'internal_grpc.auth.shared_secret=x'],
      ['serve', '--set', 'nope=x'],
      ['completion', 'tcsh'],
      ['login', 'ftp://x'],
      ['config', 'show', 'nosuch'],
      ['demo-agent', '--speed', '-1'],
      ['demo-agent', '--speed', '1..2'],
      ['demo-agent', '--seed', 'x'],
    ]) {
      const { code, stdout } = await run(argv, {
        home,
        env: { SVC_TOKEN: 't', SVC_URL: 'http://127.0.0.1:9' },
      });
      expect({ argv, code, stdout }).toEqual({ argv, code: 2, stdout: '' });
    }
  });

  test.each([
    [
      'https://bob:hunter2@host',
      'svc: remove the credentials, query or fragment from the URL: use https://host\n',
    ],
    [
      'http://host/svc/?t=hunter2',
      'svc: remove the credentials, query or fragment from the URL: use http://host/svc\n',
    ],
    [
      'https://host#hunter2',
      'svc: remove the credentials, query or fragment from the URL: use https://host\n',
    ],
    ['https://bob:hunter2@host:port', 'svc: https://host:port is not a URL: use http://host:port\n'],
    ['https://bob:hunter2/@host?x', 'svc: https://host is not a URL: use http://host:port\n'],
    ['https://bob:hun#hunter2@host', 'svc: https://… is not a URL: use http://host:port\n'],
    ['host?t=a@hunter2', 'svc: … is not a URL: use http://host:port\n'],
    ['bob:hunter2@host', 'svc: host is not an http or https URL\n'],
    ['ftp://bob:hunter2@host/x?t=hunter2', 'svc: ftp://host/x is not an http or https URL\n'],
  ])('an error about the URL %s does not show its secrets', async (SVC_URL, stderr) => {
    expect(await run(['agents', 'ls'], { home, env: { SVC_URL } })).toEqual({ code: 2, stdout: '', stderr });
  });

  test('an unknown option is reported like any other error', async () => {
    const { code, stderr } = await run(['agents', 'ls', '--nope'], { home });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^svc: unknown option '--nope'\n/);
  });

  test('an unknown command names the nearest one', async () => {
    const { code, stderr } = await run(['agnets'], { home });
    expect(code).toBe(2);
    expect(stderr).toBe('svc: unknown command agnets: did you mean agents?\n');
  });

  test('before there is a user, names the command that creates one', async () => {
    const env = await open({});
    const loadConfig = async () => ({ get: () => home }) as never;
    const holderOf = async () => ({
      pid: 1,
      host: 'here',
      since: time,
      url: env.SVC_URL!,
      certificate: null,
    });
    const local = { loadConfig, holderOf };
    const list = () => run(['agents', 'ls'], { home, local });
    expect((await list()).stderr).toBe(
      `svc: not signed in to ${env.SVC_URL}: run svc login ${env.SVC_URL}\n`,
    );
    writeFileSync(join(home, 'join.json'), '{}');
    expect(await list()).toMatchObject({
      code: 4,
      stderr: `svc: not signed in to ${env.SVC_URL}: run svc join\n`,
    });
    expect(await run(['login', '-u', 'ana'], { home, local })).toMatchObject({
      code: 4,
      stderr: 'svc: there are no users yet: run svc join\n',
    });
  });

  test('4 without a token, and with a rejected one', async () => {
    const env = await open({});
    const without = await run(['agents', 'ls'], { home, env: { SVC_URL: env.SVC_URL! } });
    expect(without.code).toBe(4);
    expect(without.stderr).toBe(`svc: not signed in to ${env.SVC_URL}: run svc login ${env.SVC_URL}\n`);
    const refused = await run(['agents', 'ls'], { home, env: { ...env, SVC_TOKEN: 'wrong' } });
    expect(refused).toMatchObject({ code: 4, stderr: 'svc: invalid token\n' });
  });

  test('1 with the server’s message, or if nothing answers', async () => {
    const env = await open({
      listAgents: () => ({ items: [agentRecord({})] }),
      startAgent: () => {
        throw problems.agentAlreadyRunning();
      },
    });
    const start = await run(['agents', 'start', 'one'], { home, env });
    expect(start).toMatchObject({ code: 1, stdout: '', stderr: 'svc: agent is already running\n' });
    const nobody = await run(['agents', 'ls'], { home, env: { ...env, SVC_URL: 'http://127.0.0.1:1' } });
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toContain('http://127.0.0.1:1 does not answer');
  });
});

describe('agents', () => {
  test('are named by id, or by a unique name', async () => {
    const all = [
      agentRecord({}),
      agentRecord({ id: 'agt_2', name: 'twice' }),
      agentRecord({ id: 'agt_3', name: 'twice' }),
    ];
    const env = await open({
      listAgents: ({ query }) => ({ items: all.filter(({ name }) => name === query.name) }),
      getAgent: ({ params }) => {
        const found = all.find(({ id }) => id === params.agent_id);
        if (!found) throw problems.agentNotFound();
        return found;
      },
    });
    const get = (ref: string) => run(['agents', 'get', ref, '--json'], { home, env });
    expect(JSON.parse((await get('one')).stdout).id).toBe('agt_1');
    expect(JSON.parse((await get('agt_2')).stdout).id).toBe('agt_2');
    expect((await get('twice')).stderr).toContain('2 agents have the name twice: use an id (agt_2, agt_3)');
    expect(await get('agt_9')).toMatchObject({ code: 1, stderr: 'svc: agent not found: agt_9\n' });
  });

  test('create sends its flags', async () => {
    let body: unknown;
    const env = await open({
      createAgent: (call) => {
        body = call.body;
        return { location: '/x', body: agentRecord({}) };
      },
    });
    const more = { ...env, SECRET: 's' };
    const argv = ['agents', 'create', 'n', '-w', 'sub', '--repo', 'repo', '--ref', 'main', '-e', 'A=b=c'];
    const created = await run(
      [...argv, '-e', 'SECRET', '-l', 'k=v', '--stdin', '--', 'npm', 'test', '--', '-x'],
      {
        home,
        env: more,
      },
    );
    expect(created).toMatchObject({ code: 0, stdout: 'agt_1\tone\tcreated\n' });
    expect(body).toMatchObject({
      name: 'n',
      command: null,
      argv: ['npm', 'test', '--', '-x'],
      workdir: join(home, 'sub'),
      worktree_mode: 'create_worktree',
      worktree_repo: join(home, 'repo'),
      worktree_ref: 'main',
      env: { A: 'b=c', SECRET: 's' },
      labels: { k: 'v' },
      stdin: true,
      start: false,
    });
    expect((await run([...argv, '-e', 'NOT_HERE', '-c', 'x'], { home, env })).code).toBe(2);

    await run(['agents', 'create', 'n', '-w', 'sub', '-c', 'x'], { home, env });
    expect(body).toMatchObject({ workdir: join(home, 'sub'), worktree_repo: null });
    expect(body).not.toHaveProperty('worktree_mode');
    await run(['agents', 'create', 'n', '-c', 'x'], { home, env });
    expect(body).toMatchObject({ workdir: null, worktree_mode: 'create_worktree', worktree_repo: null });
    await run(['agents', 'create', 'n', '--preset', 'codex'], { home, env });
    expect(body).toMatchObject({ preset: 'codex', command: null, argv: null, permission_mode: 'ask' });
    await run(['agents', 'create', 'n', '-p', 'codex', '--permission-mode', 'agent'], { home, env });
    expect(body).toMatchObject({ preset: 'codex', permission_mode: 'agent' });
    await run(['agents', 'create', 'n', '-p', 'acp', '--', 'my-agent'], { home, env });
    expect(body).toMatchObject({ preset: 'acp', command: null, argv: ['my-agent'] });
    const both = await run(['agents', 'create', 'n', '-p', 'acp', '-c', 'x', '--', 'y'], { home, env });
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('or --preset ID') });
  });

  test('input sends all of standard input', async () => {
    const sent: { data: string; eof: boolean }[] = [];
    const env = await open({
      listAgents: () => ({ items: [agentRecord({})] }),
      sendInput: ({ body }) => {
        sent.push(body);
        return agentRecord({});
      },
    });
    const input = '😀'.repeat(100_000);
    await run(['agents', 'input', 'one', '--eof'], { home, env, input });
    expect(sent.map(({ data }) => data).join('')).toBe(input);
    expect(sent.length).toBeGreaterThan(2);
    expect(sent.map(({ eof }) => eof)).toEqual([...sent.slice(1).map(() => false), true]);
    sent.length = 0;
    await run(['agents', 'input', 'one', 'yes'], { home, env });
    expect(sent).toEqual([{ data: 'yes\n', eof: false }]);
  });
});

describe('input', () => {
  const handlers = (sent: string[], busy = 0) => ({
    listAgents: () => ({ items: [agentRecord({})] }),
    sendInput: ({ body }: { body: { data: string } }) => {
      if (busy-- > 0) throw new Problem('rate_limited', 'rate_limited', 'too many requests');
      sent.push(body.data);
      return agentRecord({});
    },
  });

  test('waits for a slow plane, and loses nothing', async () => {
    const sent: string[] = [];
    const env = await open(handlers(sent, 1));
    const ran = await run(['agents', 'input', 'one'], { home, env, input: 'one\ntwo\n' });
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(sent).toEqual(['one\ntwo\n']);
  });

  test('keeps a byte order mark, and is never converted to text', async () => {
    const sent: string[] = [];
    const env = await open(handlers(sent));
    await run(['agents', 'input', 'one'], { home, env, input: '\ufeffone' });
    expect(sent.splice(0)).toEqual(['\ufeffone']);
    for (const input of [Buffer.from([0xff, 0x0a]), Buffer.from([0xf0, 0x9f])]) {
      const ran = await run(['agents', 'input', 'one', '--eof'], { home, env, input });
      expect(ran).toMatchObject({ code: 1 });
      expect(ran.stderr).toContain('standard input is not UTF-8 text');
    }
    expect(sent.join('')).toBe('');
  });

  test.each([
    'agents input one',
    'prompt one -',
    'users create ada',
    'login --with-token',
    'audit verify --file -',
  ])('Ctrl-C ends svc %s, which reads standard input', async (command) => {
    const env = await open(handlers([]));
    const interrupted = new AbortController();
    const ended = run(command.split(' '), { home, env, open_input: 'x', signal: interrupted.signal });
    setTimeout(() => interrupted.abort(), 200);
    expect(await ended).toMatchObject({ code: 130, stdout: '', stderr: '' });
  });
});

test('wait reports how its session ended, even if the agent is running again', async () => {
  const first = agentRecord({ status: 'running', session_id: 'ses_1' });
  const end = { agent_id: 'agt_1', session_id: 'ses_1', seq: 1, ts: 1, previous_status: 'running' };
  const env = await open({
    listAgents: () => ({ items: [first] }),
    getAgent: () => ({ ...first, session_id: 'ses_2' }),
    followAgent: (call) => {
      const data = JSON.stringify({ type: 'status', ...end, status: 'failed', exit_code: 7 });
      call.hijack().writeHead(200).write(`id: 1\nevent: status\ndata: ${data}\n\n`);
      return undefined;
    },
  });
  const ran = await run(['agents', 'wait', 'one'], { home, env });
  expect(ran).toMatchObject({ code: 3, stderr: 'svc: agent agt_1 failed: exit code 7\n' });
});

test('wait repeats the reads of an agent while the plane restarts', async () => {
  const completed = agentRecord({ status: 'completed', session_id: 'ses_1' });
  const running = { ...completed, status: 'running' as const };
  let answers: (() => Agent)[] = [];
  const drain = () => {
    throw problems.draining();
  };
  const env = await open({
    getAgent: () => answers.shift()!(),
    followAgent: (call) => {
      call.hijack().writeHead(200).write(status(1, 'completed'));
      return undefined;
    },
  });
  answers = [() => running, drain, () => completed];
  expect(await run(['agents', 'wait', 'agt_1'], { home, env })).toMatchObject({ code: 0, stderr: '' });
  answers = [() => ({ ...completed, pending: 'start' }), drain, () => completed];
  expect(await run(['agents', 'wait', 'agt_1'], { home, env })).toMatchObject({ code: 0, stderr: '' });
});

test.each(['agents', 'nodes', 'teams', 'runs', 'steps', 'tasks', 'mail', 'reviews'])(
  'svc %s: `show` and `get` are the same',
  async (noun) => {
    const helpOf = async (word: string) => (await run([noun, word, '--help'], { home })).stdout;
    expect(await helpOf('show')).toMatch(/^Usage: svc \w+ (show|get)\b/);
    expect(await helpOf('get')).toBe(await helpOf('show'));
  },
);

test('svc help shows the help of a command at any depth', async () => {
  for (const words of [['agents'], ['agents', 'ls'], ['agents', 'list'], ['runs', 'mail'], ['serve']]) {
    const { stdout, code } = await run(['help', ...words], { home });
    expect({ words, code, stdout }).toEqual({
      words,
      code: 0,
      stdout: (await run([...words, '--help'], { home })).stdout,
    });
  }
  expect((await run(['help'], { home })).stdout).toBe((await run(['--help'], { home })).stdout);
});

test.each([
  [['nonsense'], 'svc: unknown command nonsense (svc help lists them)\n'],
  [['agnets'], 'svc: unknown command agnets: did you mean agents?\n'],
  [['agents', 'nonsense'], 'svc: unknown command nonsense (svc help agents lists them)\n'],
  [['agents', 'lss'], 'svc: unknown command lss: did you mean ls?\n'],
  [['lgos'], 'svc: unknown command lgos: did you mean logs?\n'],
  [['bogus'], 'svc: unknown command bogus (svc help lists them)\n'],
  [['wait'], 'svc: unknown command wait (svc help lists them)\n'],
])('svc help %j and svc itself say that they do not know the command', async (words, stderr) => {
  expect(await run(['help', ...words], { home })).toMatchObject({ code: 2, stdout: '', stderr });
  expect(await run(words, { home })).toMatchObject({ code: 2, stdout: '', stderr });
  for (const options of [
    ['x', '--help'],
    ['ls', '--json'],
    ['-x', '--', 'y'],
  ])
    expect(await run([...words, ...options], { home })).toMatchObject({ code: 2, stdout: '', stderr });
});

test.each([
  [['teams', 'create', 'pipeline.json'], 'svc help teams create'],
  [['agents', 'ls', '--nonsense'], 'svc help agents ls'],
  [['logs'], 'svc help logs'],
])('an error about the arguments of svc %j names the help of that command', async (words, help) => {
  const { code, stderr } = await run(words, { home });
  expect(code).toBe(2);
  expect(stderr).toContain(`\n(see ${help})\n`);
});

test('rejects a time limit that no timer can hold', async () => {
  const ran = await run(['agents', 'wait', 'one', '--timeout', '600h'], { home });
  expect(ran.code).toBe(2);
  expect(ran.stderr).toContain('must be at most 596h');
});

test('agents wait also waits for a start that is kept', async () => {
  const before = agentRecord({ status: 'completed', session_id: 'ses_1', pending: 'start' });
  const after = agentRecord({ status: 'failed', exit_code: 7, session_id: 'ses_2' });
  const answers = [before, before, after];
  const env = await open({ getAgent: () => answers.shift() ?? after });
  expect(await run(['agents', 'wait', 'agt_1'], { home, env })).toMatchObject({
    code: 3,
    stderr: 'svc: agent agt_1 failed: exit code 7\n',
  });
  const late = await open({ getAgent: () => before });
  expect(await run(['agents', 'wait', 'agt_1', '--timeout', '10ms'], { home, env: late })).toMatchObject({
    code: 124,
    stderr: 'svc: agent agt_1 has not started: its node does not answer\n',
  });
});

test('agents wait --timeout waits for a running agent', async () => {
  const running = agentRecord({ status: 'running', session_id: 'ses_1' });
  const { env, close } = await openStream(running, [() => {}]);
  onTestFinished(async () => void (await close()));
  expect(await run(['agents', 'wait', 'agt_1', '--timeout', '50ms'], { home, env })).toMatchObject({
    code: 124,
    stderr: 'svc: agent agt_1 is still running\n',
  });
});

test.each([
  [
    'by a user who is not root',
    () => {
      throw problems.rootRequired();
    },
    { code: 4, stderr: 'svc: --agents needs a root user\n' },
  ],
  [
    'while an agent cannot be stopped',
    () => ({ stopped: 1, still_running: [{ agent_id: 'agt_2', error: 'node is away' }] }),
    {
      code: 1,
      stderr:
        'svc: the plane was not stopped, because these agents are still running:\nsvc: agt_2: node is away\n',
    },
  ],
  [
    'by a plane that cannot stop all agents',
    () => {
      throw problems.notFound();
    },
    { code: 1, stderr: expect.stringContaining('too old for --agents') },
  ],
])('stop --agents does not stop the plane %s', async (_, stopAllAgents, expected) => {
  const env = await open({ stopAllAgents });
  const ended: string[] = [];
  const holder = { pid: 1, host: 'here', since: time, url: server!.url, certificate: null };
  const local = {
    holderOf: () => Promise.resolve(holder),
    terminate: async (_dir: string, signal: string) => {
      ended.push(signal);
      throw new Error('it was ended');
    },
  };
  const ran = await run(['stop', '--agents'], { home, env, local });
  expect(ran).toMatchObject(expected);
  expect(ended).toEqual([]);
});

test('stop --agents on the machine of a node names where its agents are stopped', async () => {
  const local = {
    loadConfig: async () => ({ get: (key: string) => (key === 'server.role' ? 'node' : home) }) as never,
    holderOf: () => Promise.reject(new Error('it asked for the process')),
  };
  expect(await run(['stop', '--agents'], { home, local })).toMatchObject({
    code: 1,
    stderr: 'svc: this machine is a node; stop its agents on the control plane: svc agents stop <agent>...\n',
  });
});

test('open uses the public origin of the plane on this machine, and the URL of any other plane', async () => {
  const origin = 'https://svc.example.org';
  const holder = { pid: 1, host: 'here', since: time, url: 'https://127.0.0.1:8080', certificate: null };
  const opened: string[] = [];
  const configured = (rp_origin: string | null) => ({
    loadConfig: async () => ({ get: (key: string) => (key === 'web.rp_origin' ? rp_origin : home) }) as never,
    holderOf: () => Promise.resolve(holder),
    openBrowser: async (url: string) => opened.push(url) > 0,
  });
  const open = (rp_origin: string | null, ...options: string[]) =>
    run(['open', ...options], { home, local: configured(rp_origin) });
  expect(await open(origin)).toMatchObject({ code: 0, stdout: `${origin}\n` });
  await open(origin, '--url', 'https://127.0.0.1:8080/');
  await open(origin, '--url', 'https://other.example.org');
  await open(null);
  expect(opened).toEqual([origin, origin, 'https://other.example.org', holder.url]);
});

describe('login', () => {
  const user = { id: 'usr_1', username: 'ana', role: 'root' as const, created_at: time };
  const login = (bodies: unknown[]) => ({
    login: ({ body }: { body: { username: string; password: string } }) => {
      bodies.push(body);
      if (body.password !== 'right') throw problems.invalidLogin();
      return { token: ROOT_TOKEN, expires_in: 60, user };
    },
    getMe: () => ({ ...user, passkeys: [] }),
  });
  const file = () => join(home, '.config/svc/credentials.json');

  test('stores a token per host, for this user only, which commands use', async () => {
    const { SVC_URL: url } = await open(login([]));
    const ran = await run(['login', url!, '-u', 'ana'], { home, input: 'right\nrest' });
    expect(ran).toMatchObject({ code: 0, stdout: '' });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({
      current: url,
      hosts: { [url!]: { token: ROOT_TOKEN, username: 'ana' } },
    });
    const who = await run(['whoami', '--json'], { home });
    expect(JSON.parse(who.stdout)).toMatchObject({ url, username: 'ana' });
    const other = await run(['whoami', '--url', 'http://127.0.0.1:1'], { home });
    expect(other.code).toBe(4);
  });

  test('a typed password is not echoed', async () => {
    const bodies: unknown[] = [];
    const { SVC_URL: url } = await open(login(bodies));
    const ran = await run(['login', url!], { home, typed: ['ana', 'right'], tty: true });
    expect(ran.code).toBe(0);
    expect(bodies).toEqual([{ username: 'ana', password: 'right' }]);
    expect(ran.stdout + ran.stderr).not.toContain('right');
  });

  test('a wrong password exits with 4 and stores nothing', async () => {
    const { SVC_URL: url } = await open(login([]));
    writeFileSync(join(home, 'pw'), 'wrong\n');
    const ran = await run(['login', url!, '-u', 'ana', '--password-file', 'pw'], { home });
    expect(ran).toMatchObject({ code: 4, stderr: 'svc: invalid username or password\n' });
    expect(() => statSync(file())).toThrow();
  });

  test('reads an API token from stdin, and tries it first', async () => {
    const { SVC_URL: url } = await open(login([]));
    expect((await run(['login', url!, '--with-token'], { home, input: 'bad' })).code).toBe(4);
    expect((await run(['login', url!, '--with-token'], { home, input: `${ROOT_TOKEN}\n` })).code).toBe(0);
    expect(JSON.parse(readFileSync(file(), 'utf8')).hosts[url!].username).toBe('ana');
  });

  test('logout forgets the token even if it has expired', async () => {
    const env = await open({
      ...login([]),
      logout: () => {
        throw problems.invalidToken();
      },
    });
    await run(['login', env.SVC_URL!, '-u', 'ana'], { home, input: 'right' });
    expect((await run(['logout'], { home })).code).toBe(0);
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({ current: null, hosts: {} });
  });
});

test('logout ends the stored token, not another one in SVC_TOKEN', async () => {
  const ended: string[] = [];
  const env = await open({
    logout: ({ caller }) => {
      ended.push(caller.user_id);
      return undefined;
    },
  });
  const stored = { current: env.SVC_URL, hosts: { [env.SVC_URL!]: { token: USER_TOKEN, username: 'ada' } } };
  mkdirSync(join(home, '.config/svc'), { recursive: true });
  writeFileSync(join(home, '.config/svc/credentials.json'), JSON.stringify(stored));
  expect((await run(['logout'], { home, env })).code).toBe(0);
  expect(ended).toEqual(['usr_ada']);
});

describe('completion', () => {
  test('the bash script is valid, and every shell has one', async () => {
    const { stdout } = await run(['completion', 'bash'], { home });
    execFileSync('bash', ['-n'], { input: stdout });
    expect((await run(['completion', 'zsh'], { home })).stdout).toContain('#compdef svc');
    expect((await run(['completion', 'fish'], { home })).stdout).toContain('complete -c svc');
  });

  const complete = async (words: string[], env = {}) =>
    (await run(['__complete', '--', ...words], { home, env })).stdout.split('\n').slice(0, -1);

  test('bash gets the rest of a word that it has split', async () => {
    const { stdout: script } = await run(['completion', 'bash'], { home });
    const line = 'svc --url http://x  logs shop:t';
    const parts = ['svc', '--url', 'http', ':', '//x', 'logs', 'shop', ':', 't'];
    const place = { COMP_LINE: line, COMP_POINT: `${line.length}`, COMP_CWORD: '8' };
    const completed = execFileSync('bash', ['-s', '--', ...parts], {
      encoding: 'utf8',
      env: { ...process.env, ...place },
      input: `${script}
        svc() { printf '%s\\n' shop:one shop:two; printf '%s|' "$@" >&4; }
        compopt() { :; }
        COMP_WORDS=("$@")
        exec 4>&1
        _svc svc t
        printf ' %s' "\${COMPREPLY[@]}"`,
    });
    expect(completed).toBe('__complete|--|--url|http://x|logs|shop:t| one two');
  });

  test('skips the values of options, and connects with those of the line', async () => {
    const { SVC_URL: url, SVC_TOKEN } = await open({ listAgents: () => ({ items: [agentRecord({})] }) });
    const env = { SVC_TOKEN, SVC_URL: 'http://127.0.0.1:1' };
    expect(await complete(['--url', url!, 'age'])).toEqual(['agents']);
    expect(await complete(['--url', url!, 'agents', 'sto'])).toEqual(['stop']);
    expect(await complete(['--url', url!, 'logs', ''], env)).toEqual(['one']);
    expect(await complete(['logs', '-n', '5', `--url=${url}`, ''], env)).toEqual(['one']);
    expect(await complete(['logs', '--url', url!, '--stream', ''], env)).toEqual([]);
    expect(await complete(['demo-agent', '--mode', 'as'])).toEqual(['ask']);
    expect(await complete(['--data'])).toEqual(['--data-dir']);
  });

  test('offers commands, options and agents', async () => {
    expect(await complete(['ag'])).toEqual(['agents']);
    expect(await complete(['agents', 'st'])).toEqual(['start', 'stop']);
    expect(await complete(['agents', 'create', '--re'])).toEqual([
      ...['--ref', '--replace', '--repo', '--restart'],
    ]);
    const env = await open({
      listAgents: () => ({
        items: [
          agentRecord({}),
          agentRecord({ id: 'agt_2', name: 'twice' }),
          agentRecord({ id: 'agt_3', name: 'twice' }),
          agentRecord({ id: 'agt_4', name: '$(rm -rf x)' }),
        ],
      }),
    });
    expect(await complete(['logs', ''], env)).toEqual(['agt_2', 'agt_3', 'agt_4', 'one']);
    expect(await complete(['logs', ''])).toEqual([]);
    expect(await complete(['runs', 're'])).toEqual(['restart', 'resume']);
  });
});

describe('configuration', () => {
  test('init writes a file for this user, with a secret, once', async () => {
    const path = join(home, 'sub/c.toml');
    const { code, stderr } = await run(['init', '--config', 'sub/c.toml'], { home });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `wrote ${path}\nto use it: svc serve --config ${path}\n`,
    });
    const text = readFileSync(path, 'utf8');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(text).toMatch(/\[internal_grpc\]\nenabled = true\nlisten = "127\.0\.0\.1:8081"/);
    expect(/shared_secret = "([\w-]+)"/.exec(text)![1]).toHaveLength(43);
    const again = await run(['init', '--config', 'sub/c.toml'], { home });
    expect(again).toMatchObject({ code: 1, stderr: `svc: ${path} already exists; it was not changed\n` });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('init writes the file that SVC_CONFIG names', async () => {
    const path = join(home, 'named.toml');
    const written = await run(['init'], { home, env: { SVC_CONFIG: 'named.toml' } });
    expect(written).toMatchObject({ code: 0, stderr: `wrote ${path}\n` });
    expect(statSync(path).isFile()).toBe(true);
  });

  test('init --data-dir writes the data directory, for a plane and for a node', async () => {
    const node = ['--node', '--id', 'far', '--token', 't'.repeat(64)];
    for (const more of [[], node]) {
      const path = join(home, `${more.length}.toml`);
      await run(['init', '--config', path, '--data-dir', 'my data', ...more], { home });
      expect(readFileSync(path, 'utf8')).toContain(`\n\ndata_dir = "${join(home, 'my data')}"\n\n# Folders`);
    }
  });

  test('init --data-dir reads ~ like the configuration, and refuses an empty path', async () => {
    const path = join(home, 'tilde.toml');
    const init = (data_dir: string) => run(['init', '--config', path, `--data-dir=${data_dir}`], { home });
    expect(await init('')).toMatchObject({ code: 2, stderr: 'svc: --data-dir must not be empty\n' });
    await init('~/svc data');
    expect(readFileSync(path, 'utf8')).toContain(`data_dir = "${join(home, 'svc data')}"\n`);
  });

  test('init --node says which file makes this machine a node', async () => {
    const argv = ['init', '--node', '--id', 'far', '--token', 't'.repeat(64)];
    const lines = async (more: string[], SVC_CONFIG: string) =>
      (await run([...argv, ...more], { home, env: { SVC_CONFIG } })).stderr.split('\n').slice(0, -2);
    const usual = join(home, 'usual.toml');
    expect(await lines([], usual)).toEqual([`wrote ${usual}; svc on this machine is now node far`]);
    const other = join(home, 'other.toml');
    expect(await lines(['--config', other], usual)).toEqual([
      `wrote ${other}`,
      `to use it: svc serve --config ${other}`,
    ]);
  });

  test('show works without a plane and prints the origin of each value', async () => {
    const { stdout } = await run(['config', 'show', 'server.listen', '--origin', '--data-dir', '/d'], {
      home,
    });
    expect(stdout).toBe('server.listen\t"127.0.0.1:8080"\tdefault\t-\n');
    const all = await run(['config', 'show', '--json', '--data-dir', '/d'], { home });
    expect(JSON.parse(all.stdout)[0]).toMatchObject({
      key: 'data_dir',
      value: '/d',
      origin: 'flag',
      source: '--data-dir',
    });
  });

  test('set converts live settings to their types', async () => {
    let body: unknown;
    const env = await open({
      updateConfig: (call) => {
        body = call.body;
        return [];
      },
    });
    await run(
      [
        'config',
        'set',
        'retention.days=5',
        'auth.require_special_chars=true',
        'safe_paths=/a,/b',
        'reviews.timeout_seconds=',
      ],
      { home, env },
    );
    expect(body).toEqual({
      'retention.days': 5,
      'auth.require_special_chars': true,
      safe_paths: ['/a', '/b'],
      'reviews.timeout_seconds': null,
    });
  });
});

describe('doctor', () => {
  test('fails when a check fails, and prints how to fix it', async () => {
    const doctor = () =>
      Promise.resolve([
        { name: 'git', ok: true, detail: '2' },
        { name: 'disk', ok: false, detail: 'full', hint: 'free some' },
      ]);
    const { code, stdout, stderr } = await run(['doctor'], { home, local: { doctor } });
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: 'ok    git: 2\nFAIL  disk: full\n      free some\n',
      stderr:
        'the running service was not asked: none runs on this machine, and you are not signed in to another one\n' +
        'svc: 1 of 2 checks failed\n',
    });
  });
});

describe('logs', () => {
  test('-f continues after a cut in the middle of a frame, without gaps or duplicates', async () => {
    const whole = output(3, 'three\n');
    const plane = await openStream(agentRecord({ last_seq: 3 }), [
      (response) => {
        response.write(output(1, 'one\n') + output(2, 'two\n') + whole.slice(0, whole.length - 9));
        setTimeout(() => response.destroy(), 50);
      },
      (response) => void response.write(whole + output(4, 'four\n')),
    ]);
    try {
      const stop = new AbortController();
      let seen = '';
      const ran = await run(['logs', 'one', '-f'], {
        home,
        env: plane.env,
        signal: stop.signal,
        onStdout: (text) => {
          seen += text;
          if (seen.includes('four')) stop.abort();
        },
      });
      expect(ran).toMatchObject({ code: 130, stdout: 'one\ntwo\nthree\nfour\n' });
      expect(plane.requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '2']);
      expect(ran.stderr).toContain('does not answer; trying again');
    } finally {
      await plane.close();
    }
  });

  test('ends at the current end without -f, and prints binary output unchanged', async () => {
    const plane = await openStream(agentRecord({ last_seq: 2 }), [
      (response) => void response.write(output(1, 'a\x1b[2J') + output(2, '/w==', { encoding: 'base64' })),
    ]);
    try {
      const chunks: string[] = [];
      const ran = await run(['logs', 'one'], { home, env: plane.env, onStdout: (text) => chunks.push(text) });
      expect(ran.code).toBe(0);
      expect(chunks).toEqual(['a\x1b[2J', '\ufffd']);
    } finally {
      await plane.close();
    }
  });

  test('keeps only colors on a terminal; --raw keeps everything', async () => {
    const text = 'a\x1b[2J\x1b[31mred\x1b]52;c;x\x07\n';
    const plane = await openStream(
      agentRecord({ last_seq: 1 }),
      [1, 2, 3].map(() => (response: ServerResponse) => void response.write(output(1, text))),
    );
    try {
      const options = { home, env: plane.env, tty: true };
      expect((await run(['logs', 'one'], options)).stdout).toBe('a\x1b[31mred\n\x1b[0m');
      expect((await run(['logs', 'one', '--raw'], options)).stdout).toBe(text);
      const plain = await run(['logs', 'one'], { ...options, env: { ...plane.env, NO_COLOR: '1' } });
      expect(plain.stdout).toBe('ared\n');
    } finally {
      await plane.close();
    }
  });

  test('-n counts lines, whatever the events are', async () => {
    const events = output(1, 'a\nb\nc\n') + status(2, 'running') + output(3, 'd\ne\n') + output(4, 'open');
    const plane = await openStream(
      agentRecord({ last_seq: 4 }),
      [1, 2, 3, 4].map(() => (response: ServerResponse) => void response.write(events)),
    );
    try {
      const tail = async (n: number) =>
        (await run(['logs', 'one', '-n', String(n)], { home, env: plane.env })).stdout;
      expect(await tail(1)).toBe('open');
      expect(await tail(3)).toBe('d\ne\nopen');
      expect(await tail(4)).toBe('c\nd\ne\nopen');
      expect(await tail(99)).toBe('a\nb\nc\nd\ne\nopen');
      expect(await tail(0)).toBe('');
    } finally {
      await plane.close();
    }
  });

  test('on a terminal, a note starts on a new line', async () => {
    const [open_line, colored] = ['done', '\x1b[31mdone\n\x1b[0m'].map(
      (data) => output(1, data) + status(2, 'failed'),
    );
    const plane = await openStream(
      agentRecord({ last_seq: 2 }),
      [open_line!, colored!].map((events) => (response: ServerResponse) => void response.write(events)),
    );
    try {
      const shown = async () => {
        let all = '';
        const add = (text: string) => {
          all += text;
        };
        const env = { ...plane.env, NO_COLOR: '1' };
        await run(['logs', 'one'], { home, env, tty: true, onStdout: add, onStderr: add });
        return all;
      };
      expect(await shown()).toBe('done\n-- running -> failed --\n');
      expect(await shown()).toBe('done\n-- running -> failed --\n');
    } finally {
      await plane.close();
    }
  });

  test('--json prints a frame per line', async () => {
    const plane = await openStream(agentRecord({ last_seq: 2 }), [
      (response) => void response.write(output(1, 'a\n') + status(2, 'completed')),
    ]);
    try {
      const { stdout } = await run(['logs', 'one', '--json'], { home, env: plane.env });
      const lines = stdout.trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line).seq)).toEqual([1, 2]);
    } finally {
      await plane.close();
    }
  });

  test('a follow to the end exits with 3 for failed, and 124 on a timeout', async () => {
    const failing = agentRecord({
      status: 'failed',
      exit_code: 7,
      reason: 'exit_code',
      session_id: 'ses_1',
      last_seq: 2,
    });
    const plane = await openStream(failing, [
      (response) => void response.write(output(1, 'x\n') + status(2, 'failed')),
      () => {},
    ]);
    try {
      const ran = await run(['agents', 'start', 'one', '--follow'], { home, env: plane.env });
      expect(ran).toMatchObject({ code: 3, stdout: 'x\n' });
      expect(ran.stderr).toContain('svc: agent agt_1 failed: exit code 7\n');
      const late = await run(['agents', 'start', 'one', '--follow', '--timeout', '50ms'], {
        home,
        env: plane.env,
      });
      expect(late.code).toBe(124);
    } finally {
      await plane.close();
    }
  });
});
