import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readToolCall } from '../../../../acp/tool-calls.ts';
import { mergeCall } from '../../../../acp/transcript/calls.ts';
import type { Delegation, Item, Outcome, Permission, Tool } from '../../../../acp/transcript/items.ts';
import {
  buildRows,
  failureNextTo,
  findItem,
  getItem,
  holds,
  isAfterPause,
  listOwn,
  listWaiting,
  PAGE,
  parseSeq,
  type Row,
  sameRow,
  windowStart,
} from './rows.ts';
import { listTurns } from './turns.ts';

function tool(seq: number, kind: string, status: Tool['status'] = 'completed'): Tool {
  const call = mergeCall(readToolCall({ toolCallId: String(seq), kind }));
  const about = { ended_ts: null, added: 0, removed: 0, turn: 1, subagent: null };
  return { kind: 'tool', key: String(seq), seq, ts: seq, call, status, ...about };
}
const at = { ts: 9, turn: 1, subagent: null };
const work = { tools: 0, added: 0, removed: 0, tokens: null };
const stop: Item = { kind: 'stop', key: '9', seq: 9, ...at, reason: 'end_turn', seconds: 1, ...work };

/** The keys of rows, with those of the rows inside them in a nested list. */
function keysOf(rows: readonly Row[]): unknown[] {
  return rows.map((row) => (row.type === 'tools' ? keysOf(row.rows) : row.key));
}

test('consecutive tool calls share a group, and consecutive completed reads one row of it', () => {
  const items = [
    tool(1, 'read'),
    tool(2, 'read'),
    tool(3, 'read', 'failed'),
    tool(4, 'read'),
    tool(5, 'edit'),
    stop,
  ];
  const rows = buildRows(items);
  expect(keysOf(rows)).toEqual([['reads 1', '3', '4', '5'], '9']);
  expect(rows[0]!.key).toBe('tools 1');
  expect(buildRows(items).every((row, at) => sameRow(row, rows[at]!))).toBe(true);
  const more = buildRows([tool(1, 'read'), items[1]!, tool(3, 'read'), ...items.slice(2)]);
  expect(sameRow(more[0]!, rows[0]!)).toBe(false);
});

test('a group of tool calls is the same row wherever the window starts in it', () => {
  const thought = (seq: number): Item => ({
    ...{ kind: 'thought', key: String(seq), seq, ts: seq, turn: 1, subagent: null, ended_ts: null },
    ...{ message_id: null, body: { parts: [], chars: 0, text_chars: 0, omitted_chars: 0 } },
  });
  const items = [
    ...[head(1, 'a'), tool(2, 'edit'), thought(3), tool(4, 'edit'), by('a', tool(5, 'edit'))],
    ...[ask(6, '4'), tool(7, 'edit'), by('a', tool(8, 'edit')), tool(9, 'edit'), head(10, 'b')],
    ...[tool(11, 'edit'), by('a', tool(12, 'edit'))],
  ];
  const keys = (start: number) =>
    buildRows(items, start).map((row) => [row.key, ...('rows' in row ? row.rows.map(({ key }) => key) : [])]);
  expect(keys(0)).toEqual([
    ['subagent 1', 'tools 5'],
    ['tools 2', '2', '3', '4', '6', '7', '9'],
    ['subagent 10'],
    ['tools 11', '11'],
  ]);
  expect(keys(6)).toEqual([
    ['subagent 1', 'tools 5'],
    ['tools 2', '7', '9'],
    ['subagent 10'],
    ['tools 11', '11'],
  ]);
  expect(keys(10)).toEqual([
    ['subagent 1', 'tools 5'],
    ['tools 11', '11'],
  ]);
  const reads = Array.from({ length: 9 }, (_, at) => tool(at + 1, 'read'));
  for (const start of [0, 1, 7]) expect(keysOf(buildRows(reads, start))).toEqual([['reads 1']]);
  const mixed = [tool(0, 'edit'), ...reads];
  for (const start of [0, 1, 3]) {
    const [group] = buildRows(mixed, start);
    expect([group!.key, keysOf([group!])]).toEqual(['tools 0', [[...(start ? [] : ['0']), 'reads 1']]]);
  }
});

test('a review of a call outside a group ends it, wherever the window starts', () => {
  const items = [tool(1, 'edit'), stop, tool(2, 'edit'), ask(3, '1'), tool(4, 'edit'), tool(5, 'edit')];
  const keys = (start: number) => buildRows(items, start).map(({ key }) => key);
  expect(keys(0).slice(2)).toEqual(['tools 2', '3', 'tools 4']);
  expect([keys(3), keys(4), keys(5)]).toEqual([['3', 'tools 4'], ['tools 4'], ['tools 4']]);
});

