/**
 * Actor calls with the real programs: `svc actor` in the environment of an agent, on the main node and on a remote node, and
 * in an operator's shell. The tests cover both what is allowed and what is refused.
 */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { AgentShell, SHELL, type ShellResult } from '../src/testing/agent-shell.ts';
import { is_long, longTest } from '../src/testing/long.ts';
import { freePort, SVC, TestPlane } from '../src/testing/plane.ts';

const SECRET = 'a shared secret of more than 32 bytes';
/** An agent that runs the scripts of a test. */
interface Shell {
  agent: Agent;
  shell: AgentShell;
}

let plane: TestPlane;
let node: TestAgentNode;
let near: Shell;
let far: Shell;

beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  node = await TestAgentNode.open(plane);
  near = await open(plane);
  far = await open(node);
});

afterAll(async () => {
  await node?.close();
  await plane?.close();
});

async function open(where: TestPlane | TestAgentNode): Promise<Shell> {
  const workdir = join(where.work, 'shell');
  await mkdir(workdir);
  return { agent: await where.agent(SHELL, { workdir }), shell: new AgentShell(workdir) };
}

const runIn = ({ shell }: Shell, script: string) => shell.run(script);

async function whoami(agent: Shell): Promise<unknown> {
  const { output, exit_code } = await runIn(agent, 'svc actor whoami');
  expect(exit_code, output).toBe(0);
  return JSON.parse(output);
}

const self = ({ agent: { id, session_id, node_id, owner_id } }: Shell) => ({
  actor_id: null,
  agent_id: id,
  session_id,
  node_id,
  user_id: owner_id,
  ...{ team_id: null, run_id: null, role: null },
});

test('agents on the main node and on a remote node are identified by their sessions', async () => {
  expect(await whoami(near)).toEqual(self(near));
  expect(await whoami(far)).toEqual(self(far));
});

test('an agent cannot act as another actor', async () => {
  for (const agent of [near, far]) {
    expect(await runIn(agent, 'svc actor whoami --actor-id user:ana')).toEqual({
      output: 'svc: not allowed to act as user:ana',
      exit_code: 1,
    });
  }
});

test('a session token appears in no file but its own, and in no environment or log', async () => {
  for (const [to, { data_dir }] of [
    [near, plane],
    [far, node],
  ] as const) {
    const file = join(data_dir, 'actor', `${to.agent.session_id}.token`);
    const token = (await readFile(file, 'utf8')).trim();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await runIn(to, 'cat "$SVC_ACTOR_TOKEN_FILE"')).output).toBe(token);
    const secret = token.split('.')[1]!;
    expect(secret).toHaveLength(43);
    expect((await runIn(to, 'env')).output).not.toContain(secret);
    const holding: string[] = [];
    for (const entry of await readdir(data_dir, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isFile() && (await readFile(path)).includes(secret)) holding.push(path);
    }
    expect(holding).toEqual([file]);
    expect(plane.log + node.log).not.toContain(secret);
  }
});

/** Calls `whoami` through `svc mcp --actor` with PATH as its only variable, as many MCP clients start it. */
const CALL_TOOL = `
mkfifo in out
exec 3<>in
env -i PATH="$PATH" svc mcp --actor <in >out 3>&- &
printf '%s\\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' >&3
printf '%s\\n' '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&3
printf '%s\\n' '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{}}}' >&3
exec 4<out
read -r initialized <&4
read -r answer <&4
exec 3>&-
wait
rm in out
printf '%s' "$answer"
`;

test('the tools of an agent call the plane with its session token, on both nodes', async () => {
  for (const agent of [near, far]) {
    const { output, exit_code } = await runIn(agent, CALL_TOOL);
    expect(exit_code, output).toBe(0);
    const { result } = JSON.parse(output) as { result: { content: { text: string }[] } };
    expect(JSON.parse(result.content[0]!.text)).toEqual(self(agent));
  }
});

/** Calls `whoami` from an agent's session with another token. */
async function whoamiWith(to: Shell, token: string): Promise<ShellResult> {
  const there = '"$(dirname "$SVC_ACTOR_TOKEN_FILE")/actor.json"';
  return runIn(to, `cp ${there} .\necho '${token}' >token\nSVC_ACTOR_TOKEN_FILE=$PWD/token svc actor whoami`);
}

const unauthorized = { output: 'svc: unauthorized', exit_code: 4 };

