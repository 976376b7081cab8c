/** SQL for devices and their messages. The rules are in the service. */
import { hash } from 'node:crypto';
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../base/clock.ts';
import type { View } from '../../core/policy.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { agentInView } from '../../store/views.ts';
import type { Role } from '../accounts/rules.ts';
import { countWaitingRuns, countWaitingSteps } from '../runs/queries/waiting.ts';
import type { PushKind, PushSubscriptionRecord } from './rules.ts';

export type SubscriptionRow = Selectable<Tables['push_subscriptions']>;
/** A device with the name and the role of its user. */
export type UserDevice = SubscriptionRow & { username: string; role: Role };
export type PushMessageRow = Selectable<Tables['push_messages']>;
/** A message with the user of its device. */
export type AddressedMessage = PushMessageRow & { subscription_id: string } & Pick<
    UserDevice,
    'user_id' | 'token_id' | 'username' | 'role'
  >;
export type PushKeyRow = Selectable<Tables['push_keys']>;

// --- the plane's key --------------------------------------------------------------------------------------------------

export function findPushKey(reader: Reader): Promise<PushKeyRow | undefined> {
  return reader.get(reader.sql.selectFrom('push_keys').selectAll());
}

export async function putPushKey(tx: Tx, row: Omit<PushKeyRow, 'id'>): Promise<void> {
  const query = tx.sql.insertInto('push_keys').values({ id: 1, ...row });
  await tx.run(query.onConflict((conflict) => conflict.column('id').doUpdateSet(row)));
}

// --- devices ----------------------------------------------------------------------------------------------------------

export async function insertSubscription(
  tx: Tx,
  row: Insertable<Tables['push_subscriptions']>,
): Promise<void> {
  await tx.run(tx.sql.insertInto('push_subscriptions').values(row));
}

export async function updateSubscription(
  tx: Tx,
  num: number,
  changes: Updateable<Tables['push_subscriptions']>,
): Promise<void> {
  await tx.run(tx.sql.updateTable('push_subscriptions').set(changes).where('num', '=', num));
}

export async function deleteSubscription(tx: Tx, num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('push_subscriptions').where('num', '=', num));
}

export function findSubscription(reader: Reader, id: string): Promise<UserDevice | undefined> {
  return reader.get(userDevices(reader).where('push_subscriptions.id', '=', id));
}

export function subscriptionOfEndpoint(
  reader: Reader,
  endpoint: string,
): Promise<SubscriptionRow | undefined> {
  return reader.get(reader.sql.selectFrom('push_subscriptions').selectAll().where('endpoint', '=', endpoint));
}

/** A user's devices, newest first. */
export function listSubscriptions(
  reader: Reader,
  user_id: string,
  { before_num, limit }: { before_num?: number | undefined; limit?: number | undefined } = {},
): Promise<SubscriptionRow[]> {
  let query = reader.sql.selectFrom('push_subscriptions').selectAll().where('user_id', '=', user_id);
  if (before_num !== undefined) query = query.where('num', '<', before_num);
  if (limit !== undefined) query = query.limit(limit);
  return reader.all(query.orderBy('num', 'desc'));
}

function userDevices({ sql }: Pick<Reader, 'sql'>) {
  return sql
    .selectFrom('push_subscriptions')
    .innerJoin('users', 'users.id', 'push_subscriptions.user_id')
    .selectAll('push_subscriptions')
    .select(['users.username', 'users.role']);
}

/** Active devices of these users, and active devices that also want notifications about other users' agents. */
export function listUserSubscriptions(reader: Reader, user_ids: readonly string[]): Promise<UserDevice[]> {
  return reader.all(
    userDevices(reader)
      .where('push_subscriptions.status', '=', 'active')
      .where((eb) =>
        eb.or([eb('push_subscriptions.user_id', 'in', user_ids), eb('push_subscriptions.of_others', '=', 1)]),
      )
      .orderBy('push_subscriptions.num'),
  );
}

/** Expires all active devices and deletes all messages, because the key that the devices subscribed with was replaced. */
export async function expireSubscriptions(tx: Tx, last_error: string): Promise<number> {
  const expired = { status: 'expired', last_error } as const;
  const active = tx.sql.updateTable('push_subscriptions').set(expired).where('status', '=', 'active');
  await tx.run(tx.sql.deleteFrom('push_messages'));
  return (await tx.run(active)).changes;
}

/** Deletes the devices that were subscribed with this token. */
export async function deleteSubscriptionsOfToken(tx: Tx, token_id: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('push_subscriptions').where('token_id', '=', token_id));
}

/** Deletes all devices of a user, except those of the token `keep_token_id`. */
export async function deleteSubscriptionsOfUser(
  tx: Tx,
  user_id: string,
  keep_token_id: string | null,
): Promise<void> {
  let query = tx.sql.deleteFrom('push_subscriptions').where('user_id', '=', user_id);
  if (keep_token_id !== null) query = query.where('token_id', '!=', keep_token_id);
  await tx.run(query);
}

