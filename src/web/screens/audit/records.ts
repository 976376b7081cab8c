/** Pages of audit records, newest first, and new records at the top. Pure. */
import type { AuditRecord } from '../../api/queries.ts';

export interface AuditSearch {
  event?: string | undefined;
  user_id?: string | undefined;
  agent_id?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

export interface AuditPage {
  items: AuditRecord[];
  next_cursor?: string | undefined;
}

/** The records of `newest` that are not known yet; null if there is a gap between them and the known ones. */
export function newerThan(known: readonly AuditPage[], newest: readonly AuditRecord[]): AuditRecord[] | null {
  const top = known.find(({ items }) => items.length > 0)?.items[0]?.id ?? -1;
  const newer = newest.filter(({ id }) => id > top);
  return top !== -1 && newer.length === newest.length && newest.length > 0 ? null : newer;
}

/** The query for the API, with local times as instants. */
export function toQuery({ since, until, ...rest }: AuditSearch): AuditSearch {
  return {
    ...rest,
    ...(since && { since: toInstant(since) }),
    ...(until && { until: toInstant(until) }),
  };
}

/** A local day or time (`2026-11-22`, `2026-11-22T10:31`) as an instant; other text is left for the server to reject. */
function toInstant(text: string): string {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$/.test(text)) return text;
  const time = new Date(text.includes('T') ? text : `${text}T00:00`);
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}
