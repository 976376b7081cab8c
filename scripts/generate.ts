/**
 * Writes the generated files that are committed. `--check` writes nothing and fails if a file is out of date. `buf`
 * generates the protocol code in a temporary folder, without a network, to compare it with the committed code.
 */
import { glob, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openapi } from '../src/api/openapi.ts';
import { isPublic } from '../src/api/route.ts';
import { type OperationId, operationIds, routes } from '../src/api/routes.ts';
import { apiPage } from './reference/api.ts';
import { cliPage } from './reference/cli.ts';
import { configurationPage } from './reference/configuration.ts';
import { errorsPage } from './reference/errors.ts';
import { eventsPage } from './reference/events.ts';
import { limitsPage } from './reference/limits.ts';
import { metricsPage } from './reference/metrics.ts';
import { root, run } from './run.ts';

const GENERATED_CODE = 'src/link/proto/**/*.ts';
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
  ...(await protocols()),
};

for (const [name, text] of Object.entries(generated)) {
  const path = join(root, name);
  if ((await readFile(path, 'utf8').catch(() => null)) === text) continue;
  if (check) fail(`${name} is out of date: run npm run generate`);
  else {
    await writeFile(path, text);
    console.error(`wrote ${name}`);
  }
}
for await (const name of glob(GENERATED_CODE, { cwd: root })) {
  if (!(name in generated)) fail(`${name} no longer has a protocol: delete it`);
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

/** Generated code of `src/link/proto/*.proto`, by path. */
async function protocols(): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-generate-'));
  try {
    const { ok, output } = await run(['buf', 'generate', '--output', folder]);
    if (!ok) fail(`buf generate failed:\n${output}`);
    const files: Record<string, string> = {};
    for await (const name of glob(GENERATED_CODE, { cwd: folder })) {
      files[name] = await readFile(join(folder, name), 'utf8');
    }
    return files;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function fail(words: string): void {
  console.error(words);
  process.exitCode = 1;
}
