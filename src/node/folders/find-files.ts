/** Finds files of a folder by words in their paths: files that git tracks, and new ones that it does not ignore. */
import { isUtf8 } from 'node:buffer';
import { limits } from '../../base/limits.ts';
import type { FoundFiles } from '../../core/node.ts';
import { fields } from './diff-records.ts';
import { type Git, gitRefused } from './git.ts';
import { isInRepository } from './repository.ts';

/**
 * Answers each of `questions` (words in a file's path) in order, with at most `limits.found_files_max` paths each.
 *
 * @param roots real folders that the repository's working tree may be in; others are treated as no repository
 */
export async function findFiles(
  git: Git,
  workdir: string,
  questions: readonly string[],
  roots: readonly string[],
): Promise<FoundFiles[]> {
  if (!(await isInRepository(git, workdir, roots))) {
    return questions.map(() => ({ git: false, paths: [], truncated: false }));
  }
  const result = await git.run(
    workdir,
    ['ls-files', '-t', '-z', '--cached', '--others', '--deleted', '--exclude-standard', '--', '.'],
    { filters_off: false },
  );
  if (result.code !== 0) throw gitRefused(result);
  const there = pathsOf(result.stdout);
  return questions.map((words) => {
    const found = best(there, words);
    return {
      git: true,
      paths: found.slice(0, limits.found_files_max),
      truncated: result.truncated || found.length > limits.found_files_max,
    };
  });
}

/** The paths that exist. Git puts a letter before each, and lists a missing path a second time, as removed. */
function pathsOf(output: Buffer): string[] {
  const there = new Set<string>();
  const gone = new Set<string>();
  for (const field of fields(output)) {
    const name = field.subarray(2);
    // A name that is not UTF-8 cannot be part of a prompt.
    if (!isUtf8(name)) continue;
    (field[0] === 0x52 ? gone : there).add(name.toString());
  }
  return [...there].filter((name) => !gone.has(name));
}

/**
 * The paths that contain every word, ignoring case: first those whose file name starts with the last word, then those whose
 * file name contains it, then the others. Shorter paths come first.
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
