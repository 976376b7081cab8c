/** SQL for time triggers: rows in, rows and records out. The rules are in `features/mailbox/triggers.ts`. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../../base/clock.ts';
import type { View } from '../../../core/policy.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import { teamsInView } from '../../../store/views.ts';
import type { Trigger } from '../rules/trigger.ts';

export type TriggerRow = Selectable<Tables['triggers']> & { run_id: string };

function triggerQuery(sql: Reader['sql']) {
  return sql
    .selectFrom('triggers')
    .innerJoin('runs', 'runs.num', 'triggers.run_num')
    .selectAll('triggers')
    .select('runs.id as run_id');
}

export function findTrigger(reader: Reader, id: string): Promise<TriggerRow | undefined> {
  return reader.get(triggerQuery(reader.sql).where('triggers.id', '=', id));
}

export interface TriggerFilter {
  /** Absent: of all actors. */
  actor_id?: string | undefined;
  run_num?: number | undefined;
  /** Only triggers of these teams' runs; absent: all. */
  view?: View | undefined;
  before_num?: number | undefined;
  limit?: number | undefined;
}

/** Newest first. */
export function listTriggers(reader: Reader, filter: TriggerFilter): Promise<TriggerRow[]> {
  let query = triggerQuery(reader.sql).orderBy('triggers.num', 'desc');
  if (filter.actor_id !== undefined) query = query.where('triggers.actor_id', '=', filter.actor_id);
  if (filter.run_num !== undefined) query = query.where('triggers.run_num', '=', filter.run_num);
  if (filter.view !== undefined)
    query = query.where('triggers.team_num', 'in', teamsInView(reader, filter.view));
  if (filter.before_num !== undefined) query = query.where('triggers.num', '<', filter.before_num);
  return reader.all(filter.limit === undefined ? query : query.limit(filter.limit));
}

export function triggersOfRun(reader: Reader, run_num: number): Promise<TriggerRow[]> {
  return reader.all(triggerQuery(reader.sql).where('triggers.run_num', '=', run_num));
}

export async function insertTrigger(tx: Tx, row: Insertable<Tables['triggers']>): Promise<void> {
  await tx.run(tx.sql.insertInto('triggers').values(row));
}

export async function updateTrigger(
  tx: Tx,
  num: number,
  changes: Updateable<Tables['triggers']>,
): Promise<void> {
  await tx.run(tx.sql.updateTable('triggers').set(changes).where('num', '=', num));
}

export async function deleteTrigger(tx: Tx, num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('triggers').where('num', '=', num));
}

export function toTrigger(row: TriggerRow): Trigger {
  return {
    id: row.id,
    run_id: row.run_id,
    actor_id: row.actor_id,
    at: rfc3339OrNull(row.at),
    every_seconds: row.every_seconds,
    cron: row.cron,
    timezone: row.timezone,
    payload: JSON.parse(row.payload),
    next_at: rfc3339(row.next_at),
    last_at: rfc3339OrNull(row.last_at),
    fired: row.fired,
    created_by: row.created_by,
    created_at: rfc3339(row.created_at),
  };
}

/** Changes the actor id of a person in all triggers. */
export async function renameInTriggers(tx: Tx, from: string, to: string): Promise<void> {
  await tx.run(tx.sql.updateTable('triggers').set({ actor_id: to }).where('actor_id', '=', from));
}
