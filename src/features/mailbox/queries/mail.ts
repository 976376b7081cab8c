/** SQL for mail: rows in, rows and records out. The service has the rules. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../../base/clock.ts';
import type { View } from '../../../core/policy.ts';
import { jsonNumberTable } from '../../../store/dialects.ts';
import { preparedInsert, preparedQuery, preparedUpdate } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import { teamsInView } from '../../../store/views.ts';
import type { Mail, MailHead, MailStatus } from '../rules/mail.ts';

export type MailRow = Selectable<Tables['mail']> & { run_id: string };

/** An attempt of a run. */
interface RunAttempt {
  num: number;
  attempt: number;
}

function mailQuery(builder: Reader['sql']) {
  return builder
    .selectFrom('mail')
    .innerJoin('runs', 'runs.num', 'mail.run_num')
    .selectAll('mail')
    .select('runs.id as run_id');
}

/** Literals, because the partial index of inboxes covers only these. */
const unacknowledged = sql<boolean>`mail.status IN ('pending', 'delivered')`;
/** The plus makes SQLite use the index of inboxes; the run's index has all its mail, 1 ms for 2,500 messages. */
const run_of_inbox = sql<number>`+mail.run_num`;

const mailByNum = preparedQuery((builder, num: number) => mailQuery(builder).where('mail.num', '=', num));
const mailByKey = preparedQuery((builder, from_actor_id: string, key: string) =>
  mailQuery(builder).where('mail.from_actor_id', '=', from_actor_id).where('mail.idempotency_key', '=', key),
);

export function findMail(reader: Reader, num: number): Promise<MailRow | undefined> {
  return reader.get(mailByNum(reader, num));
}

/** The message that a sender sent with this idempotency key. */
export function findMailOfKey(
  reader: Reader,
  from_actor_id: string,
  key: string,
): Promise<MailRow | undefined> {
  return reader.get(mailByKey(reader, from_actor_id, key));
}

const newMail = preparedInsert('mail', 'num');
const changedMail = preparedUpdate('mail', 'num');

export async function insertMail(tx: Tx, row: Insertable<Tables['mail']>): Promise<number> {
  return (await tx.get(newMail(tx, row)))!.num;
}

export async function updateMail(tx: Tx, num: number, changes: Updateable<Tables['mail']>): Promise<void> {
  await tx.run(changedMail(tx, changes, num));
}

export interface InboxFilter {
  to_actor_id: string;
  run_num?: number | undefined;
  /** Only mail of these teams' runs; absent: all. */
  view?: View | undefined;
  /** Absent: unacknowledged mail of the runs' current attempts. */
  status?: MailStatus | 'all' | undefined;
  limit: number;
}

const inboxOf = preparedQuery((builder, to_actor_id: string, limit: number) =>
  openInbox(builder, to_actor_id).limit(limit),
);
const inboxOfRun = preparedQuery((builder, to_actor_id: string, run_num: number, limit: number) =>
  openInbox(builder, to_actor_id).where(run_of_inbox, '=', run_num).limit(limit),
);

/** Oldest first. */
export function listInbox(reader: Reader, filter: InboxFilter): Promise<MailRow[]> {
  const { to_actor_id, run_num, view, status, limit } = filter;
  if (view === undefined && status === undefined) {
    if (run_num === undefined) return reader.all(inboxOf(reader, to_actor_id, limit));
    return reader.all(inboxOfRun(reader, to_actor_id, run_num, limit));
  }
  const is_open = status === undefined;
  let query = is_open ? openInbox(reader.sql, to_actor_id) : wholeInbox(reader.sql, to_actor_id);
  if (run_num !== undefined) query = query.where(is_open ? run_of_inbox : 'mail.run_num', '=', run_num);
  if (view !== undefined) query = query.where('mail.team_num', 'in', teamsInView(reader, view));
  if (status !== undefined && status !== 'all') query = query.where('mail.status', '=', status);
  return reader.all(query.limit(limit));
}

function wholeInbox(builder: Reader['sql'], to_actor_id: string) {
  return mailQuery(builder).where('mail.to_actor_id', '=', to_actor_id).orderBy('mail.num');
}

/** Unacknowledged mail of the runs' current attempts. */
function openInbox(builder: Reader['sql'], to_actor_id: string) {
  return wholeInbox(builder, to_actor_id)
    .where(unacknowledged)
    .whereRef('mail.run_attempt', '=', 'runs.attempt');
}

