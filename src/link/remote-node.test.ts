/** What the plane's end of a link tells a node of itself. */
import { expect, test } from 'vitest';
import { Wake } from '../base/async.ts';
import { systemClock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { StreamSizes } from '../domain/session.ts';
import { openTestDoor, remoteNode } from '../testing/remote-node.ts';

test('what is committed is told when it lets the node do something', async () => {
  const told: [session_id: string, stdout: number, fact: number][] = [];
  const wake = new Wake();
  const local = {
    id: 'main',
    attach: async () => {},
    detach: async () => {},
    committed: (session_id: string, { stdout }: StreamSizes, fact: number) => {
      told.push([session_id, stdout, fact]);
      wake.notify();
    },
  };
  const door = await openTestDoor(local as never);
  const plane = remoteNode(() => door.port);
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
      while (told.at(-1)?.[0] !== `ses_${n}`) await wake.wait();
    }
    expect(told.filter(([session_id]) => session_id === 'ses_a')).toEqual([
      ['ses_a', 5, 1],
      ['ses_a', far + 5, 1],
      ['ses_a', far + 6, 2],
    ]);
  } finally {
    await plane.detach();
    await door.close();
  }
});

const DISK = { path: '/', free_bytes: 1, total_bytes: 1, starts_allowed: true };

test('a node refuses a stop that lay on the way for too long, and takes the next by its own clock', async () => {
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
  const door = await openTestDoor(local as never, { clock });
  const plane = remoteNode(() => door.port);
  try {
    await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
    await plane.health();
    await plane.stop('ses_a', 0);
    // As much time passes on the node, and none here, as while it is suspended.
    ahead_ms = limits.node_answer_ms * 1_000;
    await expect(plane.stop('ses_b', 0)).rejects.toMatchObject({ kind: 'bad_gateway' });
    expect(stopped).toEqual(['ses_a']);
    await plane.stop('ses_c', 0);
    expect(stopped).toEqual(['ses_a', 'ses_c']);
  } finally {
    await plane.detach();
    await door.close();
  }
});
