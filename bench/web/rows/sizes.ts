/** The sizes of the scripts that pages load. */
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { partsOfTheWeb } from '../../../scripts/web-parts.ts';
import type { Figure, Row } from '../../figure.ts';

export const sizes: Row = {
  name: 'sizes',
  how:
    'The scripts of each part of the built web UI, compressed (gzip), with everything that they load before they run; a part with `+` is what comes on top of Agents. ' +
    '`npm run check` holds each of them below its goal or lower.',
  run: async () =>
    Promise.all(
      partsOfTheWeb().map(async ({ name, paths, budget_kb }): Promise<Figure> => {
        const files = await Promise.all(paths.map((path) => readFile(path)));
        const bytes = files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0);
        return { what: name, unit: 'kB', value: bytes / 1000, goal: { of: 'value', at_most: budget_kb } };
      }),
    ),
};
