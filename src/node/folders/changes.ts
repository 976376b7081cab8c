/**
 * Determines what an agent changed: compares its workdir, including untracked files, with the commit that it started
 * from. Git produces the list and every line of a diff; this module only limits them. A path that a client names is
 * looked up in the list, never on disk.
 */
import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { lstat, open, stat } from 'node:fs/promises';
import { limits as sharedLimits } from '../../base/limits.ts';
import type {
  ChangedFile,
  Changes,
  ChangesListRequest,
  ChangesRequest,
  DiffOptions,
  FileChange,
} from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import { type DiffRecord, diffRecords, fields, pathspec, shownName } from './diff-records.ts';
import { type Git, gitRefused } from './git.ts';
import { remoteOf } from './remote.ts';
import { commitOrNull, isInRepository } from './repository.ts';
import { type IndexMarks, indexMarks, withUnmarkedIndex } from './unmarked-index.ts';

export const DIFF = [
  'diff',
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--find-renames',
  '--submodule=short',
  '--ignore-submodules=dirty',
  '--src-prefix=a/',
  '--dst-prefix=b/',
];

interface View {
  workdir: string;
  branch: string | null;
  head: string | null;
  /** The commit to compare with: the requested one, or HEAD; null if the repository has no commit. */
  base: string | null;
  /** The tree that git compares with: that of `base`, or the empty tree. */
  tree: string;
}

/** A view, and the index that git uses for it. */
interface IndexedView extends View {
  marks: IndexMarks;
  /** Undefined: git uses the repository's own index. */
  index: string | undefined;
}

/**
 * Lists the changes, at most `limits.changed_files_max`. Throws `base_missing` or `git_refused`.
 *
 * @param roots real folders that the repository's working tree may be in; others are treated as no repository
 */
export async function listChanges(
  git: Git,
  request: ChangesListRequest,
  roots: readonly string[],
): Promise<Changes> {
  const view = await viewOf(git, request, roots);
  if (!view) return NO_REPOSITORY;
  const { branch, base, head } = view;
  const has_own_branch = request.base !== null && branch !== null && head !== null;
  const [{ records, truncated }, remote] = await Promise.all([
    withIndex(git, view, (shown) => changedRecords(git, shown)),
    has_own_branch && !request.skip_remote ? remoteOf(git, view.workdir, { branch, head }) : null,
  ]);
  const files: ChangedFile[] = [];
  const budget = { bytes: limits.untracked_bytes_max };
  let path_bytes = 0;
  for (const record of records.slice(0, sharedLimits.changed_files_max)) {
    path_bytes += Buffer.byteLength(record.path) + Buffer.byteLength(record.from ?? '');
    if (path_bytes > limits.changed_paths_bytes_max) break;
    files.push(await shownFile(view.workdir, record, budget));
  }
  return {
    git: true,
    branch,
    base,
    head,
    remote,
    files,
    truncated: truncated || records.length > files.length,
  };
}

const NO_REPOSITORY: Changes = {
  git: false,
  branch: null,
  base: null,
  head: null,
  remote: null,
  files: [],
  truncated: false,
};

interface ShowOptions extends DiffOptions {
  path: string;
  /** As for `listChanges`. */
  roots: readonly string[];
}

/** The diff of one listed path, truncated to `limits.diff_bytes_max`. Throws `file_not_found` for any other path. */
export async function showChange(
  git: Git,
  request: ChangesRequest,
  { path, context, roots }: ShowOptions,
): Promise<FileChange> {
  const view = await viewOf(git, request, roots);
  if (!view) throw problems.fileNotFound();
  return withIndex(git, view, (shown) => showOne(git, shown, path, context));
}

async function withIndex<T>(git: Git, view: View, work: (shown: IndexedView) => Promise<T>): Promise<T> {
  const marks = await indexMarks(git, view.workdir);
  return withUnmarkedIndex(git, view.workdir, { marks, copy: false }, (index) =>
    work({ ...view, marks, index }),
  );
}

async function showOne(
  git: Git,
  view: IndexedView,
  path: string,
  context: number | undefined,
): Promise<FileChange> {
  const { records } = await changedRecords(git, view);
  const record = records.find((each) => shownName(each.path) === path);
  if (!record) throw problems.fileNotFound();
  const file = await shownFile(view.workdir, record, { bytes: limits.untracked_bytes_max });
  if (!(await hasText(view.workdir, record))) return { ...file, diff: '', truncated: false };

  const unified =
    context === undefined ? [] : [`--unified=${Math.min(context, sharedLimits.diff_context_lines_max)}`];
  const args =
    record.status === 'untracked'
      ? [...DIFF, ...unified, '--no-index', '--', '/dev/null', fileArgument(record.path)]
      : [
          ...DIFF,
          ...unified,
          '--patch',
          '--relative',
          view.tree,
          '--',
          ...(record.from ? [pathspec(record.from)] : []),
          pathspec(record.path),
        ];
  const result = await git.run(view.workdir, args, {
    ...indexOf(view),
    output_bytes_max: limits.diff_bytes_max,
  });
  // With --no-index, exit code 1 means that the files differ.
  if (result.code !== 0 && !(record.status === 'untracked' && result.code === 1)) throw gitRefused(result);
  const binary = /^Binary files .* differ$/m.test(
    result.stdout.toString('latin1', 0, sharedLimits.path_bytes_max * 4),
  );
  if (file.additions === null && binary) return { ...file, diff: '', truncated: false };
  const whole_lines = result.truncated ? result.stdout.lastIndexOf(0x0a) + 1 : result.stdout.length;
  return { ...file, diff: result.stdout.toString('utf8', 0, whole_lines), truncated: result.truncated };
}

