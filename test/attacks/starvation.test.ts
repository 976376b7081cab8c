/**
 * How one user's agent can slow down others without breaking a rule: in each test, Bob does his work while Alice blocks
 * something that they share.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Client } from '../../src/client/client.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import { AttackFixture, type Confined, confinementMissing } from '../../src/testing/attack-fixture.ts';
import { firstOf, is_long } from '../../src/testing/long.ts';
import { makeRepository } from '../../src/testing/repository.ts';

const possible: (Confined & { name: string })[] = [
  { name: 'run_as and sandbox', run_as: true, sandbox: true, remote: false },
  { name: 'run_as, on a node', run_as: true, sandbox: false, remote: true },
  { name: 'no confinement', run_as: false, sandbox: false, remote: false },
].filter((mode) => confinementMissing(mode) === null);

function worktree(fixture: AttackFixture, user: Client, repo: string): Promise<Agent> {
  return user.call('createAgent', {
    body: {
      ...{ name: 'worker', node_id: fixture.node_id, command: 'true', start: false },
      ...{ worktree_mode: 'create_worktree', worktree_repo: repo },
    },
  });
}

test.each(firstOf(1, possible))(
  "FIFOs in Alice's folders do not delay Bob's work: $name",
  async (mode) => {
    const fixture = await AttackFixture.open(mode);
    try {
      const repo = makeRepository(join(fixture.repos, 'shared'), { 'a.txt': 'one\n' });
      fixture.own(repo);
      const bobs = await worktree(fixture, fixture.bob, repo);
      const hogs: string[] = [];
      for (let n = 0; n < 6; n++) {
        const workdir = await fixture.folder(`hog-${n}`);
        // Git reads it first, and waits for a writer.
        execFileSync('sh', ['-c', 'git init -q . && mkfifo .gitignore'], { cwd: workdir });
        fixture.own(workdir);
        hogs.push((await fixture.start('true', { workdir })).id);
      }
      let held = 0;
      const requests = hogs.flatMap((agent_id) =>
        ['a', 'b', 'c', 'd'].map(async (q) => {
          held++;
          await fixture.alice.call('findFiles', { params: { agent_id }, query: { q } }).catch(() => {});
          held--;
        }),
      );
      // At least one of Alice's requests is in progress when Bob's arrive.
      await expect.poll(() => gitsWaiting(fixture.work)).toBeGreaterThan(0);

      const params = { agent_id: bobs.id };
      expect((await fixture.bob.call('findFiles', { params, query: { q: 'a' } })).paths).toEqual(['a.txt']);
      expect((await fixture.bob.call('getChanges', { params })).files).toEqual([]);
      const another = await worktree(fixture, fixture.bob, repo);
      await fixture.bob.call('deleteAgent', {
        params: { agent_id: another.id },
        query: { delete_worktree: true },
      });
      // All of that happened while most of Alice's requests were still waiting.
      expect(held).toBeGreaterThan(requests.length / 2);
    } finally {
      await fixture.close();
    }
  },
  90_000,
);

/** The environment of the tests that can share it. */
let open: Promise<AttackFixture> | undefined;
afterAll(async () => (await open)?.close());
function unconfined(): Promise<AttackFixture> {
  open ??= AttackFixture.open({ run_as: false, sandbox: false, remote: false });
  return open;
}

