/**
 * What `build-program.ts` and `build-web.ts` share: each fills a folder of dist/, from which a service may be running
 * meanwhile. With `--if-needed`, they build only if an input has changed.
 */
import { createHash } from 'node:crypto';
import { glob, mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { root } from './run.ts';

export const if_needed = process.argv.includes('--if-needed');
const dist = join(root, 'dist');
/** A hash of the inputs; absent while files are being replaced. `bin/svc` compares its time with those of the sources. */
const STAMP = '.stamp';
const WAIT_MS = 300_000;

export interface Build<Tools> {
  /** The folder in dist/. */
  name: string;
  /** Patterns of the files in the project that determine the result, except for those that match `not_inputs`. */
  inputs: string[];
  not_inputs: RegExp;
  /** What is printed after a build, with its duration. */
  done: string;
  /** Ends the process, or throws, if they are not installed. */
  importTools(): Promise<Tools>;
  /** Builds into the empty folder `fresh`. */
  build(tools: Tools, fresh: string): Promise<void>;
  /** Moves the files into `folder`, those that others name first, and removes old ones. */
  publish(fresh: string, folder: string): Promise<void>;
}

/** If several builds run at once, one works and the others wait. */
export async function buildOnce<Tools>(build: Build<Tools>): Promise<void> {
  const folder = join(dist, build.name);
  const isNeeded = async () => !if_needed || !(await isCurrent(folder, build));
  if (!(await isNeeded())) return;
  const tools = await build.importTools();
  await mkdir(dist, { recursive: true });
  const locked = lock(build.name);
  try {
    if (await isNeeded()) await replace(folder, build, tools);
  } finally {
    locked.close();
  }
}

async function replace<Tools>(folder: string, build: Build<Tools>, tools: Tools): Promise<void> {
  const started = performance.now();
  const stamp = await hashOfInputs(build);
  const fresh = await mkdtemp(join(dist, `.${build.name}-`));
  try {
    await build.build(tools, fresh);
    await mkdir(folder, { recursive: true });
    await rm(join(folder, STAMP), { force: true });
    await build.publish(fresh, folder);
    await writeFile(join(folder, STAMP), stamp);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  console.log(`${build.done} in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

async function isCurrent(folder: string, build: Build<unknown>): Promise<boolean> {
  const made_from = await readFile(join(folder, STAMP), 'utf8').catch(() => null);
  if (made_from === null || made_from !== (await hashOfInputs(build))) return false;
  const now = new Date();
  await utimes(join(folder, STAMP), now, now);
  return true;
}

async function hashOfInputs({ inputs, not_inputs }: Build<unknown>): Promise<string> {
  const hash = createHash('sha256');
  for (const path of await filesOf(root, inputs)) {
    if (not_inputs.test(path)) continue;
    const content = await readFile(join(root, path));
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** The kernel releases this lock however the process ends. */
function lock(name: string): DatabaseSync {
  const database = new DatabaseSync(join(dist, `.${name}.lock`), { timeout: WAIT_MS });
  database.exec('BEGIN EXCLUSIVE');
  return database;
}

/** Sorted paths of files, relative to the folder. */
export async function filesOf(folder: string, patterns: string[]): Promise<string[]> {
  const found: string[] = [];
  for await (const name of glob(patterns, { cwd: folder })) {
    if ((await stat(join(folder, name))).isFile()) found.push(name);
  }
  return found.sort();
}
