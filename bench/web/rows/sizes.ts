/** The sizes of the scripts that pages load. */
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { partsOfTheWeb } from '../../../scripts/web-parts.ts';
import type { Figure, Row } from '../../figure.ts';

export const sizes: Row = {
  name: 'sizes',
  how:
    'The compressed size (gzip) of the scripts of each part of the built web UI, with everything that they ' +
    'load before they run. A part with `+` is what it adds to Agents. `npm run check` keeps each of them at ' +
    'or below its goal.',
  run: async () =>
    Promise.all(
      partsOfTheWeb().map(async ({ name, paths, budget_kb }): Promise<Figure> => {
        const files = await Promise.all(paths.map((path) => readFile(path)));
        const bytes = files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0);
        return { what: name, unit: 'kB', value: bytes / 1000, goal: { of: 'value', at_most: budget_kb } };
      }),
    ),
};
