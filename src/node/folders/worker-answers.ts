/**
 * The formats of a folder worker's answers. An agent could have forged them, so they are checked before they are used.
 */
import { z } from 'zod';
import { limits as sharedLimits } from '../../base/limits.ts';
import { changeStatuses } from '../../core/node.ts';
import { problemKinds } from '../../core/problem.ts';
import { isRemoteName, remoteUrl } from '../../core/remote.ts';
import { limits } from '../limits.ts';
import type { JobAnswer, JobName } from './jobs.ts';

const text = z.string();
const optional = z.string().nullable();
const count = z.int().nonnegative().nullable();

const changedFile = z.object({
  path: text,
  from: optional,
  status: z.enum(changeStatuses),
  additions: count,
  deletions: count,
  version: optional,
});
const path = z
  .string()
  .startsWith('/')
  .max(sharedLimits.path_bytes_max)
  .refine((value) => !/[\x00-\x1f\x7f]/.test(value) && !value.split('/').includes('..'));
const remote = z.object({
  name: z.string().refine(isRemoteName),
  url: z
    .string()
    .refine((url) => remoteUrl(url) === url)
    .nullable(),
  pushed: z.boolean(),
});
const commit = z.string().regex(/^[0-9a-f]{40,64}$/);

export const answerSchemas: { [Name in JobName]: z.ZodType<JobAnswer<Name>> } = {
  changes: z.object({
    git: z.boolean(),
    branch: optional,
    base: optional,
    head: optional,
    remote: remote.nullable(),
    files: z.array(changedFile).max(sharedLimits.changed_files_max),
    truncated: z.boolean(),
  }),
  change: changedFile.extend({ diff: text, truncated: z.boolean() }),
  patch: z.base64().max(Math.ceil(sharedLimits.patch_bytes_max / 3) * 4),
  files: z
    .array(
      z.object({
        git: z.boolean(),
        paths: z.array(text).max(sharedLimits.found_files_max),
        truncated: z.boolean(),
      }),
    )
    .max(limits.find_batch_max),
  repositories: z.object({
    repositories: z
      .array(z.object({ path, branch: optional, dirty: z.boolean().nullable() }))
      .max(sharedLimits.found_repositories_max),
    truncated: z.boolean(),
  }),
  openRepository: z.object({ path, common_dir: path }),
  commitOf: commit,
  unsaved: optional,
  makeFolder: path.nullable(),
  removeFolder: z.object({ left: z.enum(['nothing', 'empty', 'full']), why: optional }),
  isVacant: z.boolean(),
  prepareWorktree: z.object({ is_complete: z.boolean(), branch_commit: commit.nullable() }),
  addWorktreeRecord: z.null(),
  checkOutWorktree: z.null(),
  clearRepository: z.null(),
  unlockWorktree: z.null(),
  undoWorktree: z.object({ deleted_branch: z.boolean() }),
  inspectWorktree: z.object({
    known: z.enum(['main', 'linked', 'no']),
    exists: z.boolean(),
    locked: z.boolean(),
  }),
  dropWorktree: z.object({ kept: optional, branch_kept: optional }),
};

const id = z.int();

export const lineSchema = z.union([
  z.object({ id, ok: z.unknown() }).refine((line) => 'ok' in line),
  z.object({ id, problem: z.object({ kind: z.enum(problemKinds), code: text, message: text }) }),
  z.object({ id, failure: z.object({ code: optional, message: text }) }),
]);
