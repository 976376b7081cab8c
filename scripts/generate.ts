/** Writes the generated files that are committed. `--check` writes nothing and fails if a file is out of date. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openapi } from '../src/api/openapi.ts';
import { isPublic } from '../src/api/route.ts';
import { type OperationId, operationIds, routes } from '../src/api/routes.ts';
import { generateProtocols, protocolsAreCurrent } from './protocols.ts';
import { apiPage } from './reference/api.ts';
import { cliPage } from './reference/cli.ts';
import { configurationPage } from './reference/configuration.ts';
import { errorsPage } from './reference/errors.ts';
import { eventsPage } from './reference/events.ts';
import { limitsPage } from './reference/limits.ts';
import { metricsPage } from './reference/metrics.ts';
import { root } from './run.ts';

const OPERATIONS = 'src/client/operations.ts';
const check = process.argv.includes('--check');
const generated: Record<string, string> = {
  'openapi.json': `${JSON.stringify(openapi(), null, 2)}\n`,
  'docs/reference/api.md': apiPage(),
  'docs/reference/cli.md': await cliPage(),
  'docs/reference/configuration.md': configurationPage(),
  'docs/reference/errors.md': errorsPage(),
  'docs/reference/events.md': eventsPage(),
  'docs/reference/limits.md': await limitsPage(),
  'docs/reference/metrics.md': await metricsPage(),
  [OPERATIONS]: operations(),
};
await write(generated);
// Last, because it needs the npm registry.
if (!(await protocolsAreCurrent())) {
  if (check) fail('the code in src/link/proto is not that of its protocols: run npm run generate');
  else await write(await generateProtocols());
}

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(root, name);
    if ((await readFile(path, 'utf8').catch(() => null)) === text) continue;
    if (check) fail(`${name} is out of date: run npm run generate`);
    else {
      await writeFile(path, text);
      console.error(`wrote ${name}`);
    }
  }
}

/** What a client needs to know about each route to call it, without the validation schemas. */
function operations(): string {
  const line = (id: OperationId) => {
    const { method, path } = routes[id];
    return `  ${id}: { method: '${method}', path: '${path}', open: ${isPublic(routes[id])} },`;
  };
  return `// @generated from the route table by scripts/generate.ts
/** Method and path of each operation; \`open\`: needs no token. */
export const operations = {
${operationIds.map(line).join('\n')}
} as const;
`;
}

function fail(words: string): void {
  console.error(words);
  process.exitCode = 1;
}