/** False for binary files, folders, and names that cannot be passed as an argument. */
async function hasText(workdir: string, record: DiffRecord): Promise<boolean> {
  if (record.status !== 'untracked') return record.additions !== null || record.status === 'conflicted';
  // With --no-index, git compares the contents of the folder that a link leads to, not the link.
  return (
    isUtf8(record.path) && !(await stat(absolute(workdir, record.path)).catch(() => null))?.isDirectory()
  );
}

/** With --no-index, git would read standard input for a single dash. */
function fileArgument(name: Buffer): string {
  const text = name.toString();
  return text === '-' ? './-' : text;
}

function absolute(workdir: string, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${workdir}/`), name]);
}

/**
 * Finds what to compare; null if the folder has no repository. Throws `base_missing` if the commit to compare with does
 * not exist: the agent may have replaced its repository by one in which all its work is already committed.
 */
export async function viewOf(
  git: Git,
  request: ChangesRequest,
  roots: readonly string[],
): Promise<View | null> {
  const { workdir } = request;
  if (!(await isInRepository(git, workdir, roots))) {
    if (request.base !== null) throw problems.baseMissing();
    return null;
  }
  const [head, branch, asked] = await Promise.all([
    commitOrNull(git, workdir, 'HEAD'),
    git.lineOrNull(workdir, ['symbolic-ref', '--short', '--quiet', 'HEAD']),
    request.base === null ? null : commitOrNull(git, workdir, request.base),
  ]);
  if (request.base !== null && asked === null) throw problems.baseMissing();
  const base = asked ?? head;
  return { workdir, branch, head, base, tree: base ?? (await emptyTree(git, workdir)) };
}

/** The id of the empty tree, which depends on the repository's hash function. */
async function emptyTree(git: Git, workdir: string): Promise<string> {
  const name = await git.output(workdir, ['hash-object', '-t', 'tree', '--stdin'], {
    stdin: new Uint8Array(),
    filters_off: false,
  });
  return name.toString().trim();
}

function indexOf({ index }: IndexedView): { index?: string } {
  return index === undefined ? {} : { index };
}

async function changedRecords(
  git: Git,
  view: IndexedView,
): Promise<{ records: DiffRecord[]; truncated: boolean }> {
  const { workdir, tree, marks } = view;
  const [diff, others] = await Promise.all([
    git.run(workdir, [...DIFF, '--raw', '--numstat', '-z', '--relative', tree, '--', '.'], indexOf(view)),
    git.run(workdir, ['ls-files', '--others', '--exclude-standard', '-z', '--', '.'], { filters_off: false }),
  ]);
  for (const result of [diff, others]) if (result.code !== 0) throw gitRefused(result);

  const records = new Map(diffRecords(diff.stdout).map((each) => [each.path.toString('latin1'), each]));
  const none = { from: null, additions: null, deletions: null };
  for (const path of marks.unmerged) {
    const key = path.toString('latin1');
    records.set(key, { ...none, path, ...records.get(key), status: 'conflicted' });
  }
  for (const path of fields(others.stdout)) {
    // The file on disk counts, even if the index no longer has it.
    records.set(path.toString('latin1'), { ...none, path, status: 'untracked' });
  }
  const sorted = [...records.values()].sort((one, other) => Buffer.compare(one.path, other.path));
  return { records: sorted, truncated: diff.truncated || others.truncated || marks.truncated };
}

async function shownFile(
  workdir: string,
  record: DiffRecord,
  budget: { bytes: number },
): Promise<ChangedFile> {
  const lines = record.status === 'untracked' ? await countLines(workdir, record.path, budget) : null;
  return {
    path: shownName(record.path),
    from: record.from && shownName(record.from),
    status: record.status,
    additions: lines ?? record.additions,
    deletions: lines === null ? record.deletions : 0,
    version: await fileVersion(workdir, record),
  };
}

/** The cost is one `lstat`. The ctime is used because programs can set the mtime back. */
async function fileVersion(workdir: string, { status, path }: DiffRecord): Promise<string | null> {
  if (status === 'deleted') return null;
  const stats = await lstat(absolute(workdir, path), { bigint: true }).catch(() => null);
  return stats && `${stats.size}-${stats.ctimeNs}`;
}

/**
 * The number of lines of an untracked file, as git counts them; null if it is binary, too long, or not a regular file.
 */
async function countLines(workdir: string, name: Buffer, budget: { bytes: number }): Promise<number | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(absolute(workdir, name), flags).catch((error: NodeJS.ErrnoException) => error);
  // For git, a symlink is one line: its target.
  if (file instanceof Error) return file.code === 'ELOOP' ? 1 : null;
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > Math.min(limits.untracked_file_bytes_max, budget.bytes)) return null;
    budget.bytes -= stats.size;
    const buffer = Buffer.alloc(stats.size);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    const bytes = buffer.subarray(0, bytesRead);
    if (bytes.subarray(0, 8_000).includes(0)) return null;
    let lines = 0;
    for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) lines++;
    return bytes.length > 0 && bytes.at(-1) !== 0x0a ? lines + 1 : lines;
  } finally {
    await file.close();
  }
}
