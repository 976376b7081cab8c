import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from './base/clock.ts';
import { silentLog } from './base/log.ts';
import { readSpec } from './contract/team-spec.ts';
import type { Effect } from './domain/run.ts';
import { Feed } from './events/feed.ts';
import { Facts } from './flow/facts.ts';
import { beginRun, taskOfRun } from './services/teams/beginning.ts';
import { Progress } from './services/teams/progress.ts';
import { findRun, runOfNum } from './store/runs.ts';
import { openSqlite } from './store/sqlite.ts';
import { findTeam, insertTeam } from './store/teams.ts';

const folder = await mkdtemp(join(tmpdir(), 'svc-perf-'));
const store = await openSqlite({ path: join(folder, 'x.db'), log: silentLog });
const clock = systemClock;
const feed = new Feed({ store, clock });
const facts = new Facts({ store, clock, log: silentLog });
const queue: Effect[] = [];
const progress = new Progress({
  clock,
  feed,
  facts,
  execute: (_tx, _run, effects) => {
    queue.push(...effects);
  },
});
const N = 2048;
const shapes: Record<string, (i: number) => string[]> = {
  chain: (i) => (i === 0 ? [] : [`s${i - 1}`]),
  fan: (i) => (i === 0 ? [] : i === N - 1 ? Array.from({ length: N - 2 }, (_, k) => `s${k + 1}`) : ['s0']),
  wide: () => [],
};
for (const kind of (process.argv[2] ?? 'plain,acp').split(',') as ('plain' | 'acp')[])
  for (const [name, needs] of Object.entries(shapes)) {
    if (process.argv[3] && !process.argv[3].includes(name)) continue;
    queue.length = 0;
    const t0 = performance.now();
    const spec = readSpec({
      members: [{ member_id: 'a', agent: { command: 'true', protocol: kind, workdir: '/tmp' } }],
      steps: Array.from({ length: N }, (_, i) => ({ step_key: `s${i}`, depends_on: needs(i) })),
    });
    const t1 = performance.now();
    const id = `run_${kind}${name}`;
    await store.write((tx) => {
      insertTeam(tx, {
        id: `team_${kind}${name}`,
        name: kind + name,
        description: '',
        spec: JSON.stringify(spec),
        version: 1,
        created_by: 'u',
        created_at: 0,
        updated_at: 0,
      });
      const team = findTeam(tx, `team_${kind}${name}`)!;
      const asked = { team, input: {}, created_by: 'u', now: 1 };
      const task = taskOfRun(tx, asked);
      beginRun(tx, progress, { ...asked, id, task_num: task.num });
    });
    const t2 = performance.now();
    const num = await store.read((r) => findRun(r, id)!.num);
    let worst = 0,
      count = 0;
    for (let e = queue.shift(); e; e = queue.shift()) {
      if (e.kind !== 'launch') continue;
      const { step_key, attempt } = e;
      const a = performance.now();
      await store.write((tx) => {
        progress.apply(tx, num, { kind: 'step_running', step_key, attempt });
        progress.apply(tx, num, { kind: 'step_completed', step_key, attempt });
      });
      worst = Math.max(worst, performance.now() - a);
      count++;
    }
    const t3 = performance.now();
    const cpu = process.cpuUsage();
    const run = await store.read((r) => runOfNum(r, num)!);
    console.log(
      kind,
      name,
      'read',
      (t1 - t0).toFixed(0),
      'create',
      (t2 - t1).toFixed(0),
      'per step',
      ((t3 - t2) / count).toFixed(3),
      'worst',
      worst.toFixed(0),
      run.status,
      count,
      'cpu ms per step',
      (cpu.user + cpu.system) / 1000 / count,
    );
  }
feed.close();
await store.close();
await rm(folder, { recursive: true });
