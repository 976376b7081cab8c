import { expect, test } from 'vitest';
import { elicitationRecord } from '../../../testing/elicitation-record.ts';
import { reviewRecord } from '../../../testing/review-record.ts';
import type { ReviewRecord } from '../../api/queries.ts';
import { elicitationItem, reviewItem } from '../../waiting/queue.ts';
import {
  answeredInLastDay,
  filterItems,
  keysInPlace,
  listChoices,
  listRecent,
  nextItem,
  shortKindName,
} from './shown.ts';

const review = (id: string, minute: number, fields: Partial<ReviewRecord> = {}) =>
  reviewItem(
    reviewRecord({
      id,
      tool_call: { kind: 'edit' },
      created_at: `2026-11-22T10:${String(minute).padStart(2, '0')}:00.000Z`,
      ...fields,
    }),
  );
const ids = (reviews: { id: string }[]) => reviews.map(({ id }) => id);
const old = review('old', 1, { status: 'answered', answered_at: '2026-11-22T10:30:00.000Z' });
const older = review('older', 0, { status: 'cancelled', answered_at: '2026-11-22T10:20:00.000Z' });
const all = [
  review('c', 9),
  old,
  review('a', 3, { tool_call: {} }),
  older,
  review('b', 4, { team_id: 'team_1' }),
];

test('the oldest pending request comes first, and one that is settled while it is shown keeps its place', () => {
  expect(ids(filterItems(all, {}, new Set()))).toEqual(['a', 'b', 'c']);
  expect(ids(filterItems(all, {}, new Set(['old'])))).toEqual(['old', 'a', 'b', 'c']);
  expect(ids(listRecent(all, new Set(), 9))).toEqual(['old', 'older']);
  expect(ids(listRecent(all, new Set(['old']), 9))).toEqual(['older']);
});

test('the last 20 settled requests keep their place, in the order in which they were settled', () => {
  const requests = Array.from({ length: 23 }, (_, n) => review(`r${n}`, n));
  const isSettled = new Set<string>();
  const current = () =>
    requests.map((item) => ({ ...item, open: !isSettled.has(item.id), settled_at: null }));
  let seen = keysInPlace(new Set(), current(), undefined);
  // The newest first: the one that was settled last is the one at the top.
  for (const { id } of requests.toReversed().slice(0, 22)) {
    isSettled.add(id);
    seen = keysInPlace(seen, current(), 'r22');
  }
  const shown = filterItems(current(), {}, seen);
  expect(ids(shown)).toEqual([...ids(requests.slice(0, 21)), 'r22']);
  expect(shown.filter(({ open }) => open)).toHaveLength(1);
  expect(keysInPlace(seen, current(), 'r22')).toEqual(seen);
});

test('the requests that were answered in the last day are counted, with their median wait', () => {
  const now_ms = Date.parse('2026-11-22T11:00:00.000Z');
  expect(answeredInLastDay(all, now_ms)).toBe('2 answered in the last 24 hours · median wait 29m');
  expect(answeredInLastDay(all, now_ms + 2 * 86_400_000)).toBe('');
});

test('filters are combined, and offer the values of pending requests and the current choice', () => {
  expect(ids(filterItems(all, { team: 'team_1', kind: 'edit' }, new Set()))).toEqual(['b']);
  expect(ids(filterItems(all, { kind: 'other' }, new Set()))).toEqual(['a']);
  const names = { agents: [], teams: new Map([['team_1', 'Shop']]) };
  const choices = listChoices(all, { kind: 'execute' }, names);
  expect(choices.team.map(({ label }) => label)).toEqual(['All teams', 'Shop']);
  expect(choices.kind).toEqual([
    { value: '', label: 'All kinds' },
    { value: 'edit', label: 'Permission · edit' },
    { value: 'execute', label: 'Permission · execute' },
    { value: 'other', label: 'Permission · other' },
  ]);
});

test('an agent’s kind may have any name', () => {
  const odd = review('odd', 5, { tool_call: { kind: 'constructor' } });
  const { kind } = listChoices([odd], {}, { agents: [], teams: new Map() });
  expect(kind).toContainEqual({ value: 'constructor', label: 'Permission · constructor' });
});

test('the next request is the one that has waited longest after an answered one, and then the first', () => {
  const open = filterItems(all, {}, new Set());
  const [a, b, c] = open;
  expect(nextItem(open, a!)).toBe(b);
  expect(nextItem(open, c!)).toBe(a);
  expect(nextItem([{ ...a!, open: false }, b!], b!)).toBe(undefined);
});

test('elicitations are listed with the reviews, as a separate kind', () => {
  const form = elicitationItem(
    elicitationRecord({ id: 'form', created_at: '2026-11-22T10:03:30.000Z', team_id: 'team_1' }),
  );
  const requests = [...all, form];
  expect(ids(filterItems(requests, {}, new Set()))).toEqual(['a', 'form', 'b', 'c']);
  expect(ids(filterItems(requests, { team: 'team_1' }, new Set()))).toEqual(['form', 'b']);
  expect(ids(filterItems(requests, { kind: 'input' }, new Set()))).toEqual(['form']);
  expect([form, ...all].map(shortKindName).slice(0, 2)).toEqual(['Form or link', 'Permission']);
  const { kind } = listChoices(requests, {}, { agents: [], teams: new Map() });
  expect(kind.map(({ label }) => label)).toEqual([
    'All kinds',
    'Form or link',
    'Permission · edit',
    'Permission · other',
  ]);
});
