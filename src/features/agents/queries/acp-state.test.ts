import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, LivesRoom, SOON } from '../../../testing/lives.ts';
import { startAcp } from '../../../testing/scripted-acp.ts';

let room: LivesRoom;
beforeEach(async () => {
  room = await LivesRoom.make();
});
afterEach(() => room.end());

const pending = (count: number) =>
  vi.waitFor(async () => {
    const { items } = await room.reviews.list(ANA, { status: 'pending' }, {});
    expect(items).toHaveLength(count);
    return items.toReversed();
  }, SOON);

test('a conversation continues from a state that an earlier version stored', async () => {
  const { id, acp } = await startAcp(room, { prompt: 'go' });
  await acp.opens();
  await acp.hears('request', 'session/prompt');
  acp.asks('first');
  await pending(1);
  await room.close();
  await room.store.write((tx) => {
    const { state } = tx.get(tx.sql.selectFrom('acp_states').select('state'))!;
    const before = state
      .replace('"received_count":1', '"asking_count":1')
      .replace('"received":', '"asking":');
    expect(before).not.toContain('received');
    tx.run(tx.sql.updateTable('acp_states').set({ state: before }));
  });
  await room.open();
  acp.asks('second');
  const [first, second] = await pending(2);
  expect(second!.id).not.toBe(first!.id);
  await room.reviews.respond(ANA, second!.id, { decision: 'allow' }, null);
  expect(await acp.hears('response')).toMatchObject({ id: 'second', result: {} });
  acp.says({ kind: 'notification', method: '$/cancel_request', params: { requestId: 'first' } });
  expect(await acp.hears('response')).toMatchObject({ id: 'first', error: { code: -32800 } });
  await pending(0);
  await room.expectTrue(id);
  const stored = await room.store.read((reader) =>
    reader.get(reader.sql.selectFrom('acp_states').select('state')),
  );
  expect(JSON.parse(stored!.state)).toMatchObject({ received_count: 2, received: [] });
  expect(stored!.state).not.toContain('asking');
});
