/**
 * Runs before the tests of the whole program. It builds the program's bundle, the web UI, and compiled code for faster
 * starts.
 */
import { readdir } from 'node:fs/promises';
import { run } from '../scripts/run.ts';
import { COMPILED, TestPlane } from '../src/testing/plane.ts';

export async function setup(): Promise<void> {
  // The scripts run in separate processes, which are not in test mode.
  for (const script of ['scripts/build-program.ts', 'scripts/build-web.ts']) {
    const { ok, output } = await run(['node', script, '--if-needed']);
    if (!ok) throw new Error(`${script} failed:\n${output}`);
  }
  if (!(await hasCompiled())) await compile();
}

async function hasCompiled(): Promise<boolean> {
  const found = await readdir(COMPILED, { recursive: true, withFileTypes: true }).catch(() => []);
  return found.some((entry) => entry.isFile());
}

/**
 * A service stores compiled code only when it ends by itself, but most tests kill theirs. Changed code is compiled again.
 */
async function compile(): Promise<void> {
  const plane = await TestPlane.open();
  await plane.kill('SIGTERM');
  await plane.close();
}