test('an answered permission review is in the row of its tool call; others have their own row', () => {
  const yes = { type: 'selected', option_id: 'y', option: null } as const;
  const rowsOf = (permission: Item) => buildRows([tool(1, 'edit'), tool(2, 'read'), permission, stop]);
  const answered = rowsOf({ ...ask(3, '1', yes), answered_by: 'ana' });
  expect(keysOf(answered)).toEqual([['1', '2'], '9']);
  expect([holds(answered[0]!, '3'), answered.flatMap(listWaiting)]).toEqual([true, []]);
  expect(sameRow(answered[0]!, rowsOf(ask(3, '1'))[0]!)).toBe(false);
  expect(keysOf(rowsOf(ask(3, '1')))).toEqual([['1', '2', '3'], '9']);
  expect(rowsOf(ask(3, '1')).flatMap(listWaiting)).toHaveLength(1);
  expect(keysOf(rowsOf({ ...ask(3, '1', yes), undeliverable: true }))).toEqual([['1', '2', '3'], '9']);
  expect(keysOf(rowsOf(ask(3, '1', { type: 'withdrawn' })))).toEqual([['1', '2', '3'], '9']);
  expect(keysOf(rowsOf(ask(3, 'another', yes)))).toEqual([['1', '2'], '3', '9']);
});

test('the first start of an agent has no row, but a later one and each end have', () => {
  const status = (seq: number, is: 'running' | 'failed'): Item => ({
    ...{ kind: 'status', key: String(seq), seq, ts: seq, turn: null, subagent: null, status: is },
    ...{ session_id: null, exit_code: null, exit_signal: null, reason: null },
  });
  const items = [status(1, 'running'), status(2, 'failed'), status(3, 'running')];
  expect(keysOf(buildRows(items))).toEqual(['2', '3']);
});

test('rows are in turns, and a turn that began before the first row keeps its prompt', () => {
  const prompt = (seq: number): Item => ({
    ...{ kind: 'user_message', key: String(seq), seq, ts: seq, turn: seq, subagent: null, prompt_id: 'p' },
    ...{ body: { parts: [], chars: 0, text_chars: 0, omitted_chars: 0 }, too_large: null },
  });
  const items = [tool(1, 'edit'), prompt(2), tool(3, 'edit'), stop, prompt(10), tool(11, 'edit')];
  const turns = (start: number) =>
    listTurns(buildRows(items, start), items, start).map(({ prompt, rows }) => [
      prompt?.seq ?? null,
      ...rows.map((row) => getItem(row).seq),
    ]);
  expect(turns(0)).toEqual([
    [null, 1],
    [2, 2, 3, 9],
    [10, 10, 11],
  ]);
  expect(turns(2)).toEqual([
    [2, 3, 9],
    [10, 10, 11],
  ]);
});

test('a row shows its time after a pause of more than five minutes since the end of the row before', () => {
  const [row] = buildRows([{ ...tool(1000, 'edit'), ended_ts: 1400 }]);
  const after = (seq: number) => isAfterPause(buildRows([tool(seq, 'edit')])[0]!, row);
  expect([after(1700), after(1701), isAfterPause(row!, undefined)]).toEqual([false, true, false]);
});

test('finds the item that contains an event', () => {
  const items = [tool(3, 'edit'), tool(7, 'edit'), stop];
  expect(findItem(items, 8)?.seq).toBe(7);
  expect(findItem(items, 100)).toBe(stop);
  expect(findItem(items, 2)).toBeNull();
  expect([parseSeq('#e1843'), parseSeq('e7'), parseSeq('#L3'), parseSeq('')]).toEqual([1843, 7, null, null]);
});

test('the window follows the newest items, until the user extends it; then dropped items do not move it', () => {
  expect(windowStart(null, { left_out: 0, total: 20 })).toBe(0);
  expect(windowStart(null, { left_out: 0, total: PAGE + 120 })).toBe(100);
  expect(windowStart(null, { left_out: 90, total: PAGE + 120, pages: 2 })).toBe(0);
  expect(windowStart(40, { left_out: 0, total: 500 })).toBe(40);
  expect(windowStart(40, { left_out: 30, total: 500 })).toBe(10);
  expect(windowStart(40, { left_out: 60, total: 500 })).toBe(0);
});

