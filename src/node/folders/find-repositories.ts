/**
 * Finds the git repositories at and one level below folders, with their branch and whether they have uncommitted changes.
 * Links are not followed. Linked worktrees are omitted, because most of them belong to agents, and so are repositories
 * without a commit, because no worktree can be made from them. What is not known in time is reported as unknown.
 */
import { opendir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { exists } from '../../base/files.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { FoundRepository } from '../../core/node.ts';
import { limits } from '../limits.ts';
import type { Git, GitCall } from './git.ts';
import { isInside } from './paths.ts';

export interface RepositorySearch {
  /** Real paths of the folders to search. */
  roots: readonly string[];
  /** Real paths of folders whose content is omitted. */
  hidden: readonly string[];
  /** Paths anywhere below the roots, which are examined before everything else, in this order. */
  first: readonly string[];
}

export interface SearchResult {
  repositories: FoundRepository[];
  /** There may be more, because of a limit. */
  truncated: boolean;
}

/**
 * @param repo_roots real folders that must contain a repository's data
 * @param time_ms how long to search
 */
export async function findRepositories(
  git: Pick<Git, 'run'>,
  search: RepositorySearch,
  repo_roots: readonly string[],
  time_ms: number = limits.repositories_ms,
): Promise<SearchResult> {
  const found = new Search(git, search, repo_roots, performance.now() + time_ms);
  let timer: NodeJS.Timeout | undefined;
  // A file system that does not answer would block the search, in spite of the time limits of git.
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, time_ms + limits.repositories_slack_ms);
  });
  await Promise.race([found.run(), late]);
  clearTimeout(timer);
  return found.result();
}

class Search {
  readonly #git: Pick<Git, 'run'>;
  readonly #search: RepositorySearch;
  readonly #repo_roots: readonly string[];
  /** `performance.now()` */
  readonly #deadline: number;
  /** By path; null if the folder is not a repository. A Map keeps the order of the candidates. */
  readonly #found = new Map<string, FoundRepository | null>();
  #truncated = true;

  constructor(
    git: Pick<Git, 'run'>,
    search: RepositorySearch,
    repo_roots: readonly string[],
    deadline: number,
  ) {
    this.#git = git;
    this.#search = search;
    this.#repo_roots = repo_roots;
    this.#deadline = deadline;
  }

