/** Tests streams of numbered rows with a list in memory. */
import { expect, test } from 'vitest';
import { all_settled } from '../store/settled-numbers.ts';
import { followRows, type NumberedRow } from './follow-rows.ts';
import type { Position } from './position.ts';
import { type Frame, parseFrames } from './testing.ts';

const rows: NumberedRow[] = [];
const wakes = new Set<() => void>();
let settled = all_settled;
const source = {
  clock: { now: () => 5_000 },
  heartbeat_ms: 1,
  head: async () => rows.at(-1)?.id ?? 0,
  settled: async () => settled,
  read: async (after: number, up_to: number) =>
    rows.filter(({ id }) => id > after && id <= up_to).slice(0, 2),
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

test('rows wait until lower numbers are settled, even if nothing is reported after that', async () => {
  add(30);
  settled = { up_to: 28, open: true };
  const following = follow({ after: 20 }, 2);
  add(31);
  await new Promise((resolve) => setTimeout(resolve, 30));
  rows.splice(-2, 0, { id: 29, type: 'thing', ts_ms: 1_500, record: '{}' });
  rows.pop();
  settled = all_settled;
  expect((await following).map(({ id }) => id)).toEqual([29, 30]);
});

test('a reset leaves out settled rows only', async () => {
  settled = { up_to: 25, open: true };
  const stop = new AbortController();
  let text = '';
  for await (const bytes of followRows(source, { after: 99 }, stop.signal)) {
    text += bytes.toString();
    if (text.includes('"reset"')) stop.abort();
  }
  settled = all_settled;
  expect(parseFrames(text)[0]).toMatchObject({ id: 25, data: { code: 'reset', head: 25 } });
});
