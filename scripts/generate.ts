/**
 * Writes what is generated and committed. `--check` writes nothing and fails when a file is not what it should be. The
 * code of the protocols is made by `buf` in a folder of its own, without a network, and compared with what is here.
 */
import { glob, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openapi } from '../src/contract/openapi.ts';
import { isPublic } from '../src/contract/route.ts';
import { type OperationId, operationIds, routes } from '../src/contract/routes.ts';
import { configurationPage } from './configuration.ts';
import { root, run } from './run.ts';

const GENERATED_CODE = 'src/contract/gen/**/*.ts';
const OPERATIONS = 'src/contract/gen/operations.ts';
const check = process.argv.includes('--check');
const generated: Record<string, string> = {
  'openapi.json': `${JSON.stringify(openapi(), null, 2)}\n`,
  'docs/configuration.md': configurationPage(),
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
  if (!(name in generated)) fail(`${name} has no protocol any more: delete it`);
}

/** What a client needs to know of each route to call it, without the schemas that validate it. */
function operations(): string {
  const line = (id: OperationId) => {
    const { method, path } = routes[id];
    return `  ${id}: { method: '${method}', path: '${path}', open: ${isPublic(routes[id])} },`;
  };
  return `// @generated from the route table by scripts/generate.ts
/** How each operation is called; \`open\`: without a token. */
export const operations = {
${operationIds.map(line).join('\n')}
} as const;
`;
}

/** Code of `src/contract/*.proto` by its path here. */
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
