/** The calls that the plane's end of a link sends to a node. */
import { expect, test } from 'vitest';
import { Wake } from '../../base/async.ts';
import { systemClock } from '../../base/clock.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { directLink, type Link, type NodeSink, type SessionFact } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import type { StreamSizes } from '../../core/session.ts';
import { openTestNodeServer, remoteNode } from '../../testing/remote-node.ts';
import { limits } from '../limits.ts';

test('sends an acknowledgement only for many bytes or a new fact', async () => {
  const acknowledged: [session_id: string, stdout: number, fact: number][] = [];
  const wake = new Wake();
  const local = {
    id: 'main',
    attach: async () => {},
    detach: async () => {},
    committed: (session_id: string, { stdout }: StreamSizes, fact: number) => {
      acknowledged.push([session_id, stdout, fact]);
      wake.notify();
    },
  };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  const committed = (session_id: string, stdout: number, fact: number) =>
    plane.committed(session_id, { stdout, stderr: 0 }, fact);
  const far = limits.link_committed_bytes;
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    for (const [n, stdout, fact] of [
      [1, 5, 1],
      [2, far + 4, 1],
      [3, far + 5, 1],
      [4, far + 6, 2],
    ] as const) {
      committed('ses_a', stdout, fact);
      committed(`ses_${n}`, 0, 1);
      while (acknowledged.at(-1)?.[0] !== `ses_${n}`) await wake.wait();
    }
    expect(acknowledged.filter(([session_id]) => session_id === 'ses_a')).toEqual([
      ['ses_a', 5, 1],
      ['ses_a', far + 5, 1],
      ['ses_a', far + 6, 2],
    ]);
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('passes its link on with the snapshot, and has none after that link was ended', async () => {
  const local = { id: 'main', attach: async () => {}, detach: async () => {} };
  const server = await openTestNodeServer(local as never);
  const reasons: Error[] = [];
  const plane = remoteNode(() => server.port, { onDown: (reason) => void reasons.push(reason) });
  const links: Link[] = [];
  const sink = {
    snapshot: async (_views: unknown, link: Link) => void links.push(link),
    fact: () => {},
    wake: () => {},
  };
  try {
    expect(plane.link).toBeNull();
    await plane.attach(sink);
    await plane.attach(sink);
    const [first, second] = links;
    expect(second!.position!.epoch).toBe(first!.position!.epoch + 1);
    expect(plane.link).toBe(second);
    first!.end();
    await plane.reach();
    second!.end();
    await expect.poll(() => reasons).toHaveLength(1);
    expect(plane.link).toBeNull();
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('measures the round trip of heartbeats, from the first one on, while there is a link', async () => {
  const local = { id: 'main', attach: async () => {}, detach: async () => {} };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  try {
    expect(plane.latencies_ms).toEqual([]);
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    await expect.poll(() => plane.latencies_ms).toHaveLength(1);
    expect(plane.latencies_ms[0]).toBeGreaterThan(0);
    await plane.detach();
    expect(plane.latencies_ms).toEqual([]);
  } finally {
    await plane.detach();
    await server.close();
  }
});

const DISK = { path: '/', free_bytes: 1, total_bytes: 1, starts_allowed: true };

test('a node rejects a stop that was delayed too long, and accepts the next one by its own clock', async () => {
  let ahead_ms = 0;
  const stopped: string[] = [];
  const local = {
    id: 'main',
    attach: async () => {},
    detach: async () => {},
    health: async () => ({ version: '', uptime_seconds: 0, sessions_live: 0, disk: DISK }),
    stop: async (session_id: string) => {
      stopped.push(session_id);
      return { cleanup: 'swept', survivors: [] };
    },
  };
  const clock = { ...systemClock, now: () => systemClock.now() + ahead_ms };
  const server = await openTestNodeServer(local as never, { clock });
  const plane = remoteNode(() => server.port);
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    await plane.health();
    await plane.stop('ses_a', 0);
    // Time passes on the node but not here, as after the plane's machine was suspended.
    ahead_ms = sharedLimits.node_answer_ms * 1_000;
    await expect(plane.stop('ses_b', 0)).rejects.toMatchObject({ kind: 'bad_gateway' });
    expect(stopped).toEqual(['ses_a']);
    await plane.stop('ses_c', 0);
    expect(stopped).toEqual(['ses_a', 'ses_c']);
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('if the node resolves only existing folders, the plane normalizes the path of a missing one', async () => {
  const folders = {
    resolve: async (path: string, { to_create = false } = {}) => {
      if (path === '/new')
        return { path: to_create ? '/real/new' : '/', below_worktree_root: true, claimed_by: null };
      // Behaves like a node of an earlier release, which does not read the field.
      throw problems.workdirMissing();
    },
  };
  const local = { id: 'main', attach: async () => {}, detach: async () => {}, folders };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    const at = (path: string) => plane.folders.resolve(path, { to_create: true });
    expect(await at('/new')).toEqual({ path: '/real/new', below_worktree_root: true, claimed_by: null });
    expect(await at('/trees/x//../missing/')).toEqual({
      path: '/trees/missing',
      below_worktree_root: false,
      claimed_by: null,
    });
    await expect(plane.folders.resolve('/trees/missing')).rejects.toThrow('workdir does not exist');
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('the plane tells a node whether it needs the remote of a branch', async () => {
  const changes = {
    git: true,
    branch: 'fix',
    base: null,
    head: null,
    remote: null,
    files: [],
    truncated: false,
  };
  const asked: unknown[] = [];
  const folders = {
    changes: async (request: object) => {
      asked.push(request);
      return changes;
    },
  };
  const local = { id: 'main', attach: async () => {}, detach: async () => {}, folders };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    await plane.folders.changes({ workdir: '/a', base: null, skip_remote: true });
    await plane.folders.changes({ workdir: '/b', base: null });
    expect(asked).toMatchObject([
      { workdir: '/a', skip_remote: true },
      { workdir: '/b', skip_remote: false },
    ]);
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('the remote of a branch is checked again here, and a node of an earlier release reports none', async () => {
  const changes = { git: true, branch: 'fix', base: null, head: null, files: [], truncated: false };
  const answers: Record<string, object> = {
    '/old': changes,
    '/none': { ...changes, remote: null },
    '/usual': { ...changes, remote: { name: 'origin', url: 'ssh://github.com/shop/cart', pushed: true } },
    '/local': { ...changes, remote: { name: 'origin', url: null, pushed: false } },
    '/secret': { ...changes, remote: { name: 'origin', url: 'https://a:b@github.com/x?c=d', pushed: false } },
    '/script': { ...changes, remote: { name: 'origin', url: 'javascript://x/%0aalert(1)', pushed: true } },
    '/option': { ...changes, remote: { name: '--mirror', url: null, pushed: false } },
  };
  const folders = { changes: async ({ workdir }: { workdir: string }) => answers[workdir] };
  const local = { id: 'main', attach: async () => {}, detach: async () => {}, folders };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    const at = async (workdir: string) => (await plane.folders.changes({ workdir, base: null })).remote;
    expect(await at('/old')).toBeNull();
    expect(await at('/none')).toBeNull();
    expect(await at('/usual')).toEqual({ name: 'origin', url: 'ssh://github.com/shop/cart', pushed: true });
    expect(await at('/local')).toEqual({ name: 'origin', url: null, pushed: false });
    expect(await at('/secret')).toEqual({ name: 'origin', url: 'https://github.com/x', pushed: false });
    expect(await at('/script')).toEqual({ name: 'origin', url: null, pushed: true });
    expect(await at('/option')).toBeNull();
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('passes on the ids of all sessions that the node cannot read, and then their facts', async () => {
  const ids = Array.from({ length: 2 * limits.link_page_sessions + 1 }, (_, n) => `ses_${n}`);
  let node_side: NodeSink | null = null;
  const local = {
    id: 'main',
    attach: async (sink: NodeSink) => {
      node_side = sink;
      await sink.snapshot([], directLink('main'), ids);
    },
    detach: async () => {},
  };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  const fact = Promise.withResolvers<SessionFact>();
  let unreadable: readonly string[] = [];
  try {
    await plane.attach({
      snapshot: async (_views, _link, found) => {
        unreadable = found;
      },
      fact: fact.resolve,
      wake: () => {},
    });
    expect(unreadable).toEqual(ids);
    const started = { kind: 'started', pid: 1, started_at_ms: 1 } as const;
    node_side!.fact({ session_id: 'ses_0', number: 1, at_ms: 1, body: started });
    expect(await fact.promise).toMatchObject({ session_id: 'ses_0', body: started });
  } finally {
    await plane.detach();
    await server.close();
  }
});

test('an unexpected error of the node, or of the plane, does not look like a lost link', async () => {
  const folders = {
    files: async () => {
      throw new TypeError('x is not a function');
    },
  };
  const local = { id: 'main', attach: async () => {}, detach: async () => {}, folders };
  const server = await openTestNodeServer(local as never);
  const plane = remoteNode(() => server.port);
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    await expect(plane.folders.files('/a', 'x')).rejects.toMatchObject({
      code: 'node_failed',
      message: 'unexpected error of the node; see its log',
    });
    await expect(plane.input('ses_1', 0.5, new Uint8Array(), false)).rejects.toThrow(RangeError);
    expect(plane.link).not.toBeNull();
  } finally {
    await plane.detach();
    await server.close();
  }
});
