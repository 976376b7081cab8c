/** Before tests of the whole program: the program's bundle, the web UI that it serves, and compiled code that its starts share. */
import { readdir } from 'node:fs/promises';
import { run } from '../scripts/run.ts';
import { COMPILED, TestPlane } from '../src/testing/plane.ts';

export async function setup(): Promise<void> {
  // In processes of their own, which are not in test mode.
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

/** Only a service that ends by itself leaves what it compiled, and most tests kill theirs. What has changed since is compiled anew. */
async function compile(): Promise<void> {
  const plane = await TestPlane.open();
  await plane.kill('SIGTERM');
  await plane.close();
}
