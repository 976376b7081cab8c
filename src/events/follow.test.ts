import { afterEach, expect, test, vi } from 'vitest';
import type { Store } from '../store/store.ts';
import { Follower } from './follow.ts';
import type { History } from './history.ts';
import { Tail } from './tail.ts';

afterEach(() => vi.restoreAllMocks());

const chunk = (first_seq: number, last_seq = first_seq) => ({
  first_seq,
  last_seq,
  frames: Buffer.from(`${first_seq}-${last_seq};`),
});

test('a follower gets an event that was committed while it read where the log ends', async () => {
  let now_ms = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now_ms);
  const tail = new Tail(1);
  // Takes its time, so that the tail collects the commits after the first one.
  const offer = () => {
    now_ms += 5;
  };
  tail.join({ offer, end: () => {} });
  tail.publish(chunk(1));
  tail.publish(chunk(2));

  const end_of_log = Promise.withResolvers<{ last_seq: number }>();
  const follower = new Follower(
    {
      store: { read: () => end_of_log.promise.then(({ last_seq }) => last_seq) } as unknown as Store,
      history: {
        async *after(_agent: unknown, cursor: number, head: () => number) {
          for (let seq = cursor + 1; seq <= head(); seq++) yield chunk(seq);
        },
      } as unknown as History,
      clock: { now: () => 0 },
      heartbeat_ms: 60_000,
    },
    { num: 1, id: 'agt_1' },
    tail,
    () => false,
  );
  const frames = follower.frames({ after: 2 }, new AbortController().signal);
  const retry = frames.next();
  now_ms += 1_000;
  // One chunk with events 2 and 3, so the follower can only get event 3 from the database.
  tail.publish(chunk(3));
  end_of_log.resolve({ last_seq: 2 });
  await retry;
  expect(String((await frames.next()).value)).toBe('3-3;');
  await frames.return(undefined);
});