export function toSubscription(
  row: SubscriptionRow,
  { token_id }: { token_id: string },
): PushSubscriptionRecord {
  return {
    id: row.id,
    user_agent: row.user_agent,
    service: new URL(row.endpoint).host,
    fingerprint: hash('sha256', row.endpoint, 'base64url'),
    kinds: JSON.parse(row.kinds) as PushKind[],
    with_commands: row.with_commands === 1,
    of_others: row.of_others === 1,
    status: row.status,
    failures: row.failures,
    last_error: row.last_error,
    last_success_at: rfc3339OrNull(row.last_success_at),
    current: row.token_id === token_id,
    created_at: rfc3339(row.created_at),
  };
}

// --- messages ---------------------------------------------------------------------------------------------------------

export function findMessage(reader: Reader, num: number): Promise<PushMessageRow | undefined> {
  return reader.get(reader.sql.selectFrom('push_messages').selectAll().where('num', '=', num));
}

export function findDeviceMessageByTag(
  reader: Reader,
  subscription_num: number,
  tag: string,
): Promise<PushMessageRow | undefined> {
  return reader.get(
    reader.sql
      .selectFrom('push_messages')
      .selectAll()
      .where('subscription_num', '=', subscription_num)
      .where('tag', '=', tag),
  );
}

export function listMessagesByTag(reader: Reader, tag: string): Promise<AddressedMessage[]> {
  return reader.all(
    reader.sql
      .selectFrom('push_messages')
      .innerJoin('push_subscriptions', 'push_subscriptions.num', 'push_messages.subscription_num')
      .innerJoin('users', 'users.id', 'push_subscriptions.user_id')
      .selectAll('push_messages')
      .select(['push_subscriptions.id as subscription_id', 'push_subscriptions.user_id'])
      .select(['push_subscriptions.token_id', 'users.username', 'users.role'])
      .where('push_messages.tag', '=', tag)
      .orderBy('push_messages.num'),
  );
}

/** Stores a message and returns its number. If the device has a message with this tag, its content is replaced and its number stays. */
export async function putMessage(
  tx: Tx,
  row: Omit<Insertable<Tables['push_messages']>, 'num'>,
): Promise<number> {
  const { subscription_num: _, tag: __, ...changes } = row;
  const created = await tx.get(
    tx.sql
      .insertInto('push_messages')
      .values(row)
      .onConflict((conflict) => conflict.columns(['subscription_num', 'tag']).doUpdateSet(changes))
      .returning('num'),
  );
  return created!.num;
}

export async function updateMessage(
  tx: Tx,
  num: number,
  changes: Updateable<Tables['push_messages']>,
): Promise<void> {
  await tx.run(tx.sql.updateTable('push_messages').set(changes).where('num', '=', num));
}

export async function deleteMessage(tx: Tx, num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('push_messages').where('num', '=', num));
}

/** Unsent messages of a device, oldest first. */
export function pendingMessages(reader: Reader, subscription_num: number): Promise<{ num: number }[]> {
  return reader.all(
    reader.sql
      .selectFrom('push_messages')
      .select('num')
      .where('subscription_num', '=', subscription_num)
      .where('state', '=', 'pending')
      .orderBy('num'),
  );
}

/** Deletes all messages of a device except the newest `keep`. */
export async function trimMessages(tx: Tx, subscription_num: number, keep: number): Promise<void> {
  const old = tx.sql
    .selectFrom('push_messages')
    .select('num')
    .where('subscription_num', '=', subscription_num)
    .orderBy('created_at', 'desc')
    .orderBy('num', 'desc')
    // SQLite has no OFFSET without a LIMIT, and PostgreSQL no negative one.
    .limit(Number.MAX_SAFE_INTEGER)
    .offset(keep);
  await tx.run(tx.sql.deleteFrom('push_messages').where('num', 'in', old));
}

export async function deleteOldMessages(tx: Tx, now: number): Promise<number> {
  return (await tx.run(tx.sql.deleteFrom('push_messages').where('expires_at', '<=', now))).changes;
}

// --- waiting requests -----------------------------------------------------------------------------------------------------

/**
 * Number of pending reviews and elicitations of agents in the view, of waiting steps and runs of teams in it, and of agents that
 * the user may sign in for, up to `most`.
 */
export async function countWaiting(reader: Reader, view: View, most: number): Promise<number> {
  const waiting = (table: 'reviews' | 'elicitations') =>
    reader.sql
      .selectFrom(table)
      .innerJoin('agents', 'agents.num', `${table}.agent_num`)
      .select(`${table}.num`)
      .where(`${table}.status`, '=', sql.lit('pending'))
      .where(agentInView(reader, view))
      .limit(most);
  const requests =
    (await reader.all(waiting('reviews'))).length + (await reader.all(waiting('elicitations'))).length;
  const of_teams =
    (await countWaitingSteps(reader, view, most)) + (await countWaitingRuns(reader, view, most));
  const others = of_teams + (await countSignIns(reader, view, most));
  return Math.min(most, requests + others);
}

/** Counts the agents in the view that belong to its user, or all. */
async function countSignIns(reader: Reader, view: View, most: number): Promise<number> {
  let query = reader.sql
    .selectFrom('agents')
    .select('agents.num')
    .where('agents.sign_in_since', 'is not', null);
  if (view.user_id !== null) query = query.where('agents.owner_id', '=', view.user_id);
  query = query.where(agentInView(reader, view));
  return (await reader.all(query.limit(most))).length;
}
