/**
 * Slows the guessing of passwords, in rows that outlive a restart. Three counts, of failures only:
 *
 * - per network address: so many a minute, whoever they were for;
 * - per user and address: a few, then a delay that doubles at every further failure;
 * - per user from everywhere: the same, so that many addresses do not add up. An address where the user is signed in
 *   is exempt, and one that has not failed yet has one try even so, up to a ceiling: whoever attacks an account does
 *   not lock its owner out.
 *
 * Every block ends by itself. Unknown usernames are counted like known ones. A passkey is no guess: where it fails, the
 * address alone is counted.
 */
import { hash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { limits } from '../base/limits.ts';
import { Problem } from '../domain/problem.ts';
import type { Reader, Tx } from '../store/store.ts';

interface Count {
  failures: number;
  window_started_at: number;
  blocked_until: number;
}

interface Rule {
  /** Failures that are free within the window. */
  free: number;
  window_ms: number;
  /** The delay after the last free failure; doubled by each further one. */
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

/** Who tries to sign in, from where. */
export interface Attempt {
  username: string;
  /** The user is signed in at this address. */
  familiar: boolean;
  ip: string | null;
}

/** Throws the 429 with the seconds to wait when the attempt is not to be looked at. */
export function admit(reader: Reader, attempt: Attempt, now: number): void {
  const keys = keysOf(attempt);
  const address = find(reader, keys.address);
  const pair = find(reader, keys.pair);
  const user = find(reader, keys.user);
  let until = Math.max(address?.blocked_until ?? 0, pair?.blocked_until ?? 0);
  const first = pair === undefined || isOver(pair, perUser, now);
  const exempt = attempt.familiar || (first && (user?.failures ?? 0) < limits.login_failures_per_user_max);
  if (!exempt) until = Math.max(until, user?.blocked_until ?? 0);
  if (until > now) throw tooManyAttempts(until - now);
}

/** As `admit`, for what is no guess at somebody's password: the address alone counts. */
export function admitAddress(reader: Reader, ip: string | null, now: number): void {
  const until = find(reader, addressKey(ip))?.blocked_until ?? 0;
  if (until > now) throw tooManyAttempts(until - now);
}

/** Counts what `admitAddress` let through and failed; answers whether it began a block. */
export function failAddress(tx: Tx, ip: string | null, now: number): boolean {
  return count(tx, addressKey(ip), perAddress, now);
}

/** Counts a failed attempt; answers whether it began a block. */
export function fail(tx: Tx, attempt: Attempt, now: number): boolean {
  const keys = keysOf(attempt);
  const blocks = [
    count(tx, keys.address, perAddress, now),
    count(tx, keys.pair, perUser, now),
    count(tx, keys.user, perUser, now),
  ];
  return blocks.some(Boolean);
}

/** Forgets the failures of this user at this address; what came from elsewhere stays counted. */
export function succeed(tx: Tx, attempt: Attempt): void {
  tx.run(tx.sql.deleteFrom('login_throttle').where('key', '=', keysOf(attempt).pair));
}

/** Deletes counts that no longer matter. */
export function sweepThrottle(tx: Tx, now: number): number {
  return tx.run(
    tx.sql
      .deleteFrom('login_throttle')
      .where('blocked_until', '<=', now)
      .where('window_started_at', '<=', now - limits.login_window_ms),
  ).changes;
}

export function tooManyAttempts(wait_ms: number): Problem {
  return new Problem('rate_limited', 'too_many_attempts', 'too many attempts; try again later', {
    retry_after_s: Math.max(1, Math.ceil(wait_ms / 1000)),
  });
}

/** The address that is counted: an IPv6 host owns its whole /64. */
export function networkOf(ip: string | null): string {
  if (ip === null || !ipaddr.isValid(ip)) return 'unknown';
  const address = ipaddr.process(ip);
  if (address.kind() === 'ipv4') return address.toString();
  return ipaddr.IPv6.networkAddressFromCIDR(`${ip.split('%')[0]}/64`).toString();
}

/** Usernames are hashed: an attempt may name anything, a password typed into the wrong field too. */
function keysOf({ username, ip }: Attempt) {
  const network = networkOf(ip);
  const name = hash('sha256', username, 'base64url');
  return { address: addressKey(ip), pair: `pair:${name}:${network}`, user: `user:${name}` };
}

function addressKey(ip: string | null): string {
  return `ip:${networkOf(ip)}`;
}

function count(tx: Tx, key: string, rule: Rule, now: number): boolean {
  const before = find(tx, key);
  const fresh = before === undefined || isOver(before, rule, now);
  const failures = (fresh ? 0 : before.failures) + 1;
  const beyond = failures - rule.free;
  const blocked_until =
    beyond < 0 ? 0 : now + Math.min(rule.delay_ms * 2 ** Math.min(beyond, 30), rule.delay_ms_max);
  const window_started_at = beyond < 0 && !fresh ? before.window_started_at : Math.max(now, blocked_until);
  const row = { failures, blocked_until, window_started_at };
  tx.run(
    tx.sql
      .insertInto('login_throttle')
      .values({ key, ...row })
      .onConflict((conflict) => conflict.column('key').doUpdateSet(row)),
  );
  return beyond >= 0;
}

/** The window runs from the first failure, or from the end of the last block. */
function isOver(row: Count, rule: Rule, now: number): boolean {
  return now >= row.blocked_until && now >= row.window_started_at + rule.window_ms;
}

function find(reader: Reader, key: string): Count | undefined {
  return reader.get(
    reader.sql
      .selectFrom('login_throttle')
      .select(['failures', 'window_started_at', 'blocked_until'])
      .where('key', '=', key),
  );
}