function inboxQuery(reader: Reader, run: RunAttempt, to_actor_id: string) {
  return mailQuery(reader.sql)
    .where(unacknowledged)
    .where('mail.to_actor_id', '=', to_actor_id)
    .where(run_of_inbox, '=', run.num)
    .where('mail.run_attempt', '=', run.attempt);
}

/**
 * The messages to mention in an agent's next prompt: first those that no prompt has mentioned, then those that one prompt has
 * mentioned whose turn is over. A withdrawn prompt does not count.
 */
export function mailToMention(
  reader: Reader,
  run: RunAttempt,
  to_actor_id: string,
  limit: number,
): Promise<MailRow[]> {
  return reader.all(
    inboxQuery(reader, run, to_actor_id)
      .leftJoin('prompts', 'prompts.id', 'mail.prompt_id')
      .where(({ and, or, eb }) =>
        or([
          and([eb('mail.status', '=', 'pending'), eb('prompts.id', 'is', null)]),
          and([
            eb('mail.status', '=', 'delivered'),
            eb('mail.reminded', '=', 0),
            or([eb('prompts.id', 'is', null), eb('prompts.state', '<>', 'sent')]),
          ]),
        ]),
      )
      .orderBy('mail.status', 'desc')
      .orderBy('mail.num')
      .limit(limit),
  );
}

/** The messages that a prompt names for the first time. */
export function mailOfPrompt(
  reader: Reader,
  run: RunAttempt,
  to_actor_id: string,
  prompt_id: string,
): Promise<MailRow[]> {
  const named = inboxQuery(reader, run, to_actor_id).where('mail.prompt_id', '=', prompt_id);
  return reader.all(named.where('mail.status', '=', 'pending').orderBy('mail.num'));
}

/** All mail of a run, including dead letters, oldest first. */
export function listMailOfRun(
  reader: Reader,
  run_num: number,
  after_num: number,
  limit?: number,
): Promise<MailRow[]> {
  const query = mailQuery(reader.sql)
    .where('mail.run_num', '=', run_num)
    .where('mail.num', '>', after_num)
    .orderBy('mail.num');
  return reader.all(limit === undefined ? query : query.limit(limit));
}

const spanOfRun = preparedQuery((builder, run_num: number) => {
  const mail = builder.selectFrom('mail').select('num').where('run_num', '=', run_num).limit(1);
  return builder.selectNoFrom([
    mail.orderBy('num', 'asc').as('first'),
    mail.orderBy('num', 'desc').as('last'),
  ]);
});
const countOfRun = preparedQuery((builder, run_num: number) =>
  builder
    .selectFrom('mail')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('run_num', '=', run_num),
);

/** Whether a run has at least `count` messages. They are counted only if their numbers leave space for as many. */
export async function hasMail(reader: Reader, run_num: number, count: number): Promise<boolean> {
  const { first, last } = (await reader.get(spanOfRun(reader, run_num)))!;
  if ((last ?? 0) - (first ?? 0) + 1 < count) return false;
  return (await reader.get(countOfRun(reader, run_num)))!.count >= count;
}

/** Number of unacknowledged messages per actor in this attempt of the run; actors without any are left out. */
export async function countUnacknowledged(reader: Reader, run: RunAttempt): Promise<Map<string, number>> {
  const rows = await reader.all(
    reader.sql
      .selectFrom('mail')
      .select(['to_actor_id', ({ fn }) => fn.countAll<number>().as('count')])
      .where('run_num', '=', run.num)
      .where('run_attempt', '=', run.attempt)
      .where(unacknowledged)
      .groupBy('to_actor_id'),
  );
  return new Map(rows.map(({ to_actor_id, count }) => [to_actor_id, count]));
}

/** Unacknowledged mail of earlier attempts of the run. */
export function staleMail(reader: Reader, run: RunAttempt): Promise<MailRow[]> {
  return reader.all(
    mailQuery(reader.sql)
      .where('mail.run_num', '=', run.num)
      .where('mail.run_attempt', '<', run.attempt)
      .where(unacknowledged)
      .orderBy('mail.num'),
  );
}

function received(builder: Reader['sql'], actor_id: string, run_num: number, run_attempt: number) {
  return builder
    .selectFrom('mail')
    .where('to_actor_id', '=', actor_id)
    .where('run_num', '=', run_num)
    .where('run_attempt', '=', run_attempt)
    .where('delivered_at', 'is not', null);
}

