import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { problems } from '../../core/problem.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { holdWrite } from '../../testing/held-write.ts';
import { beginRun, plainMember, stepsOfRun } from '../../testing/team-runs.ts';
import { on_postgres } from '../../testing/test-store.ts';
import type { Caller } from '../accounts/rules.ts';
import { SERVICE } from './core.ts';
import { Lifecycle } from './lifecycle.ts';
import { limits } from './limits.ts';
import { restartTimers } from './restarts.ts';
import { type AllStopped, stopAllAgents } from './stopping-all.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const stopAll = (caller = ANA): Promise<AllStopped> => stopAllAgents(fixture.core, fixture.agents, caller, 0);
const timers = () =>
  fixture.store.read((reader) => reader.all(reader.sql.selectFrom('timers').select(['kind', 'due_at'])));

test('stops the agents of all users, also those that are starting', async () => {
  const { id } = await fixture.create({ start: true }, null, BEN);
  vi.spyOn(fixture.node, 'start').mockImplementation(async (launch) => {
    fixture.node.addSession(launch);
    return fixture.node.views.get(launch.session_id)!;
  });
  const starting = fixture.create({ start: true });
  await vi.waitFor(() => expect(fixture.node.views.size).toBe(2), SOON);
  expect(await stopAll()).toEqual({ stopped: 2, still_running: [] });
  expect([(await fixture.get(id)).status, (await starting).activity]).toEqual(['cancelled', null]);
  await expect(async () => stopAll(BEN)).rejects.toThrow(problems.rootRequired().message);
});

// In SQLite, writes do not overlap.
if (on_postgres)
  test('stops an agent whose start was being stored', async () => {
    const { core, store } = fixture;
    const { id } = await fixture.create();
    const lifecycle = new Lifecycle(core);
    const start = await holdWrite(store, async (tx) =>
      lifecycle.enqueueStart(tx, await core.records.mustFind(tx, id), SERVICE),
    );
    const stopping = stopAll();
    // Other databases of the server have a table with the same OID.
    const here = sql`(SELECT oid FROM pg_database WHERE datname = current_database())`;
    const waiting = sql<boolean>`relation = 'gate'::regclass AND database = ${here} AND NOT granted`;
    await vi.waitFor(async () => {
      const locks = await store.read((reader) =>
        reader.all(reader.sql.selectFrom(sql`pg_locks`.as('locks')).select(sql`1`.as('one')).where(waiting)),
      );
      expect(locks).toHaveLength(1);
    }, SOON);
    await start.commit();
    expect(await stopping).toEqual({ stopped: 1, still_running: [] });
    expect((await fixture.get(id)).status).toBe('cancelled');
  });

test('looks again after an agent was deleted meanwhile, and reports one that has not ended', async () => {
  const [deleted, slow] = [await fixture.create({ start: true }), await fixture.create({ start: true })];
  const late = await fixture.create();
  let rounds = 0;
  const stop = async (caller: Caller, agent_id: string, grace_ms: number) => {
    if (agent_id === slow.id) return fixture.get(slow.id);
    if (agent_id === deleted.id && rounds++ === 0) {
      const active = vi.spyOn(fixture.core.starts, 'active', 'get').mockReturnValue(false);
      await fixture.agents.start(ANA, late.id, null);
      active.mockRestore();
      await fixture.agents.delete(ANA, deleted.id, { force: true, delete_worktree: false });
    }
    return fixture.agents.stop(caller, agent_id, grace_ms);
  };
  expect(await stopAllAgents(fixture.core, { stop }, ANA, 0)).toEqual({
    stopped: 2,
    still_running: [{ agent_id: slow.id, error: 'it has not ended yet; try again' }],
  });
  expect((await fixture.get(late.id)).status).toBe('cancelled');
});

test('a run starts no agent after that, and continues at the next start of the plane', async () => {
  await stopAll();
  const asked = vi.spyOn(fixture.core.starts, 'active', 'get');
  const run_id = await beginRun(fixture, { members: [plainMember('m', 'x')], steps: [{ step_key: 'a' }] });
  await vi.waitFor(() => expect(asked).toHaveReturnedWith(true), SOON);
  expect((await stepsOfRun(fixture, run_id)).a).toMatchObject({ status: 'ready', attempt: 1 });
  expect(fixture.node.launches.size).toBe(0);
  await fixture.close();
  await fixture.open();
  await vi.waitFor(() => expect(fixture.node.launches.size).toBe(1), SOON);
});

test('refuses starts meanwhile, and no longer if an agent cannot be stopped', async () => {
  const { id } = await fixture.create({ start: true });
  const other = await fixture.create();
  const start = () => fixture.agents.start(ANA, other.id, null);
  vi.spyOn(fixture.node, 'stop').mockImplementation(async () => {
    await expect(start()).rejects.toThrow(problems.agentsStopping().message);
    return { cleanup: 'swept', survivors: [7] };
  });
  expect(await stopAll()).toEqual({
    stopped: 0,
    still_running: [{ agent_id: id, error: expect.stringContaining('7') }],
  });
  expect((await start()).status).toBe('running');
});

test('cancels scheduled restarts', async () => {
  const { id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  fixture.node.end((await fixture.get(id)).session_id!, 1);
  await vi.waitFor(async () => expect(await timers()).toHaveLength(1), SOON);
  expect(await stopAll()).toEqual({ stopped: 1, still_running: [] });
  expect(await timers()).toEqual([]);
});

test('a restart that is due meanwhile waits', async () => {
  const { id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  const { session_id } = await fixture.get(id);
  fixture.node.end(session_id!, 1);
  await vi.waitFor(async () => expect(await timers()).toHaveLength(1), SOON);
  await stopAll();
  fixture.clock.advance(limits.restart_backoff_ms);
  const { agent_restart } = restartTimers(fixture.core, {} as never);
  const timer = {
    kind: 'agent_restart',
    ref: id,
    due_at_ms: 0,
    payload: { session_id: session_id! },
  } as const;
  await fixture.store.write((tx) => agent_restart(tx, timer));
  const due_at = fixture.clock.now() + limits.restart_backoff_ms;
  expect(await timers()).toEqual([{ kind: 'agent_restart', due_at }]);
});
