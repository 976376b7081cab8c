/** The two forms of a list: a plain array, or a page if the request asks for one. */

interface PageOf<T> {
  items: T[];
  next_cursor?: string;
}

export function asList<T>(
  query: { limit?: number | undefined; cursor?: string | undefined },
  page: PageOf<T>,
): T[] | PageOf<T> {
  return query.limit === undefined && query.cursor === undefined ? page.items : page;
}
