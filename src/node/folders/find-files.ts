/** Searches the paths of a folder's files: those that git tracks, and new ones that it does not ignore. */
import { isUtf8 } from 'node:buffer';
import { limits } from '../../base/limits.ts';
import type { FoundFiles } from '../../core/node.ts';
import { fields } from './diff-records.ts';
import { type Git, gitRefused } from './git.ts';
import { isInRepository } from './repository.ts';

/**
 * Runs each query and returns the results in the same order, with at most `limits.found_files_max` paths each. A query
 * consists of words that must occur in the path.
 *
 * @param roots real folders that the repository's working tree may be in; others are treated as no repository
 */
export async function findFiles(
  git: Git,
  workdir: string,
  queries: readonly string[],
  roots: readonly string[],
): Promise<FoundFiles[]> {
  if (!(await isInRepository(git, workdir, roots))) {
    return queries.map(() => ({ git: false, paths: [], truncated: false }));
  }
  const result = await git.run(
    workdir,
    ['ls-files', '-t', '-z', '--cached', '--others', '--deleted', '--exclude-standard', '--', '.'],
    { filters_off: false },
  );
  if (result.code !== 0) throw gitRefused(result);
  const paths = pathsOf(result.stdout);
  return queries.map((query) => {
    const found = rank(paths, query);
    return {
      git: true,
      paths: found.slice(0, limits.found_files_max),
      truncated: result.truncated || found.length > limits.found_files_max,
    };
  });
}

/**
 * The paths of existing files. Git puts a letter before each path, and lists a missing file a second time, as removed.
 */
function pathsOf(output: Buffer): string[] {
  const listed = new Set<string>();
  const removed = new Set<string>();
  for (const field of fields(output)) {
    const name = field.subarray(2);
    // A name that is not UTF-8 cannot be part of a prompt.
    if (!isUtf8(name)) continue;
    (field[0] === 0x52 ? removed : listed).add(name.toString());
  }
  return [...listed].filter((name) => !removed.has(name));
}

/**
 * Returns the paths that contain every word, ignoring case. File names that start with the last word come first, then
 * file names that contain it, then the other paths. Within each group, shorter paths come first.
 */
export function rank(paths: readonly string[], query: string): string[] {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
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
