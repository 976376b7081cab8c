/** SQL for the messages of tasks: rows in, rows and records out. The service has the rules. */
import type { Insertable, Selectable } from 'kysely';
import { rfc3339 } from '../../../base/clock.ts';
import { messageContains } from '../../../store/dialects.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import type { Message } from '../rules/message.ts';

export type MessageRow = Selectable<Tables['messages']> & {
  team_id: string;
  task_id: string;
  conversation_id: string;
  run_id: string | null;
};

function messageQuery(builder: Reader['sql']) {
  return builder
    .selectFrom('messages')
    .innerJoin('teams', 'teams.num', 'messages.team_num')
    .innerJoin('tasks', 'tasks.num', 'messages.task_num')
    .leftJoin('runs', 'runs.num', 'messages.run_num')
    .selectAll('messages')
    .select(['teams.id as team_id', 'tasks.id as task_id', 'tasks.conversation_id', 'runs.id as run_id']);
}

export interface MessageFilter {
  task_num: number;
  /** Number of the first message of a reply thread: it, and all replies that follow from it. */
  thread?: number | undefined;
  /** Words and phrases that the text must contain. */
  phrases?: readonly string[] | undefined;
  after_num?: number | undefined;
  up_to_num?: number | undefined;
  /** Newest first, and only those before this one; `Infinity`: starting with the newest. */
  before_num?: number | undefined;
  limit: number;
}

/** Oldest first, unless `before_num` is given. */
export function listMessages(reader: Reader, filter: MessageFilter): Promise<MessageRow[]> {
  const { task_num, thread, phrases, after_num = 0, up_to_num, before_num, limit } = filter;
  let query = messageQuery(reader.sql)
    .where('messages.task_num', '=', task_num)
    .where('messages.num', '>', after_num)
    .orderBy('messages.num', before_num === undefined ? 'asc' : 'desc');
  if (up_to_num !== undefined) query = query.where('messages.num', '<=', up_to_num);
  if (before_num !== undefined && Number.isFinite(before_num)) {
    query = query.where('messages.num', '<', before_num);
  }
  if (thread !== undefined) {
    query = query.where((eb) => eb.or([eb('messages.num', '=', thread), eb('messages.thread', '=', thread)]));
  }
  if (phrases !== undefined) query = query.where(messageContains(reader, phrases, after_num));
  return reader.all(query.limit(limit));
}

/** The newest messages, oldest first. */
export async function latestMessages(reader: Reader, task_num: number, limit: number): Promise<MessageRow[]> {
  const query = messageQuery(reader.sql).where('messages.task_num', '=', task_num);
  return (await reader.all(query.orderBy('messages.num', 'desc').limit(limit))).reverse();
}

/** Messages that no run has delivered, oldest first. */
export function waitingMessages(reader: Reader, task_num: number): Promise<MessageRow[]> {
  return reader.all(
    messageQuery(reader.sql)
      .where('messages.task_num', '=', task_num)
      .where('messages.run_num', 'is', null)
      .orderBy('messages.num'),
  );
}

export function findMessage(reader: Reader, task_num: number, num: number): Promise<MessageRow | undefined> {
  return reader.get(
    messageQuery(reader.sql).where('messages.num', '=', num).where('messages.task_num', '=', task_num),
  );
}

/** The number of messages in a thread, and the newest one. */
export async function countMessages(
  reader: Reader,
  task_num: number,
): Promise<{ count: number; last: number | null }> {
  return (await reader.get(
    reader.sql
      .selectFrom('messages')
      .select(({ fn }) => [fn.countAll<number>().as('count'), fn.max<number | null>('num').as('last')])
      .where('task_num', '=', task_num),
  ))!;
}

export async function insertMessage(tx: Tx, row: Insertable<Tables['messages']>): Promise<number> {
  return (await tx.get(tx.sql.insertInto('messages').values(row).returning('num')))!.num;
}

export async function markDelivered(tx: Tx, num: number, run_num: number): Promise<void> {
  await tx.run(tx.sql.updateTable('messages').set({ run_num }).where('num', '=', num));
}

export function toMessage(row: MessageRow): Message {
  const payload = JSON.parse(row.payload) as Record<string, unknown>;
  return {
    id: row.num,
    team_id: row.team_id,
    task_id: row.task_id,
    conversation_id: row.conversation_id,
    run_id: row.run_id,
    // The number of the run stays when the run is deleted.
    delivered: row.run_num !== null,
    from_actor_id: row.from_actor_id,
    route: row.route,
    to_actor_id: row.to_actor_id,
    payload,
    text: typeof payload.text === 'string' ? payload.text : null,
    reply_to: row.reply_to,
    thread: row.thread ?? row.num,
    created_at: rfc3339(row.created_at),
  };
}

/** Changes the actor id of a person in all messages. */
export async function renameInMessages(tx: Tx, from: string, to: string): Promise<void> {
  const messages = tx.sql.updateTable('messages');
  await tx.run(messages.set({ from_actor_id: to }).where('from_actor_id', '=', from));
  await tx.run(messages.set({ to_actor_id: to }).where('to_actor_id', '=', from));
}
