import { expect, test } from 'vitest';
import { callOf } from '../../../transcript/calls.ts';
import type { Item, Tool } from '../../../transcript/items.ts';
import { commandsFor } from './commands.ts';
import { itemAt, PAGE, rowsOf, sameRow, seqIn, startOf } from './rows.ts';

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

test('a command is offered while its name is written, and no longer', () => {
  const commands = ['plan', 'explain', 'clear'].map((name) => ({ name, description: name }));
  const names = (text: string) => commandsFor(text, commands)?.map(({ name }) => name) ?? null;
  expect(names('/')).toEqual(['plan', 'explain', 'clear']);
  expect(names('/PLA')).toEqual(['plan', 'explain']);
  expect(names('/plan now')).toBeNull();
  expect(names('/nothing')).toBeNull();
  expect(names('plan')).toBeNull();
  expect(names('see /plan')).toBeNull();
});
