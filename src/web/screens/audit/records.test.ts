import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../api/queries.ts';
import { newerThan, queryOf } from './records.ts';

const records = (...ids: number[]) => ids.map((id) => ({ id })) as AuditRecord[];
const ids = (found: AuditRecord[] | null) => found?.map(({ id }) => id) ?? null;

describe('new audit records', () => {
  it('are those above what is known, each once', () => {
    const known = [{ items: records(5, 4) }, { items: records(3, 2) }];
    expect(ids(newerThan(known, records(7, 6, 5, 4)))).toEqual([7, 6]);
    expect(ids(newerThan(known, records(5, 4)))).toEqual([]);
  });
  it('are not put above a gap', () => {
    expect(newerThan([{ items: records(5, 4) }], records(90, 89))).toBeNull();
  });
  it('are all of them where nothing was known', () => {
    expect(ids(newerThan([{ items: [] }], records(2, 1)))).toEqual([2, 1]);
    expect(ids(newerThan([{ items: [] }], []))).toEqual([]);
  });
  it('follow an empty page at the top', () => {
    expect(ids(newerThan([{ items: [] }, { items: records(5) }], records(6, 5)))).toEqual([6]);
  });
});

describe('a time of the filter', () => {
  it('is one of this place where it names no other', () => {
    expect(queryOf({ since: '2026-11-22T10:31' }).since).toBe(new Date(2026, 10, 22, 10, 31).toISOString());
    expect(queryOf({ until: '2026-11-22' }).until).toBe(new Date(2026, 10, 22).toISOString());
  });
  it('is left to the server where it is none', () => {
    expect(queryOf({ since: 'yesterday', event: 'user_login' })).toEqual({
      since: 'yesterday',
      event: 'user_login',
    });
  });
});
