/** Queries about the control planes that share the database. */
import type { Selectable } from 'kysely';
import type { Reader } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';

export type PlaneRow = Selectable<Tables['planes']>;

/** The active one first, then by name. */
export function listPlanes(reader: Reader): Promise<PlaneRow[]> {
  const query = reader.sql.selectFrom('planes').selectAll();
  return reader.all(
    query
      .orderBy((of) => of('claim', 'is', null))
      .orderBy('claim', 'desc')
      .orderBy('name')
      .orderBy('id'),
  );
}
