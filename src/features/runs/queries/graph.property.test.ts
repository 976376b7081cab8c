/** The stored graph of a run behaves like one in memory: the same events lead to the same effects, steps and end. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store, Tx } from '../../../store/store.ts';
import { MemoryGraph, type RunShape, type StepShape } from '../../../testing/memory-graph.ts';
import { anyRun, RunSimulation } from '../../../testing/run-simulation.ts';
import { openTestStore } from '../../../testing/test-store.ts';
import { insertTeam } from '../../teams/queries.ts';
import { loadGraph } from './graph.ts';
import { insertRun, runOfNum } from './runs.ts';
import { insertSteps } from './steps.ts';
import { insertTask } from './tasks.ts';

let folder: string;
let store: Store;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-runs-'));
  store = await openTestStore(folder);
});
afterAll(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

let made = 0;

/** Of all kinds. */
const members = [null, { protocol: 'plain' }, { protocol: 'acp' }].map((agent) => ({ agent }));

/** The stored graph of a new run, read again after every `crash`. */
async function stored(tx: Tx, { steps, mode, max_rounds, leader_member_id }: RunShape) {
  const id = `${++made}`;
  const stamps = { created_by: 'usr_1', created_at: made };
  const team_num = await insertTeam(tx, {
    ...{ id, name: id, description: '', spec: '{}', version: 1, updated_at: 0 },
    ...stamps,
  });
  const task_num = await insertTask(tx, {
    ...{ id, team_num, title: id, description: '', status: 'open', conversation_id: id },
    ...{ version: 1, updated_at: 0 },
    ...stamps,
  });
  const run_num = await insertRun(tx, {
    ...{ id, team_num, number: 1, task_num, status: 'pending', input: '{}', attempt: 1, version: 1, mode },
    ...{ leader: 'unasked', rounds: 0, steps_seen: 0 },
    spec: JSON.stringify({ leader_member_id, max_rounds, members }),
    ...stamps,
  });
  const insert = (shapes: StepShape[], added: number) =>
    insertSteps(
      tx,
      run_num,
      shapes.map((shape) => ({
        ...shape,
        depends_on: JSON.stringify(shape.depends_on),
        ...{ prompt: '', status: 'pending', waits_for: shape.depends_on.length, added },
        ...{ upstream_failed: 0, attempt: 0, tries: 0, launched: 0 },
      })),
    );
  await insert(steps, 0);
  const open = async () => loadGraph(tx, (await runOfNum(tx, run_num))!, 1);
  return { graph: await open(), insert: (step: StepShape) => insert([step], 1), open };
}

test('the stored graph behaves like the graph in memory', async () => {
  await fc.assert(
    fc.asyncProperty(anyRun, async ({ shape, plain_max, moves }) => {
      await store.write(async (tx) => {
        const tables = await stored(tx, shape);
        const memory = { graph: new MemoryGraph(shape), insert: async () => {} };
        const inTables = await RunSimulation.begin(tables, plain_max);
        const inMemory = await RunSimulation.begin(memory, plain_max);
        for (const move of moves) {
          if (move.crash) tables.graph = await tables.open();
          await inTables.run(move);
          await inMemory.run(move);
          expect(tables.graph.run()).toEqual(memory.graph.run());
        }
        await inTables.finish();
        await inMemory.finish();
        expect(inTables.faults).toEqual([]);
        expect(inTables.effects).toEqual(inMemory.effects);
        expect(await tables.graph.steps()).toEqual(await memory.graph.steps());
      });
    }),
    { numRuns: 60 },
  );
});
