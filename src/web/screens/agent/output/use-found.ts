/** The search results in the output, kept current. The search is deferred, so that typing comes first. */
import { useDeferredValue, useMemo } from 'react';
import type { Found } from '../../../transcript/find.ts';
import type { Lines } from '../../../transcript/lines.ts';
import { Finder, type FindQuery } from './finder.ts';

const nothing: Found = { lines: [], error: null };

/** `query` in the result: the query of these results. */
export function useFound(lines: Lines, now: FindQuery | null): Found & { query: FindQuery | null } {
  const query = useDeferredValue(now);
  const finder = useMemo(() => query && new Finder(lines, query), [lines, query]);
  const { version } = lines;
  return useMemo(() => {
    void version;
    return { ...(finder?.update() ?? nothing), query };
  }, [finder, version, query]);
}
