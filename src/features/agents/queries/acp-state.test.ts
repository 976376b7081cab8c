import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, FeaturesFixture, SOON } from '../../../testing/features-fixture.ts';
import { startAcp } from '../../../testing/scripted-acp.ts';
import { sqliteTest } from '../../../testing/test-store.ts';
import { loadAcpState, storeAcpState, toAcpState } from './acp-state.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const pending = (count: number) =>
  vi.waitFor(async () => {
    const { items } = await fixture.reviews.list(ANA, { status: 'pending' }, {});
    expect(items).toHaveLength(count);
    return items.toReversed();
  }, SOON);

test('a conversation continues from a state that an earlier version stored', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  acp.requestPermission('first');
  await pending(1);
  await fixture.close();
  await fixture.store.write(async (tx) => {
    const { state } = (await tx.get(tx.sql.selectFrom('acp_states').select('state')))!;
    const before = state
      .replace('"received_count":1', '"asking_count":1')
      .replace('"received":', '"asking":');
    expect(before).not.toContain('received');
    await tx.run(tx.sql.updateTable('acp_states').set({ state: before }));
  });
  await fixture.open();
  acp.requestPermission('second');
  const [first, second] = await pending(2);
  expect(second!.id).not.toBe(first!.id);
  await fixture.reviews.respond(ANA, second!.id, { decision: 'allow' }, null);
  expect(await acp.receive('response')).toMatchObject({ id: 'second', result: {} });
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 'first' } });
  expect(await acp.receive('response')).toMatchObject({ id: 'first', error: { code: -32800 } });
  await pending(0);
  await fixture.expectSameState(id);
  const stored = await fixture.store.read((reader) =>
    reader.get(reader.sql.selectFrom('acp_states').select('state')),
  );
  expect(JSON.parse(stored!.state)).toMatchObject({ received_count: 2, received: [] });
  expect(stored!.state).not.toContain('asking');
});

test('a transaction that is rolled back leaves no state in memory', async () => {
  const { acp } = await startAcp(fixture, {});
  await acp.openSession();
  const { store } = fixture;
  const load = () => store.read((reader) => loadAcpState(reader, 1));
  await vi.waitFor(async () => expect((await load()).phase).toBe('ready'), SOON);
  const before = await load();
  const undone = store.write(async (tx) => {
    await storeAcpState(tx, 1, { ...before, title: 'undone' });
    expect((await loadAcpState(tx, 1)).title).toBe('undone');
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  expect(await load()).toEqual(before);
});

sqliteTest('readers see the committed state, and later transactions of the group the new one', async () => {
  const { acp } = await startAcp(fixture, {});
  await acp.openSession();
  const { store } = fixture;
  const load = () => store.read((reader) => loadAcpState(reader, 1));
  await vi.waitFor(async () => expect((await load()).phase).toBe('ready'), SOON);
  const before = await load();
  const renamed = store.write((tx) => storeAcpState(tx, 1, { ...before, title: 'renamed' }));
  const seen = store.write(async (tx) => (await loadAcpState(tx, 1)).title);
  expect((await load()).title).toBe(before.title);
  await renamed;
  expect([await seen, (await load()).title]).toEqual(['renamed', 'renamed']);
});

test('a state is parsed once for each of its texts', () => {
  const text = (title: string) => JSON.stringify({ title });
  const first = toAcpState(7, text('a'));
  expect(toAcpState(7, text('a'))).toBe(first);
  expect(toAcpState(8, text('b')).title).toBe('b');
  expect(toAcpState(7, text('c')).title).toBe('c');
  expect(toAcpState(7, text('a'))).toEqual(first);
  expect(toAcpState(7, null).title).toBeNull();
});
