/** The files of a folder by words of their name: those that git has, and new ones that it does not ignore. */
import { isUtf8 } from 'node:buffer';
import { limits } from '../../base/limits.ts';
import type { FoundFiles } from '../../domain/node.ts';
import { fields } from './diff-records.ts';
import { type Git, gitRefused } from './git.ts';
import { isInRepository } from './repository.ts';

/** `roots`: real folders that the repository's working tree may lie in; one that lies elsewhere is not shown. */
export async function findFiles(
  git: Git,
  workdir: string,
  words: string,
  roots: readonly string[],
): Promise<FoundFiles> {
  if (!(await isInRepository(git, workdir, roots))) return { git: false, paths: [], truncated: false };
  const result = await git.run(
    workdir,
    ['ls-files', '-t', '-z', '--cached', '--others', '--deleted', '--exclude-standard', '--', '.'],
    { filters_off: false },
  );
  if (result.code !== 0) throw gitRefused(result);
  const found = best(pathsOf(result.stdout), words);
  return {
    git: true,
    paths: found.slice(0, limits.found_files_max),
    truncated: result.truncated || found.length > limits.found_files_max,
  };
}

/** Paths that are there. Git tells each with a letter before it; a path that is gone comes a second time, as removed. */
function pathsOf(output: Buffer): string[] {
  const there = new Set<string>();
  const gone = new Set<string>();
  for (const field of fields(output)) {
    const name = field.subarray(2);
    // A name that is not text cannot be written into a prompt.
    if (!isUtf8(name)) continue;
    (field[0] === 0x52 ? gone : there).add(name.toString());
  }
  return [...there].filter((name) => !gone.has(name));
}

/**
 * The paths that have every word in them, upper or lower case: first those whose name begins as the last word says, then
 * those whose name has that somewhere, then the others; shorter ones first.
 */
export function best(paths: readonly string[], words: string): string[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const last = wanted.at(-1) ?? '';
  const name = last.slice(last.lastIndexOf('/') + 1);
  const ranked: { path: string; rank: number }[] = [];
  for (const path of paths) {
    const lower = path.toLowerCase();
    if (!wanted.every((word) => lower.includes(word))) continue;
    const at = lower.slice(lower.lastIndexOf('/') + 1).indexOf(name);
    ranked.push({ path, rank: at === 0 ? 0 : at > 0 ? 1 : 2 });
  }
  ranked.sort(
    (one, other) =>
      one.rank - other.rank || one.path.length - other.path.length || (one.path < other.path ? -1 : 1),
  );
  return ranked.map(({ path }) => path);
}
