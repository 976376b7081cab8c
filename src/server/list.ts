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
