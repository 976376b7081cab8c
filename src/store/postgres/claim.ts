/**
 * The claim of a plane on a database. Only the writes of the plane that holds it are committed.
 *
 * A session-level lock keeps other planes out. PostgreSQL releases it when the connection is lost, which the plane may not
 * notice at once. So the claim also has a number, which each write transaction compares with the one in the database. A
 * new claim changes the number while it keeps out all write transactions: those of an earlier plane that had begun have
 * ended before, and later ones find the new number. This depends on no clock.
 */
import type pg from 'pg';
import { sleep } from '../../base/async.ts';
import { describeDatabase, parseDatabaseUrl } from '../../core/database-url.ts';
import { Problem } from '../../core/problem.ts';
import type { PostgresServer } from '../store.ts';
import { checkClock } from './clock.ts';
import { connect } from './connect.ts';
import type { PostgresOptions, Result } from './connection.ts';
import { isDisconnection, isLockTimeout, mayBeStarting, reasonOf } from './errors.ts';
import { PLACE } from './history.ts';
import { limits } from './limits.ts';
import { tryLock } from './lock.ts';
import { checkSupported, migrate, steps } from './migrate.ts';
import type { Server } from './server.ts';
import { waitForTurn } from './standby.ts';

const NUMBER = 'SELECT number FROM plane_claim';

interface Backend {
  pid: number;
  started: string;
}

export class Claim {
  readonly #options: PostgresOptions;
  readonly #server: Server;
  readonly #number: string;
  readonly #place: string;
  /** That of the server on which the claim was taken. See `history.ts`. */
  readonly history: string;
  readonly #closing = new AbortController();
  /** Aborted when the connection is lost. */
  #connected: AbortController;
  /** Null while the connection is lost. */
  #client: pg.Client | null;
  /** The server's process of the connection that held the lock last. */
  #backend: Backend;
  #lost: Problem | null = null;
  readonly #watching: Promise<void>;

  /** Sent at the beginning of each write transaction. Also answers with the id of the transaction, `xid`. */
  readonly statement = 'SELECT number, pg_current_xact_id()::text AS xid FROM plane_claim';

  private constructor(options: PostgresOptions, server: Server, client: pg.Client, held: Held) {
    this.#options = options;
    this.#server = server;
    this.#number = held.number;
    this.#place = held.place;
    this.history = held.history;
    this.#backend = held.backend;
    this.#client = client;
    this.#connected = lossOf(client);
    this.#watching = this.#watch();
  }

