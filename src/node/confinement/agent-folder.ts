/**
 * The service's folders in which agents find files. Agents that run as another user cannot enter the data directory.
 * Their folders are below `/run` (or systemd's `RUNTIME_DIRECTORY`); other users can enter these folders but not list
 * them, and each agent's files belong to the agents' user alone. Files that must survive a reboot are beside the data
 * directory, or in `/var/lib` if the agents' user cannot reach that location or other users could change the path to
 * it.
 */
import { createHash } from 'node:crypto';
import { chmod, chown, lstat, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makePrivateFolder } from '../../base/files.ts';
import { locate } from '../folders/paths.ts';
import type { RunAs } from './run-as.ts';

export interface AgentFolderOptions {
  data_dir: string;
  run_as: RunAs | null;
  env: Readonly<Record<string, string | undefined>>;
}

type Kind = 'actor' | 'steps' | 'state';

/** For state, if the agents' user cannot reach the parent of the data directory. */
const STATE_BASE = '/var/lib';

/** Creates the folder and returns its path. Idempotent. Throws an Error with a message for the operator. */
export async function openAgentFolder(kind: Kind, options: AgentFolderOptions): Promise<string> {
  const dir = await agentFolder(kind, options);
  if (options.run_as === null) await makePrivateFolder(dir);
  else await makeTraversableFolder(dir);
  return dir;
}

/** The path of the folder, which may not exist. */
export async function agentFolder(
  kind: Kind,
  { data_dir, run_as, env }: AgentFolderOptions,
): Promise<string> {
  if (run_as === null) return join(data_dir, kind);
  const real = await realOf(data_dir);
  const base = kind === 'state' ? await persistentBase(dirname(real)) : runtimeBase(env);
  return join(base, nameOf(kind, real));
}

/** All folders where the agents of this data directory may have state, with and without `agents.run_as`. */
export async function stateFolders(data_dir: string): Promise<string[]> {
  const real = await realOf(data_dir);
  const places = stateBases(real).map((base) => join(base, nameOf('state', real)));
  return [join(data_dir, 'state'), ...places];
}

/**
 * The existing state folders of all data directories. A folder's name depends on the path of the data directory, so
 * folders with other names belong to another service, or to this one before its data directory was moved. Links and
 * folders of other users are skipped.
 */
export async function everyStateFolder(data_dir: string): Promise<string[]> {
  const bases = stateBases(await realOf(data_dir));
  const named = await Promise.all(
    bases.map(async (base) => {
      const names = await readdir(base).catch(() => []);
      return names.filter((name) => name.startsWith('svc-state-')).map((name) => join(base, name));
    }),
  );
  const paths = [join(data_dir, 'state'), ...named.flat()];
  const found = await Promise.all(paths.map((path) => lstat(path).catch(() => null)));
  return paths.filter((_, n) => {
    const info = found[n];
    return info?.isDirectory() && [0, process.getuid?.()].includes(info.uid);
  });
}

/**
 * The existing folders outside the data directory that contain tokens and step data: those of this service and of
 * others that use the same location.
 */
export async function everySessionFolder(env: AgentFolderOptions['env']): Promise<string[]> {
  const base = runtimeBase(env);
  const names = await readdir(base).catch(() => []);
  return names.filter((name) => /^svc-(actor|steps)-/.test(name)).map((name) => join(base, name));
}

function runtimeBase(env: AgentFolderOptions['env']): string {
  return env.RUNTIME_DIRECTORY?.split(':')[0] || '/run';
}

function stateBases(real: string): string[] {
  return [...new Set([dirname(real), STATE_BASE])];
}

/** The real path, even if the folder does not exist yet, because `svc doctor` may run before the first start. */
async function realOf(data_dir: string): Promise<string> {
  return (await locate(data_dir))?.path ?? data_dir;
}

/** `real`: the path of the data directory. */
function nameOf(kind: Kind, real: string): string {
  return `svc-${kind}-${createHash('sha256').update(real).digest('hex').slice(0, 16)}`;
}

/**
 * Creates a folder that belongs to the agents' user below one that `openAgentFolder` returned, and returns its path.
 * The folders in between belong to the service. `path` is relative. Idempotent.
 */
export async function makeAgentFolder(base: string, path: string, run_as: RunAs | null): Promise<string> {
  const dir = join(base, path);
  if (run_as === null) {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return dir;
  }
  const segments = path.split('/');
  for (let n = 1; n < segments.length; n++) await makeTraversableFolder(join(base, ...segments.slice(0, n)));
  await mkdir(dir, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  // An interrupted call may have created the folder without changing its owner.
  if ((await lstat(dir)).uid !== run_as.uid) await chown(dir, run_as.uid, run_as.gid);
  return dir;
}

/** Returns `folder` if other users can reach folders in it and only root can replace them; otherwise `STATE_BASE`. */
async function persistentBase(folder: string): Promise<string> {
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(() => null);
    if (!found) continue;
    const { uid, mode } = found;
    // In a sticky folder such as /tmp, users cannot replace other users' folders.
    const closed = (mode & 0o022) === 0 || (mode & 0o1000) !== 0;
    if (uid !== 0 || !closed || (mode & 0o001) === 0) return STATE_BASE;
    if (path === '/') return folder;
  }
}

/** Creates a folder of the service that other users can pass through, but cannot list or write to. */
async function makeTraversableFolder(dir: string): Promise<void> {
  const refuse = (why: string) =>
    new Error(`agents.run_as needs a folder through which agents reach their files: ${dir} ${why}`);
  await mkdir(dir, { mode: 0o711 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw refuse(`cannot be created (${error.code ?? error.message})`);
  });
  const found = await lstat(dir);
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw refuse('does not belong to this service');
  await chmod(dir, 0o711);
}
