import { expect, test } from 'vitest';
import { countStates, SILENT_MS, withStates } from './rules.ts';

let names = 0;
const plane = (claim: number | null, beat_at: number, name = `plane ${names++}`, started_at = 0) => ({
  ...{ name, claim, started_at, beat_at },
});
const states = (planes: ReturnType<typeof plane>[]) => withStates(planes).map(({ state }) => state);

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

test('a silent plane is left out while a later plane of its name lives', () => {
  const named = (planes: ReturnType<typeof plane>[]) =>
    withStates(planes).map(({ name, state }) => `${name} ${state}`);
  const active = plane(2, 100_000, 'b');
  const [dead, again] = [plane(1, 1_000, 'a'), plane(null, 99_000, 'a', 20_000)];
  const gone = plane(null, 50_000, 'c');
  expect(named([active, dead, again, gone])).toEqual(['b active', 'a standby', 'c silent']);
  expect(named([active, dead, gone])).toEqual(['b active', 'a silent', 'c silent']);
  // Two planes that have the same name by mistake.
  expect(named([active, plane(null, 10_000, 'b', 5_000)])).toEqual(['b active', 'b silent']);
});

test('no planes have no states', () => {
  expect(states([])).toEqual([]);
});

test('planes are counted by state', () => {
  expect(
    countStates(withStates([plane(2, 1_000), plane(1, 900), plane(null, 900), plane(null, 950)])),
  ).toEqual({
    active: 1,
    standby: 2,
    silent: 1,
  });
});
