/** The run engine alone: steps of an outside member with the real database, without processes and sockets. */
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../../src/base/clock.ts';
import { newId } from '../../src/base/ids.ts';
import { limits } from '../../src/base/limits.ts';
import { silentLog } from '../../src/base/log.ts';
import { Feed } from '../../src/events/feed.ts';
import { createRun, createTask } from '../../src/features/runs/creation.ts';
import { limits as runsLimits } from '../../src/features/runs/limits.ts';
import { RunPublisher } from '../../src/features/runs/publisher.ts';
import { runOfNum } from '../../src/features/runs/queries/runs.ts';
import type { StepCommand } from '../../src/features/runs/rules/graph.ts';
import { Scheduler } from '../../src/features/runs/scheduler.ts';
import { readSpec } from '../../src/features/teams/contract/spec.ts';
import { insertTeam, teamOfNum } from '../../src/features/teams/queries.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import type { Store, Tx } from '../../src/store/store.ts';
import { Facts } from '../../src/work/facts.ts';
import { atMost, type Figure, type Row } from '../figure.ts';
import { graph, type Needs, type Shape, shapes, teamOf } from '../graphs.ts';
import { type Elapsed, stopwatch } from '../processes/clock.ts';
import { forEachConcurrently, withFolder } from '../program.ts';
import { rawRows } from './commits.ts';

export const engine: Row = {
  name: 'engine',
  bottleneck:
    'The commands of a chain come one at a time, so each needs its own group commit. To begin, write and sync ' +
    'one costs about a millisecond of processor time more than when several commands share it, as in a fan.',
  how:
    'The run engine and the store in the process of the benchmark. The runs have one member that is ' +
    'controlled from outside, so a step takes two commands, `start` and `complete`. Each command is a ' +
    'transaction with its events, as the engine commits them for an agent’s step. A chain is completed step ' +
    'by step, so its steps wait for the disk; the limit is two plain commits of one row, one after the other. ' +
    'A fan (one step, then many parallel steps, then one step after all of these) is completed sixteen steps ' +
    'at a time. Processor time is that of the whole process, including its threads. Stalls are measured from ' +
    'the creation of the run: one transaction stores the whole graph, and when the first step of a fan ends, ' +
    'one transaction makes all but one of the other steps ready.',
  run: async ({ quick }) => {
    const figures: Figure[] = [];
    const count = quick ? 256 : limits.team_steps_max;
    for (const shape of shapes)
      figures.push(...(await figuresOf(shape, count, await measureOnSqlite(shape, count))));
    return figures;
  },
};

interface Engine {
  store: Store;
  scheduler: Scheduler;
}

async function withEngine<T>(store: Store, fn: (engine: Engine) => Promise<T>): Promise<T> {
  const common = { clock: systemClock, log: silentLog };
  const feed = new Feed({ ...common, store });
  const facts = new Facts({ ...common, store });
  // There are no agents, so effects need not be carried out.
  const publisher = new RunPublisher({ ...common, feed });
  const scheduler = new Scheduler({ ...common, facts, publisher, publishAgent: async () => {} });
  scheduler.open(async () => {});
  try {
    return await fn({ store, scheduler });
  } finally {
    feed.close();
  }
}

/** The time of all steps. */
export interface Measurement extends Elapsed {
  longest_stall_ms: number;
  /** The time before the first step, in which the run was created. */
  creation: Elapsed;
}

export async function measureOnSqlite(shape: Shape, count: number): Promise<Measurement> {
  return withFolder(async (folder) => {
    const store = await openSqlite({ path: join(folder, 'svc.db'), log: silentLog });
    try {
      return await measure(store, shape, count);
    } finally {
      await store.close();
    }
  });
}

/** Completes a run of `count` steps in an empty database. */
export async function measure(store: Store, shape: Shape, count: number): Promise<Measurement> {
  return withEngine(store, async (engine) => {
    const steps = graph(shape, count);
    const command = async (step_key: string, command: StepCommand) => {
      const event = { kind: 'step_command', step_key, command } as const;
      await store.write((tx) => engine.scheduler.apply(tx, run_num, event));
    };
    const take = async ({ step_key }: Needs) => {
      await command(step_key, { kind: 'startStep' });
      await command(step_key, { kind: 'completeStep' });
    };
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    const created = stopwatch();
    const run_num = await begin(engine, steps);
    const creation = created();
    const completed = stopwatch();
    if (shape === 'chain') await forEachConcurrently(steps, 1, take);
    else {
      await take(steps[0]!);
      await forEachConcurrently(steps.slice(1, -1), runsLimits.run_plain_steps_max, take);
      await take(steps.at(-1)!);
    }
    const completion = completed();
    delay.disable();
    const after = await store.read((reader) => runOfNum(reader, run_num));
    if (after?.status !== 'completed') throw new Error(`the run is ${after?.status}`);
    return { ...completion, longest_stall_ms: delay.max / 1e6, creation };
  });
}

async function figuresOf(shape: Shape, count: number, measured: Measurement): Promise<Figure[]> {
  const limit = { limit: 2 * (await bareCommitMs()), limit_is: 'two plain commits' };
  const what = `${shape} of ${count.toLocaleString('en-US')} steps`;
  return [
    {
      what: `${what}: time per step`,
      unit: 'ms',
      value: measured.wall_ms / count,
      ...(shape === 'chain' && { ...limit, goal: atMost(3.5) }),
    },
    {
      what: `${what}: processor time per step`,
      unit: 'ms',
      value: measured.cpu_ms / count,
      goal: atMost(2),
    },
    { what: `${what}: longest event loop stall`, unit: 'ms', value: measured.longest_stall_ms },
  ];
}

/** The duration of a transaction with one row that is flushed to disk. */
async function bareCommitMs(): Promise<number> {
  const rows = Array.from({ length: 200 }, () => Buffer.alloc(256));
  return withFolder(async (folder) => 1000 / rawRows(folder, rows, 1));
}

/** Starts a run of a team with one member; returns the `num` of its row. */
function begin({ store, scheduler }: Engine, steps: readonly Needs[]): Promise<number> {
  const created_by = 'usr_1';
  const now = systemClock.now();
  const spec = readSpec(teamOf([{ member_id: 'm' }], steps));
  return store.write(async (tx) => {
    await addUser(tx, created_by);
    const num = await insertTeam(tx, {
      ...{ id: newId('team'), name: 'bench', description: '', spec: JSON.stringify(spec), version: 1 },
      ...{ created_by, created_at: now, updated_at: now },
    });
    const common = { team: (await teamOfNum(tx, num))!, created_by, now };
    const task_num = await createTask(tx, { team_num: num, title: 'task', created_by, now });
    return (
      await createRun(
        tx,
        { scheduler, nodes: { choose: (id = 'main') => id } },
        { ...common, id: newId('run'), task_num, input: {} },
      )
    ).num;
  });
}

async function addUser(tx: Tx, id: string): Promise<void> {
  const user = { id, username: id, role: 'user', password_hash: '', created_at: 0, updated_at: 0 } as const;
  await tx.run(tx.sql.insertInto('users').values(user));
}
