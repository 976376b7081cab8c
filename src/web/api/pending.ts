/** Lists of which the plain array has at most so many items: the newest ones, and further pending ones. */
import { clientLimits } from '../../base/limits.ts';

/** Adds the pending items that a plain array lacks because it is full. They are older than those that it has. */
export async function withAllPending<T extends { id: string }>(
  list: T[],
  readPending: () => Promise<T[]>,
): Promise<T[]> {
  if (list.length < clientLimits.plain_list_items_max) return list;
  const known = new Set(list.map(({ id }) => id));
  return [...list, ...(await readPending()).filter(({ id }) => !known.has(id))];
}
