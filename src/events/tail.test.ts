import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from './limits.ts';
import { type Chunk, Tail } from './tail.ts';

let now_ms: number;
/** How long the follower takes for each chunk. */
let busy_ms: number;
let chunks: Chunk[];
let publish: (from?: number, to?: number) => void;
let tail: Tail;

beforeEach(() => {
  now_ms = 0;
  chunks = [];
  vi.spyOn(performance, 'now').mockImplementation(() => now_ms);
  tail = new Tail(1);
  const offer = (chunk: Chunk) => {
    chunks.push(chunk);
    now_ms += busy_ms;
  };
  tail.join({ offer, end: () => {} });
  let seq = 0;
  publish = (from = seq + 1, to = from) => {
    seq = to;
    tail.publish({
      first_seq: from,
      last_seq: to,
      frames: Buffer.from(from === to ? `${from};` : `${from}-${to};`),
    });
  };
});
afterEach(() => vi.restoreAllMocks());

const texts = () => chunks.map(({ frames }) => frames.toString());

test('offers each commit at once if sending takes no time', () => {
  busy_ms = 0.1;
  for (let i = 0; i < 3; i++) publish();
  expect(texts()).toEqual(['1;', '2;', '3;']);
});

test('collects commits for a multiple of the time that sending takes', async () => {
  busy_ms = 5;
  for (let i = 0; i < 3; i++) publish();
  expect(texts()).toEqual(['1;']);
  await expect.poll(texts).toEqual(['1;', '2;3;']);
  now_ms += busy_ms * limits.tail_pause_factor;
  publish();
  expect(texts()).toEqual(['1;', '2;3;', '4;']);
});

test('never joins commits with a gap between them, and ignores those that are reported late', async () => {
  busy_ms = 5;
  publish(1);
  publish(2);
  publish(5, 6);
  publish(3, 4);
  publish(7);
  await expect.poll(texts).toEqual(['1;', '2;', '5-6;7;']);
  expect(tail.head).toBe(7);
  // A follower that has event 2 must read events 3 and 4 from the database.
  expect(tail.after(2)).toBeUndefined();
  expect(tail.after(4)?.frames.toString()).toBe('5-6;7;');
});
