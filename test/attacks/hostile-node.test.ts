/**
 * A node with a valid certificate that lies in its answers, and about sessions and agents of other nodes. The plane trusts
 * nothing that it reports about others, and shows whatever it sends only as text.
 */
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { idFrom } from '../../src/base/ids.ts';
import { Client } from '../../src/client/client.ts';
import { problemKinds } from '../../src/core/problem.ts';
import { limits as agentLimits } from '../../src/features/agents/limits.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import type { Run } from '../../src/features/runs/rules/run.ts';
import { type AttachRequest, RefusalSchema } from '../../src/link/proto/node_pb.ts';
import { TestAgentNode, WITH_NODES } from '../../src/testing/agent-node.ts';
import { type Answers, HostileNode, type HostileOptions } from '../../src/testing/hostile-node.ts';
import { ROOT, TestPlane } from '../../src/testing/plane.ts';

const ESCAPES = '\x1b[2J\x1b]52;c;b3duZWQ=\x07\x9b5m\u202e<img src=x onerror=hit()>';
const LONG = 'x'.repeat(1_000_000);

let plane: TestPlane;
let honest: TestAgentNode;
let alice: Client;
let alice_id: string;
/** Alice's agent on the honest node. It is running and stores its token in a file of its workdir. */
let target: Agent;
let evil: HostileNode;
let opened = 0;

beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  honest = await TestAgentNode.open(plane, { id: 'honest' });
  const { password } = ROOT;
  ({ id: alice_id } = await plane.client.call('createUser', { body: { username: 'alice', password } }));
  const { token } = await plane.client.call('login', { body: { username: 'alice', password } });
  alice = new Client({ url: plane.url, token });
  const command = 'cat "$SVC_ACTOR_TOKEN_FILE" >token; echo ready; exec sleep 10000';
  target = await alice.call('createAgent', {
    body: { name: 'target', node_id: 'honest', workdir: honest.work, command, start: true },
  });
  await plane.frames(target.id, (all) => all.some(({ data }) => data.type === 'output'));
  target = await plane.get(target.id);
});
afterEach(async () => {
  await evil.close();
  // Whatever was reported about it, Alice's agent is unchanged.
  expect(await plane.get(target.id)).toEqual(target);
  expect(plane.isRunning).toBe(true);
  expect(plane.log).not.toContain('"level":"fatal"');
});
afterAll(async () => {
  await honest?.close();
  await plane.close();
});

async function open(what: Partial<HostileOptions>): Promise<void> {
  evil = new HostileNode(`evil${++opened}`, { attach: idle, ...what });
  await evil.join(plane);
}
const linked = () => vi.waitFor(async () => expect(await evil.status(plane)).toBe('connected'), 20_000);

const page = (sessions: object[] = []) =>
  ({ body: { case: 'snapshot', value: { sessions, last: true } } }) as never;
const fact = (sessionId: string, number: number, body: object) =>
  ({ body: { case: 'fact', value: { sessionId, number: BigInt(number), atMs: 1n, body } } }) as never;
const started = { case: 'started', value: { pid: 1n, startedAtMs: 1n } };
const ended = {
  case: 'ended',
  value: { exitCode: 7, stdoutBytes: 0n, stderrBytes: 0n, endedAtMs: 1n, leftovers: [] },
};
const warning = { case: 'trouble', value: { code: 'forged_trouble', error: 'forged', details: '{}' } };

async function* idle(node: HostileNode): Answers {
  yield page();
  await node.link_ended;
}

/** A session as a node reports it; `more`: other values of its launch. */
function session(sessionId: string, more: object = {}, phase = 'running') {
  const launch = {
    ...{
      planeId: 'pln_x',
      agentId: `agt_${'e'.repeat(14)}${20 + opened}`,
      agentName: 'shown',
      ownerId: alice_id,
    },
    ...{ workdir: '/', argv: ['true'], envKeys: [], stdin: false, onExit: 'kill', ...more },
  };
  const facts = [{ sessionId, number: 1n, atMs: 1n, body: started }];
  return { sessionId, launch, phase, stdinBytes: 0n, facts };
}
const ownSession = () => `ses_${'e'.repeat(14)}${20 + opened}`;

/** Waits until the plane has processed everything that the node sent: an accepted answer comes after it. */
const untilProcessed = async () => {
  await linked();
  await plane.client.call('getAgentNodeHealth', { params: { node_id: evil.id } });
};
const agentsOf = async (client: Client) =>
  ((await client.call('listAgents', { query: { node_id: evil.id } as never })) as Agent[]).filter(
    ({ node_id }) => node_id === evil.id,
  );
const events = async () => {
  const { last_seq } = await plane.get(target.id);
  return (await plane.frames(target.id, (all) => Number(all.at(-1)!.id) >= last_seq)).map(({ data }) => data);
};

