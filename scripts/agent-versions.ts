/**
 * `node scripts/agent-versions.ts`: pins the agents of `npm run test:agents` to their newest version and the one
 * before, according to the npm registry. A package that is not in the registry keeps its versions.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root, run } from './run.ts';

const path = join(root, 'test/real-agents/versions.json');
const pinned = JSON.parse(await readFile(path, 'utf8')) as Record<string, string[]>;
for (const name of Object.keys(pinned)) {
  const { ok, output } = await run(['npm', 'view', name, 'versions', '--json', '--loglevel=silent']);
  const released = ok ? (JSON.parse(output) as string[]).filter((version) => !version.includes('-')) : [];
  if (released.length >= 2) pinned[name] = released.slice(-2).reverse();
  console.log(`${name}: ${pinned[name]!.join(', ')}${ok ? '' : ' (not in the registry: kept)'}`);
}
await writeFile(path, JSON.stringify(pinned));
const { ok, output } = await run(['biome', 'format', '--write', path]);
if (!ok) throw new Error(output);
