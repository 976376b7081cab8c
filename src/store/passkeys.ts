/** Queries about passkeys and their open challenges: rows in, rows out. Rules stand in `services/passkeys.ts`. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';

export type PasskeyRow = Selectable<Tables['passkeys']>;

/** Of one user, oldest first. */
export function passkeysOf(reader: Reader, user_id: string): PasskeyRow[] {
  return reader.all(
    reader.sql
      .selectFrom('passkeys')
      .selectAll()
      .where('user_id', '=', user_id)
      .orderBy('created_at')
      .orderBy('id'),
  );
}

export function findPasskey(reader: Reader, id: string): PasskeyRow | undefined {
  return reader.get(reader.sql.selectFrom('passkeys').selectAll().where('id', '=', id));
}

export function passkeyOfCredential(reader: Reader, credential_id: Uint8Array): PasskeyRow | undefined {
  return reader.get(reader.sql.selectFrom('passkeys').selectAll().where('credential_id', '=', credential_id));
}

export function insertPasskey(tx: Tx, row: PasskeyRow): void {
  tx.run(tx.sql.insertInto('passkeys').values(row));
}

export function updatePasskey(tx: Tx, id: string, changes: Updateable<Tables['passkeys']>): void {
  tx.run(tx.sql.updateTable('passkeys').set(changes).where('id', '=', id));
}

export function deletePasskey(tx: Tx, id: string): void {
  tx.run(tx.sql.deleteFrom('passkeys').where('id', '=', id));
}

/** In place of the one that the sign-in had open before. */
export function openRegistration(tx: Tx, row: Tables['passkey_registrations']): void {
  tx.run(tx.sql.replaceInto('passkey_registrations').values(row));
}

/** The open registration of a sign-in, which it has no more. */
export function takeRegistration(tx: Tx, token_id: string): Tables['passkey_registrations'] | undefined {
  const row = tx.get(tx.sql.selectFrom('passkey_registrations').selectAll().where('token_id', '=', token_id));
  tx.run(tx.sql.deleteFrom('passkey_registrations').where('token_id', '=', token_id));
  return row;
}

/** The newest stay: so many of a network, and so many in all. */
export function openLogin(
  tx: Tx,
  row: Insertable<Tables['passkey_logins']>,
  keep: { per_network: number; in_all: number },
): void {
  tx.run(tx.sql.insertInto('passkey_logins').values(row));
  const newest = tx.get(tx.sql.selectFrom('passkey_logins').select('num').orderBy('num', 'desc').limit(1))!;
  tx.run(tx.sql.deleteFrom('passkey_logins').where('num', '<=', newest.num - keep.in_all));
  const of_network = tx.sql.selectFrom('passkey_logins').where('network', '=', row.network);
  const crowded = tx.get(of_network.select('num').orderBy('num', 'desc').limit(1).offset(keep.per_network));
  if (!crowded) return;
  const older = tx.sql.deleteFrom('passkey_logins').where('network', '=', row.network);
  tx.run(older.where('num', '<=', crowded.num));
}

/** An open login, which nobody can finish any more. */
export function takeLogin(tx: Tx, id: string): Selectable<Tables['passkey_logins']> | undefined {
  const row = tx.get(tx.sql.selectFrom('passkey_logins').selectAll().where('id', '=', id));
  tx.run(tx.sql.deleteFrom('passkey_logins').where('id', '=', id));
  return row;
}

/** Deletes challenges that are over; answers how many. */
export function sweepChallenges(tx: Tx, now: number): number {
  return (
    tx.run(tx.sql.deleteFrom('passkey_registrations').where('expires_at', '<=', now)).changes +
    tx.run(tx.sql.deleteFrom('passkey_logins').where('expires_at', '<=', now)).changes
  );
}
