/** Before tests of the whole program: the web UI that it serves, and compiled code that its starts share. */
import { readdir } from 'node:fs/promises';
import { run } from '../scripts/run.ts';
import { COMPILED, TestPlane } from '../src/testing/plane.ts';

export async function setup(): Promise<void> {
  // In a process of its own, which is not in test mode.
  const { ok, output } = await run(['node', 'scripts/build-web.ts', '--if-needed']);
  if (!ok) throw new Error(`the web UI could not be built:\n${output}`);
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
