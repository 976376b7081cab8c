/**
 * Runs before the tests of the whole program. It builds the program's bundle, the web UI, and compiled code for faster
 * starts.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../scripts/run.ts';
import { COMPILED } from '../src/testing/compiled.ts';
import { TestPlane } from '../src/testing/plane.ts';

const STAMP = fileURLToPath(new URL('../dist/program/.stamp', import.meta.url));

export async function setup(): Promise<void> {
  // The scripts run in separate processes, which are not in test mode.
  for (const script of ['scripts/build-program.ts', 'scripts/build-web.ts']) {
    const { ok, output } = await run(['node', script, '--if-needed']);
    if (!ok) throw new Error(`${script} failed:\n${output}`);
  }
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
