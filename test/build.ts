/** Runs before the tests of the whole program: builds the web UI, and compiled code for faster starts. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMPILED } from '../src/testing/compiled.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { build } from './build-program.ts';

const STAMP = fileURLToPath(new URL('../dist/program/.stamp', import.meta.url));

export async function setup(): Promise<void> {
  await build('build-web');
  await compileOnce();
}

/**
 * A service stores compiled code only when it ends by itself, but most tests kill theirs. Node finds compiled code by the path
 * and the content of a file, so each bundle of each checkout is compiled once.
 */
async function compileOnce(): Promise<void> {
  const bundle = createHash('sha256')
    .update(STAMP)
    .update(await readFile(STAMP))
    .digest('hex');
  const marker = join(COMPILED, `bundle-${bundle}`);
  if (existsSync(marker)) return;
  const plane = await TestPlane.open();
  await plane.kill('SIGTERM');
  await plane.close();
  await writeFile(marker, '');
}
