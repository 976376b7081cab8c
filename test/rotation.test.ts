/**
 * Rotates the secrets of the gRPC listeners while agents run on the plane's machine and on a node: the same processes keep
 * running, none of their output is lost or duplicated, and old secrets are refused. See `docs/how-to/rotation.md`.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { type KeyPair, makeCa, makeKey } from '../src/link/trust/pki.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { AgentShell, SHELL } from '../src/testing/agent-shell.ts';
import { longTest } from '../src/testing/long.ts';
import { freePort, TestPlane } from '../src/testing/plane.ts';
import { leafOf } from '../src/testing/trusted-node.ts';
import {
  expectNothingLost,
  startWriters,
  type Writer,
  type WriterKind,
  type WritersHome,
} from '../src/testing/writers.ts';

let plane: TestPlane;
let node: TestAgentNode;
afterEach(async ({ task }) => {
  // Most failures are visible only in the logs.
  if (task.result?.state === 'fail') console.error(`plane:\n${plane?.log}\nnode:\n${node?.log}`);
  await node?.close();
  await plane?.close();
});

/** Changed files are noticed within a second. */
const FAST = { SVC_TEST_TIME_SCALE: '0.2' };
const IN_TLS = { SVC_INTERNAL_GRPC_SECURITY_MODE: 'tls', ...FAST };

const KINDS: readonly WriterKind[] = [
  ['slow', '20', '10'],
  ['steady', '5', '80'],
];

/** Writers and a shell on the plane's machine or on the node. */
interface Working {
  home: WritersHome;
  writers: Writer[];
  shell: AgentShell;
  agent: Agent;
}

async function work(where: TestPlane | TestAgentNode): Promise<Working> {
  const home: WritersHome = { work: where.work, agent: (argv) => where.agent(argv) };
  const workdir = join(where.work, 'shell');
  await mkdir(workdir);
  const agent = await where.agent(SHELL, { workdir });
  return { home, writers: await startWriters(plane, home, KINDS), shell: new AgentShell(workdir), agent };
}

/** Agents that started before the rotation still reach the plane with what they were given. */
async function expectReachable({ shell, agent }: Working): Promise<void> {
  const { output, exit_code } = await shell.run('svc actor whoami');
  expect(exit_code, output).toBe(0);
  expect(JSON.parse(output)).toMatchObject({ agent_id: agent.id, session_id: agent.session_id });
}

/** Everything is still running, no output was lost, and the link carries commands again. */
async function expectUnharmed(all: readonly Working[]): Promise<void> {
  for (const one of all) {
    await expectReachable(one);
    await expectNothingLost(plane, one.home, one.writers);
    await plane.client.call('stopAgent', { params: { agent_id: one.agent.id }, body: { grace_seconds: 0 } });
    expect(await plane.get(one.agent.id)).toMatchObject({ status: 'cancelled', session_count: 1 });
  }
}

const until = async (log: () => string, pattern: RegExp): Promise<void> => {
  while (!pattern.test(log())) await sleep(20);
};
const since = (of: { log: string }): (() => string) => {
  const from = of.log.length;
  return () => of.log.slice(from);
};

