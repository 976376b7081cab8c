import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { Agent } from '../src/features/agents/rules.ts';
import { History } from '../src/testing/history.ts';
import { is_long, longTest } from '../src/testing/long.ts';
import { SVC, TestPlane } from '../src/testing/plane.ts';
import { closeUnlessShared, sharedPlane } from '../src/testing/shared-plane.ts';

const MIB = 1024 * 1024;
const LINUX = process.platform === 'linux';
const ROOT_USER = process.getuid?.() === 0;

let plane: TestPlane;
const share = sharedPlane();
afterEach(() => closeUnlessShared(plane));

const list = async () => (await plane.client.call('listAgents')) as Agent[];

/** Peak resident memory of the service, bytes. */
function peak(): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${plane.pid}/status`, 'utf8'))![1]) * 1024;
}

async function digest(agent_id: string): Promise<{ bytes: number; sha256: string }> {
  const response = await plane.client.open('getOutput', {
    params: { agent_id },
    query: { stream: 'stdout' },
  });
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of response.body!) {
    bytes += chunk.length;
    hash.update(chunk);
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** To test a line of 1 GiB: `SVC_TEST_LINE_MIB=1024 npx vitest run test/faults.test.ts`. */
const LINE_MIB = Number(process.env.SVC_TEST_LINE_MIB ?? (is_long ? 384 : 96));

test.runIf(LINUX)(
  'a very long line without a newline is stored without loss, and memory stays flat',
  { timeout: 300_000 },
  async () => {
    plane = await TestPlane.open({ env: { SVC_RETENTION_BYTES_PER_AGENT: String(8192 * MIB) } });
    const line = (mib: number) => plane.agent(`head -c ${mib * MIB} /dev/zero | tr '\\0' x`);
    const idle = peak();
    // Warms up code that is loaded on demand, caches, and buffers that are waiting for garbage collection.
    for (let n = 0; n < 3; n++) await plane.finished((await line(LINE_MIB / 4)).id);
    const warm = peak();
    const agent = await line(LINE_MIB);
    expect((await plane.finished(agent.id)).status).toBe('completed');
    const [grown, grown_in_all] = [peak() - warm, peak() - idle];
    const hash = createHash('sha256');
    const piece = Buffer.alloc(MIB, 'x');
    for (let n = 0; n < LINE_MIB; n++) hash.update(piece);
    expect(await digest(agent.id)).toEqual({ bytes: LINE_MIB * MIB, sha256: hash.digest('hex') });
    expect(grown).toBeLessThan(64 * MIB);
    expect(grown_in_all).toBeLessThan(256 * MIB);
  },
);

longTest('ten million empty lines are stored without loss', { timeout: 300_000 }, async () => {
  plane = await share();
  const agent = await plane.agent(`yes '' | head -n 10000000`);
  expect((await plane.finished(agent.id)).status).toBe('completed');
  const sha256 = createHash('sha256').update(Buffer.alloc(10_000_000, '\n')).digest('hex');
  expect(await digest(agent.id)).toEqual({ bytes: 10_000_000, sha256 });
});

test('binary data, NUL and characters split by a flush are stored unchanged', async () => {
  plane = await share();
  const script = String.raw`
    printf 'caf\303'; sleep 0.2; printf '\251 \342'; sleep 0.2; printf '\202'; sleep 0.2; printf '\254\n'
    printf 'nul \000 here\n'; printf '\377\376 broken\n'; printf 'good\n\300\200\n'; printf 'cut at the end \360\237'`;
  const agent = await plane.agent(script);
  const { last_seq } = await plane.finished(agent.id);
  const history = new History(plane.client, agent.id);
  while (history.events.length < last_seq) await sleep(20);
  await history.close();
  const expected = Buffer.concat([
    Buffer.from('café €\nnul \0 here\n'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from(' broken\ngood\n'),
    Buffer.from([0xc0, 0x80, 0x0a]),
    Buffer.from('cut at the end '),
    Buffer.from([0xf0, 0x9f]),
  ]);
  expect(history.bytes('stdout').equals(expected)).toBe(true);
  expect((await plane.output(agent.id)).equals(expected)).toBe(true);
  const texts = history.events
    .filter(({ data }) => data.type === 'output' && !data.encoding)
    .map(({ data }) => data.data);
  expect(texts.join('')).toContain('nul \0 here\n');
  expect(texts.join('')).not.toContain('\ufffd');
});

longTest('three hundred concurrent agents survive a kill of the plane', { timeout: 300_000 }, async () => {
  plane = await TestPlane.open();
  const agents = await Promise.all(
    Array.from({ length: 300 }, (_, n) => plane.agent(`echo up ${n}; exec sleep 600`, { name: `a${n}` })),
  );
  expect(agents.every(({ status }) => status === 'running')).toBe(true);
  await plane.kill();
  await plane.start();
  const after = await list();
  expect(after.filter(({ status }) => status === 'running')).toHaveLength(300);
  await Promise.all(
    agents.map(async ({ id, name }) => {
      while ((await plane.output(id)).length === 0) await sleep(50);
      expect((await plane.output(id)).toString()).toBe(`up ${name.slice(1)}\n`);
    }),
  );
  const stopped = await Promise.all(
    agents.map(({ id }) =>
      plane.client.call('stopAgent', { params: { agent_id: id }, body: { grace_seconds: 5 } }),
    ),
  );
  expect(stopped.every(({ status }) => status === 'cancelled')).toBe(true);
});

longTest(
  'clients that never read neither slow down an agent nor fill memory',
  { timeout: 300_000 },
  async () => {
    plane = await TestPlane.open();
    const agent = await plane.create({ command: `head -c ${200 * MIB} /dev/zero | tr '\\0' y | fold -w 99` });
    const sockets = Array.from({ length: 30 }, () => {
      const socket = connect(Number(new URL(plane.url).port), '127.0.0.1');
      socket.on('error', () => {});
      socket.write(
        `GET /api/agents/${agent.id}/events HTTP/1.1\r\nHost: ${new URL(plane.url).host}\r\nAuthorization: Bearer ${plane.token}\r\n\r\n`,
      );
      return socket.pause();
    });
    const before = LINUX ? peak() : 0;
    await plane.client.call('startAgent', { params: { agent_id: agent.id } });
    expect((await plane.finished(agent.id)).status).toBe('completed');
    if (LINUX) expect(peak() - before).toBeLessThan(200 * MIB);
    for (const socket of sockets) socket.destroy();
  },
);

const disk = test.runIf(LINUX && ROOT_USER);

/** A data directory on a file system of 64 MiB, and the path of a file to fill it with. */
async function smallDisk(): Promise<{ data_dir: string; ballast: string; unmount: () => Promise<void> }> {
  const data_dir = await mkdtemp(join(tmpdir(), 'svc-small-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=0700', 'svc-test', data_dir]);
  return {
    data_dir,
    ballast: join(data_dir, 'ballast'),
    unmount: async () => {
      execFileSync('umount', ['-l', data_dir]);
      await rm(data_dir, { recursive: true, force: true });
    },
  };
}

async function fill(path: string, leave_bytes: number): Promise<void> {
  const free = Number(
    execFileSync('df', ['--output=avail', '-B1', join(path, '..')], { encoding: 'utf8' }).split('\n')[1],
  );
  await writeFile(path, Buffer.alloc(Math.max(0, free - leave_bytes)));
}

const LINES = 60_000;
const numbered = `i=0; while [ ! -e go ]; do sleep 0.05; done; seq -f 'line %.0f of some words to fill the disk with' 1 ${LINES}`;

async function expectAllLines(agent_id: string): Promise<void> {
  expect((await plane.finished(agent_id)).status).toBe('completed');
  const lines = (await plane.output(agent_id, { stream: 'stdout' })).toString().split('\n');
  expect(lines.pop()).toBe('');
  expect(lines).toHaveLength(LINES);
  expect(lines.every((line, n) => line === `line ${n + 1} of some words to fill the disk with`)).toBe(true);
}

disk(
  'a full disk pauses output with a warning and refuses starts, and no line is lost',
  { timeout: 300_000 },
  async () => {
    const small = await smallDisk();
    try {
      plane = await TestPlane.open({ data_dir: small.data_dir });
      const agent = await plane.agent(numbered);
      await fill(small.ballast, 3 * MIB);
      await writeFile(join(plane.work, 'go'), '');
      const codes = async () =>
        (
          (await plane.client.call('getLog', {
            params: { agent_id: agent.id },
            query: { type: 'error' as never },
          })) as { code?: string }[]
        ).map(({ code }) => code);
      const other = await plane.create({ command: 'true', name: 'other' }).catch(() => null);
      while (!existsSync(join(small.data_dir, 'sessions/.paused'))) await sleep(50);
      // The full disk may keep the plane from storing the warning. In that case, it stores it later.
      const until = performance.now() + 10_000;
      while (!(await codes()).includes('output_paused') && performance.now() < until) await sleep(50);
      if (other) {
        const start = plane.client.call('startAgent', { params: { agent_id: other.id } });
        await expect(start).rejects.toThrow('not enough disk space');
      }
      expect((await plane.get(agent.id)).status).toBe('running');
      await rm(small.ballast);
      await expectAllLines(agent.id);
      expect(await codes()).toContain('output_paused');
    } finally {
      await plane.close();
      await small.unmount();
    }
  },
);

disk('a disk that fills while the plane is down loses no line', { timeout: 300_000 }, async () => {
  const small = await smallDisk();
  try {
    plane = await TestPlane.open({ data_dir: small.data_dir });
    const agent = await plane.agent(numbered);
    await plane.kill();
    await fill(small.ballast, 2 * MIB);
    await writeFile(join(plane.work, 'go'), '');
    await sleep(4000);
    const spool = join(small.data_dir, 'sessions', agent.session_id!, 'out');
    expect((await stat(spool)).size).toBeLessThan(2.5 * MIB);
    await rm(small.ballast);
    await plane.start();
    await expectAllLines(agent.id);
  } finally {
    await plane.close();
    await small.unmount();
  }
});

test('a corrupt database is refused with a hint to svc restore, and agents keep running', async () => {
  plane = await TestPlane.open();
  const agent = await plane.agent('while [ ! -e stop ]; do sleep 0.05; done');
  // Write everything into the main database file, then end uncleanly.
  await plane.kill('SIGTERM');
  await plane.start();
  await plane.kill('SIGKILL');
  const database = await open(join(plane.data_dir, 'svc.db'), 'r+');
  const { size } = await database.stat();
  const garbage = Buffer.alloc(4096, 0xa5);
  for (let at = 4096; at < size; at += 8192) await database.write(garbage, 0, garbage.length, at);
  await database.close();
  await expect(plane.start()).rejects.toThrow(/damaged.*svc restore/s);
  const pid = Number(
    /^main (\d+)/m.exec(
      await readFile(join(plane.data_dir, 'sessions', agent.session_id!, 'handle'), 'utf8'),
    )![1],
  );
  expect(() => process.kill(pid, 0)).not.toThrow();
  await writeFile(join(plane.work, 'stop'), '');
});

test('after the database is deleted, running agents are found again exactly once', async () => {
  plane = await TestPlane.open();
  const agent = await plane.agent(
    'echo $$ >>pids; echo before; while [ ! -e stop ]; do sleep 0.05; done; echo after; exit 4',
    { name: 'survivor' },
  );
  while ((await plane.output(agent.id)).length === 0) await sleep(20);
  await plane.kill();
  for (const name of ['svc.db', 'svc.db-wal', 'svc.db-shm', 'svc.db-boot', 'search.db']) {
    await rm(join(plane.data_dir, name), { force: true });
  }
  await plane.start();
  await plane.join();
  const [found] = await list();
  expect(found).toMatchObject({
    id: agent.id,
    name: 'survivor',
    status: 'running',
    labels: { recovered: 'true' },
  });
  await writeFile(join(plane.work, 'stop'), '');
  expect(await plane.finished(agent.id)).toMatchObject({ status: 'failed', exit_code: 4 });
  expect((await plane.output(agent.id)).toString()).toBe('before\nafter\n');
  expect((await readFile(join(plane.work, 'pids'), 'utf8')).trim().split('\n')).toHaveLength(1);
});

test('a restore under running agents reuses no event number and reads output since the backup again', async () => {
  plane = await share();
  const agent = await plane.agent(
    'echo one; while [ ! -e two ]; do sleep 0.05; done; echo two; while [ ! -e stop ]; do sleep 0.05; done; echo three',
  );
  while (!(await plane.output(agent.id)).includes('one')) await sleep(20);
  const file = join(plane.folder, 'backup.tar');
  expect(await plane.cli(['backup', file])).toMatchObject({ code: 0 });
  await writeFile(join(plane.work, 'two'), '');
  while (!(await plane.output(agent.id)).includes('two')) await sleep(20);
  const { last_seq } = await plane.get(agent.id);
  await plane.kill('SIGTERM');
  expect(await plane.cli(['restore', file])).toMatchObject({ code: 0 });
  await plane.start();
  await writeFile(join(plane.work, 'stop'), '');
  const after = await plane.finished(agent.id);
  expect((await plane.output(agent.id)).toString()).toBe('one\ntwo\nthree\n');
  expect(after.last_seq).toBeGreaterThan(last_seq);
  const events = (await plane.client.call('getLog', {
    params: { agent_id: agent.id },
    query: { type: 'error' as never },
  })) as { code?: unknown }[];
  expect(events.map(({ code }) => code)).toContain('log_gap');
  // A follower receives the gap once, from the event after it.
  const frames = await plane.frames(agent.id, (seen) => Number(seen.at(-1)?.id) === after.last_seq);
  const codes = frames.flatMap(({ event, data }) => (event === 'error' ? [data.code] : []));
  expect(codes).toEqual(['log_gap']);
});

longTest(
  'after a restore, an agent that received input since the backup accepts no more until it is restarted',
  async () => {
    plane = await TestPlane.open();
    const reader = await plane.agent('while read -r line; do echo "got $line"; done', { stdin: true });
    const params = { agent_id: reader.id };
    const input = (data: string) => plane.client.call('sendInput', { params, body: { data } });
    await input('one\n');
    const argv = [SVC, 'demo-agent', '--speed', '0', '--state', join(plane.folder, 'demo')];
    const speaker = await plane.agent(argv, { protocol: 'acp' });
    const speaking = { params: { agent_id: speaker.id } };
    while ((await plane.get(speaker.id)).activity !== 'idle') await sleep(20);
    const file = join(plane.folder, 'backup.tar');
    expect(await plane.cli(['backup', file])).toMatchObject({ code: 0 });
    await input('two\n');
    await plane.client.call('promptAgent', { ...speaking, body: { text: 'hello' } });
    while (!(await plane.output(reader.id)).includes('got two')) await sleep(20);
    while ((await plane.get(speaker.id)).pending_reviews === 0) await sleep(20);
    await plane.kill('SIGTERM');
    expect(await plane.cli(['restore', file])).toMatchObject({ code: 0 });
    await plane.start();

    const lost = /input state was lost in a restore/;
    await expect(input('three\n')).rejects.toThrow(lost);
    await expect(plane.client.call('promptAgent', { ...speaking, body: { text: 'again' } })).rejects.toThrow(
      lost,
    );
    const [review] = (await plane.client.call('listReviews', {})) as { id: string }[];
    const answer = { params: { review_id: review!.id }, body: { decision: 'allow' as const } };
    await expect(plane.client.call('respondReview', answer)).rejects.toThrow(lost);

    for (const { id } of [reader, speaker]) {
      await plane.client.call('restartAgent', { params: { agent_id: id }, body: { grace_seconds: 0 } });
    }
    await input('four\n');
    while (!(await plane.output(reader.id)).includes('got four')) await sleep(20);
    while ((await plane.get(speaker.id)).activity !== 'idle') await sleep(20);
    await plane.client.call('promptAgent', { ...speaking, body: { text: 'again' } });
    while ((await plane.get(speaker.id)).pending_reviews === 0) await sleep(20);
  },
);

test('a session whose folder was removed is reported as lost after a restart', async () => {
  plane = await share();
  const agent = await plane.agent('exec sleep 300');
  await plane.client.call('stopAgent', { params: { agent_id: agent.id }, body: { grace_seconds: 0 } });
  await plane.client.call('startAgent', { params: { agent_id: agent.id } });
  const { session_id } = await plane.get(agent.id);
  const folder = join(plane.data_dir, 'sessions', session_id!);
  const pid = Number(/^main (\d+)/m.exec(await readFile(join(folder, 'handle'), 'utf8'))![1]);
  await plane.kill();
  await rm(folder, { recursive: true, force: true });
  await plane.start();
  expect(await plane.get(agent.id)).toMatchObject({ status: 'failed', reason: 'session_lost' });
  if (existsSync(`/proc/${pid}`) || !LINUX) process.kill(pid, 'SIGKILL');
  await mkdir(folder, { recursive: true });
});
