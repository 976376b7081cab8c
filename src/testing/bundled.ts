/**
 * Lets tests start the launcher, the folder worker and the worker threads from the bundle instead of the sources: a start from
 * the sources needs three times the processor time, and tests start hundreds. `test/build-program.ts` builds the bundle first.
 */
import type { Plugin } from 'vitest/config';

const FROM_SOURCE = "import.meta.url.endsWith('.ts')";

/** For tests, `base/program-files.ts` is in the bundle. */
export const bundledEntryPoints: Plugin = {
  name: 'bundled-entry-points',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('/src/base/program-files.ts')) return null;
    if (!code.includes(FROM_SOURCE)) throw new Error(`${id} no longer contains ${FROM_SOURCE}`);
    return { code: code.replace(FROM_SOURCE, 'false'), map: null };
  },
};
