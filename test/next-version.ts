/** The next version of svc: this one with another version number, and a schema with one more step. */
import { cp, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, run } from '../scripts/run.ts';

const INPUTS = ['bin', 'package.json', 'package-lock.json', 'scripts', 'src', 'tsconfig.json'];
const MIGRATION = "'ALTER TABLE agents ADD COLUMN of_the_next_version TEXT;',";

export interface NextVersion {
  version: string;
  /** The path of its `svc`. */
  program: string;
  remove(): Promise<void>;
}

/** Builds it in a temporary folder, which takes some seconds. */
export async function buildNextVersion(): Promise<NextVersion> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-next-')));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    for (const name of INPUTS) await cp(join(root, name), join(folder, name), { recursive: true });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    const version = await edit(join(folder, 'package.json'), /"version": "(.*)"/, '"version": "$1-next"');
    // After all others.
    await edit(join(folder, 'src/store/migrate.ts'), /^\];$/m, `${MIGRATION}\n$&`);
    const { ok, output } = await run(['node', 'scripts/build-program.ts'], folder);
    if (!ok) throw new Error(output);
    return { version: `${version}-next`, program: join(folder, 'bin/svc'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Replaces what a pattern finds once, and returns its first group. */
async function edit(path: string, pattern: RegExp, replacement: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8');
  const found = pattern.exec(text);
  if (!found) throw new Error(`${path} has no ${pattern}`);
  await writeFile(path, text.replace(pattern, replacement));
  return found[1];
}
