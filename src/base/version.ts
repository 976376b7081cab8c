import { readFileSync } from 'node:fs';

/** The package's own version; the same relative place in the tree and in the built package. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;