test('a session token is only valid on the node of its session, until the session ends', async () => {
  // The agent's output would show the token redacted.
  const other = await plane.agent('cat "$SVC_ACTOR_TOKEN_FILE" >given; echo; sleep 1000');
  while ((await plane.output(other.id)).length === 0) await sleep(20);
  const token = (await readFile(join(plane.work, 'given'), 'utf8')).trim();
  expect(await whoamiWith(near, token)).toMatchObject({ exit_code: 0 });
  expect(await whoamiWith(far, token)).toEqual(unauthorized);
  await plane.client.call('stopAgent', { params: { agent_id: other.id }, body: { grace_seconds: 0 } });
  expect(await whoamiWith(near, token)).toEqual(unauthorized);
  expect(await readdir(join(plane.data_dir, 'actor'))).not.toContain(`${other.session_id}.token`);
});

test('a forged token is refused', async () => {
  for (const to of [near, far]) {
    for (const forged of [`${to.agent.session_id}.${'A'.repeat(43)}`, 'x', 'a.b.c', '']) {
      expect(await whoamiWith(to, forged)).toEqual(unauthorized);
    }
  }
});

test('svc actor reports that the plane is down, and works after a restart on another port', async () => {
  const before = (await runIn(near, 'cat "$(dirname "$SVC_ACTOR_TOKEN_FILE")/actor.json"')).output;
  await plane.kill();
  const down = { output: 'svc: failed to connect to remote node', exit_code: 1 };
  expect(await runIn(far, 'svc actor whoami')).toEqual(down);
  expect(await runIn(near, 'svc actor whoami')).toEqual(down);
  await plane.start();
  await node.linked();
  expect(await whoami(near)).toEqual(self(near));
  expect(await whoami(far)).toEqual(self(far));
  expect((await runIn(near, 'cat "$(dirname "$SVC_ACTOR_TOKEN_FILE")/actor.json"')).output).not.toBe(before);
});

test('svc actor works after a restart of the node', async () => {
  await node.kill();
  await node.start();
  await node.linked();
  expect(await whoami(far)).toEqual(self(far));
});

test('a holder of the shared secret can act as any existing actor, and answers a review without naming one', async () => {
  const port = await freePort();
  const guarded = await TestPlane.open({
    env: {
      SVC_INTERNAL_GRPC_ENABLED: 'true',
      SVC_INTERNAL_GRPC_LISTEN: `127.0.0.1:${port}`,
      SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: SECRET,
    },
  });
  try {
    const { id } = await guarded.client.call('getMe', {});
    const no_team = { team_id: null, run_id: null, role: null };
    const nobody = {
      ...no_team,
      actor_id: null,
      agent_id: null,
      session_id: null,
      node_id: null,
      user_id: null,
    };
    const svcAsOperator = async (args: string[], env: Record<string, string> = {}) => {
      const { code, stdout, stderr } = await guarded.cli(['actor', 'whoami', ...args], { env });
      return code === 0 ? JSON.parse(stdout) : [code, stderr];
    };
    expect(await svcAsOperator([])).toEqual(nobody);
    expect(await svcAsOperator(['--actor-id', 'user:ana'])).toEqual({
      ...nobody,
      actor_id: 'user:ana',
      user_id: id,
      role: 'human',
    });
    expect(await svcAsOperator([], { SVC_ACTOR_ID: 'user:ana' })).toMatchObject({ actor_id: 'user:ana' });
    expect(await svcAsOperator(['--actor-id', 'user:eve'])).toEqual([1, 'svc: unknown actor: user:eve\n']);
    const wrong = { SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: `${SECRET}!` };
    expect(await svcAsOperator([], wrong)).toEqual([4, 'svc: unauthorized\n']);
    expect(await svcAsOperator([], { SVC_INTERNAL_GRPC_AUTH_ISSUER: 'other' })).toEqual([
      4,
      'svc: unauthorized\n',
    ]);
    const none = { SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: '' };
    const message = 'svc: internal_grpc.auth.shared_secret is not configured\n';
    expect(await svcAsOperator([], none)).toEqual([1, message]);
    await answersAsOperator(guarded);
    await guarded.kill('SIGTERM');
    expect(await svcAsOperator([])).toEqual([1, 'svc: failed to connect to remote node\n']);
  } finally {
    await guarded.close();
  }
});

