import { expect, test } from 'vitest';
import { deriveTeamKey, TEAM_KEY } from './key.ts';

const derive = (name: string, ...taken: string[]) => deriveTeamKey(name, async () => taken);

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
    const key = await derive('demo', ...taken);
    expect(key).toMatch(TEAM_KEY);
    taken.add(key);
  }
  expect(taken.size).toBe(100);
});

test('a name whose keys are all taken is refused, with what to do', async () => {
  const taken: string[] = [];
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  for (const c of letters) {
    taken.push(`QA${c}`, `QAB${c}`);
    for (const d of letters) for (const e of letters) taken.push(`QA${c}${d}${e}`);
  }
  const key = derive('qab', ...taken);
  await expect(key).rejects.toMatchObject({ kind: 'conflict', code: 'team_keys_taken' });
});
