/** Identity on the link: a second process with a node's id, earlier links, and a plane that lost its database. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { systemClock } from '../src/base/clock.ts';
import { silentLog } from '../src/base/log.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { type Connection, openConnection } from '../src/link/plane/connection.ts';
import { NodeService } from '../src/link/proto/node_pb.ts';
import { PlaneTrust, verifyNode } from '../src/link/trust/plane-trust.ts';
import { LINK_HEADER, toProblem } from '../src/link/wire.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { expectNothingLost, pidOf, startWriters } from '../src/testing/writers.ts';

let plane: TestPlane;
const nodes: TestAgentNode[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
  await plane?.close();
});

async function audited(event: string): Promise<{ details: Record<string, unknown> }[]> {
  return (await plane.client.call('listAudit', { query: { event } })) as never;
}

test('a second process with the id of a node is refused and audited, and the agents keep running', {
  timeout: 120_000,
}, async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  const first = await TestAgentNode.open(plane, { proxied: true });
  nodes.push(first);
  const writers = await startWriters(plane, first);
  const second = await TestAgentNode.prepare(plane);
  nodes.push(second);
  await second.start(await second.token());

  first.proxy!.target_port = second.port;
  first.proxy!.cut();
  while ((await audited('node_refused')).length === 0) await sleep(50);
  const [{ details } = { details: {} }] = await audited('node_refused');
  expect(details).toMatchObject({ node_id: 'n1' });
  expect(details.reason).toMatch(/^another process answers for agent node n1: its disk is not the one/);
  for (const { id, pid } of writers) {
    expect((await plane.get(id)).status).toBe('running');
    process.kill(pid, 0);
  }
  const { status, checks } = await plane.client.call('getAgentNodeHealth', { params: { node_id: 'n1' } });
  expect(status).toBe('unreachable');
  expect(checks.at(-1)!.error).toMatch(/^another process answers for agent node n1/);
  // A start fails too, because there is no link.
  const waiting = await plane.client
    .call('startAgent', { params: { agent_id: writers[0]!.id } })
    .catch((error: Error) => error.message);
  expect(waiting).toBe('failed to connect to remote node');
  // The pending start would restart an agent that ends before the node is back.
  await plane.client.call('withdrawPending', { params: { agent_id: writers[0]!.id } });

  first.proxy!.target_port = first.port;
  first.proxy!.cut();
  await expectNothingLost(plane, first, writers);
  expect(await audited('node_refused')).toHaveLength(1);
});

longTest(
  'after root accepts a new disk of a node, the agents of the old disk end as lost',
  {
    timeout: 60_000,
  },
  async () => {
    plane = await TestPlane.open({ env: WITH_NODES });
    const first = await TestAgentNode.open(plane, { proxied: true });
    nodes.push(first);
    const agent = await first.agent('exec sleep 300');
    const second = await TestAgentNode.prepare(plane);
    nodes.push(second);
    await second.start(await second.token());
    await first.kill();
    first.proxy!.target_port = second.port;
    first.proxy!.cut();
    while ((await audited('node_refused')).length === 0) await sleep(50);
    expect((await plane.get(agent.id)).status).toBe('running');

    const set = await plane.cli(['nodes', 'set', 'n1', '--accept-disk']);
    expect(set.code).toBe(0);
    expect(await plane.finished(agent.id)).toMatchObject({ status: 'failed', reason: 'session_lost' });
    await first.linked();
    await plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query: {} });
    await plane.client.call('deleteAgentNode', { params: { node_id: 'n1' } });
  },
);

/** Connects to the node as the plane does, with the plane's key. */
async function dialAsPlane(node: TestAgentNode, plane_id: string): Promise<Connection> {
  const trust = await PlaneTrust.open({
    cert_dir: join(plane.data_dir, 'internal-grpc'),
    plane_id,
    mode: 'tls',
    shared_secret: null,
    issuer: 'svc',
    audience: 'svc-internal',
    clock: systemClock,
    log: silentLog,
  });
  onTestFinished(() => trust.close());
  return openConnection({
    host: '127.0.0.1',
    port: node.port,
    servername: '127.0.0.1',
    tls: trust.identity(),
    verify: verifyNode(node.id, null),
    token: () => trust.token(),
  });
}

