import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { History } from '../src/testing/history.ts';
import { TestPlane } from '../src/testing/plane.ts';

const writer = fileURLToPath(new URL('./agents/writer.mjs', import.meta.url));
const KILLS = 200;
/** Retention must not take what is compared at the end. */
const KEEP_ALL = { SVC_RETENTION_BYTES_PER_AGENT: String(64 * 1024 ** 3) };

let plane: TestPlane;
afterEach(() => plane?.close());

/** Repeatable moments from a seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Kind = readonly [name: string, pause_ms: string, size: string];
const QUIET: readonly Kind[] = [
  ['slow', '20', '10'],
  ['steady', '5', '80'],
  ['quick', '1', '40'],
];
const MIXED: readonly Kind[] = [...QUIET, ['long', '20', '2000']];
/** The last one writes so much that its log is sealed every few seconds. */
const LOUD: readonly Kind[] = [...QUIET, ['loud', '10', '4000']];

async function startWriters(
  kinds = MIXED,
): Promise<{ id: string; name: string; pid: number | null; history: History }[]> {
  return Promise.all(
    kinds.map(async ([name, ...pace]) => {
      const agent = await plane.agent([process.execPath, writer, name, ...pace]);
      const [session] = (await plane.client.call('listSessions', { params: { agent_id: agent.id } })) as {
        pid: number;
      }[];
      return { id: agent.id, name, pid: session!.pid, history: new History(plane.client, agent.id) };
    }),
  );
}

async function expectNothingLost(writers: Awaited<ReturnType<typeof startWriters>>): Promise<void> {
  await writeFile(join(plane.work, 'stop'), '');
  for (const { id, name, pid, history } of writers) {
    const agent = await plane.finished(id);
    expect(agent).toMatchObject({ status: 'completed', exit_code: 0, session_count: 1 });
    const [session] = (await plane.client.call('listSessions', { params: { agent_id: id } })) as {
      pid: number;
    }[];
    expect(session!.pid).toBe(pid);
    while (Number(history.events.at(-1)?.id ?? 0) < agent.last_seq) await sleep(20);
    await history.close();
    expect(history.flaw()).toBeNull();
    for (const stream of ['stdout', 'stderr'] as const) {
      const written = await readFile(join(plane.work, `${name}.${stream}`));
      expect(written.length).toBeGreaterThan(0);
      expect(written.equals(await plane.output(id, { stream }))).toBe(true);
      expect(written.equals(history.bytes(stream))).toBe(true);
    }
    const statuses = history.events
      .filter((frame) => frame.event === 'status')
      .map(({ data }) => data.status);
    expect(statuses).toEqual(['running', 'completed']);
  }
}

test(`${KILLS} kill -9 at random moments lose and double nothing of four writing agents`, {
  timeout: 600_000,
}, async () => {
  plane = await TestPlane.open({ env: KEEP_ALL });
  const writers = await startWriters();
  const next = random(20_261_120);
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(next() * 250);
    await plane.kill('SIGKILL');
    // Every tenth time the plane stays away for a while, so that spools grow without a reader.
    if (kill % 10 === 0) await sleep(next() * 400);
    await plane.start();
  }
  await expectNothingLost(writers);
});

test.each([
  ['commit', 20],
  ['committed', 20],
])('a plane that dies at its %s loses and doubles nothing', { timeout: 300_000 }, async (name, times) => {
  plane = await TestPlane.open({ env: KEEP_ALL });
  const writers = await startWriters();
  for (let n = 1; n <= times; n++) {
    await plane.kill('SIGKILL');
    // With the failpoint armed it dies while it starts or soon after; the start may not come to its end.
    await plane.start({ SVC_FAILPOINT: `${name}:kill@${n * 3}` }).catch(() => {});
    await plane.ended();
  }
  await plane.start();
  await expectNothingLost(writers);
});

test.each(['seal_written', 'seal_recorded'])(
  'a plane that dies while it seals a log (%s) loses and doubles nothing',
  { timeout: 300_000 },
  async (name) => {
    plane = await TestPlane.open({ env: KEEP_ALL });
    const writers = await startWriters(LOUD);
    for (let n = 0; n < 3; n++) {
      await plane.kill('SIGKILL');
      await plane.start({ SVC_FAILPOINT: `${name}:kill` }).catch(() => {});
      await plane.ended();
    }
    await plane.start();
    await expectNothingLost(writers);
  },
);

test.each(['claim', 'spawn', 'handle'])(
  'a plane that dies at a start (%s) leaves one process or none, and the next plane settles it',
  { timeout: 120_000 },
  async (name) => {
    plane = await TestPlane.open({ env: KEEP_ALL });
    const writers = await startWriters();
    const agent = await plane.agent(`echo $$ >>pids; while [ ! -e stop ]; do sleep 0.05; done`, {
      start: false,
    });
    await plane.kill('SIGTERM');
    await plane.start({ SVC_FAILPOINT: `${name}:kill` });
    await plane.client.call('startAgent', { params: { agent_id: agent.id } }).catch(() => {});
    await plane.ended();
    await plane.start();
    const after = await plane.until(agent.id, ['running', 'failed']);
    if (after.status === 'failed') {
      expect(after.reason).toBe('spawn_failed');
      await plane.client.call('startAgent', { params: { agent_id: agent.id } });
    }
    while ((await plane.get(agent.id)).status === 'running' && (await readPids()) === 0) await sleep(20);
    expect(await readPids()).toBe(1);
    await writeFile(join(plane.work, 'stop'), '');
    expect((await plane.finished(agent.id)).status).toBe('completed');
    await expectNothingLost(writers);
  },
);

async function readPids(): Promise<number> {
  const text = await readFile(join(plane.work, 'pids'), 'utf8').catch(() => '');
  return text.split('\n').filter(Boolean).length;
}

test.each(['exit', 'ended'])(
  'a plane that dies when an agent ends (%s) tells the end after its next start',
  { timeout: 120_000 },
  async (name) => {
    plane = await TestPlane.open({ env: KEEP_ALL });
    const writers = await startWriters();
    const agent = await plane.agent('while [ ! -e stop ]; do sleep 0.05; done; echo last words; exit 7');
    await plane.kill('SIGTERM');
    await plane.start({ SVC_FAILPOINT: `${name}:kill` });
    await writeFile(join(plane.work, 'stop'), '');
    await plane.ended();
    await plane.start();
    expect(await plane.finished(agent.id)).toMatchObject({
      status: 'failed',
      exit_code: 7,
      reason: 'exit_code',
    });
    expect((await plane.output(agent.id)).toString()).toBe('last words\n');
    await expectNothingLost(writers);
  },
);
