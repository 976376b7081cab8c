import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../api/queries.ts';
import { countAbove, grows, newerThan, toQuery, toRows, withNewer } from './records.ts';

const records = (...ids: number[]) => ids.map((id) => ({ id })) as AuditRecord[];
const ids = (found: AuditRecord[] | null) => found?.map(({ id }) => id) ?? null;

describe('new audit records', () => {
  it('are those that are newer than the known ones, each once', () => {
    const known = [{ items: records(5, 4) }, { items: records(3, 2) }];
    expect(ids(newerThan(known, records(7, 6, 5, 4)))).toEqual([7, 6]);
    expect(ids(newerThan(known, records(5, 4)))).toEqual([]);
  });
  it('are not added above a gap', () => {
    expect(newerThan([{ items: records(5, 4) }], records(90, 89))).toBeNull();
  });
  it('are all records if none were known', () => {
    expect(ids(newerThan([{ items: [] }], records(2, 1)))).toEqual([2, 1]);
    expect(ids(newerThan([{ items: [] }], []))).toEqual([]);
  });
  it('are added to the first page, which keeps its cursor', () => {
    const known = [{ items: records(3), next_cursor: 'c' }, { items: records(2) }];
    expect(withNewer(known, records(5, 4))).toEqual([
      { items: records(5, 4, 3), next_cursor: 'c' },
      { items: records(2) },
    ]);
  });
  it('are found if the first known page is empty', () => {
    expect(ids(newerThan([{ items: [] }, { items: records(5) }], records(6, 5)))).toEqual([6]);
  });
});

describe('a time in the filter', () => {
  it('is local time if it names no zone', () => {
    expect(toQuery({ since: '2026-11-22T10:31' }, 0).since).toBe(
      new Date(2026, 10, 22, 10, 31).toISOString(),
    );
    expect(toQuery({ until: '2026-11-22' }, 0).until).toBe(new Date(2026, 10, 22).toISOString());
  });
  it('is sent to the server unchanged if it is invalid', () => {
    expect(toQuery({ since: 'yesterday', event: 'user_login' }, 0)).toEqual({
      since: 'yesterday',
      event: 'user_login',
    });
  });
});

describe('a period in the filter', () => {
  it('begins that long before now, whatever else is in the URL', () => {
    const now = Date.parse('2026-11-22T10:00:00Z');
    expect(toQuery({ last: '15m', until: '2026-11-22', event: 'user_login' }, now)).toEqual({
      since: '2026-11-22T09:45:00.000Z',
      event: 'user_login',
    });
    expect(toQuery({ last: '7d' }, now).since).toBe('2026-11-15T10:00:00.000Z');
  });
  it('begins at a whole minute', () => {
    const now = Date.parse('2026-11-22T10:00:59Z');
    expect(toQuery({ last: '1h' }, now).since).toBe('2026-11-22T09:00:00.000Z');
  });
  it('is ignored if it is unknown', () => {
    expect(toQuery({ last: 'toString' }, 0)).toEqual({});
  });
});

describe('the audit log', () => {
  const now = new Date(2026, 10, 22, 12).getTime();
  it('grows unless its range ends in the past', () => {
    expect(grows({}, now)).toBe(true);
    expect(grows({ until: '2026-11-22T12:01' }, now)).toBe(true);
    expect(grows({ until: '2026-11-23' }, now)).toBe(true);
    expect(grows({ until: '2026-11-22T11:59' }, now)).toBe(false);
    expect(grows({ until: '2026-11-22T11:59', last: '1h' }, now)).toBe(true);
    expect(grows({ until: 'never' }, now)).toBe(false);
  });
});

describe('rows of the audit log', () => {
  /** A record at a local time of a day of November. */
  const at = (id: number, day: number, hour: number, minute = 0, second = 0) =>
    ({ id, timestamp: new Date(2026, 10, day, hour, minute, second).toISOString() }) as AuditRecord;
  const shown = (all: AuditRecord[]) =>
    toRows(all).map((row) => (row.type === 'day' ? row.key : row.record.id));

  it('have a heading above the first record of each day in the local time zone', () => {
    const all = [at(9, 22, 0), at(8, 21, 23), at(7, 21, 1), at(6, 19, 1)];
    expect(shown(all)).toEqual(['day 9', 9, 'day 7', 8, 7, 'day 6', 6]);
    expect(toRows(all).at(-1)).toMatchObject({ position: 4 });
  });
  it('begin a minute where the record above is of another minute', () => {
    const all = [at(9, 22, 10, 31, 59), at(8, 22, 10, 31), at(7, 22, 10, 30, 59), at(6, 21, 10, 30)];
    const marks = toRows(all).flatMap((row) => (row.type === 'record' ? row.begins_minute : []));
    expect(marks).toEqual([true, false, true, true]);
  });
  it('keep the keys of their headings when newer records arrive', () => {
    const known = [at(8, 21, 22), at(7, 21, 1)];
    expect(shown([at(9, 21, 23), ...known])).toEqual(['day 7', 9, 8, 7]);
    expect(shown(known)).toEqual(['day 7', 8, 7]);
  });
  it('above the former top are new records and new headings', () => {
    const known = [at(8, 21, 22), at(7, 21, 1)];
    const above = (...newer: AuditRecord[]) => countAbove(toRows([...newer, ...known]), 8);
    expect(above()).toEqual({ records: 0, headings: 0 });
    expect(above(at(9, 21, 23))).toEqual({ records: 1, headings: 0 });
    expect(above(at(10, 22, 1), at(9, 21, 23))).toEqual({ records: 2, headings: 1 });
    expect(countAbove(toRows(known), 99)).toEqual({ records: 0, headings: 0 });
  });
});
