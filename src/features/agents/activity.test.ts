import { afterEach, beforeEach, expect, test } from 'vitest';
import { ANA, FeaturesFixture } from '../../testing/features-fixture.ts';
import { ActivityFeed } from './activity.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

test('announces once which agents wrote to their logs since the last time', async () => {
  const activity = new ActivityFeed(fixture.core);
  const stop = new AbortController();
  const frames = fixture.feed.follow(() => true, { after: 0 }, stop.signal);
  await frames.next();
  const [quiet, busy] = [await fixture.create(), await fixture.create({ start: true })];
  await activity.announce();
  fixture.clock.advance(1_000);
  const ts_ms = fixture.clock.now();
  for (const code of ['a', 'b'])
    await fixture.store.write((tx) =>
      fixture.log.append(tx, busy.id, [
        { type: 'error', session_id: null, ts_ms, fields: { code, error: '' } },
      ]),
    );
  await activity.announce();
  await activity.announce();
  await fixture.agents.update(ANA, quiet.id, { name: 'last' });
  let text = '';
  while (!text.includes('"last"')) text += (await frames.next()).value;
  const announced = [...text.matchAll(/event: activity\ndata: (.*)\n/g)].map(
    ([, data]) => JSON.parse(data!).agents,
  );
  const { last_event_at } = await fixture.get(busy.id);
  expect(announced.at(-1)).toEqual([{ id: busy.id, last_event_at }]);
  expect(announced.filter(([{ id }]) => id === quiet.id)).toEqual([]);
  stop.abort();
  activity.close();
});
