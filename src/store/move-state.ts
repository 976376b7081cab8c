/**
 * Whether the data of a PostgreSQL database is being moved to it, or was moved away. `meta` has it, so that a plane does not
 * use a database whose data is elsewhere.
 */
import { deleteMeta, findMeta, setMeta } from './meta.ts';
import type { Store } from './store.ts';

export const MOVE_KEY = 'move';
/** Where the database is, see `postgres/place.ts`. */
export const PLACE_KEY = 'place';

/** Keys of `meta` that a move does not copy, because they are about the database itself. */
export const own_meta = [MOVE_KEY, PLACE_KEY] as const;

/** `arriving`: the copy is complete, but the data directory may still use the original. `left`: the data is elsewhere now. */
export type MoveState = 'arriving' | 'left';

export async function moveState(store: Store): Promise<MoveState | null> {
  return ((await store.read((reader) => findMeta(reader, MOVE_KEY))) as MoveState | undefined) ?? null;
}

/** Null: the data is here. Idempotent. */
export async function setMoveState(store: Store, state: MoveState | null): Promise<void> {
  await store.write((tx) => (state === null ? deleteMeta(tx, MOVE_KEY) : setMeta(tx, MOVE_KEY, state)));
}
