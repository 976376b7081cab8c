import { expect, test } from 'vitest';
import { deriveTeamKey, TEAM_KEY } from './key.ts';

const derive = (name: string, ...taken: string[]) => deriveTeamKey(name, async (key) => taken.includes(key));

test.each([
  ['demo', 'DEM'],
  ['Payment service', 'PAY'],
  ['1st-übung', 'STU'],
  ['qa', 'QA'],
  ['x', 'TSK'],
  ['チーム', 'TSK'],
])('the key of %s is %s', async (name, key) => {
  expect(await derive(name)).toBe(key);
});

test('a taken key gets a fourth letter', async () => {
  expect(await derive('demo', 'DEM')).toBe('DEMB');
  expect(await derive('demo', 'DEM', 'DEMB')).toBe('DEMC');
  expect(await derive('qa', 'QA')).toBe('QAAAA');
});

test('a hundred teams of the same name get different keys', async () => {
  const taken = new Set<string>();
  for (let n = 0; n < 100; n++) {
    const key = await deriveTeamKey('demo', async (known) => taken.has(known));
    expect(key).toMatch(TEAM_KEY);
    taken.add(key);
  }
  expect(taken.size).toBe(100);
});
