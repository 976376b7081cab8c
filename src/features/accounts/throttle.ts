/**
 * Slows down password guessing. It counts failures in three ways, in rows that survive a restart:
 *
 * - per network address: a number of failures per minute, for all users;
 * - per user and address: a few failures, then a delay that doubles with every further one;
 * - per user from all addresses: the same, so that using many addresses does not help. So that an attacker cannot lock out the
 *   owner of an account, the first attempt from an address without failures is exempt, up to a limit.
 *
 * A user is familiar at an address where they are signed in, or have signed in recently. There, only failures with their own name
 * block them: they may share the address with an attacker, for example with an agent of this machine.
 *
 * Every block expires, even if the clock was ahead when it began and has been set back: a count from further in the future than
 * the longest delay is void. Unknown usernames are counted like known ones. Passkeys cannot be guessed, so their failures count
 * only for the address.
 */
import { hash } from 'node:crypto';
import { networkPrefix } from '../../base/network.ts';
import { type Problem, problems } from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { hasSignedInFrom } from '../tokens/queries.ts';
import { limits } from './limits.ts';
import {
  deleteExpiredFailures,
  deleteFailures,
  type FailureCount,
  findFailures,
  putFailures,
} from './queries.ts';

interface Rule {
  /** Failures in the window that cause no delay. */
  free: number;
  window_ms: number;
  /** The delay after the last free failure, in milliseconds; each further failure doubles it. */
  delay_ms: number;
  delay_ms_max: number;
}

const perAddress: Rule = {
  free: limits.login_failures_per_ip,
  window_ms: limits.login_ip_window_ms,
  delay_ms: limits.login_ip_window_ms,
  delay_ms_max: limits.login_ip_window_ms,
};
const perUser: Rule = {
  free: limits.login_failures_max,
  window_ms: limits.login_window_ms,
  delay_ms: limits.login_delay_ms,
  delay_ms_max: limits.login_delay_ms_max,
};

/** An attempt to sign in. */
export interface Attempt {
  username: string;
  /** The user is signed in at this address, or has signed in there recently; see `isFamiliar`. */
  familiar: boolean;
  ip: string | null;
}

/** Whether the user is signed in at this address, or has signed in there in the last `limits.login_familiar_ms`. */
export async function isFamiliar(
  reader: Reader,
  user_id: string,
  ip: string | null,
  now: number,
): Promise<boolean> {
  if (await hasSignedInFrom(reader, user_id, ip)) return true;
  const { blocked_until = 0 } = (await findFailures(reader, familiarKey(user_id, ip))) ?? {};
  return blocked_until > now && blocked_until <= now + limits.login_familiar_ms;
}

/** Makes the user familiar at this address. */
export async function remember(tx: Tx, user_id: string, ip: string | null, now: number): Promise<void> {
  // A row without failures, which is swept when it expires.
  const row = { failures: 0, blocked_until: now + limits.login_familiar_ms, window_started_at: now };
  await putFailures(tx, familiarKey(user_id, ip), row);
}

/** Throws a 429 with the seconds to wait if the attempt is blocked. */
export async function admit(reader: Reader, attempt: Attempt, now: number): Promise<void> {
  const keys = throttleKeys(attempt);
  const pair = await findFailures(reader, keys.pair);
  let until = blockedUntil(pair, perUser, now);
  if (!attempt.familiar) {
    const address = await findFailures(reader, keys.address);
    const user = await findFailures(reader, keys.user);
    const first = pair === undefined || isOver(pair, perUser, now);
    const exempt = first && (user?.failures ?? 0) < limits.login_failures_per_user_max;
    until = Math.max(until, blockedUntil(address, perAddress, now));
    if (!exempt) until = Math.max(until, blockedUntil(user, perUser, now));
  }
  if (until > now) throw tooManyAttempts(until - now);
}

/** Like `admit`, for attempts that do not guess a password, so that only the address counts. */
export async function admitAddress(reader: Reader, ip: string | null, now: number): Promise<void> {
  const until = blockedUntil(await findFailures(reader, addressKey(ip)), perAddress, now);
  if (until > now) throw tooManyAttempts(until - now);
}

/** Counts a failure after `admitAddress`; returns whether it started a block. */
export function failAddress(tx: Tx, ip: string | null, now: number): Promise<boolean> {
  return count(tx, addressKey(ip), perAddress, now);
}

/** Counts a failed attempt; returns whether it started a block. */
export async function fail(tx: Tx, attempt: Attempt, now: number): Promise<boolean> {
  const keys = throttleKeys(attempt);
  const blocks = [
    await count(tx, keys.address, perAddress, now),
    await count(tx, keys.pair, perUser, now),
    await count(tx, keys.user, perUser, now),
  ];
  return blocks.some(Boolean);
}

/** Clears the failures of this user at this address; failures elsewhere still count. */
export async function succeed(tx: Tx, attempt: Attempt): Promise<void> {
  await deleteFailures(tx, throttleKeys(attempt).pair);
}

/** Deletes expired counts. */
export function sweepThrottle(tx: Tx, now: number): Promise<number> {
  return deleteExpiredFailures(tx, {
    now,
    earliest: now - limits.login_window_ms,
    latest: now + limits.login_delay_ms_max,
  });
}

/** A 429 with `Retry-After` of at least one second. */
export function tooManyAttempts(wait_ms: number): Problem {
  return problems.tooManyAttempts({ retry_after_s: Math.max(1, Math.ceil(wait_ms / 1000)) });
}

/** Usernames are hashed, because an attempt may contain anything, such as a password in the wrong field. */
function throttleKeys({ username, ip }: Attempt) {
  const network = networkPrefix(ip);
  const name = hash('sha256', username, 'base64url');
  return { address: addressKey(ip), pair: `pair:${name}:${network}`, user: `user:${name}` };
}

function addressKey(ip: string | null): string {
  return `ip:${networkPrefix(ip)}`;
}

function familiarKey(user_id: string, ip: string | null): string {
  return `familiar:${user_id}:${networkPrefix(ip)}`;
}

async function count(tx: Tx, key: string, rule: Rule, now: number): Promise<boolean> {
  const before = await findFailures(tx, key);
  const fresh = before === undefined || isOver(before, rule, now);
  const failures = (fresh ? 0 : before.failures) + 1;
  const excess = failures - rule.free;
  const blocked_until =
    excess < 0 ? 0 : now + Math.min(rule.delay_ms * 2 ** Math.min(excess, 30), rule.delay_ms_max);
  const window_started_at = excess < 0 && !fresh ? before.window_started_at : Math.max(now, blocked_until);
  await putFailures(tx, key, { failures, blocked_until, window_started_at });
  return excess >= 0;
}

/** 0 if there is no block. */
function blockedUntil(row: FailureCount | undefined, rule: Rule, now: number): number {
  return row === undefined || isFromFuture(row, rule, now) ? 0 : row.blocked_until;
}

/** The window starts at the first failure, or at the end of the last block. */
function isOver(row: FailureCount, rule: Rule, now: number): boolean {
  const { blocked_until, window_started_at } = row;
  return isFromFuture(row, rule, now) || (now >= blocked_until && now >= window_started_at + rule.window_ms);
}

/** The clock was ahead when the failure was counted, and has been set back since. */
function isFromFuture({ window_started_at }: FailureCount, rule: Rule, now: number): boolean {
  return window_started_at > now + rule.delay_ms_max;
}
