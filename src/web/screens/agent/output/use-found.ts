/** What the output's find has found, current with the lines; typing goes before looking. */
import { useDeferredValue, useMemo } from 'react';
import type { Found } from '../../../transcript/find.ts';
import type { Lines } from '../../../transcript/lines.ts';
import { Finder, type Wanted } from './finder.ts';

const nothing: Found = { lines: [], error: null };

/** `wanted`: what the lines were found for. */
export function useFound(lines: Lines, now: Wanted | null): Found & { wanted: Wanted | null } {
  const wanted = useDeferredValue(now);
  const finder = useMemo(() => wanted && new Finder(lines, wanted), [lines, wanted]);
  const { version } = lines;
  return useMemo(() => {
    void version;
    return { ...(finder?.update() ?? nothing), wanted };
  }, [finder, version, wanted]);
}