/** A chain starts with a person or a step (0), or with a time trigger, which is a message of the actor to itself. */
const chainStart = preparedQuery((builder, actor_id: string, run_num: number, run_attempt: number) =>
  received(builder, actor_id, run_num, run_attempt)
    .select(({ fn }) => fn.max('delivered_at').as('at'))
    .where(({ or, eb }) => or([eb('hops', '=', 0), eb('from_actor_id', '=', actor_id)])),
);
const highestHops = preparedQuery(
  (builder, actor_id: string, run_num: number, run_attempt: number, since: number) =>
    received(builder, actor_id, run_num, run_attempt)
      .select(({ fn }) => fn.max('hops').as('hops'))
      .where('delivered_at', '>=', since),
);

/**
 * The highest hop count among the messages that an actor was notified of in this attempt of a run, since it last
 * received work: at `work_at` (Unix ms), or with the latest message that starts a chain. That message is included.
 * Returns null if there are no such messages.
 */
export async function maxHopsReceived(
  reader: Reader,
  run: RunAttempt,
  actor_id: string,
  work_at: number,
): Promise<number | null> {
  const start = await reader.get(chainStart(reader, actor_id, run.num, run.attempt));
  const since = Math.max(start?.at ?? 0, work_at);
  return (await reader.get(highestHops(reader, actor_id, run.num, run.attempt, since)))?.hops ?? null;
}

const newestAttempt = preparedQuery((builder, run_num: number, run_attempt: number, member_id: string) =>
  builder
    .selectFrom('run_attempts')
    .select(({ fn }) => fn.max('created_at').as('at'))
    .where('run_num', '=', run_num)
    .where('run_attempt', '=', run_attempt)
    .where('member_id', '=', member_id),
);
const newestPrompt = preparedQuery((builder, run_num: number, member_id: string) =>
  builder
    .selectFrom('agents')
    .innerJoin('prompts', 'prompts.agent_num', 'agents.num')
    .select(({ fn }) => fn.max('prompts.sent_at').as('at'))
    .where('agents.run_num', '=', run_num)
    .where('agents.member_id', '=', member_id)
    .where('prompts.created_by', 'is not', null),
);

/** When a member last received a step, a round or a person's prompt, Unix ms; 0: never. */
export async function lastWorkAt(reader: Reader, run: RunAttempt, member_id: string): Promise<number> {
  const attempt = await reader.get(newestAttempt(reader, run.num, run.attempt, member_id));
  const prompt = await reader.get(newestPrompt(reader, run.num, member_id));
  return Math.max(attempt?.at ?? 0, prompt?.at ?? 0);
}

export function toMailHead(row: MailRow): MailHead {
  return {
    id: row.num,
    run_id: row.run_id,
    from_actor_id: row.from_actor_id,
    to_actor_id: row.to_actor_id,
    status: row.status,
    ...(row.reason !== null && { reason: row.reason }),
    created_at: rfc3339(row.created_at),
    delivered_at: rfc3339OrNull(row.delivered_at),
    acknowledged_at: rfc3339OrNull(row.acknowledged_at),
  };
}

export function toMail(row: MailRow): Mail {
  return { ...toMailHead(row), payload: JSON.parse(row.payload) };
}

/** Whose mail has changed, and who may know. */
export interface ReceivedMail {
  run_id: string;
  to_actor_id: string;
  team_num: number;
  team_created_by: string;
}

const receiversOf = preparedQuery((builder, nums: string) =>
  builder
    .selectFrom('mail')
    .innerJoin('runs', 'runs.num', 'mail.run_num')
    .innerJoin('teams', 'teams.num', 'runs.team_num')
    .select(['runs.id as run_id', 'mail.to_actor_id', 'runs.team_num', 'teams.created_by as team_created_by'])
    .where('mail.num', 'in', builder.selectFrom(jsonNumberTable({ sql: builder }, nums)).select('each.value'))
    .distinct(),
);

/** The receivers of these messages, each once for each run. */
export function listReceivers(reader: Reader, nums: readonly number[]): Promise<ReceivedMail[]> {
  return reader.all(receiversOf(reader, JSON.stringify(nums)));
}

/** Changes the actor id of a person in all mail. */
export async function renameInMail(tx: Tx, from: string, to: string): Promise<void> {
  const mail = tx.sql.updateTable('mail');
  await tx.run(mail.set({ from_actor_id: to }).where('from_actor_id', '=', from));
  await tx.run(mail.set({ to_actor_id: to }).where('to_actor_id', '=', from));
}
