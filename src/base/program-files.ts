/**
 * Locates the files of the program. In the source tree, each module is a separate file. In the bundle, the entry points
 * and the code they share are files in one folder, `dist/program/`.
 */
import { fileURLToPath } from 'node:url';

const from_source = import.meta.url.endsWith('.ts');
/** This module and the bundle are both two folders below the package. */
const package_url = new URL('../../', import.meta.url);

/** The folder of the package, which contains `package.json` and `bin/`. */
export const packageFolder = fileURLToPath(package_url);

/**
 * The file of an entry point that runs in a separate process or thread. `scripts/build-program.ts` lists all entry
 * points.
 *
 * @param module its path below `src/` without extension, such as `events/worker`
 */
export function entryPoint(module: string): URL {
  const path = from_source ? `src/${module}.ts` : `dist/program/${bundledName(module)}.js`;
  return new URL(path, package_url);
}

/** The name of a bundled entry point without extension: `events/worker` is `events-worker`. */
export function bundledName(module: string): string {
  return module.replaceAll('/', '-');
}
