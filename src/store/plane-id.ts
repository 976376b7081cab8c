/** The identity of this plane: an id created with the database, and written into every session that it starts. */
import type { Clock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import { findMeta, setMeta } from './meta.ts';
import type { Reader, Store, Tx } from './store.ts';

/** The key of `meta` for the fingerprint of the data directory. */
export const DATA_DIR_KEY = 'data_dir';

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
  return store.write(async (tx) => {
    const plane_id = await findOrInsert(tx, 'plane_id', fresh);
    await findOrInsert(tx, 'incarnation', String(now));
    return { plane_id, incarnation: await currentIncarnation(tx) };
  });
}

/** The id of the plane with this database; undefined in a database without an identity. */
export function planeId(reader: Reader): Promise<string | undefined> {
  return findMeta(reader, 'plane_id');
}

/** The fingerprint of the data directory that the database belongs to: `fingerprint` if it has belonged to none. Idempotent. */
export function boundDataDir(store: Store, fingerprint: string): Promise<string> {
  return store.write((tx) => findOrInsert(tx, DATA_DIR_KEY, fingerprint));
}

/** The incarnation according to the database; 0 in a database without an identity. */
export async function currentIncarnation(reader: Reader): Promise<number> {
  const [created, restored] = [
    await findMeta(reader, 'incarnation'),
    await findMeta(reader, 'restored_at_ms'),
  ];
  return Math.max(Number(created ?? 0), Number(restored ?? 0));
}

async function findOrInsert(tx: Tx, key: string, fresh: string): Promise<string> {
  const known = await findMeta(tx, key);
  if (known !== undefined) return known;
  await setMeta(tx, key, fresh);
  return fresh;
}

/**
 * Names the history of the database: two databases with the same value agree about all rows that both have, unless one of them
 * lacks the last ones. Empty for a database without an identity.
 */
export async function historyId(reader: Reader): Promise<string> {
  const plane_id = (await planeId(reader)) ?? '';
  const restored_at_ms = await findMeta(reader, 'restored_at_ms');
  return restored_at_ms === undefined ? plane_id : `${plane_id} ${restored_at_ms}`;
}
