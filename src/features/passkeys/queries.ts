/** Queries for passkeys and their open challenges. The rules are in `features/passkeys/service.ts`. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type PasskeyRow = Selectable<Tables['passkeys']>;

/** The passkeys of a user, oldest first. */
export function listPasskeys(reader: Reader, user_id: string): Promise<PasskeyRow[]> {
  return reader.all(
    reader.sql
      .selectFrom('passkeys')
      .selectAll()
      .where('user_id', '=', user_id)
      .orderBy('created_at')
      .orderBy('id'),
  );
}

export function findPasskey(reader: Reader, id: string): Promise<PasskeyRow | undefined> {
  return reader.get(reader.sql.selectFrom('passkeys').selectAll().where('id', '=', id));
}

/** The passkey with this credential id, of any user. */
export function passkeyOfCredential(
  reader: Reader,
  credential_id: Uint8Array,
): Promise<PasskeyRow | undefined> {
  return reader.get(reader.sql.selectFrom('passkeys').selectAll().where('credential_id', '=', credential_id));
}

export async function insertPasskey(tx: Tx, row: PasskeyRow): Promise<void> {
  await tx.run(tx.sql.insertInto('passkeys').values(row));
}

export async function updatePasskey(
  tx: Tx,
  id: string,
  changes: Updateable<Tables['passkeys']>,
): Promise<void> {
  await tx.run(tx.sql.updateTable('passkeys').set(changes).where('id', '=', id));
}

export async function deletePasskey(tx: Tx, id: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('passkeys').where('id', '=', id));
}

/** Replaces the open registration of the sign-in, if any. */
export async function openRegistration(tx: Tx, row: Tables['passkey_registrations']): Promise<void> {
  const query = tx.sql.insertInto('passkey_registrations').values(row);
  await tx.run(query.onConflict((conflict) => conflict.column('token_id').doUpdateSet(row)));
}

/** Deletes and returns the open registration of a sign-in. */
export async function takeRegistration(
  tx: Tx,
  token_id: string,
): Promise<Tables['passkey_registrations'] | undefined> {
  const row = await tx.get(
    tx.sql.selectFrom('passkey_registrations').selectAll().where('token_id', '=', token_id),
  );
  await tx.run(tx.sql.deleteFrom('passkey_registrations').where('token_id', '=', token_id));
  return row;
}

/** Stores a login; keeps only the newest, with limits per network and in total. */
export async function openLogin(
  tx: Tx,
  row: Insertable<Tables['passkey_logins']>,
  keep: { per_network: number; in_all: number },
): Promise<void> {
  await tx.run(tx.sql.insertInto('passkey_logins').values(row));
  const newest = (await tx.get(
    tx.sql.selectFrom('passkey_logins').select('num').orderBy('num', 'desc').limit(1),
  ))!;
  await tx.run(tx.sql.deleteFrom('passkey_logins').where('num', '<=', newest.num - keep.in_all));
  const of_network = tx.sql.selectFrom('passkey_logins').where('network', '=', row.network);
  const crowded = await tx.get(
    of_network.select('num').orderBy('num', 'desc').limit(1).offset(keep.per_network),
  );
  if (!crowded) return;
  const older = tx.sql.deleteFrom('passkey_logins').where('network', '=', row.network);
  await tx.run(older.where('num', '<=', crowded.num));
}

/** Deletes and returns an open login, so that it can be finished only once. */
export async function takeLogin(
  tx: Tx,
  id: string,
): Promise<Selectable<Tables['passkey_logins']> | undefined> {
  const row = await tx.get(tx.sql.selectFrom('passkey_logins').selectAll().where('id', '=', id));
  await tx.run(tx.sql.deleteFrom('passkey_logins').where('id', '=', id));
  return row;
}

/** Deletes expired challenges; returns how many. */
export async function sweepChallenges(tx: Tx, now: number): Promise<number> {
  return (
    (await tx.run(tx.sql.deleteFrom('passkey_registrations').where('expires_at', '<=', now))).changes +
    (await tx.run(tx.sql.deleteFrom('passkey_logins').where('expires_at', '<=', now))).changes
  );
}
