/** The two forms of a list: a plain array, or a page if the request asks for one. */
import { type Page, type PageRequest, pageOfList } from '../core/page.ts';

/** Returns a page if the request has a limit or a cursor, else a plain array. */
export function asList<T>(query: PageRequest, page: Page<T>): T[] | Page<T> {
  return query.limit === undefined && query.cursor === undefined ? page.items : page;
}

/** Like `asList`, for all items of a `shortList`, whose type it has. Throws `invalid cursor`. */
export function asShortList<T>(query: PageRequest, items: T[]): T[] {
  const is_plain = query.limit === undefined && query.cursor === undefined;
  return is_plain ? items : (pageOfList(items, query) as unknown as T[]);
}

/** Like `asList`, for a plain array that may be incomplete: `X-Next-Cursor` then has the cursor of the next page. */
export function asCappedList<T>(
  call: {
    query: PageRequest;
    setHeader(name: string, value: string): void;
  },
  page: Page<T>,
): T[] | Page<T> {
  const list = asList(call.query, page);
  if (Array.isArray(list) && page.next_cursor !== undefined)
    call.setHeader('x-next-cursor', page.next_cursor);
  return list;
}