test('claims about another node’s session end nothing and reveal nothing', async () => {
  const before = await events();
  const id = target.session_id!;
  let answered = false;
  await open({
    attach: async function* (node) {
      yield page([session(ownSession())]);
      yield fact(id, 1, started);
      yield fact(id, 2, warning);
      yield fact(id, 3, ended);
      yield { body: { case: 'wakes', value: { sessionIds: [id, '__proto__', ''] } } } as never;
      // A later request is answered once the plane has processed the lies.
      yield { body: { case: 'upcall', value: { id: 1, method: 'x', params: '{}', token: 't' } } } as never;
      await node.link_ended;
    },
    onMessage: (body) => {
      answered ||= body.case === 'reply';
    },
  });
  await vi.waitFor(() => expect(answered).toBe(true), 20_000);
  await untilProcessed();
  expect(await events()).toEqual(before);
});

test('a session that claims another node’s agent and user becomes a new agent of root', async () => {
  const body = { name: 'resting', node_id: 'honest', workdir: honest.work, command: 'true' };
  const resting = await alice.call('createAgent', { body });
  const agentId = resting.id;
  await open({
    attach: async function* (node) {
      yield page([session(ownSession(), { agentId })]);
      await node.link_ended;
    },
  });
  const [found] = await vi.waitFor(async () => {
    const found = await agentsOf(plane.client);
    expect(found).toHaveLength(1);
    return found;
  }, 20_000);
  expect(found!.id).not.toBe(agentId);
  expect(found!.owner_id).not.toBe(alice_id);
  expect(await agentsOf(alice)).toEqual([]);
  expect(await plane.get(agentId)).toEqual(resting);
});

test('an agent with the id that a later step would get does not take over the step', async () => {
  const member = (member_id: string, command: string) => ({
    ...{ member_id, agent: { command, node_id: 'main', workdir: plane.work } },
  });
  const spec = {
    members: [
      member('guest', 'until [ -e go ]; do sleep 0.1; done'),
      member('deploy', `echo '"honest"' >"$SVC_STEP_OUTPUT"`),
    ],
    steps: [
      { step_key: 'lint', member_id: 'guest' },
      { step_key: 'deploy', member_id: 'deploy', depends_on: ['lint'] },
    ],
  };
  const { client } = plane;
  const team = await client.call('createTeam', {
    body: { name: 'ship', human_members: [], spec: spec as never },
  });
  const team_id = team.id;
  const { id: run_id } = (await client.call('createRun', {
    params: { team_id },
    body: { input: {} },
  })) as Run;
  const agentId = idFrom('agt', run_id, 'deploy', 'step', 'deploy');
  await open({
    attach: async function* (node) {
      yield page([session(ownSession(), { agentId })]);
      await node.link_ended;
    },
  });
  await vi.waitFor(async () => expect(await agentsOf(client)).toHaveLength(1), 20_000);
  writeFileSync(join(plane.work, 'go'), '');
  const run = await vi.waitFor(async () => {
    const now = (await client.call('getRun', { params: { team_id, run_id } })) as Run;
    expect(now.status).toBe('completed');
    return now;
  }, 20_000);
  expect(run.output).toEqual({ deploy: 'honest' });
});

test.each<[string, object, string?]>([
  ['a name of a megabyte', { agentName: LONG }],
  ['a malformed agent id', { agentId: '../../etc' }],
  ['no agent id', { agentId: '' }],
  ['a workdir of a megabyte', { workdir: `/${LONG}` }],
  ['a relative workdir', { workdir: 'relative' }],
  ['a malformed id', {}, '../../../sessions/x'],
  ['an id that is a JavaScript property', {}, '__proto__'],
  ['no id', {}, ''],
])('a session with %s ends the link as a protocol error', async (_, more, id) => {
  const from = plane.log.length;
  await open({
    attach: async function* (node) {
      yield page([session(id ?? ownSession(), more)]);
      await node.link_ended;
    },
  });
  await vi.waitFor(() => expect(plane.log.slice(from)).toContain('node breaks the protocol'), 20_000);
  expect(await agentsOf(plane.client)).toEqual([]);
});

const create = (more: object = {}) =>
  plane.client.call('createAgent', {
    body: { name: 'lied to', node_id: evil.id, workdir: '/w', command: 'true', ...more },
  });
const resolveWorkdir = async () => ({ workdir: '/w', belowWorktreeRoot: false });

test('answering a start with another node’s session starts and ends nothing there', async () => {
  await open({
    calls: {
      resolveWorkdir,
      start: async () => ({
        session: {
          ...session(target.session_id!, { agentId: target.id }, 'ended'),
          end: ended.value,
        } as never,
      }),
    },
  });
  await linked();
  const before = await events();
  const { id } = await create();
  await plane.client.call('startAgent', { params: { agent_id: id } }).catch(() => {});
  await untilProcessed();
  expect(await events()).toEqual(before);
  expect((await plane.get(id)).session_id).not.toBe(target.session_id);
});

