/**
 * Secrets of the internal surface are changed while agents run on the plane's machine and on a node: the same processes
 * go on, no byte of theirs is lost or doubled, and what had gone is refused from then on. See `docs/how-to/rotation.md`.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { type KeyPair, makeCa, makeKey } from '../src/link/trust/pki.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { AgentShell, SHELL } from '../src/testing/agent-shell.ts';
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
  // Most of what can go wrong here is told by nobody else.
  if (task.result?.state === 'fail') console.error(`plane:\n${plane?.log}\nnode:\n${node?.log}`);
  await node?.close();
  await plane?.close();
});

const IN_TLS = { SVC_INTERNAL_GRPC_SECURITY_MODE: 'tls' };

const KINDS: readonly WriterKind[] = [
  ['slow', '20', '10'],
  ['steady', '5', '80'],
];

/** Writers and a shell, here and on the node. */
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

/** Agents of before find the surface as it is now, by what they were given. */
async function expectToSpeak({ shell, agent }: Working): Promise<void> {
  const { said, exit } = await shell.tell('svc actor whoami');
  expect(exit, said).toBe(0);
  expect(JSON.parse(said)).toMatchObject({ agent_id: agent.id, session_id: agent.session_id });
}

/** All of it went on, and the link carries commands again. */
async function expectUnharmed(all: readonly Working[]): Promise<void> {
  for (const one of all) {
    await expectToSpeak(one);
    await expectNothingLost(plane, one.home, one.writers);
    await plane.client.call('stopAgent', { params: { agent_id: one.agent.id }, body: { grace_seconds: 0 } });
    expect(await plane.get(one.agent.id)).toMatchObject({ status: 'cancelled', session_count: 1 });
  }
}

const until = async (log: () => string, words: RegExp): Promise<void> => {
  while (!words.test(log())) await sleep(20);
};
const since = (of: { log: string }): (() => string) => {
  const from = of.log.length;
  return () => of.log.slice(from);
};

test('what the plane made itself: the shared secret in its file, the bootstrap token, and the authority', {
  timeout: 240_000,
}, async () => {
  plane = await TestPlane.open({ env: { ...WITH_NODES, ...IN_TLS } });
  node = await TestAgentNode.open(plane, { env: IN_TLS });
  const all = [await work(plane), await work(node)];
  const dirOf = ({ data_dir }: { data_dir: string }) => join(data_dir, 'internal-grpc');

  // A new secret on both sides, without a restart and without a break of the link.
  const logs = [since(plane), since(node)] as const;
  const file = (side: TestPlane | TestAgentNode) => join(dirOf(side), 'auth_secret.txt');
  const text = await readFile(file(plane), 'utf8');
  expect(text).toMatch(/^[\w-]{43}\n$/);
  expect(await readFile(file(node), 'utf8')).toBe(text);
  for (const side of [plane, node])
    await writeFile(file(side), `${[...text.trimEnd()].reverse().join('')}\n`);
  for (const log of logs) await until(log, /"message":"certificates reloaded"/);
  expect(await plane.cli(['nodes', 'test', node.id])).toMatchObject({ code: 0 });

  // A token that was rotated away lets nobody join; the one that took its place does.
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

  // Another authority. A token in the node's configuration changes nothing while the old certificate holds.
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

  // Who still comes with the old one gets nowhere.
  await plane.kill('SIGTERM');
  await rename(dirOf(plane), join(plane.data_dir, 'fresh'));
  await rename(aside, dirOf(plane));
  const turned_away = since(plane);
  await plane.start();
  await until(turned_away, /"node_id":"n1".*"message":"a node is not linked"/);
  expect((await node.record()).status).not.toBe('connected');
});

test('what the operator made: the shared secret in the configuration, and certificates of another authority', {
  timeout: 240_000,
}, async () => {
  const secret = (word: string) => ({ SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: word.repeat(8) });
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
  // So the node wants the plane's certificate, and the token that comes with it must be good too.
  plane = await TestPlane.prepare({ env: { ...WITH_NODES, ...IN_TLS, ...listen } });
  await put(plane, old, old.cert);
  await plane.start(secret('first-'));
  await plane.join();
  node = await TestAgentNode.prepare(plane, { env: { SVC_INTERNAL_GRPC_SECURITY_MODE: 'mtls' } });
  await put(node, old, old.cert);
  await node.start(secret('first-'));
  await node.register();
  await node.linked();
  const all = [await work(plane), await work(node)];
  const again = async (side: TestPlane | TestAgentNode, word: string) => {
    await side.kill('SIGTERM');
    await side.start(secret(word));
  };
  const asOperator = async (word: string) =>
    (await plane.cli(['actor', 'whoami', '--actor-id', 'user:ana'], { env: secret(word) })).code;

  // The node believes both authorities before anybody comes with the new one.
  await put(node, old, both);
  await again(node, 'first-');
  await node.linked();
  expect([await asOperator('first-'), await asOperator('second-')]).toEqual([0, 4]);

  const refused = since(node);
  await put(plane, fresh, both);
  await again(plane, 'second-');
  expect([await asOperator('first-'), await asOperator('second-')]).toEqual([4, 0]);
  // Its certificate is good; its secret is not known yet: nobody gets in, and what agents write is kept.
  await until(refused, /"reason":"signature verification failed"/);
  expect((await node.record()).status).not.toBe('connected');
  await expectToSpeak(all[0]!);

  await put(node, fresh, fresh.cert);
  await again(node, 'second-');
  await node.linked();
  await put(plane, fresh, fresh.cert);
  const attached = since(node);
  await again(plane, 'second-');
  await until(attached, /"message":"plane attached"/);
  await node.until('connected');
  await expectUnharmed(all);
});
