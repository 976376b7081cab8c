import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../api/queries.ts';
import { newerThan, toQuery } from './records.ts';

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
  it('are found if the first known page is empty', () => {
    expect(ids(newerThan([{ items: [] }, { items: records(5) }], records(6, 5)))).toEqual([6]);
  });
});

describe('a time in the filter', () => {
  it('is local time if it names no zone', () => {
    expect(toQuery({ since: '2026-11-22T10:31' }).since).toBe(new Date(2026, 10, 22, 10, 31).toISOString());
    expect(toQuery({ until: '2026-11-22' }).until).toBe(new Date(2026, 10, 22).toISOString());
  });
  it('is sent to the server unchanged if it is invalid', () => {
    expect(toQuery({ since: 'yesterday', event: 'user_login' })).toEqual({
      since: 'yesterday',
      event: 'user_login',
    });
  });
});
