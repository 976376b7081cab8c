/**
 * Requests for agents whose node is unreachable, with the real program: each is answered, however often it is repeated and
 * whatever makes the node unreachable, and the last one is carried out once when the node is back. `npm run faults -- 49`
 * measures the response times.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import type { AuditRecord } from '../src/features/audit/rules/audit.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { requesterOf } from '../src/testing/http.ts';
import { firstOf, longTest } from '../src/testing/long.ts';
import { hasNamespaces } from '../src/testing/namespaces.ts';
import { freePort, type TestPlane } from '../src/testing/plane.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';
import { requestUnreachable, unreachableStates } from '../src/testing/unreachable-nodes.ts';

const UNREACHABLE = { error: 'failed to connect to remote node' };

const share = sharedPlane({ env: WITH_NODES });
let plane: TestPlane;
const nodes: TestAgentNode[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
});

async function open(id: string, proxied = false): Promise<TestAgentNode> {
  const node = await TestAgentNode.open(plane, { id, proxied });
  nodes.push(node);
  return node;
}

/** An answer is promised within 2 s; this allows for the slowest machine. */
const within_ms = 20_000;
const request = requesterOf(() => plane);

async function http(method: string, path: string, body?: unknown) {
  const answer = await request(method, path, body, { within_ms });
  const [pending, warning] = [answer.headers.get('x-pending'), answer.headers.get('x-warning')];
  return { status: answer.status, pending, warning, body: answer.body };
}

const requests = {
  start: (id: string) => http('POST', `/api/agents/${id}/start`),
  stop: (id: string) => http('POST', `/api/agents/${id}/stop`, { grace_seconds: 0 }),
  restart: (id: string) => http('POST', `/api/agents/${id}/restart`, { grace_seconds: 0 }),
  input: (id: string) => http('POST', `/api/agents/${id}/input`, { data: 'unheard\n' }),
  delete: (id: string) => http('DELETE', `/api/agents/${id}?force=true`),
};
type Request = keyof typeof requests;

async function expectUnreachable(request: Request, id: string): Promise<void> {
  const { status, body, pending } = await requests[request](id);
  expect([request, status, body]).toEqual([request, 502, UNREACHABLE]);
  expect(pending).toBe(request === 'input' || request === 'delete' ? null : request);
}

/** Writes its pid to a file, and runs until it is ended. It does not poll, since so many loops would use up a core. */
const LASTING = 'echo $$ >>pids-$SVC_AGENT_ID; exec sleep 3600';

