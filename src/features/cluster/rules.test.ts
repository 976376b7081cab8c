import { expect, test } from 'vitest';
import { countStates, SILENT_MS, stateOf } from './rules.ts';

const plane = (claim: number | null, beat_at: number) => ({ claim, beat_at });
const states = (planes: ReturnType<typeof plane>[]) => planes.map((each) => stateOf(each, planes));

test('one plane is active, and the others stand by', () => {
  expect(states([plane(1, 1_000), plane(null, 900), plane(null, 1_500)])).toEqual([
    'active',
    'standby',
    'standby',
  ]);
});

test('a plane without heartbeats is silent, and so is one that was replaced', () => {
  const now = 100_000;
  expect(
    states([
      plane(7, now),
      plane(6, now - 1),
      plane(null, now - SILENT_MS - 1),
      plane(null, now - SILENT_MS),
    ]),
  ).toEqual(['active', 'silent', 'silent', 'standby']);
});

test('no planes have no states', () => {
  expect(states([])).toEqual([]);
});

test('planes are counted by state, and a plane alone is active', () => {
  expect(countStates([plane(2, 1_000), plane(1, 900), plane(null, 900), plane(null, 950)])).toEqual({
    active: 1,
    standby: 2,
    silent: 1,
  });
  expect(countStates([])).toEqual({ active: 1, standby: 0, silent: 0 });
});
