/** How much a browser loads for each part of the web UI, compressed: `npm run check` holds it below these. */
import { partsOfTheWeb } from './scripts/web-parts.ts';

export default partsOfTheWeb().map(({ name, paths, limit_kb }) => ({
  name,
  path: paths,
  gzip: true,
  limit: `${limit_kb} kB`,
}));
