/** The identity of this plane: an id created with the database, and written into every session that it starts. */
import type { Clock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { Reader, Store, Tx } from './store.ts';

export interface PlaneIdentity {
  plane_id: string;
  /**
   * Unix milliseconds when the database was created or last restored. Nodes obey the plane with the highest value they
   * have seen.
   */
  incarnation: number;
}

/** Reads the identity, or creates it in a new database. Idempotent. */
export async function planeIdentity(store: Store, clock: Clock): Promise<PlaneIdentity> {
  const fresh = newId('pln');
  const now = clock.now();
  return store.write((tx) => {
    const plane_id = findOrInsert(tx, 'plane_id', fresh);
    findOrInsert(tx, 'incarnation', String(now));
    return { plane_id, incarnation: currentIncarnation(tx) };
  });
}

/** The incarnation according to the database; 0 in a database without an identity. */
export function currentIncarnation(reader: Reader): number {
  const [created, restored] = [find(reader, 'incarnation'), find(reader, 'restored_at_ms')];
  return Math.max(Number(created ?? 0), Number(restored ?? 0));
}

function findOrInsert(tx: Tx, key: string, fresh: string): string {
  const known = find(tx, key);
  if (known !== undefined) return known;
  tx.run(tx.sql.insertInto('meta').values({ key, value: fresh }));
  return fresh;
}

function find(reader: Reader, key: string): string | undefined {
  return reader.get(reader.sql.selectFrom('meta').select('value').where('key', '=', key))?.value;
}
