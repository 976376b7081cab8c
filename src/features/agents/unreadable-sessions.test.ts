/** Sessions that exist on their node, which cannot read their files at the moment. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { problems } from '../../core/problem.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended } from '../../testing/scripted-node.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const unreadable = async () => {
  throw problems.sessionUnreadable();
};

test('a session that its node cannot read is not lost, and ends once the node reports its facts', async () => {
  const { node } = fixture;
  const { id, session_id } = await fixture.create({ start: true });
  await fixture.until(id, 'running');
  await node.sendSnapshot(node.link!, [], [session_id!]);
  expect(await fixture.get(id)).toMatchObject({ status: 'running' });
  node.sendFact(session_id!, ended(0));
  await fixture.until(id, 'completed');
});

test('a stop waits until the node can read the session', async () => {
  const { node } = fixture;
  const { id } = await fixture.create({ start: true });
  await fixture.until(id, 'running');
  const { stop } = node;
  node.stop = unreadable;
  await expect(fixture.agents.stop(ANA, id, 0)).rejects.toMatchObject({ code: 'node_unreachable' });
  expect(await fixture.get(id)).toMatchObject({ status: 'running', pending: 'stop' });
  node.stop = stop;
  fixture.core.outbox.retryNow('main');
  await fixture.until(id, 'cancelled');
});

test('a stop does not wait for input that the node cannot store', async () => {
  const { node } = fixture;
  const { id } = await fixture.create({ start: true, stdin: true });
  await fixture.until(id, 'running');
  node.input = async () => {
    throw problems.inputNotStored();
  };
  // It is kept until the node can store it.
  await fixture.agents.input(ANA, id, 'x', false, null);
  await fixture.agents.stop(ANA, id, 0);
  await fixture.until(id, 'cancelled');
});

test('accepts input that cannot be stored for a moment, and stores it once', async () => {
  const { node } = fixture;
  const { id } = await fixture.create({ start: true, stdin: true });
  await fixture.until(id, 'running');
  const input = vi.spyOn(node, 'input');
  input.mockRejectedValueOnce(Object.assign(new Error('too many open files'), { code: 'EMFILE' }));
  await fixture.agents.input(ANA, id, 'x', false, null);
  fixture.core.outbox.retryNow('main');
  await vi.waitFor(() => expect(input).toHaveBeenCalledTimes(2), SOON);
  await expect(input.mock.results[1]!.value).resolves.toBe(1);
});

test('a repeated start waits until the node can say whether the session exists', async () => {
  const { node } = fixture;
  const agent = await fixture.create();
  node.start = unreadable;
  await expect(fixture.agents.start(ANA, agent.id, null)).rejects.toMatchObject({ code: 'node_unreachable' });
  node.folders.resolve = async () => {
    throw problems.workdirMissing();
  };
  const read = vi.fn(unreadable);
  node.read = read;
  const started = vi.fn(unreadable);
  node.start = started;
  fixture.core.outbox.retryNow('main');
  await vi.waitFor(() => expect(read).toHaveBeenCalled(), SOON);
  expect(await fixture.get(agent.id)).toMatchObject({ pending: 'start', reason: null });
  // The folder was refused, so nothing may run in it.
  expect(started).not.toHaveBeenCalled();
});

test('the end of a session whose start was withdrawn before it existed is not audited', async () => {
  const { node } = fixture;
  const agent = await fixture.create();
  const { reach } = node;
  let session_id = '';
  node.start = async (launch) => {
    session_id = launch.session_id;
    node.reach = () => Promise.reject(problems.nodeUnreachable());
    throw problems.nodeUnreachable();
  };
  await expect(fixture.agents.start(ANA, agent.id, null)).rejects.toMatchObject({ code: 'node_unreachable' });
  await fixture.agents.withdraw(ANA, agent.id);
  node.reach = reach;
  // The node is still checking the folder of the session, and a stop cancels that.
  await node.sendSnapshot(node.link!, [], [session_id]);
  const rows = (table: 'forgotten' | 'outbox') =>
    fixture.store.read((reader) => reader.all(reader.sql.selectFrom(table).selectAll()));
  await vi.waitFor(async () => {
    expect([await rows('forgotten'), await rows('outbox')]).toEqual([[], []]);
  }, SOON);
  const audited = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('audit').select('event')),
  );
  expect(audited.map(({ event }) => event)).not.toContain('forgotten_session_ended');
});