test('finds the next or previous failure from an event, or the first or newest one without an event', () => {
  const status: Item = {
    ...{ kind: 'status', key: '20', seq: 20, ts: 20, turn: null, subagent: null, status: 'failed' },
    ...{ session_id: null, exit_code: 3, exit_signal: null, reason: null },
  };
  const refused: Item = { ...stop, key: '15', seq: 15, reason: 'refusal' };
  const items = [tool(1, 'edit', 'failed'), tool(2, 'edit'), stop, refused, status];
  const next = (seq: number | null, direction: 1 | -1) => failureNextTo(items, seq, direction)?.seq ?? null;
  expect([next(null, 1), next(null, -1)]).toEqual([1, 20]);
  expect([next(1, 1), next(2, 1), next(15, 1), next(20, 1)]).toEqual([15, 15, 20, null]);
  expect([next(20, -1), next(9, -1), next(1, -1)]).toEqual([15, 1, null]);
});

function head(seq: number, id: string, subagent: string | null = null): Delegation {
  return {
    ...{ kind: 'delegation', key: String(seq), seq, ts: seq, turn: 1, subagent, id, name: id },
    ...{ description: null, status: 'running', stop_reason: null, tool_calls: 0, unknown_session: false },
  };
}
const by = (subagent: string, item: Item): Item => ({ ...item, subagent });
const ask = (seq: number, call_id = '', outcome: Outcome | null = null): Permission => ({
  ...{
    kind: 'permission',
    key: String(seq),
    seq,
    ts: seq,
    turn: 1,
    subagent: null,
    review_id: 'r',
    requester: null,
  },
  ...{
    call: mergeCall(readToolCall({ toolCallId: call_id })),
    options: [],
    outcome,
    answered_by: null,
    settled_ts: null,
  },
  ...{ undeliverable: false, too_large: null },
});

/** The numbers of the items. Those of a sub-agent are in a nested list, after the number of its row. */
function tree(rows: readonly Row[]): unknown[] {
  return rows.flatMap((row): unknown[] => {
    if (row.type === 'tools') return tree(row.rows);
    if (row.type === 'subagent') return [[row.head.seq, ...tree(row.rows)]];
    return [
      listOwn(row)
        .map(({ seq }) => seq)
        .join('+'),
    ].map((seqs) => (row.type === 'reads' ? seqs : Number(seqs)));
  });
}

test('a sub-agent’s items are below its row, including those of its own sub-agents', () => {
  const items = [
    tool(1, 'edit'),
    head(2, 'a'),
    tool(3, 'edit'),
    by('a', tool(4, 'read')),
    by('a', tool(5, 'read')),
    head(6, 'b', 'a'),
    by('a', tool(7, 'read')),
    by('b', tool(8, 'edit')),
    tool(9, 'edit'),
    head(10, 'a'),
    by('a', tool(11, 'edit')),
  ];
  expect(tree(buildRows(items))).toEqual([1, [2, '4+5', [6, 8], 7], 3, 9, [10, 11]]);
  // A window that starts later has the same rows.
  expect(tree(buildRows(items, 7))).toEqual([[2, [6, 8]], 9, [10, 11]]);
  expect(tree(buildRows(items, 0, 3))).toEqual([1, [2], 3]);
  const [, group] = buildRows(items);
  expect([getItem(group!).seq, holds(group!, '8'), holds(group!, '2'), holds(group!, '3')]).toEqual([
    ...[2, true, true, false],
  ]);
  expect(buildRows(items).every((row, at) => sameRow(row, buildRows(items)[at]!))).toBe(true);
  const changed = items.map((item) => (item.seq === 8 ? by('b', tool(8, 'edit', 'failed')) : item));
  expect(sameRow(buildRows(changed)[1]!, group!)).toBe(false);
});

test('finds a sub-agent’s pending review', () => {
  const items = [
    head(1, 'a'),
    head(2, 'b', 'a'),
    by('b', ask(3)),
    by('a', ask(4, '', { type: 'withdrawn' })),
  ];
  expect(buildRows(items).flatMap(listWaiting).map(getItem)).toEqual([items[2]]);
});

test('every item appears exactly once, however sub-agents are nested', () => {
  const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g');
  const item = fc.oneof(fc.record({ id, subagent: fc.option(id) }), fc.record({ subagent: fc.option(id) }));
  const seqs = (rows: readonly Row[]): number[] =>
    rows.flatMap((row) =>
      row.type === 'tools' || row.type === 'subagent' ? seqs(row.rows) : listOwn(row).map(({ seq }) => seq),
    );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 30 }), fc.nat(30), (parts, start) => {
      const items = parts.map((part, at) =>
        'id' in part ? head(at, part.id, part.subagent) : { ...tool(at, 'edit'), subagent: part.subagent },
      );
      const wanted = items.slice(start).filter(({ kind }) => kind === 'tool');
      expect(seqs(buildRows(items, start)).toSorted((a, b) => a - b)).toEqual(wanted.map(({ seq }) => seq));
    }),
  );
});
