/** Queries about tokens: sign-ins and API tokens. */
import type { Selectable } from 'kysely';
import { preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type TokenRow = Selectable<Tables['tokens']>;
export type TokenKind = TokenRow['kind'];

const byId = preparedQuery((sql, id: string) => sql.selectFrom('tokens').selectAll().where('id', '=', id));

export function findToken(reader: Reader, id: string): Promise<TokenRow | undefined> {
  return reader.get(byId(reader, id));
}

/** A token with the name and role of its user, by its id or by the SHA-256 of its secret. */
export function tokenOfUser(reader: Reader, by: { id: string } | { hash: Uint8Array }) {
  const query = reader.sql
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .select(['tokens.id', 'tokens.hash', 'tokens.user_id', 'tokens.kind', 'tokens.ip'])
    .select(['tokens.scopes', 'tokens.agent_ids', 'tokens.team_ids'])
    .select(['tokens.last_used_at', 'tokens.idle_expires_at', 'tokens.expires_at'])
    .select(['users.username', 'users.role']);
  return reader.get(
    'id' in by ? query.where('tokens.id', '=', by.id) : query.where('tokens.hash', '=', by.hash),
  );
}

/** The user's tokens of one kind, newest first; those after a position of `[created_at, id]`, at most `limit`. */
export function listTokens(
  reader: Reader,
  user_id: string,
  kind: TokenKind,
  { after, limit }: { after: readonly [number, string] | undefined; limit: number },
): Promise<TokenRow[]> {
  let query = reader.sql
    .selectFrom('tokens')
    .selectAll()
    .where('user_id', '=', user_id)
    .where('kind', '=', kind)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc');
  if (after) {
    query = query.where(({ eb, refTuple, tuple }) => eb(refTuple('created_at', 'id'), '<', tuple(...after)));
  }
  return reader.all(query.limit(limit));
}

/** Ids of all tokens of a user. */
export async function listTokenIds(reader: Reader, user_id: string): Promise<string[]> {
  const tokens = reader.sql.selectFrom('tokens').select('id').where('user_id', '=', user_id);
  return (await reader.all(tokens)).map(({ id }) => id);
}

/** Ids of the user's sign-ins except the `keep` that were used last, at most `limit`. */
export async function signInsBeyond(
  reader: Reader,
  user_id: string,
  keep: number,
  limit: number,
): Promise<string[]> {
  const crowd = reader.sql
    .selectFrom('tokens')
    .select('id')
    .where('user_id', '=', user_id)
    .where('kind', '=', 'session')
    .orderBy('last_used_at', 'desc')
    .limit(limit)
    .offset(keep);
  return (await reader.all(crowd)).map(({ id }) => id);
}

export async function countApiTokens(reader: Reader, user_id: string): Promise<number> {
  const tokens = reader.sql.selectFrom('tokens').where('user_id', '=', user_id).where('kind', '=', 'api');
  return Number((await reader.get(tokens.select((where) => where.fn.countAll().as('n'))))!.n);
}

/** Ids of tokens that have expired at `now`, because of their age or because they were not used. */
export async function expiredTokens(reader: Reader, now: number): Promise<string[]> {
  const expired = reader.sql
    .selectFrom('tokens')
    .select('id')
    .where((where) => where.or([where('expires_at', '<=', now), where('idle_expires_at', '<=', now)]));
  return (await reader.all(expired)).map(({ id }) => id);
}

/** Whether the user has a sign-in that was last used from this address; false for null. */
export async function hasSignedInFrom(reader: Reader, user_id: string, ip: string | null): Promise<boolean> {
  if (ip === null) return false;
  const sessions = reader.sql.selectFrom('tokens').select('id').where('user_id', '=', user_id);
  return (
    (await reader.get(sessions.where('kind', '=', 'session').where('ip', '=', ip).limit(1))) !== undefined
  );
}

export async function insertToken(tx: Tx, row: TokenRow): Promise<void> {
  await tx.run(tx.sql.insertInto('tokens').values(row));
}

export async function updateToken(tx: Tx, id: string, changes: Partial<Omit<TokenRow, 'id'>>): Promise<void> {
  await tx.run(tx.sql.updateTable('tokens').set(changes).where('id', '=', id));
}

/** Saves a use, unless a later one is saved already. */
export async function saveUse(
  tx: Tx,
  id: string,
  use: Pick<TokenRow, 'last_used_at' | 'idle_expires_at'> & Partial<Pick<TokenRow, 'ip'>>,
): Promise<void> {
  const update = tx.sql.updateTable('tokens').set(use).where('id', '=', id);
  await tx.run(update.where('last_used_at', '<=', use.last_used_at));
}

/** Returns whether the token existed. */
export async function deleteToken(tx: Tx, id: string): Promise<boolean> {
  return (await tx.run(tx.sql.deleteFrom('tokens').where('id', '=', id))).changes > 0;
}