test('commands and hellos of an earlier link are refused without effect', async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  const node = await TestAgentNode.open(plane);
  nodes.push(node);
  const agent = await node.agent('while [ ! -e stop ]; do sleep 0.05; done');
  const session_id = agent.session_id!;
  const before = /"plane_id":"(pln_\w+)","epoch":(\d+)/.exec(node.log)!;
  const [, plane_id = '', epoch = ''] = before;
  const state = JSON.parse(await readFile(join(node.data_dir, 'node.json'), 'utf8'));
  const { incarnation } = state.latest;
  await plane.kill();

  const connection = await dialAsPlane(node, plane_id);
  const old = createClient(NodeService, connection.transport);
  const outcome = (call: Promise<unknown>) =>
    call.then(
      () => 'done',
      (error) => toProblem(error).message,
    );
  const earlier = { headers: { [LINK_HEADER]: `${plane_id} ${incarnation} ${Number(epoch) - 1}` } };
  // Without an attached plane, a node accepts no commands. With one, it accepts only those of the latest link.
  expect(await outcome(old.stop({ sessionId: session_id, graceMs: 0 }, earlier))).toBe(
    'no plane is attached to this node',
  );
  await plane.start();
  await node.linked();
  while (JSON.parse(await readFile(join(node.data_dir, 'node.json'), 'utf8')).latest.epoch <= Number(epoch)) {
    await sleep(20);
  }
  await node.linked();
  const later = /^a later link is known: plane pln_\w+, incarnation \d+, epoch \d+$/;
  const mine = { headers: { [LINK_HEADER]: `${plane_id} ${incarnation} ${epoch}` } };
  expect(await outcome(old.stop({ sessionId: session_id, graceMs: 0 }, mine))).toMatch(later);
  expect(await outcome(old.forget({ sessionId: session_id }, mine))).toMatch(later);
  expect(
    await outcome(old.start({ sessionId: 'ses_aaaaaaaaaaaaaaaa', workdir: node.work, argv: ['true'] }, mine)),
  ).toMatch(later);
  expect(await outcome(old.input({ sessionId: session_id, data: Buffer.from('x') }, mine))).toMatch(later);
  const hello = {
    planeId: plane_id,
    incarnation: BigInt(incarnation),
    epoch: BigInt(epoch),
    nodeId: node.id,
    speaks: { protocol: 1, protocolMin: 1, version: 'test' },
  };
  const attach = async () => {
    const requests = async function* () {
      yield { body: { case: 'hello', value: hello } } as const;
      await sleep(1_000);
    };
    for await (const _ of old.attach(requests())) return;
  };
  expect(await outcome(attach())).toMatch(later);
  connection.close();

  expect((await plane.get(agent.id)).status).toBe('running');
  expect((await node.record()).status).toBe('connected');
  await writeFile(join(node.work, 'stop'), '');
  expect(await plane.finished(agent.id)).toMatchObject({ status: 'completed', session_count: 1 });
});

test('a node that has served a younger plane can join an older one', async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  const node = await TestAgentNode.open(plane);
  nodes.push(node);
  await node.kill();
  const path = join(node.data_dir, 'node.json');
  const state = JSON.parse(await readFile(path, 'utf8'));
  const younger = { plane_id: 'pln_younger', incarnation: state.latest.incarnation + 1, epoch: 1 };
  await writeFile(path, JSON.stringify({ ...state, latest: younger }));
  // The plane joins again because it does not know the certificate.
  await rm(join(node.data_dir, 'internal-grpc'), { recursive: true });
  await node.start(await node.token());
  await node.linked();
  expect(JSON.parse(await readFile(path, 'utf8')).latest.plane_id).toBe(state.latest.plane_id);
});

test('a plane that lost its database finds the running agents of a node again, once and owned by root', {
  timeout: 120_000,
}, async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  const node = await TestAgentNode.open(plane);
  nodes.push(node);
  const agents = await Promise.all(
    [1, 2, 3, 4].map((n) => {
      const command = `echo $$ >>pids-${n}; echo up ${n}; while [ ! -e stop ]; do sleep 0.05; done; echo end ${n}`;
      return node.agent(command, { name: `agent ${n}` });
    }),
  );
  const pids = await Promise.all(agents.map(({ id }) => pidOf(plane, id)));
  const deleted = await node.agent('echo bye', { name: 'deleted' });
  await plane.finished(deleted.id);
  await plane.client.call('deleteAgent', { params: { agent_id: deleted.id }, query: {} });

  await plane.kill();
  for (const file of ['svc.db', 'svc.db-wal', 'svc.db-shm'])
    await rm(join(plane.data_dir, file), { force: true });
  await plane.start();
  await plane.join();
  await node.kill();
  await node.start(await node.token());
  await node.register();
  await node.linked();

  const listed = async () => (await plane.client.call('listAgents', { query: {} })) as Agent[];
  while ((await listed()).length < agents.length) await sleep(20);
  const { id: root } = await plane.client.call('getMe', {});
  for (const [at, { id, name }] of agents.entries()) {
    await plane.until(id, ['running']);
    expect(await plane.get(id)).toMatchObject({
      name,
      owner_id: root,
      node_id: 'n1',
      session_count: 1,
      labels: { recovered: 'true' },
    });
    expect(await pidOf(plane, id)).toBe(pids[at]);
  }
  await writeFile(join(node.work, 'stop'), '');
  for (const [at, { id }] of agents.entries()) {
    expect((await plane.finished(id)).status).toBe('completed');
    expect((await plane.output(id)).toString()).toBe(`up ${at + 1}\nend ${at + 1}\n`);
    expect(await readFile(join(node.work, `pids-${at + 1}`), 'utf8')).toBe(`${pids[at]}\n`);
  }
  expect(await listed()).toHaveLength(agents.length);
});
