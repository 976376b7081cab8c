/** Pagination with opaque cursors, which contain the keys that a list is ordered by. */
import { limits } from '../base/limits.ts';
import { problems } from './problem.ts';

export interface PageRequest {
  /** 1 to `limits.page_items_max`. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

/** Whether the client asks for a page. Other clients get a plain array. */
export function isPaged({ limit, cursor }: PageRequest): boolean {
  return limit !== undefined || cursor !== undefined;
}

type Key = string | number;
interface KeyTypes {
  number: number;
  string: string;
}

/** Creates a page of `rows`, which contain one more than `limit` if there is a next page. */
export function page<Row, Item>(
  rows: readonly Row[],
  limit: number,
  shape: (row: Row) => Item,
  key: (row: Row) => Key[],
): Page<Item> {
  const items = rows.slice(0, limit).map(shape);
  const last = rows[limit - 1];
  if (rows.length <= limit || last === undefined) return { items };
  return { items, next_cursor: cursorOf(key(last)) };
}

/** The cursor that `readCursor` reads. */
export function cursorOf(keys: readonly Key[]): string {
  return Buffer.from(JSON.stringify(keys)).toString('base64url');
}

/** Like `page`, with the rows themselves as items. */
export function pageOfRows<Row>(rows: readonly Row[], limit: number, key: (row: Row) => Key[]): Page<Row> {
  return page(rows, limit, (row) => row, key);
}

/** A page of a list that is complete in memory. Its cursors are positions in the list. Throws `invalid cursor`. */
export function pageOfList<T>(items: readonly T[], { limit, cursor }: PageRequest): Page<T> {
  const [from] = readCursor(cursor, 'number') ?? [0];
  if (from < 0) throw problems.invalidCursor();
  const numbered = items.slice(from).map((item, i) => ({ item, end: from + i + 1 }));
  return page(
    numbered,
    limit ?? limits.page_items_default,
    ({ item }) => item,
    ({ end }) => [end],
  );
}

/** The keys in a cursor, or undefined without one. Throws `invalid cursor` if they do not have exactly these types. */
export function readCursor<const T extends (keyof KeyTypes)[]>(
  cursor: string | undefined,
  ...types: T
): { [I in keyof T]: KeyTypes[T[I]] } | undefined {
  if (cursor === undefined) return undefined;
  const keys = parse(cursor);
  const fits =
    Array.isArray(keys) &&
    keys.length === types.length &&
    keys.every((key, i) => typeof key === types[i] && (typeof key !== 'number' || Number.isSafeInteger(key)));
  if (!fits) throw problems.invalidCursor();
  return keys as unknown as { [I in keyof T]: KeyTypes[T[I]] };
}

function parse(cursor: string): unknown {
  if (cursor.length > limits.path_chars_max || !/^[A-Za-z0-9_-]+$/.test(cursor)) return undefined;
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
