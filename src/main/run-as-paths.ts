/**
 * Checks whether the agents' user could replace the service's private files, or change programs that it runs. A closed
 * directory does not protect its contents if agents may write to a folder above it: they can rename it and create another
 * one.
 */
import { lstat, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { limits } from '../base/limits.ts';
import { invalid } from '../core/problem.ts';
import { asUser, type RunAs } from '../node/confinement/run-as.ts';
import { locate, stepsTo } from '../node/folders/paths.ts';
import type { Exec } from '../node/processes/exec.ts';

export interface ProtectedPaths {
  /** Paths that agents must not replace, or create if they do not exist yet. */
  hidden: readonly string[];
  /** Paths whose content agents must not change either. */
  programs: readonly string[];
}

/** Why one of these absolute paths is not protected from the user, as a message for the operator; null if all are. */
export async function replaceablePath(
  exec: Exec,
  user: RunAs,
  { hidden, programs }: ProtectedPaths,
): Promise<string | null> {
  const resolved = await Promise.all([
    ...hidden.map(async (path) => ({ path, is_program: false, ...(await pathSteps(path)) })),
    ...programs.map(async (path) => ({ path, is_program: true, ...(await pathSteps(path)) })),
  ]);
  const paths_to_check = resolved.flatMap(({ steps, end }) => [...steps.map(({ folder }) => folder), end]);
  const writable = await writableBy(exec, user, [...new Set(paths_to_check)]);
  for (const { path, is_program, steps, end, is_there } of resolved) {
    // The last folder decides whether a missing path can be created, even in a sticky folder.
    const ends = (is_program || !is_there) && (await isOwnedBy(user, end, writable)) ? [end] : [];
    const culprit = (await findReplaceable(user, steps, writable)) ?? ends[0];
    if (culprit === undefined) continue;
    const why = `because ${user.name} may change ${culprit}`;
    const remedy = `make root the owner of ${culprit} and close it to ${user.name}`;
    return is_program
      ? `agents.run_as cannot keep agents from changing ${path}, which the service runs, ${why}: ` +
          `install it elsewhere, or ${remedy}`
      : `agents.run_as cannot keep ${path} from agents, ${why}: move ${path} elsewhere, or ${remedy}`;
  }
  return null;
}

/** `end`: the real path or, if it does not exist, the nearest existing parent folder. */
async function pathSteps(path: string) {
  const [steps, located] = await Promise.all([stepsTo(path), locate(path)]);
  let end = located?.path ?? path;
  for (const _ of located?.missing ?? []) end = dirname(end);
  return { steps, end, is_there: located?.missing.length === 0 };
}

async function isOwnedBy(user: RunAs, path: string, writable: ReadonlySet<string>): Promise<boolean> {
  return writable.has(path) || (await stat(path).catch(() => null))?.uid === user.uid;
}

/** The first entry or folder on the way to a path that the user can change, or undefined. */
async function findReplaceable(
  user: RunAs,
  steps: readonly { folder: string; entry: string }[],
  writable: ReadonlySet<string>,
): Promise<string | undefined> {
  for (const { folder, entry } of steps) {
    const [above, own] = await Promise.all(
      [stat(folder), lstat(entry)].map((info) => info.catch(() => null)),
    );
    if (!above || !own) return undefined;
    // In a sticky folder such as /tmp, users can change only their own files.
    const free = writable.has(folder) && ((above.mode & 0o1000) === 0 || own.uid === user.uid);
    // The owner of a link cannot write to the link as to a file.
    const replaceable_by_user = own.uid === user.uid && (free || !own.isSymbolicLink());
    if (replaceable_by_user) return entry;
    if (above.uid === user.uid || free) return folder;
  }
  return undefined;
}

/** Throws `invalid` if the user's access cannot be checked, because a failed check must not look like a passed one. */
async function writableBy(exec: Exec, user: RunAs, paths: readonly string[]): Promise<Set<string>> {
  const script = 'for path; do if [ -w "$path" ]; then echo y; else echo n; fi; done';
  const { code, stdout } = await exec.run(asUser(['/bin/sh', '-c', script, 'svc', ...paths], user), {
    cwd: '/',
    env: { LC_ALL: 'C' },
    output_bytes_max: limits.env_value_chars_max,
    timeout_ms: limits.doctor_wait_ms,
  });
  const answers = stdout.toString().split('\n');
  if (code !== 0 || answers.length !== paths.length + 1) {
    throw invalid(`agents.run_as: cannot find out what ${user.name} may change`, 'invalid_config');
  }
  return new Set(paths.filter((_, n) => answers[n] === 'y'));
}
