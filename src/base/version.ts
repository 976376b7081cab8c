/** The version of svc. */
import { readFileSync } from 'node:fs';

/** The version of the package. The relative path to package.json is the same in the source tree and in the built package. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;
