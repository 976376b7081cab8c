/**
 * Bad networks between a plane and a node: cut connections, delays, and low bandwidth. Every byte arrives once and in order,
 * and every start runs one process.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import type { NetworkConditions } from '../src/testing/flaky-proxy.ts';
import { requesterOf } from '../src/testing/http.ts';
import { firstOf } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { expectNothingLost, random, startWriters } from '../src/testing/writers.ts';

const ENV = { ...WITH_NODES, SVC_RETENTION_BYTES_PER_AGENT: String(64 * 1024 ** 3) };

let plane: TestPlane;
let node: TestAgentNode;
afterEach(async () => {
  await node?.close();
  await plane?.close();
});

const request = requesterOf(() => plane);

const next = random(20_261_122);
/** One cut in four is within a handshake or hello. */
const cuts = { cut_after_bytes: () => Math.floor(next() * (next() < 0.25 ? 12_000 : 1_500_000)) };
/** Approximates a TCP connection that loses a third of its packets and reorders others. */
const lossy = { delay_ms: () => next() * 30 + (next() < 0.3 ? 200 : 0) };
const trickle = { bytes_per_second: 100_000 };

const links: readonly [name: string, weather: Partial<NetworkConditions>, ms: number][] = [
  ['cut after random numbers of bytes', cuts, 8_000],
  ['delayed, with a third of all chunks late', lossy, 4_000],
  ['as slow as a modem', trickle, 3_000],
];

test.each(firstOf(1, links))(
  'a link that is %s neither loses nor repeats anything',
  { timeout: 120_000 },
  async (_name, weather, ms) => {
    plane = await TestPlane.open({ env: ENV });
    node = await TestAgentNode.open(plane, { proxied: true });
    const writers = await startWriters(plane, node);
    const cat = await node.agent('cat >typed', { stdin: true });

    node.proxy!.conditions = { ...node.proxy!.conditions, ...weather };
    if (weather.cut_after_bytes) node.proxy!.cut();
    const until = performance.now() + ms;
    const creating: Promise<unknown>[] = [];
    let typed = '';
    const create = (name: string) =>
      request('POST', '/api/agents', {
        name,
        command: `echo $$ >>ran-$SVC_AGENT_ID; sleep ${(next() * 0.2).toFixed(2)}; echo done`,
        workdir: node.work,
        node_id: node.id,
        start: true,
      });
    const fewCuts = () => weather.cut_after_bytes !== undefined && node.proxy!.cuts <= 5;
    for (let n = 0; performance.now() < until || fewCuts(); n++) {
      const line = `${n} ${'x'.repeat(Math.floor(next() * 5_000))}\n`;
      typed += line;
      const type = () => request('POST', `/api/agents/${cat.id}/input`, { data: line }, { key: `line-${n}` });
      while ((await type()).status !== 200) await sleep(20);
      creating.push(create(`short ${n}`));
      await sleep(next() * 300);
    }
    node.proxy!.reset();
    if (weather.cut_after_bytes) node.proxy!.cut();

    await Promise.all(creating);
    // On a slow machine, no link may have lasted long enough to create an agent, and the one that does may end.
    while ((await create('short last')).status !== 201) await sleep(20);
    const end = () =>
      request('POST', `/api/agents/${cat.id}/input`, { data: '', eof: true }, { key: 'line-end' });
    while ((await end()).status !== 200) await sleep(20);
    expect((await plane.finished(cat.id)).status).toBe('completed');
    expect((await readFile(join(node.work, 'typed'), 'utf8')) === typed).toBe(true);
    await expectNothingLost(plane, node, writers);
    const agents = (await plane.client.call('listAgents', { query: {} })) as { id: string; name: string }[];
    const short = agents.filter((agent) => agent.name.startsWith('short '));
    expect(short.length).toBeGreaterThan(0);
    for (const { id } of short) {
      expect(await plane.finished(id)).toMatchObject({ status: 'completed', session_count: 1 });
      expect((await plane.output(id)).toString()).toBe('done\n');
      expect(await readFile(join(node.work, `ran-${id}`), 'utf8')).toMatch(/^\d+\n$/);
    }
    const ran = (await readdir(node.work)).filter((file) => file.startsWith('ran-'));
    expect(ran).toHaveLength(short.length);
  },
);