  /**
   * Waits for the claim of a plane that has just ended, or as one of several planes until none of the others is active, and
   * creates or upgrades the schema. Throws the problem `database_in_use` or `database_unreachable`, `DatabaseTooNew`,
   * `UnsupportedDatabase`, the driver's error, or what `waitForTurn` throws.
   */
  static async acquire(options: PostgresOptions, server: Server): Promise<Claim> {
    let client = await connectPatiently(options, server);
    try {
      await checkSupported(client);
      await checkClock(client, options.log);
      if (options.member) client = await waitForTurn(client, options, server, options.member);
      else await waitForPredecessor(client, options);
      // An earlier plane must not write any more while the schema changes.
      const is_new = !(await hasClaims(client));
      if (!is_new) await take(client, options);
      const steps_run = await migrate(options, steps, server);
      if (steps_run > 0) options.log.info({ steps: steps_run }, 'database schema is up to date');
      if (is_new) await take(client, options);
      const now = await held(client);
      await options.member?.beat(client, now.number);
      await options.member?.forgetSilent(client);
      return new Claim(options, server, client, now);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }

  /** Takes the answer to `statement`. Throws the problem `claim_lost` if the plane has lost the claim. */
  check({ rows }: Pick<Result, 'rows'>): void {
    if (this.#lost !== null) throw this.#lost;
    const [row] = rows as { number: unknown }[];
    if (String(row?.number) !== this.#number) throw this.#lose(TAKEN_OVER);
  }

  /**
   * Takes the history of a server to which a connection was opened. Throws the problem `claim_lost` if it is another one: the
   * server may lack commits of this plane.
   */
  checkHistory(history: string): void {
    if (history !== this.history) throw this.#lose(MOVED);
  }

  /** Releases the claim. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#connected.abort();
    await this.#watching;
    const client = this.#client;
    if (client !== null) await this.#options.member?.leave(client).catch(() => {});
    await client?.end().catch(() => {});
  }

  #lose(message: string): Problem {
    if (this.#lost === null) {
      this.#lost = new Problem('unavailable', 'claim_lost', message);
      this.#options.onClaimLost?.(this.#lost);
    }
    return this.#lost;
  }

  /** Checks that the plane has the claim, and connects again if the connection was lost. */
  async #watch(): Promise<void> {
    let is_logged = false;
    while (!this.#closing.signal.aborted && this.#lost === null) {
      await this.#pause();
      if (this.#closing.signal.aborted) return;
      try {
        if (this.#connected.signal.aborted) await this.#connectAgain();
        if (this.#client !== null) {
          this.check(await this.#client.query<{ number: string }>(NUMBER));
          await this.#options.member?.beat(this.#client, this.#number);
        }
        is_logged = false;
        this.#server.answered();
      } catch (error) {
        if (error === this.#lost) return;
        const is_outage = !(error instanceof NotReleased) && this.#server.failed(error);
        if (!is_logged && !is_outage) {
          const reason = reasonOf(error);
          const message = isDisconnection(error)
            ? 'lost the connection to PostgreSQL that holds the claim'
            : 'cannot renew the claim on the database';
          this.#options.log.warn({ reason }, message);
          is_logged = true;
        }
        // If the server rejects a statement, for example because its disk is full, the connection still holds the lock.
        if (this.#client === null || isDisconnection(error)) this.#drop();
        await sleep(limits.reconnect_ms, this.#closing.signal);
      }
    }
  }

  async #pause(): Promise<void> {
    const { signal } = this.#connected;
    const { member } = this.#options;
    if (member) await member.changed.wait(limits.claim_check_ms, signal);
    else await sleep(limits.claim_check_ms, signal);
  }

  #drop(): void {
    void this.#client?.end().catch(() => {});
    this.#client = null;
    this.#connected.abort();
  }

  async #connectAgain(): Promise<void> {
    this.#drop();
    const client = await connect(this.#options, this.#server);
    try {
      const { number, place, backend } = await held(client);
      if (number !== this.#number) throw this.#lose(TAKEN_OVER);
      if (place !== this.#place) throw this.#lose(MOVED);
      if (!(await tryLock(client))) {
        // The server may not have noticed that the connection is lost. If another plane has the lock, it will take the number.
        await client.query(TERMINATE, [this.#backend.pid, this.#backend.started]);
        throw new NotReleased('PostgreSQL has not released the claim yet');
      }
      this.#backend = backend;
      this.#connected = lossOf(client);
      this.#client = client;
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }
}

/** The server answers, but another connection still holds the lock. */
class NotReleased extends Error {}

const TAKEN_OVER = 'another control plane has taken over the database';
const MOVED = 'PostgreSQL has failed over, or the database was restored: start svc again';
const TERMINATE = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2`;

/** Aborts when the connection is lost. */
function lossOf(client: pg.Client): AbortController {
  const controller = new AbortController();
  client.once('end', () => controller.abort());
  return controller;
}

/** Waits while the server starts. Throws the problem `database_unreachable`. */
async function connectPatiently(options: PostgresOptions, server: Server): Promise<pg.Client> {
  const end_ms = performance.now() + (options.lost_ms_max ?? limits.lost_ms_max);
  for (let is_logged = false; ; is_logged = true) {
    try {
      return await connect(options, server);
    } catch (error) {
      const reason = reasonOf(error);
      if (!mayBeStarting(error) || performance.now() >= end_ms) {
        const message = `cannot connect to the database ${nameOf(options)}: ${reason}`;
        throw new Problem('unavailable', 'database_unreachable', message);
      }
      if (!is_logged) options.log.warn({ reason }, 'waiting for PostgreSQL');
      await sleep(limits.reconnect_ms);
    }
  }
}

async function waitForPredecessor(client: pg.Client, options: PostgresOptions): Promise<void> {
  const end_ms = performance.now() + limits.claim_wait_ms;
  while (!(await tryLock(client))) {
    if (performance.now() >= end_ms) throw await inUse(client, options);
    await sleep(limits.reconnect_ms);
  }
}

async function hasClaims(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `SELECT to_regclass('plane_claim') IS NOT NULL AS found`,
  );
  return rows[0]!.found;
}

async function inUse(client: pg.Client, options: PostgresOptions): Promise<Problem> {
  const query = 'SELECT holder FROM plane_claim';
  const { rows } = (await hasClaims(client)) ? await client.query<{ holder: string }>(query) : { rows: [] };
  const by = rows[0]?.holder ? `by ${rows[0].holder}` : 'by another control plane';
  return new Problem('conflict', 'database_in_use', `the database ${nameOf(options)} is in use ${by}`);
}

/** Takes the next number, once no write transaction is running. */
async function take(client: pg.Client, options: PostgresOptions): Promise<void> {
  try {
    await client.query({ text: LOCK_GATE, query_timeout: limits.last_writes_ms_max * 2 } as pg.QueryConfig);
    await client.query('UPDATE plane_claim SET number = number + 1, holder = $1', [options.holder ?? '']);
    await client.query('COMMIT');
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    const message = `an earlier control plane still writes to the database ${nameOf(options)}: try again`;
    throw new Problem('conflict', 'database_in_use', message);
  }
}

const LOCK_GATE = `
  BEGIN; SET LOCAL lock_timeout = ${limits.last_writes_ms_max}; LOCK TABLE gate IN EXCLUSIVE MODE`;

interface Held {
  number: string;
  history: string;
  place: string;
  backend: Backend;
}

async function held(client: pg.Client): Promise<Held> {
  const claim = await client.query<{ number: string }>(NUMBER);
  const place = await client.query<{ history: string; place: string }>(PLACE);
  const backend = await client.query<Backend>(
    'SELECT pid, backend_start::text AS started FROM pg_stat_activity WHERE pid = pg_backend_pid()',
  );
  return { number: claim.rows[0]!.number, ...place.rows[0]!, backend: backend.rows[0]! };
}

function nameOf({ url }: PostgresServer): string {
  const address = parseDatabaseUrl(url);
  return typeof address === 'string' ? '' : describeDatabase(address);
}
