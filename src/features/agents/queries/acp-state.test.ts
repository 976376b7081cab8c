import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, FeaturesFixture, SOON } from '../../../testing/features-fixture.ts';
import { startAcp } from '../../../testing/scripted-acp.ts';

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
  await fixture.store.write((tx) => {
    const { state } = tx.get(tx.sql.selectFrom('acp_states').select('state'))!;
    const before = state
      .replace('"received_count":1', '"asking_count":1')
      .replace('"received":', '"asking":');
    expect(before).not.toContain('received');
    tx.run(tx.sql.updateTable('acp_states').set({ state: before }));
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
