import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openTestNode } from '../src/testing/local-node.ts';
import { launchOf, RecordingSink, readAll, until } from '../src/testing/node-suite.ts';

const COUNT = 300;

it('a node runs three hundred concurrent sessions, adopts them after a restart, and stops them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-many-'));
  let node = await openTestNode(folder);
  const woken = new Set<string>();
  await node.attach({
    snapshot: async () => {},
    fact: () => {},
    wake: (session_id) => void woken.add(session_id),
  });
  const launches = Array.from({ length: COUNT }, (_, i) =>
    launchOf(folder, ['/bin/sh', '-c', `echo agent ${i}; exec sleep 1000`]),
  );
  const ids = launches.map((launch) => launch.session_id);
  try {
    const views = await Promise.all(launches.map((launch) => node.start(launch)));
    expect(views.every((view) => view.phase === 'running')).toBe(true);
    expect(new Set(views.map((view) => view.pid)).size).toBe(COUNT);
    await until(() => woken.size === COUNT);

    await node.close();
    node = await openTestNode(folder);
    const seen = new RecordingSink();
    await node.attach(seen);
    expect(seen.sessions).toHaveLength(COUNT);
    for (const [i, id] of ids.entries()) {
      await until(async () => (await readAll(node, id, 'stdout')).toString() === `agent ${i}\n`);
    }

    const reports = await Promise.all(ids.map((id) => node.stop(id, 10_000)));
    expect(reports.flatMap((report) => report.survivors)).toEqual([]);
    for (const id of ids) expect((await seen.ended(id)).exit.exit_signal).toBe('SIGTERM');
  } finally {
    await Promise.all(ids.map((id) => node.stop(id, 0).catch(() => {})));
    await node.close();
    await rm(folder, { recursive: true, force: true });
  }
});
