/** Queries about the challenge for the first root user, and about failed sign-ins. Users: `store/users.ts`. */
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type JoinRow = Tables['join_challenges'];

/** The only challenge; undefined if there has been none. */
export function findChallenge(reader: Reader): JoinRow | undefined {
  return reader.get(reader.sql.selectFrom('join_challenges').selectAll());
}

/** Stores a challenge in place of any earlier one. */
export function replaceChallenge(tx: Tx, row: Omit<JoinRow, 'id'>): void {
  tx.run(tx.sql.deleteFrom('join_challenges'));
  tx.run(tx.sql.insertInto('join_challenges').values({ id: 1, ...row }));
}

export function updateChallenge(tx: Tx, changes: Partial<Pick<JoinRow, 'tries_left' | 'used'>>): void {
  tx.run(tx.sql.updateTable('join_challenges').set(changes));
}

/** Failed sign-ins of one key; times in Unix milliseconds. */
export type FailureCount = Omit<Tables['login_throttle'], 'key'>;

export function findFailures(reader: Reader, key: string): FailureCount | undefined {
  return reader.get(
    reader.sql
      .selectFrom('login_throttle')
      .select(['failures', 'window_started_at', 'blocked_until'])
      .where('key', '=', key),
  );
}

export function putFailures(tx: Tx, key: string, count: FailureCount): void {
  tx.run(
    tx.sql
      .insertInto('login_throttle')
      .values({ key, ...count })
      .onConflict((conflict) => conflict.column('key').doUpdateSet(count)),
  );
}

export function deleteFailures(tx: Tx, key: string): void {
  tx.run(tx.sql.deleteFrom('login_throttle').where('key', '=', key));
}

/** Deletes the counts that no longer block at `now` and whose window began at `started_by` or before; returns how many. */
export function deleteExpiredFailures(tx: Tx, now: number, started_by: number): number {
  return tx.run(
    tx.sql
      .deleteFrom('login_throttle')
      .where('blocked_until', '<=', now)
      .where('window_started_at', '<=', started_by),
  ).changes;
}
