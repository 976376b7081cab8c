/**
 * Returns an agent's changes as one patch for `git apply`. It includes binary and new files, but no ignored ones. Git
 * uses a separate index to create it, so the agent's index does not change.
 */
import { limits } from '../../base/limits.ts';
import type { ChangesRequest } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import { DIFF, viewOf } from './changes.ts';
import { fields } from './diff-records.ts';
import { type Git, gitRefused } from './git.ts';
import { indexMarks, withUnmarkedIndex } from './unmarked-index.ts';

/** With these options, the repository's configuration cannot cause a patch that does not apply. */
const PATCH = [...DIFF, '--patch', '--binary', '--full-index', '--unified=3', '--no-relative'];

/**
 * Returns at most `limits.patch_bytes_max`. Throws `patch_too_large` above that, because a partial patch cannot be
 * applied. The patch is empty if there is no repository or nothing differs. It omits repositories within the workdir;
 * for a submodule, it contains the commit. If the workdir is below the top of its repository, the patch contains only
 * changes in the workdir, with paths from the top.
 *
 * @param roots real folders that the repository's working tree may be in
 */
export async function makePatch(
  git: Git,
  request: ChangesRequest,
  roots: readonly string[],
): Promise<Buffer> {
  const view = await viewOf(git, request, roots);
  if (!view) return Buffer.alloc(0);
  const { workdir, tree } = view;
  const marks = await indexMarks(git, workdir);
  if (marks.truncated) throw problems.patchTooLarge();
  return withUnmarkedIndex(git, workdir, { marks, copy: true }, async (index) => {
    await addNames(git, workdir, index);
    const patch = await git.run(workdir, [...PATCH, tree, '--', '.'], {
      index,
      output_bytes_max: limits.patch_bytes_max,
    });
    if (patch.truncated) throw problems.patchTooLarge();
    if (patch.code !== 0) throw gitRefused(patch);
    return patch.stdout;
  });
}

/** Adds only the names of new and conflicted files to the index, because git reads their contents from disk. */
async function addNames(git: Git, workdir: string, index: string): Promise<void> {
  const list = (...what: string[]) =>
    git.run(workdir, ['ls-files', ...what, '--full-name', '-z', '--', '.'], { filters_off: false });
  const [unmerged, others, empty] = await Promise.all([
    list('--unmerged'),
    list('--others', '--exclude-standard'),
    git.output(workdir, ['hash-object', '-t', 'blob', '--stdin'], { stdin: new Uint8Array() }),
  ]);
  for (const result of [unmerged, others]) {
    if (result.truncated) throw problems.patchTooLarge();
    if (result.code !== 0) throw gitRefused(result);
  }
  const names = [
    ...fields(unmerged.stdout).map((stage) => stage.subarray(stage.indexOf(0x09) + 1)),
    // A name that ends in a slash is a nested repository.
    ...fields(others.stdout).filter((name) => name.at(-1) !== 0x2f),
  ];
  if (names.length === 0) return;
  const entry = Buffer.from(`100644 ${empty.toString().trim()}\t`);
  const stdin = Buffer.concat(names.flatMap((name) => [entry, name, Buffer.of(0)]));
  await git.output(workdir, ['update-index', '-z', '--index-info'], { stdin, index });
}
