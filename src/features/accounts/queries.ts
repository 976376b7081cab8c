/** Queries about the challenge for the first root user, and about failed sign-ins. Users: `store/users.ts`. */
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type JoinRow = Tables['join_challenges'];

/** The only challenge; undefined if there has been none. */
export function findChallenge(reader: Reader): Promise<JoinRow | undefined> {
  return reader.get(reader.sql.selectFrom('join_challenges').selectAll());
}

/** Stores a challenge in place of any earlier one. */
export async function replaceChallenge(tx: Tx, row: Omit<JoinRow, 'id'>): Promise<void> {
  await tx.run(tx.sql.deleteFrom('join_challenges'));
  await tx.run(tx.sql.insertInto('join_challenges').values({ id: 1, ...row }));
}

export async function updateChallenge(
  tx: Tx,
  changes: Partial<Pick<JoinRow, 'tries_left' | 'used'>>,
): Promise<void> {
  await tx.run(tx.sql.updateTable('join_challenges').set(changes));
}

/** Failed sign-ins of one key; times in Unix milliseconds. */
export type FailureCount = Omit<Tables['login_throttle'], 'key'>;

export function findFailures(reader: Reader, key: string): Promise<FailureCount | undefined> {
  return reader.get(
    reader.sql
      .selectFrom('login_throttle')
      .select(['failures', 'window_started_at', 'blocked_until'])
      .where('key', '=', key),
  );
}

export async function putFailures(tx: Tx, key: string, count: FailureCount): Promise<void> {
  await tx.run(
    tx.sql
      .insertInto('login_throttle')
      .values({ key, ...count })
      .onConflict((conflict) => conflict.column('key').doUpdateSet(count)),
  );
}

export async function deleteFailures(tx: Tx, key: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('login_throttle').where('key', '=', key));
}

/**
 * Deletes the counts that no longer block at `now` and whose window began at `earliest` or before, and those whose window begins
 * after `latest`; returns how many.
 */
export async function deleteExpiredFailures(
  tx: Tx,
  { now, earliest, latest }: { now: number; earliest: number; latest: number },
): Promise<number> {
  const expired = tx.sql
    .deleteFrom('login_throttle')
    .where(({ and, eb, or }) =>
      or([
        and([eb('blocked_until', '<=', now), eb('window_started_at', '<=', earliest)]),
        eb('window_started_at', '>', latest),
      ]),
    );
  return (await tx.run(expired)).changes;
}
