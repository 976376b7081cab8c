/** Archived agents keep everything until somebody starts them again. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Problem, problems } from '../../core/problem.ts';
import { ANA, FeaturesFixture } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const archive = (agent_id: string) => fixture.agents.update(ANA, agent_id, { archived: true });

test('an agent that runs cannot be archived, and one that is started is no longer archived', async () => {
  const { id, session_id } = await fixture.create({ start: true });
  await expect(archive(id)).rejects.toThrow('agent is running');
  fixture.node.sendFact(session_id!, ended(0));
  await fixture.until(id, 'completed');
  const { archived_at } = await archive(id);
  fixture.clock.advance(1_000);
  expect((await archive(id)).archived_at).toBe(archived_at);
  expect((await fixture.agents.start(ANA, id, null)).archived_at).toBeNull();
});

test('an agent stays archived if its start is rejected or withdrawn, and not if it fails', async () => {
  const { node } = fixture;
  const { id, session_id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  node.sendFact(session_id!, ended(1));
  await fixture.until(id, 'failed');
  const { archived_at } = await archive(id);
  const timers = () =>
    fixture.store.read((reader) => reader.all(reader.sql.selectFrom('timers').select('kind')));
  const start = async (error: Problem) => {
    node.start = async () => {
      throw error;
    };
    return fixture.agents.start(ANA, id, null).catch(() => fixture.get(id));
  };
  expect(await start(problems.diskSpace())).toMatchObject({ archived_at, session_count: 1 });
  expect(await timers()).toEqual([]);
  await start(problems.nodeUnreachable());
  await fixture.agents.withdraw(ANA, id);
  expect(await fixture.get(id)).toMatchObject({ archived_at, session_count: 1 });
  expect(await start(problems.workdirMissing())).toMatchObject({ archived_at: null, session_count: 2 });
});

test('the restart policy does not start an archived agent', async () => {
  const { id, session_id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  fixture.node.sendFact(session_id!, ended(1));
  await fixture.until(id, 'failed');
  await archive(id);
  const timers = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('timers').select('kind').where('ref', '=', id)),
  );
  expect(timers).toEqual([]);
});

test('a new agent does not replace an archived one of its name', async () => {
  const { id } = await fixture.create({ name: 'build' });
  await archive(id);
  const created = await fixture.create({ name: 'build' }, null, ANA, { replace: true });
  expect(await fixture.get(id)).toMatchObject({ name: 'build' });
  expect(await fixture.agents.namesakes(ANA, created, 10)).toEqual({ ids: [], count: 0 });
});
