/** Compares the clock of this machine, which decides when timers fire and what expires, with that of the server. */
import type pg from 'pg';
import { systemClock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { limits } from './limits.ts';

const NOW = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms';

/** Warns if the clocks differ. Nothing depends on that for safety. */
export async function checkClock(client: pg.Client, log: Logger): Promise<void> {
  const { rows } = await client.query<{ ms: number }>(NOW);
  const ahead_ms = systemClock.now() - rows[0]!.ms;
  if (Math.abs(ahead_ms) <= limits.clock_difference_ms) return;
  const ahead_s = Math.round(ahead_ms / 1000);
  log.warn({ ahead_s }, 'the clock of this machine differs from that of PostgreSQL: synchronize them');
}