test('a node’s error is never shown as one about the caller, and its text stays text', async () => {
  const refusals = [...problemKinds, 'made_up', '__proto__'];
  let kind = '';
  await open({
    calls: {
      resolveWorkdir: async () => {
        throw new ConnectError('x', Code.FailedPrecondition, undefined, [
          {
            desc: RefusalSchema,
            value: { kind, code: 'evil_code', message: `${ESCAPES}${'x'.repeat(3_000)}` },
          },
        ]);
      },
    },
  });
  await linked();
  for (kind of refusals) {
    const response = await fetch(`${plane.url}/api/agents`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${plane.token}` },
      body: JSON.stringify({ name: 'x', node_id: evil.id, workdir: '/w', command: 'true' }),
    });
    const text = await response.text();
    expect([400, 404, 409, 413, 502, 503], kind).toContain(response.status);
    if (kind === 'conflict') expect(response.status).toBe(409);
    expect(text.length).toBeLessThan(10_000);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  }
});

test.each<[string, string]>([
  ['of a megabyte', `/${LONG}`],
  ['that is relative', '../../w'],
  ['that is empty', ''],
])('no agent gets a workdir %s', async (_, workdir) => {
  await open({ calls: { resolveWorkdir: async () => ({ workdir, belowWorktreeRoot: false }) } });
  await linked();
  await expect(create()).rejects.toThrow();
  expect(await agentsOf(plane.client)).toEqual([]);
});

test('malformed changes, files and programs from a node become valid and bounded API responses', async () => {
  const file = (path: string) => ({ path, status: 'evil', additions: 1, deletions: 1, from: path });
  const paths = Array.from({ length: 20_000 }, (_, i) => `../../etc/passwd${i}${ESCAPES}`);
  await open({
    calls: {
      resolveWorkdir,
      getChanges: async () => ({
        git: true,
        branch: ESCAPES + LONG,
        base: LONG,
        head: LONG,
        files: paths.map(file),
      }),
      getChange: async () => ({ file: file('../../etc/shadow'), diff: ESCAPES + LONG.repeat(3) }),
      findFiles: async () => ({ git: true, paths, truncated: false }),
      probe: async ({ programs }) => ({
        findings: programs.map(() => ({
          path: ESCAPES,
          version: `${ESCAPES}${LONG.slice(0, 10_000)}`,
          envSet: ['HOME', 'SECRET'],
          filesFound: ['/etc'],
        })),
      }),
      getHealth: async () => ({
        nodeId: evil.id,

        sessionsLive: 4_000_000_000,
        worktreeRootProblem: ESCAPES + LONG,
      }),
    },
  });
  await linked();
  const { id: agent_id } = await create();
  const responses = await Promise.all(
    [
      `/api/agents/${agent_id}/changes`,
      `/api/agents/${agent_id}/changes/a.txt`,
      `/api/agents/${agent_id}/files?q=a`,
      `/api/presets?node_id=${evil.id}`,
      `/api/admin/agent-nodes/${evil.id}/health`,
    ].map(async (path) => {
      const response = await fetch(plane.url + path, { headers: { authorization: `Bearer ${plane.token}` } });
      return { path, status: response.status, text: await response.text() };
    }),
  );
  for (const { path, status, text } of responses) {
    expect([200, 502], `${path}: ${text.slice(0, 200)}`).toContain(status);
    expect(text.length, path).toBeLessThan(5_000_000);
    expect(() => JSON.parse(text)).not.toThrow();
    expect(text, path).not.toContain('"evil"');
    expect(text, path).not.toContain('SECRET');
  }
});

test('an actor’s token is refused on another machine', async () => {
  const token = (await readFile(join(honest.work, 'token'), 'utf8')).trim();
  expect(token).not.toBe('');
  const replies: AttachRequest['body'][] = [];
  const methods = [
    'whoami',
    'team-show',
    'mailbox-list',
    'permission-review-list',
    '__proto__',
    'constructor',
  ];
  evil = new HostileNode(`evil${++opened}`, {
    attach: async function* (node) {
      yield page([session(ownSession())]);
      let id = 0;
      for (const method of methods) {
        yield { body: { case: 'upcall', value: { id: ++id, method, params: '{}', token } } } as never;
      }
      await node.link_ended;
    },
    onMessage: (body) => replies.push(body),
  });
  await evil.join(plane);
  await vi.waitFor(
    () => expect(replies.filter(({ case: kind }) => kind === 'reply')).toHaveLength(methods.length),
    20_000,
  );
  for (const body of replies) {
    if (body.case !== 'reply') continue;
    expect(body.value.outcome).toMatchObject({ case: 'refusal', value: { kind: 'unauthenticated' } });
  }
});

test('a node cannot create any number of agents', { timeout: 120_000 }, async () => {
  const { recovered_agents_per_node_max: max } = agentLimits;
  const invented = Array.from({ length: max + 20 }, (_, n) =>
    session(idFrom('ses', `invented ${n}`), { agentId: idFrom('agt', `invented ${n}`) }, 'starting'),
  );
  await open({
    attach: async function* (node) {
      for (let at = 0; at < invented.length; at += 100) {
        const last = at + 100 >= invented.length;
        yield {
          body: { case: 'snapshot', value: { sessions: invented.slice(at, at + 100), last } },
        } as never;
      }
      await node.link_ended;
    },
  });
  await vi.waitFor(async () => expect(await evil.status(plane)).toBe('connected'), 100_000);
  const params = { node_id: evil.id };
  expect(await plane.client.call('getAgentNode', { params })).toMatchObject({
    agents: max,
    unrecovered_sessions: 20,
  });
});