test('agents survive the rotation of the generated shared secret, bootstrap token and CA', {
  timeout: 240_000,
}, async () => {
  plane = await TestPlane.open({ env: { ...WITH_NODES, ...IN_TLS } });
  node = await TestAgentNode.open(plane, { env: IN_TLS });
  const all = [await work(plane), await work(node)];
  const dirOf = ({ data_dir }: { data_dir: string }) => join(data_dir, 'internal-grpc');

  // A new secret on both sides, without a restart or a link failure.
  const logs = [since(plane), since(node)] as const;
  const file = (side: TestPlane | TestAgentNode) => join(dirOf(side), 'auth_secret.txt');
  const text = await readFile(file(plane), 'utf8');
  expect(text).toMatch(/^[\w-]{43}\n$/);
  expect(await readFile(file(node), 'utf8')).toBe(text);
  for (const side of [plane, node])
    await writeFile(file(side), `${[...text.trimEnd()].reverse().join('')}\n`);
  for (const log of logs) await until(log, /"message":"certificates reloaded"/);
  expect(await plane.cli(['nodes', 'test', node.id])).toMatchObject({ code: 0 });

  // A node cannot join with the old token, but with the new one.
  const late = await TestAgentNode.prepare(plane, { id: 'n2' });
  try {
    await late.start(await late.token());
    expect(await plane.cli(['nodes', 'token', '--rotate'])).toMatchObject({ code: 0 });
    await late.register();
    await until(logs[0], /"node_id":"n2".*"message":"a node is not linked"/);
    await late.kill('SIGTERM');
    await late.start(await late.token());
    await late.linked();
    expect(logs[0]()).not.toMatch(/the link to a node is down/);
  } finally {
    await late.close();
  }

  // A new CA. A token in the node's configuration has no effect while the old certificate is valid.
  const authority = await readFile(join(dirOf(plane), 'ca.pem'), 'utf8');
  const ofNode = () => readFile(join(dirOf(node), 'ca.pem'), 'utf8');
  await node.kill('SIGTERM');
  await node.start(await node.token());
  await node.linked();
  expect(await ofNode()).toBe(authority);
  await plane.kill('SIGTERM');
  const aside = join(plane.data_dir, 'aside');
  await rename(dirOf(plane), aside);
  const joined = since(node);
  await plane.start();
  await until(joined, /"message":"this node has joined a plane".*"message":"plane attached"/s);
  await node.until('connected');
  const fresh = await readFile(join(dirOf(plane), 'ca.pem'), 'utf8');
  expect(fresh).not.toBe(authority);
  expect(await ofNode()).toBe(fresh);
  await expectUnharmed(all);

  // A plane with the old CA cannot link anymore.
  await plane.kill('SIGTERM');
  await rename(dirOf(plane), join(plane.data_dir, 'fresh'));
  await rename(aside, dirOf(plane));
  const refused = since(plane);
  await plane.start();
  await until(refused, /"node_id":"n1".*"message":"a node is not linked"/);
  expect((await node.record()).status).not.toBe('connected');
});

longTest(
  'agents survive the rotation of a configured shared secret and of certificates to another CA',
  {
    timeout: 240_000,
  },
  async () => {
    const secret = (text: string) => ({ SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: text.repeat(8) });
    const authority = async (): Promise<KeyPair> => {
      const key = await makeKey();
      return { key, cert: await makeCa(key, Date.now()) };
    };
    const [old, fresh] = [await authority(), await authority()];
    const both = `${old.cert}\n${fresh.cert}\n`;
    const put = async ({ data_dir }: { data_dir: string }, of: KeyPair, ca: string) => {
      const dir = join(data_dir, 'internal-grpc');
      await mkdir(dir, { recursive: true });
      const { cert, key } = await leafOf(of);
      for (const [name, text] of Object.entries({ ca, cert, key }))
        await writeFile(join(dir, `${name}.pem`), text);
    };
    const listen = { SVC_INTERNAL_GRPC_LISTEN: `127.0.0.1:${await freePort()}` };
    // The node requires the plane's certificate, and a valid token as well.
    plane = await TestPlane.prepare({ env: { ...WITH_NODES, ...IN_TLS, ...listen } });
    await put(plane, old, old.cert);
    await plane.start(secret('first-'));
    await plane.join();
    node = await TestAgentNode.prepare(plane, { env: { SVC_INTERNAL_GRPC_SECURITY_MODE: 'mtls', ...FAST } });
    await put(node, old, old.cert);
    await node.start(secret('first-'));
    await node.register();
    await node.linked();
    const all = [await work(plane), await work(node)];
    const again = async (side: TestPlane | TestAgentNode, text: string) => {
      await side.kill('SIGTERM');
      await side.start(secret(text));
    };
    const asOperator = async (text: string) =>
      (await plane.cli(['actor', 'whoami', '--actor-id', 'user:ana'], { env: secret(text) })).code;

    // The node trusts both CAs before the plane uses the new one.
    await put(node, old, both);
    await again(node, 'first-');
    await node.linked();
    expect([await asOperator('first-'), await asOperator('second-')]).toEqual([0, 4]);

    const refused = since(node);
    await put(plane, fresh, both);
    await again(plane, 'second-');
    expect([await asOperator('first-'), await asOperator('second-')]).toEqual([4, 0]);
    // The plane's certificate is valid, but the node does not know the new secret yet: no link, and output is kept.
    await until(refused, /"reason":"signature verification failed"/);
    expect((await node.record()).status).not.toBe('connected');
    await expectReachable(all[0]!);

    await put(node, fresh, fresh.cert);
    await again(node, 'second-');
    await node.linked();
    await put(plane, fresh, fresh.cert);
    const attached = since(node);
    await again(plane, 'second-');
    await until(attached, /"message":"plane attached"/);
    await node.until('connected');
    await expectUnharmed(all);
  },
);
