import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from './limits.ts';
import { type Chunk, Tail } from './tail.ts';

let now_ms: number;
/** How long the follower takes for each chunk. */
let busy_ms: number;
let chunks: Chunk[];
let publish: () => void;

beforeEach(() => {
  now_ms = 0;
  chunks = [];
  vi.spyOn(performance, 'now').mockImplementation(() => now_ms);
  const tail = new Tail(1);
  const offer = (chunk: Chunk) => {
    chunks.push(chunk);
    now_ms += busy_ms;
  };
  tail.join({ offer, end: () => {} });
  let seq = 0;
  publish = () => {
    seq++;
    tail.publish({ first_seq: seq, last_seq: seq, frames: Buffer.from(`${seq};`) });
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
