/**
 * Writes what is generated and committed. `--check` writes nothing and fails when a file is not what it should be.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { openapi } from '../src/contract/openapi.ts';
import { configurationPage } from './configuration.ts';

const generated = {
  'openapi.json': `${JSON.stringify(openapi(), null, 2)}\n`,
  'docs/configuration.md': configurationPage(),
};

const check = process.argv.includes('--check');
for (const [name, text] of Object.entries(generated)) {
  const path = new URL(`../${name}`, import.meta.url);
  if ((await readFile(path, 'utf8').catch(() => null)) === text) continue;
  if (check) {
    console.error(`${name} is out of date: run npm run generate`);
    process.exitCode = 1;
  } else {
    await writeFile(path, text);
    console.error(`wrote ${name}`);
  }
}
