/**
 * The directories in which an agent's program keeps its settings and conversations. Each user of the service has
 * separate ones; `owner-state.ts` names them.
 */
import { randomBytes } from 'node:crypto';
import { lstat, open, readFile, realpath, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { limits as sharedLimits } from '../../base/limits.ts';
import { findPreset } from '../../features/presets/rules/catalog.ts';
import { isInside, realRoots } from '../folders/paths.ts';
import { limits } from '../limits.ts';
import { systemTool } from '../processes/tools.ts';
import { makeAgentFolder, openAgentFolder } from './agent-folder.ts';
import { holdFolder } from './held-folder.ts';
import { homeOf, NO_HOMES } from './machine-view.ts';
import type { Mount } from './mounts.ts';
import type { SandboxOptions } from './options.ts';
import { ownerState } from './owner-state.ts';
import { asUser, type RunAs } from './run-as.ts';

/** Identifies the owner, the team and the program of an agent. */
export interface AgentIdentity {
  /** Determines which directories of the home are private; null: none. */
  preset: string | null;
  owner_id: string;
  /** Null: the agent does not belong to a team's run. */
  team_id: string | null;
}

/**
 * Creates the private directories of an agent and returns their mounts. Each user has separate directories; otherwise,
 * one user's agents would run what another user's agents write there. A team's agents do not use the directories of
 * their user, because other people may have decided what they run. The agent gets a copy of the credentials in the home
 * directory. Directories that the operator makes writable for all agents stay shared.
 */
export async function stateMounts(
  options: SandboxOptions,
  { preset: id, owner_id, team_id }: AgentIdentity,
): Promise<Mount[]> {
  const { run_as } = options;
  const preset = id === null ? undefined : findPreset(id);
  const home = await realpath(homeOf(options) ?? '').catch(() => null);
  const state_path = ownerState(run_as, owner_id, team_id);
  if (!preset || home === null || NO_HOMES.includes(home) || state_path === null) return [];
  const base = await openAgentFolder('state', options);
  const shared = await realRoots(options.writable());
  const own = join(state_path, preset.id);
  const mounts: Mount[] = [];
  for (const name of preset.state_dirs) {
    if (shared.some((root) => isInside(root, join(home, name)))) continue;
    const from = await makeAgentFolder(base, join(own, name), run_as);
    for (const file of preset.program?.sign_in?.files ?? []) {
      if (dirname(file) === name) await copySignIn(options, join(home, file), from);
    }
    mounts.push({ path: join(home, name), kind: 'write', from });
  }
  return mounts;
}

/**
 * Copies the credentials from the home directory if the agent has none, or older ones. It is a copy because the agent
 * can write to the folder, and a mount there would follow any link. A home directory of the agents' user is read with
 * that user's rights.
 */
async function copySignIn({ run_as, exec }: SandboxOptions, file: string, folder: string): Promise<void> {
  const held = await holdFolder(await realpath(folder));
  try {
    const [source, copied] = await Promise.all([
      stat(file).catch(() => null),
      lstat(join(held.fd_path, basename(file))).catch(() => null),
    ]);
    if (!source?.isFile() || source.size > limits.sign_in_bytes_max) return;
    if (copied && !copied.isDirectory() && copied.mtimeMs >= source.mtimeMs) return;
    const content = run_as ? await readAs(exec, run_as, file) : await readFile(file);
    if (content === null) return;
    const aside = join(held.fd_path, `.${randomBytes(6).toString('hex')}`);
    const target = join(held.fd_path, basename(file));
    if (copied?.isDirectory()) await rename(target, `${aside}.old`);
    const copy = await open(`${aside}.tmp`, 'wx', 0o600);
    try {
      await copy.writeFile(content);
      if (run_as) await copy.chown(run_as.uid, run_as.gid);
    } finally {
      await copy.close();
    }
    await rename(`${aside}.tmp`, target);
  } finally {
    await held.close();
  }
}

/** Null if that user cannot read the file, or if it is longer than `limits.sign_in_bytes_max`. */
async function readAs(exec: SandboxOptions['exec'], user: RunAs, file: string): Promise<Buffer | null> {
  const { code, stdout, truncated } = await exec.run(asUser([systemTool('cat'), '--', file], user), {
    cwd: '/',
    env: { LC_ALL: 'C' },
    output_bytes_max: limits.sign_in_bytes_max,
    timeout_ms: sharedLimits.doctor_wait_ms,
  });
  return code === 0 && !truncated ? stdout : null;
}
