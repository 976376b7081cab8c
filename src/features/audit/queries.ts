/** Queries about the audit log. Records are only ever added. */
import type { Selectable } from 'kysely';
import { preparedInsert, preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type AuditRow = Selectable<Tables['audit']>;

export interface AuditFilter {
  event?: string | undefined;
  user_id?: string | undefined;
  agent_id?: string | undefined;
  /** Unix milliseconds; `since` inclusive, `until` exclusive. */
  since?: number | undefined;
  until?: number | undefined;
}

const newestAudit = preparedQuery((builder) =>
  builder.selectFrom('audit').select(['id', 'hash']).orderBy('id', 'desc').limit(1),
);
const newAudit = preparedInsert('audit');

/** The number and hash of the newest record; undefined if there are none. */
export function lastAudit(reader: Reader): Promise<Pick<AuditRow, 'id' | 'hash'> | undefined> {
  return reader.get(newestAudit(reader));
}

export async function insertAudit(tx: Tx, row: AuditRow): Promise<void> {
  await tx.run(newAudit(tx, row));
}

/** Records before `before`, newest first, at most `limit`. */
export function listAudit(
  reader: Reader,
  filter: AuditFilter,
  { before, limit }: { before: number | undefined; limit: number },
): Promise<AuditRow[]> {
  let query = reader.sql.selectFrom('audit').selectAll().orderBy('id', 'desc');
  if (filter.event !== undefined) query = query.where('event', '=', filter.event as AuditRow['event']);
  if (filter.user_id !== undefined) query = query.where('user_id', '=', filter.user_id);
  if (filter.agent_id !== undefined) query = query.where('agent_id', '=', filter.agent_id);
  if (filter.since !== undefined) query = query.where('ts', '>=', filter.since);
  if (filter.until !== undefined) query = query.where('ts', '<', filter.until);
  if (before !== undefined) query = query.where('id', '<', before);
  return reader.all(query.limit(limit));
}

/** Records after `after`, oldest first, at most `limit`. */
export function auditAfter(reader: Reader, after: number, limit: number): Promise<AuditRow[]> {
  return reader.all(
    reader.sql.selectFrom('audit').selectAll().where('id', '>', after).orderBy('id').limit(limit),
  );
}

/** The workdir of an agent; null if the agent does not exist. */
export async function findWorkdir(reader: Reader, agent_id: string): Promise<string | null> {
  const agent = reader.sql.selectFrom('agents').select('workdir').where('id', '=', agent_id);
  return (await reader.get(agent))?.workdir ?? null;
}
