/**
 * What an agent changed: its workdir against the commit that it began from, untracked files included, as git sees it.
 * Git makes the list and every line of a diff; this file only bounds them. A path that a client names is looked up in
 * the list, never on the disk.
 */
import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { limits } from '../../base/limits.ts';
import type { ChangedFile, Changes, ChangesRequest, FileChange } from '../../domain/node.ts';
import { problems } from '../../domain/problem.ts';
import { type DiffRecord, diffRecords, fields, pathspec, shownName } from './diff-records.ts';
import { type Git, gitRefused } from './git.ts';
import { commitOrNull, isInRepository } from './repository.ts';

const DIFF = [
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
  /** Commit that is compared with; null when the repository has none yet. */
  base: string | null;
  /** What git is given: `base`, or the empty tree. */
  tree: string;
}

/** `roots`: real folders that the repository's working tree may lie in; one that lies elsewhere is not shown. */
export async function listChanges(
  git: Git,
  request: ChangesRequest,
  roots: readonly string[],
): Promise<Changes> {
  const view = await look(git, request, roots);
  if (!view) return { git: false, branch: null, base: null, head: null, files: [], truncated: false };
  const { records, truncated } = await changedRecords(git, view);
  const shown = records.slice(0, limits.changed_files_max);
  const files: ChangedFile[] = [];
  const budget = { bytes: limits.untracked_bytes_max };
  for (const record of shown) files.push(await shownFile(view.workdir, record, budget));
  return {
    git: true,
    branch: view.branch,
    base: view.base,
    head: view.head,
    files,
    truncated: truncated || records.length > shown.length,
  };
}

export async function showChange(
  git: Git,
  request: ChangesRequest,
  path: string,
  roots: readonly string[],
): Promise<FileChange> {
  const view = await look(git, request, roots);
  if (!view) throw problems.fileNotFound();
  const { records } = await changedRecords(git, view);
  const record = records.find((each) => shownName(each.path) === path);
  if (!record) throw problems.fileNotFound();
  const file = await shownFile(view.workdir, record, { bytes: limits.untracked_bytes_max });
  if (!(await hasText(view.workdir, record))) return { ...file, diff: '', truncated: false };

  const args =
    record.status === 'untracked'
      ? [...DIFF, '--no-index', '--', '/dev/null', fileArgument(record.path)]
      : [
          ...DIFF,
          '--patch',
          '--relative',
          view.tree,
          '--',
          ...(record.from ? [pathspec(record.from)] : []),
          pathspec(record.path),
        ];
  const result = await git.run(view.workdir, args, { output_bytes_max: limits.diff_bytes_max });
  // Without an index git answers 1 for "they differ".
  if (result.code !== 0 && !(record.status === 'untracked' && result.code === 1)) throw gitRefused(result);
  const binary = /^Binary files .* differ$/m.test(
    result.stdout.toString('latin1', 0, limits.path_bytes_max * 4),
  );
  if (file.additions === null && binary) return { ...file, diff: '', truncated: false };
  const whole_lines = result.truncated ? result.stdout.lastIndexOf(0x0a) + 1 : result.stdout.length;
  return { ...file, diff: result.stdout.toString('utf8', 0, whole_lines), truncated: result.truncated };
}

/** False for binary files, and for what git cannot be asked about: a folder, a name that no argument can say. */
async function hasText(workdir: string, record: DiffRecord): Promise<boolean> {
  if (record.status !== 'untracked') return record.additions !== null || record.status === 'conflicted';
  // Outside the index git compares with what a link to a folder holds, not with the link.
  return (
    isUtf8(record.path) && !(await stat(absolute(workdir, record.path)).catch(() => null))?.isDirectory()
  );
}

/** Outside the index git takes a lone dash for standard input. */
function fileArgument(name: Buffer): string {
  const text = name.toString();
  return text === '-' ? './-' : text;
}

function absolute(workdir: string, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${workdir}/`), name]);
}

async function look(git: Git, request: ChangesRequest, roots: readonly string[]): Promise<View | null> {
  const { workdir } = request;
  if (!(await isInRepository(git, workdir, roots))) return null;
  const [head, branch, asked] = await Promise.all([
    commitOrNull(git, workdir, 'HEAD'),
    git.line(workdir, ['symbolic-ref', '--short', '--quiet', 'HEAD']),
    request.base === null ? null : commitOrNull(git, workdir, request.base),
  ]);
  const base = asked ?? head;
  return { workdir, branch, head, base, tree: base ?? (await emptyTree(git, workdir)) };
}

/** Its name depends on the repository's hash. */
async function emptyTree(git: Git, workdir: string): Promise<string> {
  const name = await git.ask(workdir, ['hash-object', '-t', 'tree', '--stdin'], {
    stdin: new Uint8Array(),
    filters_off: false,
  });
  return name.toString().trim();
}

async function changedRecords(git: Git, view: View): Promise<{ records: DiffRecord[]; truncated: boolean }> {
  const { workdir, tree } = view;
  const list = (...what: string[]) =>
    git.run(workdir, ['ls-files', ...what, '-z', '--', '.'], { filters_off: false });
  const [diff, unmerged, others] = await Promise.all([
    git.run(workdir, [...DIFF, '--raw', '--numstat', '-z', '--relative', tree, '--', '.']),
    list('--unmerged'),
    list('--others', '--exclude-standard'),
  ]);
  for (const result of [diff, unmerged, others]) if (result.code !== 0) throw gitRefused(result);

  const records = new Map(diffRecords(diff.stdout).map((each) => [each.path.toString('latin1'), each]));
  const none = { from: null, additions: null, deletions: null };
  for (const stage of fields(unmerged.stdout)) {
    const path = stage.subarray(stage.indexOf(0x09) + 1);
    const key = path.toString('latin1');
    records.set(key, { ...none, path, ...records.get(key), status: 'conflicted' });
  }
  for (const path of fields(others.stdout)) {
    // No longer in the index, still on the disk: what is on the disk is what the agent left.
    records.set(path.toString('latin1'), { ...none, path, status: 'untracked' });
  }
  const sorted = [...records.values()].sort((one, other) => Buffer.compare(one.path, other.path));
  return { records: sorted, truncated: diff.truncated || others.truncated };
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
  };
}

/** Lines of an untracked file, as git would count them; null for what is binary, too long to look at, or no file. */
async function countLines(workdir: string, name: Buffer, budget: { bytes: number }): Promise<number | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(absolute(workdir, name), flags).catch((error: NodeJS.ErrnoException) => error);
  // A symlink is one line to git: where it points.
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
