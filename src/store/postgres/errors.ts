/** Errors of PostgreSQL, by their SQLSTATE, as what the store does about them. */
import type pg from 'pg';
import { Problem } from '../../core/problem.ts';
import { noSpace, storageDamaged, storageFailed } from '../problems.ts';

/** Thrown if a connection was lost or could not be opened. `cause` is the driver's error. */
export class Disconnected extends Error {
  constructor(cause: unknown) {
    super('the connection to PostgreSQL was lost', { cause });
    this.name = 'Disconnected';
  }
}

/** Thrown if a transaction has to run again: nothing of it was committed. */
export class Again extends Error {
  constructor(cause: unknown) {
    super('the transaction was not committed', { cause });
    this.name = 'Again';
  }
}

/** Thrown if none of several hosts can be used. */
export class NoPrimary extends Error {
  /** Whether one of them may be starting, or become the primary. */
  readonly may_be_starting: boolean;

  constructor(message: string, may_be_starting: boolean) {
    super(message);
    this.name = 'NoPrimary';
    this.may_be_starting = may_be_starting;
  }
}

function sqlState(error: unknown): string | null {
  const { code } = (error ?? {}) as { code?: unknown };
  // No SQLSTATE begins like the codes of the system, such as EPIPE.
  return typeof code === 'string' && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : null;
}

const TOO_MANY_CONNECTIONS = '53300';

/** With these, the server ends the connection. */
const endings = new Set(['57P01', '57P02', '57P03', '57P04', '57P05', '25P03', TOO_MANY_CONNECTIONS]);

/** Whether the connection cannot be used any more. Errors of conversions have neither a code nor to do with it. */
export function isDisconnection(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return false;
  const state = sqlState(error);
  return state === null || state.startsWith('08') || endings.has(state);
}

/** Whether a table does not exist, because an earlier version made the schema. */
export function isUndefinedTable(error: unknown): boolean {
  return sqlState(error) === '42P01';
}

/** A standby has no current position in its log. */
const STANDBY = '55000';

/** Whether a connection could not be opened because the server cannot be reached, or is not the primary. */
export function isServerUnreachable(error: unknown): boolean {
  if (error instanceof Problem) return false;
  const state = sqlState(error);
  return state === STANDBY || (state !== TOO_MANY_CONNECTIONS && isDisconnection(error));
}

/** An operator, or a hosting provider whose disk is nearly full, has made the database read-only. */
const READ_ONLY = '25006';

/** Whether the server has no disk space left. */
export function isDiskFull(error: unknown): boolean {
  return sqlState(error) === '53100';
}

/** Whether a lock was not obtained within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/**
 * Whether a prepared statement cannot be executed any more: a migration changed the columns that it returns, or somebody
 * deallocated it. Other unsupported features have the same SQLSTATE, but come from other functions of the server.
 */
export function isStaleStatement(error: unknown): boolean {
  const state = sqlState(error);
  return (
    state === '26000' ||
    (state === '0A000' && (error as pg.DatabaseError).routine === 'RevalidateCachedQuery')
  );
}

/** The server, or its machine or network, is starting. */
const startings = new Set([
  ...['57P03', 'ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
]);
/** The driver's message if a server does not answer in time. That error has no code. */
const NO_ANSWER = 'timeout expired';

/** Whether a connection could not be opened because the server may not have started yet, or has too much to do. */
export function mayBeStarting(error: unknown): boolean {
  if (error instanceof NoPrimary) return error.may_be_starting;
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (typeof code === 'string' && startings.has(code)) || message === NO_ANSWER;
}

/** What went wrong, in one line. An error to connect to several addresses has no message. */
export function reasonOf(error: unknown): string {
  const { message, errors } = error as { message: string; errors?: readonly Error[] };
  return (message || errors?.[0]?.message || String(error)).split('\n')[0]!;
}

/** No serial order, a deadlock, a lock that could not be obtained in time. */
const conflicts = new Set(['40001', '40P01', '55P03']);

/** Whether a transaction failed because of other ones, so that it can run again at once. */
export function isConflict(error: unknown): boolean {
  return conflicts.has(sqlState(error) ?? '');
}

/** Whether a transaction can run again: it was not committed, and may succeed later. */
export function canRunAgain(error: unknown): boolean {
  return error instanceof Disconnected || error instanceof Again || isConflict(error);
}

/** The problem that clients see for a failure of the database; null for other errors, such as a constraint violation. */
export function storageProblem(error: unknown): Problem | null {
  if (canRunAgain(error)) return storageFailed();
  const state = sqlState(error);
  if (isDiskFull(error)) return noSpace();
  if (state === 'XX001' || state === 'XX002') return storageDamaged();
  return state !== null && (/^(53|57|58)/.test(state) || state === READ_ONLY) ? storageFailed() : null;
}
