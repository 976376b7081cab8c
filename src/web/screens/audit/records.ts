/** Pages of audit records, newest first, with new records at the top, in groups by day. Pure. */
import type { AuditRecord } from '../../api/queries.ts';

export interface AuditSearch {
  event?: string | undefined;
  user_id?: string | undefined;
  agent_id?: string | undefined;
  /** How far back it goes, instead of `since` and `until`. */
  last?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

const MINUTE_MS = 60_000;

/** The values of `last`, in milliseconds. */
export const periods = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 } as const;
export type Period = keyof typeof periods;

export const isPeriod = (text: string | undefined): text is Period =>
  text !== undefined && Object.hasOwn(periods, text);

/** A heading, or a record below it. */
export type AuditRow =
  | { type: 'day'; key: string; at: string }
  | { type: 'record'; key: string; record: AuditRecord; position: number; begins_minute: boolean };

/** Records with a heading above the first of each day in the local time zone, and a mark on the first of each minute. */
export function toRows(records: readonly AuditRecord[]): AuditRow[] {
  const rows: AuditRow[] = [];
  let heading: AuditRow | null = null;
  let day: string | null = null;
  let minute: number | null = null;
  for (const [at, record] of records.entries()) {
    const own = new Date(record.timestamp).toDateString();
    if (!heading || own !== day) {
      heading = { type: 'day', key: '', at: record.timestamp };
      rows.push(heading);
      day = own;
    }
    // Of its oldest record, which stays when newer ones arrive.
    heading.key = `day ${record.id}`;
    const own_minute = Math.floor(Date.parse(record.timestamp) / MINUTE_MS);
    const begins_minute = own_minute !== minute;
    minute = own_minute;
    rows.push({ type: 'record', key: String(record.id), record, position: at + 1, begins_minute });
  }
  return rows;
}

/** What is above the record that was at the top before: new records, and new headings. */
export function countAbove(rows: readonly AuditRow[], record_id: number | undefined) {
  const above = rows.slice(
    0,
    Math.max(
      0,
      rows.findIndex((row) => row.type === 'record' && row.record.id === record_id),
    ),
  );
  const records = above.filter(({ type }) => type === 'record').length;
  // One heading was there already.
  return { records, headings: Math.max(0, above.length - records - 1) };
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

/** Adds to the first page: another page would be one more request whenever the pages are read again. */
export function withNewer(
  [first, ...others]: readonly AuditPage[],
  newer: readonly AuditRecord[],
): AuditPage[] {
  return [{ ...first, items: [...newer, ...(first?.items ?? [])] }, ...others];
}

/** When a period up to now begins, in whole minutes, so that lists change once a minute. Unix milliseconds. */
export function periodStart(period: Period, now: number): number {
  return Math.floor((now - periods[period]) / MINUTE_MS) * MINUTE_MS;
}

/** The query for the API, with local times as instants. `now`: Unix milliseconds. */
export function toQuery({ last, since, until, ...rest }: AuditSearch, now: number): AuditSearch {
  if (isPeriod(last)) return { ...rest, since: new Date(periodStart(last, now)).toISOString() };
  return {
    ...rest,
    ...(since && { since: toInstant(since) }),
    ...(until && { until: toInstant(until) }),
  };
}

/** Whether records can still be added: a range that ends in the past does not grow. `now`: Unix milliseconds. */
export function grows({ last, until }: AuditSearch, now: number): boolean {
  return isPeriod(last) || !until || Date.parse(toInstant(until)) > now;
}

/** A local day or time (`2026-11-22`, `2026-11-22T10:31`) as an instant; other text is left for the server to reject. */
function toInstant(text: string): string {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$/.test(text)) return text;
  const time = new Date(text.includes('T') ? text : `${text}T00:00`);
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}
