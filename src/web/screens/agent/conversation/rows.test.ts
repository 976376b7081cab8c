import { expect, test } from 'vitest';
import { callOf } from '../../../transcript/calls.ts';
import type { Item, Tool } from '../../../transcript/items.ts';
import { failureNextTo, itemAt, PAGE, rowsOf, sameRow, seqIn, startOf } from './rows.ts';

function tool(seq: number, kind: string, status: Tool['status'] = 'completed'): Tool {
  const call = callOf({ toolCallId: String(seq), kind });
  const about = { ended_ts: null, added: 0, removed: 0, turn: 1 };
  return { kind: 'tool', key: String(seq), seq, ts: seq, call, status, ...about };
}
const stop: Item = { kind: 'stop', key: '9', seq: 9, ts: 9, turn: 1, reason: 'end_turn', seconds: 1 };

test('reads that follow on each other are one row; what runs, failed or stands alone is its own', () => {
  const items = [
    tool(1, 'read'),
    tool(2, 'read'),
    tool(3, 'read', 'failed'),
    tool(4, 'read'),
    tool(5, 'edit'),
    stop,
  ];
  const rows = rowsOf(items);
  expect(rows.map(({ key }) => key)).toEqual(['reads 1', '3', '4', '5', '9']);
  expect(rowsOf(items).every((row, at) => sameRow(row, rows[at]!))).toBe(true);
  const more = rowsOf([tool(1, 'read'), items[1]!, tool(3, 'read'), ...items.slice(2)]);
  expect(sameRow(more[0]!, rows[0]!)).toBe(false);
});

test('an event is found in the item that it is part of', () => {
  const items = [tool(3, 'edit'), tool(7, 'edit'), stop];
  expect(itemAt(items, 8)?.seq).toBe(7);
  expect(itemAt(items, 100)).toBe(stop);
  expect(itemAt(items, 2)).toBeNull();
  expect([seqIn('#e1843'), seqIn('e7'), seqIn('#L3'), seqIn('')]).toEqual([1843, 7, null, null]);
});

test('a window on the newest items moves on; one that somebody has opened stays, whatever is dropped before it', () => {
  expect(startOf(null, { left_out: 0, total: 20 })).toBe(0);
  expect(startOf(null, { left_out: 5, total: PAGE + 20 })).toBe(20);
  expect(startOf(40, { left_out: 0, total: 500 })).toBe(40);
  expect(startOf(40, { left_out: 30, total: 500 })).toBe(10);
  expect(startOf(40, { left_out: 60, total: 500 })).toBe(0);
});

test('the failure next to an event is found, and from nowhere the first or the newest', () => {
  const status: Item = {
    ...{ kind: 'status', key: '20', seq: 20, ts: 20, turn: null, status: 'failed' },
    ...{ session_id: null, exit_code: 3, exit_signal: null, reason: null },
  };
  const refused: Item = { ...stop, key: '15', seq: 15, reason: 'refusal' };
  const items = [tool(1, 'edit', 'failed'), tool(2, 'edit'), stop, refused, status];
  const next = (seq: number | null, direction: 1 | -1) => failureNextTo(items, seq, direction)?.seq ?? null;
  expect([next(null, 1), next(null, -1)]).toEqual([1, 20]);
  expect([next(1, 1), next(2, 1), next(15, 1), next(20, 1)]).toEqual([15, 15, 20, null]);
  expect([next(20, -1), next(9, -1), next(1, -1)]).toEqual([15, 1, null]);
});
