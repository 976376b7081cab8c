/** Tests streams of numbered rows with a list in memory. */
import { expect, test } from 'vitest';
import { followRows, type NumberedRow } from './follow-rows.ts';
import type { Position } from './position.ts';
import { type Frame, parseFrames } from './testing.ts';

const rows: NumberedRow[] = [];
const wakes = new Set<() => void>();
const source = {
  clock: { now: () => 5_000 },
  heartbeat_ms: 1,
  head: async () => rows.at(-1)?.id ?? 0,
  after: async (id: number) => rows.filter((row) => row.id > id).slice(0, 2),
  onNew: (wake: () => void) => {
    wakes.add(wake);
    return () => wakes.delete(wake);
  },
};

function add(id: number): void {
  rows.push({ id, type: 'thing', ts_ms: 1_500, record: `{"n":${id}}` });
  for (const wake of wakes) wake();
}

async function follow(position: Position, count: number): Promise<Frame[]> {
  const stop = new AbortController();
  let text = '';
  const things = () => parseFrames(text).filter(({ event }) => event !== 'heartbeat');
  for await (const bytes of followRows(source, position, stop.signal)) {
    text += bytes.toString();
    if (things().length >= count) stop.abort();
  }
  return things();
}

test('sends rows in parts, in order, then live, and unsubscribes on abort', async () => {
  for (const id of [2, 3, 7]) add(id);
  const whole = follow('start', 4);
  const rest = follow({ after: 3 }, 2);
  add(9);
  expect((await whole).map(({ id }) => id)).toEqual([2, 3, 7, 9]);
  expect((await rest).map(({ id }) => id)).toEqual([7, 9]);
  expect((await rest)[0]).toEqual({
    id: 7,
    event: 'thing',
    data: { type: 'thing', ts: 1.5, record: { n: 7 } },
  });
  expect(wakes.size).toBe(0);
});

test('heartbeats carry the current position while nothing happens', async () => {
  add(20);
  const stop = new AbortController();
  let text = '';
  for await (const bytes of followRows(source, { after: 20 }, stop.signal)) {
    text += bytes.toString();
    if (parseFrames(text).length >= 2) stop.abort();
  }
  const [first] = parseFrames(text);
  expect(first).toEqual({ id: 20, event: 'heartbeat', data: { type: 'heartbeat', ts: 5 } });
});
