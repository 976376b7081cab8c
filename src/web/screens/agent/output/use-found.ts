/** The search results in the output, kept current. The search is deferred, so that typing comes first. */
import { useDeferredValue, useMemo } from 'react';
import type { Found } from '../../../transcript/find.ts';
import type { Lines } from '../../../transcript/lines.ts';
import { Finder, type Wanted } from './finder.ts';

const nothing: Found = { lines: [], error: null };

/** `wanted` in the result: the query of these results. */
export function useFound(lines: Lines, now: Wanted | null): Found & { wanted: Wanted | null } {
  const wanted = useDeferredValue(now);
  const finder = useMemo(() => wanted && new Finder(lines, wanted), [lines, wanted]);
  const { version } = lines;
  return useMemo(() => {
    void version;
    return { ...(finder?.update() ?? nothing), wanted };
  }, [finder, version, wanted]);
}