  /** All repositories are found before the first is searched for changes, which takes much longer in large ones. */
  async run(): Promise<void> {
    const { paths, complete } = await this.#candidates();
    for (const path of paths) this.#found.set(path, null);
    const opened = await this.#eachInTime(paths, async (path) => {
      this.#found.set(path, await this.#open(path));
    });
    this.#truncated = !complete || !opened;
    const repositories = [...this.#found.values()].filter((one) => one !== null);
    await this.#eachInTime(repositories, async (one) => {
      if (one.dirty === null) one.dirty = await this.#isDirty(one.path);
    });
  }

  result(): SearchResult {
    const repositories = [...this.#found.values()].filter((one) => one !== null);
    return {
      repositories: repositories.slice(0, sharedLimits.found_repositories_max).map((one) => ({ ...one })),
      truncated: this.#truncated || repositories.length > sharedLimits.found_repositories_max,
    };
  }

  /** Folders that look like repositories, without running git. */
  async #candidates(): Promise<{ paths: string[]; complete: boolean }> {
    const { roots, hidden, first } = this.#search;
    const paths = new Set<string>();
    let complete = true;
    const add = async (path: string) => {
      if (paths.has(path) || hidden.some((folder) => isInside(folder, path))) return;
      if (!(await looksLikeRepository(path))) return;
      if (paths.size >= limits.repository_candidates_max) complete = false;
      else paths.add(path);
    };
    for (const path of first) {
      const real = await realpath(path).catch(() => null);
      if (real === path && roots.some((root) => isInside(root, path))) await add(path);
    }
    for (const root of roots) {
      const { names, all } = await folderNames(root, () => this.#left_ms <= 0);
      complete &&= all;
      await add(root);
      for (const name of names) {
        if (this.#left_ms <= 0) return { paths: [...paths], complete: false };
        await add(join(root, name));
      }
    }
    return { paths: [...paths], complete };
  }

  /** Null if the folder is not the top of a usable repository with all its data below the allowed folders. */
  async #open(path: string): Promise<FoundRepository | null> {
    const ask = ['rev-parse', '--path-format=absolute', '--git-dir', '--git-common-dir'];
    const head = ['--symbolic-full-name', 'HEAD'];
    const tree = await this.#lines(path, [...ask, '--show-toplevel', ...head]);
    // Without a working tree, git has no top level to show.
    const lines = tree === 'failed' ? await this.#lines(path, [...ask, ...head]) : tree;
    const has_tree = lines === tree;
    if (lines === null || lines === 'failed' || lines.length !== (has_tree ? 4 : 3)) return null;
    const [git_dir, common_dir] = lines as [string, string];
    if (git_dir !== common_dir) return null;
    if (has_tree ? lines[2] !== path : !isInside(path, git_dir)) return null;
    const real = await realpath(common_dir).catch(() => null);
    if (real === null || !this.#repo_roots.some((root) => isInside(root, real))) return null;
    const ref = lines.at(-1)!;
    const branch = ref.startsWith('refs/heads/') ? ref.slice('refs/heads/'.length) : null;
    // A repository without a working tree has nothing that could be uncommitted.
    return { path, branch, dirty: has_tree ? null : false };
  }

  /** Null if that is not known in time. */
  async #isDirty(path: string): Promise<boolean | null> {
    const result = await this.#run(
      path,
      ['status', '--porcelain', '-z', '--untracked-files=normal', '--ignore-submodules=all', '--no-renames'],
      { output_bytes_max: 4_096 },
    );
    return result?.code === 0 ? result.stdout.length > 0 : null;
  }

  /** Null if git does not finish in time. */
  async #lines(path: string, args: readonly string[]): Promise<string[] | 'failed' | null> {
    const result = await this.#run(path, args, { filters_off: false });
    if (result === null) return null;
    return result.code === 0 ? result.stdout.toString().replace(/\n$/, '').split('\n') : 'failed';
  }

  /** Null if git cannot run or does not finish in time. */
  async #run(path: string, args: readonly string[], call: GitCall) {
    const timeout_ms = Math.min(limits.repository_git_ms, this.#left_ms);
    if (timeout_ms <= 0) return null;
    return this.#git.run(path, args, { ...call, timeout_ms }).catch(() => null);
  }

  /** Runs the work on several items at the same time. False if there was no time for all of them. */
  async #eachInTime<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<boolean> {
    const waiting = items.values();
    const take = async () => {
      for (const item of waiting) {
        if (this.#left_ms <= 0) return false;
        await work(item);
      }
      return true;
    };
    const done = await Promise.all(Array.from({ length: limits.repositories_parallel }, take));
    return done.every(Boolean);
  }

  get #left_ms(): number {
    return this.#deadline - performance.now();
  }
}

/** The names of a folder's folders, sorted. Hidden ones and links are omitted, and so are names that no path may have. */
async function folderNames(
  folder: string,
  isLate: () => boolean,
): Promise<{ names: string[]; all: boolean }> {
  const names: string[] = [];
  let read = 0;
  try {
    for await (const entry of await opendir(folder)) {
      if (++read > limits.repository_entries_max || isLate()) return { names: names.sort(), all: false };
      const usable = !entry.name.startsWith('.') && !/[\x00-\x1f\x7f\ufffd]/.test(entry.name);
      if (usable && entry.isDirectory()) names.push(entry.name);
    }
  } catch {
    // Agents may not read every folder, and it may have been removed.
  }
  return { names: names.sort(), all: true };
}

async function looksLikeRepository(path: string): Promise<boolean> {
  if (await exists(join(path, '.git'))) return true;
  return (await Promise.all(['HEAD', 'objects', 'refs'].map((name) => exists(join(path, name))))).every(
    Boolean,
  );
}
