/** The two forms of a list: a plain array, or a page if the request asks for one. */

interface PageOf<T> {
  items: T[];
  next_cursor?: string;
}

/** Returns a page if the request has a limit or a cursor, else a plain array. */
export function asList<T>(
  query: { limit?: number | undefined; cursor?: string | undefined },
  page: PageOf<T>,
): T[] | PageOf<T> {
  return query.limit === undefined && query.cursor === undefined ? page.items : page;
}

/** Like `asList`, for a plain array that may be incomplete: `X-Next-Cursor` then has the cursor of the next page. */
export function asCappedList<T>(
  call: {
    query: { limit?: number | undefined; cursor?: string | undefined };
    setHeader(name: string, value: string): void;
  },
  page: PageOf<T>,
): T[] | PageOf<T> {
  const list = asList(call.query, page);
  if (Array.isArray(list) && page.next_cursor !== undefined)
    call.setHeader('x-next-cursor', page.next_cursor);
  return list;
}
