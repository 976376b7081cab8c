/**
 * Provides an index that shows what an agent changed. The agent owns the real index, and can mark entries in it as
 * unchanged or as left out of the checkout, whatever is on disk.
 */
import { constants } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { invalid } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import type { ExecResult } from '../processes/exec.ts';
import { fields } from './diff-records.ts';
import { type Git, gitRefused } from './git.ts';

/** Entries of an index and their marks. Names are relative to the workdir. */
export interface IndexMarks {
  /** Entries in conflict, each listed once. */
  unmerged: Buffer[];
  /** Marked `assume-unchanged`. */
  assumed: Buffer[];
  /** Marked `skip-worktree`. */
  skipped: Buffer[];
  /** The index has more entries than were read. */
  truncated: boolean;
}

/** Reads the marks of the workdir's index, up to `limits.git_index_bytes_max`. Throws `git_refused`. */
export async function indexMarks(git: Git, workdir: string): Promise<IndexMarks> {
  const { stdout, truncated } = await listIndex(git, workdir, ['-v', '-z', '--', '.']);
  return marksOf(fields(stdout), (entry) => entry.subarray(2), truncated);
}

/**
 * Reads the marks of the whole index that the workdir has, and the names of its submodules relative to the workdir;
 * null if it has more entries than were read. Throws `git_refused`.
 */
export async function marksAndSubmodules(
  git: Git,
  workdir: string,
): Promise<{ marks: IndexMarks; submodules: Buffer[] | null }> {
  const { stdout, truncated } = await listIndex(git, workdir, ['-v', '--stage', '-z', '--', ':(top)']);
  // These entries are longer, so this output may lack marks that `indexMarks` finds.
  if (truncated) return { marks: await indexMarks(git, workdir), submodules: null };
  const entries = fields(stdout);
  const nameOf = (entry: Buffer) => entry.subarray(entry.indexOf('\t') + 1);
  const isSubmodule = (entry: Buffer) => entry.toString('latin1', 2, 9) === '160000 ';
  return { marks: marksOf(entries, nameOf, false), submodules: entries.filter(isSubmodule).map(nameOf) };
}

async function listIndex(git: Git, workdir: string, args: readonly string[]): Promise<ExecResult> {
  const result = await git.run(workdir, ['ls-files', ...args], {
    filters_off: false,
    output_bytes_max: limits.git_index_bytes_max,
  });
  if (result.code !== 0) throw gitRefused(result);
  return result;
}

function marksOf(
  entries: readonly Buffer[],
  nameOf: (entry: Buffer) => Buffer,
  truncated: boolean,
): IndexMarks {
  const marks: IndexMarks = { unmerged: [], assumed: [], skipped: [], truncated };
  let last = '';
  for (const entry of entries) {
    const tag = String.fromCharCode(entry[0]!);
    const letter = tag.toUpperCase();
    if (tag === 'H') continue;
    const path = nameOf(entry);
    if (letter === 'M' && path.toString('latin1') !== last) marks.unmerged.push(path);
    if (letter === 'S') marks.skipped.push(path);
    if (tag !== letter) marks.assumed.push(path);
    last = path.toString('latin1');
  }
  return marks;
}

/**
 * Calls `work` with the path of an index without marks, or undefined if the repository's own index has none. With
 * sparse checkout, files that are neither selected nor on disk are left out: git itself removes the mark of a file that
 * is on disk.
 *
 * @param copy always creates a copy, which the caller may change
 */
export async function withUnmarkedIndex<T, Copy extends boolean>(
  git: Git,
  workdir: string,
  { marks, copy }: { marks: IndexMarks; copy: Copy },
  work: (index: Copy extends true ? string : string | undefined) => Promise<T>,
): Promise<T> {
  const { assumed } = marks;
  const skipped = marks.skipped.length > 0 && (await isSparse(git, workdir)) ? [] : marks.skipped;
  if (!copy && assumed.length + skipped.length === 0) return work(undefined as never);
  const folder = await mkdtemp(join(tmpdir(), 'svc-index-'));
  try {
    const index = join(folder, 'index');
    await copyIndex(git, workdir, index);
    await clear(git, workdir, index, '--no-assume-unchanged', assumed);
    await clear(git, workdir, index, '--no-skip-worktree', skipped);
    return await work(index);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function isSparse(git: Git, workdir: string): Promise<boolean> {
  return (await git.lineOrNull(workdir, ['config', '--type=bool', 'core.sparseCheckout'])) === 'true';
}

async function clear(
  git: Git,
  workdir: string,
  index: string,
  option: string,
  names: readonly Buffer[],
): Promise<void> {
  if (names.length === 0) return;
  const stdin = Buffer.concat(names.flatMap((name) => [name, Buffer.of(0)]));
  await git.output(workdir, ['update-index', option, '-z', '--stdin'], { stdin, index, filters_off: false });
}

/**
 * Does nothing if the repository has no index yet. The copy keeps the time of the index. Git trusts the size and time
 * of a file only if the file is older than the index, so with a newer copy it would miss a change that keeps the size
 * and the second.
 */
async function copyIndex(git: Git, workdir: string, to: string): Promise<void> {
  const named = await git.lineOrNull(workdir, ['rev-parse', '--git-path', 'index']);
  if (named === null) return;
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  const file = await open(resolve(workdir, named), flags).catch(() => null);
  if (file === null) return;
  try {
    const info = await file.stat();
    if (!info.isFile() || info.size > limits.git_index_bytes_max) {
      throw invalid('the index of the repository is too large', 'git_refused');
    }
    const bytes = Buffer.alloc(info.size);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    const copy = await open(to, 'wx');
    try {
      await copy.writeFile(bytes.subarray(0, bytesRead));
      // Git would take time 0 for a missing index and trust every entry.
      const second = Math.max(1, Math.floor(info.mtimeMs / 1000));
      await copy.utimes(second, second);
    } finally {
      await copy.close();
    }
  } finally {
    await file.close();
  }
}
