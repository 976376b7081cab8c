/**
 * How a plane waits until it becomes active: it tries to get the lock, and reads who has it. A plane that has the lock but
 * sends no heartbeats, because it is stopped or cut off, is replaced: its connection is ended, and the number of the
 * claim keeps out what it may still write. A clock decides only when, never whether, that is safe.
 */
import type pg from 'pg';
import { sleep } from '../../base/async.ts';
import { Problem } from '../../core/problem.ts';
import { connect } from './connect.ts';
import type { PostgresOptions } from './connection.ts';
import { isUndefinedTable, reasonOf } from './errors.ts';
import { limits } from './limits.ts';
import { breakLock, tryLock } from './lock.ts';
import { Member } from './member.ts';
import { checkSupported } from './migrate.ts';
import type { Server } from './server.ts';

/**
 * Returns a connection that has the lock; `client` is the first one to use. Survives the loss of connections. Ends all
 * other ones. Throws what `member.onStandby` throws, and the reason of `member.signal`.
 */
export async function waitForTurn(
  client: pg.Client,
  options: PostgresOptions,
  server: Server,
  member: Member,
): Promise<pg.Client> {
  const { signal } = member.options;
  const silence = new Silence();
  let current: pg.Client | null = client;
  let is_logged = false;
  for (let attempt = 0; ; attempt++) {
    try {
      signal.throwIfAborted();
      current ??= await reconnect(options, server, signal);
      await checkSupported(current);
      if (await tryLock(current)) return current;
      if (attempt % limits.standby_attempts_per_look === 0) await look(current, options, member, silence);
      server.answered();
      is_logged = false;
    } catch (error) {
      const is_over = signal.aborted || error instanceof Problem;
      if (is_over && current !== null) await member.leave(current).catch(() => {});
      void current?.end().catch(() => {});
      current = null;
      if (is_over) throw error;
      silence.reset();
      if (!server.failed(error) && !is_logged) {
        options.log.warn(
          { reason: reasonOf(error) },
          'cannot read from PostgreSQL which control plane is active',
        );
      }
      is_logged = true;
    }
    await sleep(limits.standby_attempt_ms, signal);
  }
}

/** The active plane, which may have lost its connection too, gets time to continue first. */
async function reconnect(options: PostgresOptions, server: Server, signal: AbortSignal): Promise<pg.Client> {
  const client = await connect(options, server);
  await sleep(limits.standby_yield_ms, signal);
  return client;
}

async function look(
  client: pg.Client,
  options: PostgresOptions,
  member: Member,
  silence: Silence,
): Promise<void> {
  const found = await readView(client, member);
  if (found !== null && silence.observe(`${found.view.active.id} ${found.beat_at}`)) {
    const { name } = found.view.active;
    options.log.warn({ name }, 'the active control plane has stopped responding: taking over');
    await breakLock(client);
    silence.reset();
  }
  await member.options.onStandby(found?.view ?? null);
}

async function readView(client: pg.Client, member: Member): ReturnType<typeof Member.view> {
  try {
    await member.beat(client, null);
    return await Member.view(client);
  } catch (error) {
    // An earlier version is active, and this one will upgrade the schema.
    if (isUndefinedTable(error)) return null;
    throw error;
  }
}

/** Counts how often the last heartbeat of the active plane was seen, so that a pause of this process does not count. */
class Silence {
  #last = '';
  #looks = 0;

  reset(): void {
    this.#looks = 0;
  }

  /** Whether the heartbeat has been the same for too long. */
  observe(beat: string): boolean {
    this.#looks = beat === this.#last ? this.#looks + 1 : 0;
    this.#last = beat;
    return this.#looks >= limits.silent_looks_max;
  }
}