test("clients of Alice that do not read their patch do not delay Bob's", async () => {
  const fixture = await unconfined();
  const sockets: ReturnType<typeof connect>[] = [];
  try {
    const repo = makeRepository(join(fixture.repos, 'shared'), { 'a.txt': 'one\n' });
    const [hers, bobs] = [
      await worktree(fixture, fixture.alice, repo),
      await worktree(fixture, fixture.bob, repo),
    ];
    // More than fits into the system's buffers.
    writeFileSync(join(hers.workdir, 'large.txt'), `${'x'.repeat(99)}\n`.repeat(78_000));
    writeFileSync(join(bobs.workdir, 'small.txt'), 'two\n');
    const [alice, bob] = [await tokenOf(fixture, 'alice'), await tokenOf(fixture, 'bob')];
    const { hostname, port, host } = new URL(fixture.plane.url);
    const path = (agent: Agent) => `/api/agents/${agent.id}/changes`;
    let begun = 0;
    let closed = 0;
    for (let n = 0; n < 8; n++) {
      const socket = connect({ host: hostname, port: Number(port) });
      sockets.push(socket);
      socket.on('error', () => {});
      socket.once('close', () => closed++);
      socket.once('readable', () => {
        if (socket.read(12)?.toString() === 'HTTP/1.1 200') begun++;
      });
      socket.write(
        `GET ${path(hers)} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${alice}\r\nAccept: text/x-diff\r\n\r\n`,
      );
    }
    await expect.poll(() => begun, { timeout: 30_000 }).toBeGreaterThan(1);
    const patch = await fetch(`${fixture.plane.url}${path(bobs)}`, {
      headers: { authorization: `Bearer ${bob}`, accept: 'text/x-diff' },
    });
    expect(await patch.text()).toContain('+two');
    expect(closed).toBe(0);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}, 90_000);

async function tokenOf(fixture: AttackFixture, username: string): Promise<string> {
  const body = { username, password: `a long password of ${username}` };
  return (await new Client({ url: fixture.plane.url, token: null }).call('login', { body })).token;
}

/** The number of git processes that have a folder of Alice's agents open. */
function gitsWaiting(work: string): number {
  const script =
    'for p in /proc/[0-9]*; do c=$(readlink $p/cwd) && echo "$(cat $p/comm) $c"; done 2>/dev/null';
  const lines = execFileSync('sh', ['-c', `${script}; true`], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => line.startsWith(`git ${work}/hog-`)).length;
}

test("worktrees that Alice queues in a shared repository do not delay Bob's", async () => {
  const fixture = await unconfined();
  const repo = makeRepository(join(fixture.repos, 'queued'), { 'a.txt': 'one\n' });
  const queued = is_long ? 40 : 24;
  let waiting = queued;
  const requests = Array.from({ length: waiting }, () =>
    worktree(fixture, fixture.alice, repo).finally(() => waiting--),
  );
  await expect.poll(() => waiting, { timeout: 30_000 }).toBeLessThan(queued);
  await worktree(fixture, fixture.bob, repo);
  expect(waiting).toBeGreaterThan(queued / 2);
  await Promise.all(requests);
});

test("permission requests that Alice's agent withdraws at once do not delay Bob's work, or its own end", async () => {
  const fixture = await unconfined();
  const params = { sessionId: 's', toolCall: { toolCallId: 'c' }, options: [] as object[] };
  params.options.push({ optionId: 'a', name: 'A', kind: 'allow_once' });
  const line = (message: object) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
  const pairs = Array.from({ length: 25_000 }, (_, id) => [
    line({ id, method: 'session/request_permission', params }),
    line({ method: '$/cancel_request', params: { requestId: id } }),
  ]);
  const file = join(fixture.work, 'pairs.txt');
  writeFileSync(file, pairs.flat().join(''));
  const { id } = await fixture.alice.call('createAgent', {
    body: {
      ...{ name: 'attacker', node_id: fixture.node_id, workdir: fixture.work, protocol: 'acp', start: true },
      command: `cat ${file}; exec sleep 600`,
    },
  });
  const reviews = () => fixture.alice.call('listReviews', { query: { agent_id: id } });
  await expect.poll(reviews).not.toEqual([]);

  const begun = performance.now();
  const body = { name: 'worker', node_id: fixture.node_id, workdir: fixture.work, command: 'sleep 600' };
  const bobs = await fixture.bob.call('createAgent', { body });
  await fixture.bob.call('startAgent', { params: { agent_id: bobs.id } });
  await fixture.bob.call('stopAgent', { params: { agent_id: bobs.id } });
  // It took twice as long while one transaction handled hundreds of requests, and usually takes a tenth of a second.
  expect(performance.now() - begun).toBeLessThan(4_000);
  // Before it answers, everything that the agent has written is read: otherwise, that would take minutes.
  const stopped = await fixture.alice.call('stopAgent', { params: { agent_id: id } });
  expect(stopped.status).toBe('cancelled');
}, 90_000);