async function pidsOf(node: TestAgentNode, { id }: Agent): Promise<number[]> {
  const text = await readFile(join(node.work, `pids-${id}`), 'utf8').catch(() => '');
  return text.split('\n').filter(Boolean).map(Number);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function untilNotPending({ id }: Agent): Promise<Agent> {
  for (;;) {
    const agent = await plane.get(id);
    if (agent.pending === null) return agent;
    await sleep(50);
  }
}

interface Place {
  node: TestAgentNode;
  leave(): Promise<unknown> | unknown;
  comeBack(): Promise<unknown> | unknown;
}

const setTarget = (node: TestAgentNode, grpc_target: string) =>
  plane.client.call('updateAgentNode', { params: { node_id: node.id }, body: { grpc_target } });

longTest(
  'a hundred requests for unreachable nodes are answered in time, and only the last one for each agent is carried out',
  {
    timeout: 240_000,
  },
  async () => {
    plane = await share();
    const never_linked = await open('never');
    const killed = await open('killed');
    const frozen = await open('frozen');
    const apart = await open('apart', true);
    const suspect = await open('suspect', true);
    const nowhere = `https://127.0.0.1:${await freePort()}`;
    const places: Place[] = [
      {
        node: never_linked,
        leave: () => setTarget(never_linked, nowhere),
        comeBack: () => setTarget(never_linked, never_linked.target),
      },
      { node: killed, leave: () => killed.kill(), comeBack: () => killed.start() },
      {
        node: frozen,
        leave: () => frozen.signal('SIGSTOP'),
        comeBack: () => frozen.signal('SIGCONT'),
      },
      {
        node: apart,
        leave: () => apart.proxy!.hold('up', 'down'),
        comeBack: () => apart.proxy!.release(),
      },
      {
        node: suspect,
        leave: async () => {
          suspect.proxy!.hold('up', 'down');
          await suspect.until('suspect');
        },
        comeBack: () => suspect.proxy!.release(),
      },
    ];
    const agents = await Promise.all(
      places.map(async ({ node }) => ({
        restarted: await node.agent(LASTING, { name: 'restarted', stdin: true }),
        stopped: await node.agent(LASTING, { name: 'stopped', stdin: true }),
        started: await node.agent(LASTING, { name: 'started', stdin: true, start: false }),
        withdrawn: await node.agent(LASTING, { name: 'withdrawn', stdin: true }),
      })),
    );
    await suspect.until('connected');
    for (const { leave } of places.filter(({ node }) => node !== suspect)) await leave();
    // Meanwhile, requests for the other nodes are sent.
    const silent = places.find(({ node }) => node === suspect)!.leave();
    const before = await Promise.all(agents.map(({ withdrawn }) => plane.get(withdrawn.id)));

    await Promise.all(
      places.map(async ({ node }, at) => {
        const { restarted, stopped, started, withdrawn } = agents[at]!;
        if (node === suspect) await silent;
        const requests: [Request, Agent][] = [
          ['stop', restarted],
          ['restart', restarted],
          ['stop', restarted],
          ['input', restarted],
          ['delete', restarted],
          ['start', stopped],
          ['restart', stopped],
          ['input', stopped],
          ['stop', stopped],
          ['stop', stopped],
          ['start', started],
          ['stop', started],
          ['stop', started],
          ['delete', started],
          ['start', started],
          ['restart', withdrawn],
          ['start', withdrawn],
          ['stop', withdrawn],
        ];
        for (const [request, { id }] of requests) await expectUnreachable(request, id);
        // Concurrent requests, while other ones are pending.
        const many = [expectUnreachable('restart', restarted.id), expectUnreachable('stop', stopped.id)];
        await Promise.all(many);
        expect((await http('DELETE', `/api/agents/${withdrawn.id}/pending`)).status).toBe(204);
      }),
    );
    for (const [at, { restarted, stopped, started, withdrawn }] of agents.entries()) {
      expect(await plane.get(restarted.id)).toMatchObject({ status: 'running', pending: 'restart' });
      expect(await plane.get(stopped.id)).toMatchObject({ status: 'running', pending: 'stop' });
      expect(await plane.get(started.id)).toMatchObject({ status: 'created', pending: 'start' });
      const { status, session_id } = before[at]!;
      expect(await plane.get(withdrawn.id)).toMatchObject({ status, session_id, pending: null });
    }

    // Pending requests survive a restart of the plane.
    await plane.kill();
    await plane.start();
    // A link that was never established behaves like a broken one.
    await Promise.all(agents.map(({ restarted }) => expectUnreachable('restart', restarted.id)));
    for (const { comeBack } of places) await comeBack();
    for (const [at, { node }] of places.entries()) {
      const { restarted, stopped, started, withdrawn } = agents[at]!;
      expect(await untilNotPending(restarted)).toMatchObject({ session_count: 2 });
      await plane.until(restarted.id, ['running']);
      expect((await plane.finished(stopped.id)).status).toBe('cancelled');
      await untilNotPending(started);
      expect(await plane.until(started.id, ['running'])).toMatchObject({ session_count: 1 });
      expect(await plane.get(withdrawn.id)).toMatchObject({ status: 'running', session_count: 1 });
      const counts: [Agent, number, number][] = [
        [restarted, 2, 1],
        [stopped, 1, 0],
        [started, 1, 1],
        [withdrawn, 1, 1],
      ];
      for (const [agent, begun, alive] of counts) {
        while ((await pidsOf(node, agent)).length < begun) await sleep(20);
        const pids = await pidsOf(node, agent);
        expect([agent.name, pids.length, pids.filter(isAlive).length]).toEqual([agent.name, begun, alive]);
      }
    }
  },
);

test.runIf(hasNamespaces())(
  'stops, restarts and deletions for a node that is suspended, killed, cut off or was never there are answered',
  { timeout: 120_000 },
  async ({ signal }) => {
    const options = { states: firstOf(3, unreachableStates), n: 6, within_ms };
    const answers = await requestUnreachable({ ...options, phases: ['connected', 'suspect'] }, signal);
    expect(answers).toHaveLength(options.states.length * 6);
    for (const { state, action, status, body, pending } of answers) {
      const kept = action === 'delete' ? null : action;
      expect([state, action, status, body, pending]).toEqual([state, action, 502, UNREACHABLE, kept]);
    }
  },
);

test('a stop is answered if the node stops responding meanwhile, and is carried out later', {
  timeout: 120_000,
}, async () => {
  plane = await share();
  const node = await open('deaf', true);
  const ignores_term = await node.agent("trap '' TERM; echo up; exec sleep 3600");
  await plane.frames(ignores_term.id, (frames) => frames.some(({ data }) => data.data === 'up\n'));
  const stopping = http('POST', `/api/agents/${ignores_term.id}/stop`, { grace_seconds: 5 });
  await sleep(500);
  node.proxy!.hold('up', 'down');
  expect(await stopping).toMatchObject({ status: 502, body: UNREACHABLE, pending: 'stop' });
  await expectUnreachable('stop', ignores_term.id);
  node.proxy!.release();
  expect(await plane.finished(ignores_term.id)).toMatchObject({ status: 'cancelled', session_count: 1 });
  expect(await untilNotPending(ignores_term)).toMatchObject({ session_count: 1 });
});

test('the CLI reports that a request is pending, and can withdraw it', { timeout: 60_000 }, async () => {
  plane = await share();
  const node = await open('box');
  const agent = await node.agent(LASTING, { name: 'looper' });
  await node.kill();
  const stop = await plane.cli(['agents', 'stop', 'looper']);
  expect(stop).toMatchObject({ code: 5, stdout: '' });
  expect(stop.stderr).toBe(
    'svc: failed to connect to remote node; svc keeps the stop and carries it out when the node answers\n' +
      'svc: to withdraw it: svc agents withdraw looper\n',
  );
  expect(await plane.cli(['agents', 'withdraw', 'looper'])).toMatchObject({
    code: 0,
    stderr: 'withdrew the stop\n',
  });
  expect(await plane.cli(['agents', 'withdraw', 'looper'])).toMatchObject({
    code: 0,
    stderr: 'nothing is pending\n',
  });
  const input = await plane.cli(['agents', 'delete', '--force', 'looper']);
  expect(input).toMatchObject({ code: 5, stderr: 'svc: failed to connect to remote node\n' });
  expect(await plane.get(agent.id)).toMatchObject({ status: 'running', pending: null });
});

longTest(
  'a command for several agents continues after one on an unreachable node, and reports each',
  {
    timeout: 60_000,
  },
  async () => {
    plane = await share();
    const node = await open('remote');
    const near = async (name: string) => plane.agent(LASTING, { name });
    const remote = await node.agent(LASTING, { name: 'remote' });
    const [a, b] = [await near('a'), await near('b')];
    await node.kill();
    const kept =
      'svc: remote: failed to connect to remote node; svc keeps the stop and carries it out when the node answers';
    const stop = await plane.cli(['agents', 'stop', '--grace', '0', 'a', 'remote', 'b']);
    expect(stop).toMatchObject({
      code: 5,
      stdout: `${a.id}  a  cancelled\n${b.id}  b  cancelled\n`.replaceAll('  ', '\t'),
      stderr: `${kept}\nsvc: remote: to withdraw it: svc agents withdraw remote\n`,
    });
    expect(await plane.get(remote.id)).toMatchObject({ pending: 'stop' });
    // A permanent failure determines the exit code, rather than a pending request.
    const restart = await plane.cli(['agents', 'restart', 'remote', 'nobody', 'a']);
    expect(restart.code).toBe(1);
    expect(restart.stderr).toContain('svc: nobody: ');
    expect((await plane.get(a.id)).session_count).toBe(2);
    const start = await plane.cli(['agents', 'start', 'a', 'b']);
    expect(start).toMatchObject({ code: 1, stderr: 'svc: a: agent is already running\n' });
    expect((await plane.get(b.id)).session_count).toBe(2);
    const deleted = await plane.cli(['agents', 'delete', '--force', 'remote', 'a', 'b']);
    expect(deleted).toMatchObject({
      code: 5,
      stderr: `svc: remote: failed to connect to remote node\ndeleted ${a.id}\ndeleted ${b.id}\n`,
    });
    expect((await plane.cli(['agents', 'start', '--follow', 'a', 'b'])).code).toBe(2);
  },
);

const audit = async (event: string) => {
  const { body } = await http('GET', `/api/admin/audit?event=${event}`);
  return body as AuditRecord[];
};

longTest(
  'sessions of forgotten agents are listed, and ended when their node comes back',
  {
    timeout: 120_000,
  },
  async () => {
    plane = await share();
    const node = await open('gone');
    const one = await node.agent(LASTING, { name: 'one' });
    const two = await node.agent(LASTING, { name: 'two' });
    for (const agent of [one, two]) while ((await pidsOf(node, agent)).length === 0) await sleep(20);
    const [pid] = await pidsOf(node, one);
    const agents = async () =>
      ((await http('GET', '/api/agents')).body as Agent[]).filter(({ node_id }) => node_id === 'gone');
    const answers = await http('DELETE', `/api/agents/${one.id}?forget=true`);
    expect(answers).toMatchObject({
      status: 409,
      body: { error: expect.stringMatching(/^agent node answers/) },
    });
    expect((await http('DELETE', '/api/admin/agent-nodes/gone?forget=true')).status).toBe(409);

    await node.kill();
    const forgotten = await http('DELETE', `/api/agents/${one.id}?forget=true`);
    const sessions = [{ id: one.session_id, pid: expect.any(Number) }];
    const left_behind = { agent_id: one.id, node_id: 'gone', workdir: node.work, sessions };
    expect(forgotten).toMatchObject({ status: 200, body: { id: one.id, left_behind } });
    expect((await audit('agent_forgotten'))[0]).toMatchObject({ agent_id: one.id, details: { left_behind } });
    const cli = await plane.cli(['nodes', 'delete', '--forget', 'gone']);
    expect(cli.code).toBe(0);
    expect(cli.stderr).toContain(`left on node gone by two (${two.id}):\n  workdir ${node.work}\n  session `);
    expect(await agents()).toEqual([]);
    const nodes = (await http('GET', '/api/admin/agent-nodes')).body as { id: string }[];
    expect(nodes.map(({ id }) => id)).not.toContain('gone');
    expect(isAlive(pid!)).toBe(true);

    await node.start();
    await node.register();
    await node.until('connected');
    for (const agent of [one, two]) {
      for (const each of await pidsOf(node, agent)) while (isAlive(each)) await sleep(50);
    }
    while ((await audit('forgotten_session_ended')).length < 2) await sleep(50);
    expect(await agents()).toEqual([]);
  },
);

test('a worktree root that the node does not allow is reported when it is set and when it is used', {
  timeout: 60_000,
}, async () => {
  plane = await share();
  const node = await open('rooted');
  const path = '/api/admin/agent-nodes/rooted';
  const set = await http('PUT', path, { default_worktree_root: '/srv/elsewhere' });
  const problem = 'workdir path must be within allowed safe paths';
  expect(set).toMatchObject({ status: 200, body: { worktree_root_problem: problem } });
  expect(set.warning).toBe(
    `agents cannot work below default_worktree_root /srv/elsewhere of node rooted: ${problem}`,
  );
  expect((await http('GET', `${path}/health`)).body).toMatchObject({
    status: 'degraded',
    checks: expect.arrayContaining([expect.objectContaining({ name: 'worktree_root', ok: false })]),
  });
  const made = await http('POST', '/api/agents', {
    name: 'a',
    command: 'true',
    node_id: 'rooted',
    worktree_mode: 'create_worktree',
  });
  expect(made).toMatchObject({
    status: 400,
    body: {
      error:
        'default_worktree_root /srv/elsewhere of agent node rooted must be within the safe_paths of that node',
    },
  });
  const good = await http('PUT', path, { default_worktree_root: join(node.work, 'trees') });
  expect(good).toMatchObject({ status: 200, warning: null, body: { worktree_root_problem: null } });
});
