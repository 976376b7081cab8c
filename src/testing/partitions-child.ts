/** The child process of `partitionPlanes`: does everything in its namespaces, and prints the partitions as JSON. */
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlaneRecord } from '../features/cluster/rules.ts';
import { TestAgentNode } from './agent-node.ts';
import { clusterEnv } from './cluster.ts';
import { retryWhileUnreachable } from './conversation.ts';
import { openPace } from './pace.ts';
import type { Partition } from './partitions.ts';
import { TestPlane } from './plane.ts';
import { TestServer } from './postgres-server.ts';
import { expectNothingLost, MIXED, startWriters } from './writers.ts';

/** Of PostgreSQL and this process, which has the clients. */
const HERE = '10.9.1.1';
const HOSTS = { a: '10.9.1.2', b: '10.9.1.3', node: '10.9.1.4' };

const ip = (args: string) => execFileSync('ip', args.split(' '));
/** Packets on a bridge that is down vanish, and the interfaces at the other ends stay up. */
const cut = (name: string) => ip(`link set dev ${name} master nowhere`);
const restore = (name: string) => ip(`link set dev ${name} master switch`);

ip('link add name switch type bridge');
ip(`addr add ${HERE}/24 dev switch`);
ip('link set switch up');
ip('link add name nowhere type bridge');
for (const [name, host] of Object.entries(HOSTS)) {
  ip(`netns add ${name}`);
  ip(`link add name ${name} type veth peer name eth0 netns ${name}`);
  ip(`link set dev ${name} master switch up`);
  ip(`-n ${name} addr add ${host}/24 dev eth0`);
  ip(`-n ${name} link set eth0 up`);
  ip(`-n ${name} link set lo up`);
}

const opened: { close(): Promise<unknown> }[] = [];
const partitions: Partition[] = [];
try {
  const server = await TestServer.open({ settings: { listen_addresses: HERE }, clients: '10.9.1.0/24' });
  opened.push({ close: () => server.drop() });
  const a = await openPlane('a');
  await a.start();
  await a.join();
  const b = await openPlane('b');
  await mkdir(b.data_dir, { mode: 0o700 });
  await copyFile(join(a.data_dir, 'secret.key'), join(b.data_dir, 'secret.key'));
  await b.start();
  b.signInLike(a);
  const node = await TestAgentNode.open(a, { network: { netns: 'node', host: HOSTS.node } });
  opened.push(node);

  for (const [active, standby, kinds] of [
    [a, b, MIXED.slice(0, 2)],
    [b, a, MIXED.slice(2)],
  ] as const) {
    await node.token(standby);
    const writers = await startWriters(standby, node, kinds);
    partitions.push(await partition(active, standby, node));
    await expectNothingLost(standby, node, writers);
    await rm(join(node.work, 'stop'));
  }
} finally {
  for (const part of opened.toReversed()) await part.close();
}
console.log(JSON.stringify(partitions));
process.exit();

async function openPlane(name: 'a' | 'b'): Promise<TestPlane> {
  const host = HOSTS[name];
  const plane = await TestPlane.prepare({
    network: { netns: name, host },
    env: {
      ...clusterEnv(name, `postgres://svc@${HERE}:5432/postgres?sslmode=disable`),
      SVC_CLUSTER_LISTEN: `${host}:8090`,
      // The service does not listen without TLS otherwise.
      SVC_SERVER_BEHIND_PROXY: 'true',
    },
  });
  opened.push(plane);
  return plane;
}

async function partition(active: TestPlane, standby: TestPlane, node: TestAgentNode): Promise<Partition> {
  const [name, other] = [active.env.SVC_CLUSTER_NAME!, standby.env.SVC_CLUSTER_NAME!];
  const began = performance.now();
  cut(name);
  await until(standby, ([first]) => first?.name === other && first.state === 'active');
  const takeover_ms = performance.now() - began;
  const is_linked = async () => (await retryWhileUnreachable(() => node.record())).status === 'connected';
  for (const pace = openPace(); !(await is_linked()); ) await pace();
  const links = () => node.log.split('"message":"plane attached"').length;
  const links_before = links();
  restore(name);
  await active.ended();
  const exit_code = await active.kill();
  const last_line = active.log.trim().split('\n').at(-1)!;
  await active.start();
  await until(standby, (planes) => planes.some((plane) => plane.name === name && plane.state === 'standby'));
  return { name, takeover_ms, exit_code, last_line, later_links: links() - links_before };
}

async function until(plane: TestPlane, condition: (planes: PlaneRecord[]) => boolean): Promise<void> {
  for (const pace = openPace(); ; await pace()) {
    if (condition(await retryWhileUnreachable(() => plane.client.call('listPlanes', {})))) return;
  }
}
