/**
 * Where agents in the sandbox keep settings and conversations, separately for each user of the service. For the agents
 * of a team's runs, each user has a separate folder within the team's folder, because everyone who may change the
 * team's definition decides what they run.
 */
import { lstat, readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { invalid } from '../../core/problem.ts';
import type { Exec } from '../processes/exec.ts';
import { removeTree } from '../processes/remove-tree.ts';
import { stateFolders } from './agent-folder.ts';
import type { RunAs } from './run-as.ts';

/** Safe as one path segment. */
const OWNER_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The prefix of team ids. No other owner's id has it. */
const TEAM = 'team_';

/** The path of an owner's state below the folder `state` of `openAgentFolder`; null for an invalid id. */
export function ownerState(run_as: RunAs | null, owner_id: string, team_id: string | null): string | null {
  if (!OWNER_ID.test(owner_id)) return null;
  if (team_id !== null && !(team_id.startsWith(TEAM) && OWNER_ID.test(team_id))) return null;
  const own = team_id === null ? owner_id : join(team_id, owner_id);
  // Each system user has a separate folder, so that agents of one cannot change the state of another.
  return run_as ? join(`${run_as.uid}`, own) : own;
}

/**
 * Deletes all state that was ever kept for a user (including in teams) or for a team, with and without `agents.run_as`,
 * for any system user. Idempotent. Throws `invalid` for an invalid id, and an Error if something cannot be removed.
 */
export async function removeOwnerState(exec: Exec, data_dir: string, owner_id: string): Promise<void> {
  if (!OWNER_ID.test(owner_id)) throw invalid('owner_id is not an id');
  const [own, ...run_as_folders] = await stateFolders(data_dir);
  // These folders belong to the service's own user, and no other user could remove them. `rm` follows no links.
  for (const path of await foldersOf(own!, owner_id)) {
    await removeTree({ exec, run_as: null }, path).then(requireAbsent(owner_id));
  }
  for (const run_as_folder of run_as_folders) {
    const users = await readdir(run_as_folder).catch(() => []);
    for (const user of users) {
      for (const path of await foldersOf(join(run_as_folder, user), owner_id)) {
        await removeServiceFolder(exec, path).then(requireAbsent(owner_id));
      }
    }
  }
}

/**
 * The possible state folders of an owner in a folder that contains one for each owner and team. Agents cannot write to
 * `folder`.
 */
async function foldersOf(folder: string, owner_id: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const teams = entries.filter((entry) => entry.isDirectory() && entry.name.startsWith(TEAM));
  return [join(folder, owner_id), ...teams.map(({ name }) => join(folder, name, owner_id))];
}

/**
 * Deletes a folder of the service, including folders of system users in it. Agents may still change the latter, so they
 * are emptied with the rights of their user. In the service's own folders, nobody else can replace an entry. Returns
 * null, or the reason why something could not be removed.
 */
async function removeServiceFolder(exec: Exec, path: string): Promise<string | null> {
  const found = await lstat(path).catch(() => null);
  if (found === null) return null;
  const { uid, gid } = found;
  const is_own = uid === process.getuid?.();
  if (!is_own || !found.isDirectory()) {
    return removeTree({ exec, run_as: is_own ? null : { uid, gid } }, path);
  }
  for (const name of await readdir(path)) {
    const why = await removeServiceFolder(exec, join(path, name));
    if (why !== null) return why;
  }
  await rmdir(path);
  return null;
}

function requireAbsent(owner_id: string): (why: string | null) => void {
  return (why) => {
    if (why !== null) throw new Error(`the agent settings of ${owner_id} cannot be removed: ${why}`);
  };
}
