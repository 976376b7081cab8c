/** Queries about users. They are not in a feature, because agents, teams, reviews and tokens look users up too. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import { preparedQuery } from './prepared-query.ts';
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';

export type UserRow = Selectable<Tables['users']>;

const byId = preparedQuery((sql, id: string) => sql.selectFrom('users').selectAll().where('id', '=', id));
const byName = preparedQuery((sql, name: string) =>
  sql.selectFrom('users').selectAll().where('username', '=', name),
);

export function findUser(reader: Reader, id: string): Promise<UserRow | undefined> {
  return reader.get(byId(reader, id));
}

export function findUserByName(reader: Reader, username: string): Promise<UserRow | undefined> {
  return reader.get(byName(reader, username));
}

const rootsByAge = preparedQuery((sql, limit: number) =>
  sql
    .selectFrom('users')
    .selectAll()
    .where('role', '=', 'root')
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit),
);

/** At most `limit` users with the role root, oldest first. */
export function oldestRoots(reader: Reader, limit: number): Promise<UserRow[]> {
  return reader.all(rootsByAge(reader, limit));
}

/** Whether there is a root user; joining is then closed. */
export async function hasRoot(reader: Reader): Promise<boolean> {
  return (await oldestRoots(reader, 1)).length > 0;
}

/** Whether every one of these ids is a user with the role root; true for an empty list. The ids must be distinct. */
export async function areRoot(reader: Reader, user_ids: readonly string[]): Promise<boolean> {
  if (user_ids.length === 0) return true;
  const roots = reader.sql.selectFrom('users').select('id').where('role', '=', 'root');
  return (await reader.all(roots.where('id', 'in', user_ids))).length === user_ids.length;
}

/** The names of the users with these ids, in alphabetical order. Skips unknown ids. */
export async function usernamesOf(reader: Reader, user_ids: readonly string[]): Promise<string[]> {
  const users = reader.sql.selectFrom('users').select('username').where('id', 'in', user_ids);
  return (await reader.all(users.orderBy('username'))).map(({ username }) => username);
}

/** A subquery: the ids of users with this name or id. */
export function idsOfUser({ sql }: Pick<Reader, 'sql'>, name_or_id: string) {
  return sql
    .selectFrom('users')
    .select('id')
    .where(({ eb, or }) => or([eb('username', '=', name_or_id), eb('id', '=', name_or_id)]));
}

/** At most `limit` users, newest first, that follow the position `after` (`[created_at, id]`). */
export function listUsers(
  reader: Reader,
  page: { after: readonly [number, string] | undefined; limit: number | undefined },
): Promise<UserRow[]> {
  const { after, limit } = page;
  let query = reader.sql.selectFrom('users').selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc');
  if (after) {
    query = query.where(({ eb, refTuple, tuple }) => eb(refTuple('created_at', 'id'), '<', tuple(...after)));
  }
  return reader.all(limit === undefined ? query : query.limit(limit));
}

/** Throws the database's error if the id or the username exists. */
export async function insertUser(tx: Tx, row: Insertable<Tables['users']>): Promise<void> {
  await tx.run(tx.sql.insertInto('users').values(row));
}

/** Does nothing if the user does not exist. */
export async function updateUser(tx: Tx, id: string, changes: Updateable<Tables['users']>): Promise<void> {
  await tx.run(tx.sql.updateTable('users').set(changes).where('id', '=', id));
}

/** Deletes a user, if it exists, and all rows that refer to it with a cascading foreign key. */
export async function deleteUser(tx: Tx, id: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('users').where('id', '=', id));
}