test('in mtls, agents need no certificate, the plane’s authenticates an operator, and a node’s authenticates no actor', async () => {
  const mtls = {
    SVC_INTERNAL_GRPC_SECURITY_MODE: 'mtls',
    SVC_INTERNAL_GRPC_LISTEN: `127.0.0.1:${await freePort()}`,
  };
  const guarded = await TestPlane.open({ env: { ...WITH_NODES, ...mtls } });
  const joined = await TestAgentNode.open(guarded);
  try {
    if (is_long) await answersAsOperator(guarded);
    const agent = await guarded.agent('svc actor whoami');
    await guarded.finished(agent.id);
    expect(JSON.parse((await guarded.output(agent.id)).toString())).toMatchObject({ agent_id: agent.id });
    const whoami = (env: Record<string, string> = {}) =>
      guarded.cli(['actor', 'whoami', '--actor-id', 'user:ana'], { env });
    expect(JSON.parse((await whoami()).stdout)).toMatchObject({ actor_id: 'user:ana', role: 'human' });
    const of_node = { SVC_INTERNAL_GRPC_SECURITY_CERT_DIR: join(joined.data_dir, 'internal-grpc') };
    expect(await whoami(of_node)).toEqual({ code: 4, stdout: '', stderr: 'svc: unauthorized\n' });
  } finally {
    await joined.close();
    await guarded.close();
  }
});

/** Answers a review with `svc actor` in a shell outside every agent. */
async function answersAsOperator(operated: TestPlane): Promise<void> {
  const { id } = await operated.agent(
    [SVC, 'demo-agent', '--speed', '0', '--state', join(operated.folder, 'demo')],
    {
      protocol: 'acp',
      prompt: 'Write a note',
    },
  );
  const waiting = async () =>
    JSON.parse((await operated.cli(['actor', 'permission-review-list'])).stdout).reviews;
  let reviews = await waiting();
  for (; reviews.length === 0; reviews = await waiting()) await sleep(50);
  const respond = [
    'actor',
    'permission-review-respond',
    '--request-id',
    reviews[0].id,
    '--decision',
    'allow',
  ];
  const { code, stdout, stderr } = await operated.cli(respond);
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toMatchObject({ id: reviews[0].id, status: 'answered', answered_by: 'ana' });
  const records = await operated.client.call('listAudit', { query: { event: 'permission_reviewed' } });
  expect(records).toMatchObject([
    {
      ...{
        agent_id: id,
        workdir: operated.work,
        ip: '127.0.0.1',
        user_id: (await operated.client.call('getMe')).id,
      },
      details: { review_id: reviews[0].id, decision: 'allow', authenticated_by: 'internal_grpc' },
    },
  ]);
}

longTest('svc actor works without TLS', async () => {
  const open = await TestPlane.open({ env: { ...WITH_NODES, SVC_INTERNAL_GRPC_SECURITY_MODE: 'disabled' } });
  try {
    const agent = await open.agent('env | grep -c ^SVC_ACTOR_ENDPOINT=http: && svc actor whoami');
    await open.finished(agent.id);
    const [found, said = ''] = (await open.output(agent.id)).toString().split('\n');
    expect(found).toBe('1');
    expect(JSON.parse(said)).toMatchObject({ agent_id: agent.id });
  } finally {
    await open.close();
  }
});

const as_root = process.platform === 'linux' && process.getuid?.() === 0;

test.runIf(as_root)(
  'agents that run as another user can call the plane but not read its secrets',
  async () => {
    const run_dir = await mkdtemp(join(tmpdir(), 'svc-run-'));
    await chmod(run_dir, 0o755);
    const env = { ...WITH_NODES, SVC_AGENTS_RUN_AS: 'nobody', RUNTIME_DIRECTORY: run_dir };
    const dropped = await TestPlane.open({ env });
    try {
      await chmod(dropped.folder, 0o755);
      const certs = join(dropped.data_dir, 'internal-grpc');
      const agent = await dropped.agent(`id -un; svc actor whoami; cat '${certs}/auth_secret.txt'`);
      await dropped.finished(agent.id);
      const stdout = await dropped.output(agent.id, { stream: 'stdout' });
      const [user, said = ''] = stdout.toString().split('\n');
      expect(user, dropped.log).toBe('nobody');
      expect(JSON.parse(said)).toMatchObject({ agent_id: agent.id });
      expect((await dropped.output(agent.id, { stream: 'stderr' })).toString()).toMatch(/Permission denied/);
    } finally {
      await dropped.close();
      await rm(run_dir, { recursive: true });
    }
  },
);

test('without internal gRPC, svc actor fails and agents get no actor variables', async () => {
  const plain = await TestPlane.open();
  try {
    const { code, stderr } = await plain.cli(['actor', 'whoami']);
    expect([code, stderr]).toEqual([1, 'svc: internal grpc client not available\n']);
    const agent = await plain.agent('env | grep SVC_ACTOR; true');
    await plain.finished(agent.id);
    expect((await plain.output(agent.id)).toString()).toBe('');
  } finally {
    await plain.close();
  }
});
