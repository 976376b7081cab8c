import type pg from 'pg';
import { expect, test } from 'vitest';
import type { Logger } from '../../base/log.ts';
import { checkClock } from './clock.ts';

const HOUR_MS = 3_600_000;

/** The warnings for a server whose clock differs by this much from the one of this machine. */
async function warningsFor(difference_ms: number): Promise<unknown[]> {
  const warnings: unknown[] = [];
  const client = {
    query: async () => ({ rows: [{ ms: Date.now() + difference_ms }] }),
  } as unknown as pg.Client;
  const log = { warn: (fields: object) => warnings.push(fields) } as unknown as Logger;
  await checkClock(client, log);
  return warnings;
}

test('warns if the clock of this machine is ahead or behind', async () => {
  expect(await warningsFor(-HOUR_MS)).toEqual([{ ahead_s: 3600 }]);
  expect(await warningsFor(HOUR_MS)).toEqual([{ ahead_s: -3600 }]);
  expect(await warningsFor(0)).toEqual([]);
});
