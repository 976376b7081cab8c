/**
 * Folders of ours in which agents find files. Agents that run as another user cannot enter the data directory: theirs are
 * below `/run` (or systemd's `RUNTIME_DIRECTORY`), can be entered but not listed, and what is in them for an agent belongs to
 * that user alone.
 */
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { makePrivateFolder } from '../base/files.ts';
import type { RunAs } from './run-as.ts';

export interface AgentFolderOptions {
  data_dir: string;
  run_as: RunAs | null;
  env: Readonly<Record<string, string | undefined>>;
}

type Kind = 'actor' | 'steps';

/** Makes the folder, or finds it again. Throws an Error, in words for the operator, when that cannot be. */
export async function openAgentFolder(kind: Kind, options: AgentFolderOptions): Promise<string> {
  const dir = await agentFolder(kind, options);
  if (options.run_as === null) await makePrivateFolder(dir);
  else await makePassage(dir);
  return dir;
}

/** Where it is, or would be. */
export async function agentFolder(
  kind: Kind,
  { data_dir, run_as, env }: AgentFolderOptions,
): Promise<string> {
  if (run_as === null) return join(data_dir, kind);
  const base = env.RUNTIME_DIRECTORY?.split(':')[0] || '/run';
  const name = createHash('sha256')
    .update(await realpath(data_dir))
    .digest('hex')
    .slice(0, 16);
  return join(base, `svc-${kind}-${name}`);
}

/** A folder of ours that others can go through, and neither list nor write. */
async function makePassage(dir: string): Promise<void> {
  const refuse = (why: string) =>
    new Error(`agents.run_as needs a folder that agents reach their files in: ${dir} ${why}`);
  await mkdir(dir, { mode: 0o711 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw refuse(`cannot be made (${error.code ?? error.message})`);
  });
  const found = await lstat(dir);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) throw refuse('is not ours');
  await chmod(dir, 0o711);
}
