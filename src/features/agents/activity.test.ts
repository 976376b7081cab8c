import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Feed } from '../../events/feed.ts';
import { FeaturesFixture } from '../../testing/features-fixture.ts';
import { ActivityFeed } from './activity.ts';

let fixture: FeaturesFixture;
let activity: ActivityFeed;
const announce = vi.fn<Feed['announce']>();
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  announce.mockClear();
  activity = new ActivityFeed({ ...fixture.core, feed: { hasFollowers: true, announce } as unknown as Feed });
});
afterEach(async () => {
  activity.close();
  await fixture.end();
});

test('announces once which agents wrote to their logs since the last time', async () => {
  const [, busy] = [await fixture.create(), await fixture.create({ start: true })];
  await activity.announce();
  announce.mockClear();
  fixture.clock.advance(1_000);
  await write(busy.id, 'a');
  await write(busy.id, 'b');
  await activity.announce();
  await activity.announce();
  const { owner_id, last_event_at } = await fixture.get(busy.id);
  const record = { id: busy.id, last_event_at };
  expect(announce.mock.calls).toEqual([
    ['activity', 'agents', [{ owner_id, team_num: null, agent_id: busy.id, record }]],
  ]);
});

test('announces after a failure what it could not announce', async () => {
  const { id } = await fixture.create();
  await write(id, 'a');
  const read = vi.spyOn(fixture.core.store, 'read').mockRejectedValueOnce(new Error('no connection'));
  await expect(activity.announce()).rejects.toThrow('no connection');
  read.mockRestore();
  await activity.announce();
  expect(announce.mock.calls.map(([, , agents]) => agents.map(({ agent_id }) => agent_id))).toEqual([[id]]);
});

function write(agent_id: string, code: string): Promise<unknown> {
  const ts_ms = fixture.clock.now();
  return fixture.store.write((tx) =>
    fixture.log.append(tx, agent_id, [
      { type: 'error', session_id: null, ts_ms, fields: { code, error: '' } },
    ]),
  );
}
