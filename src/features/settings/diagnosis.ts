/** What the service examines on its own machine for `svc doctor`. Changes nothing. */
import { access, constants, stat } from 'node:fs/promises';
import { sleep } from '../../base/async.ts';
import { limits } from '../../base/limits.ts';
import { version } from '../../base/version.ts';
import type { Settings } from '../../core/config.ts';
import { type FolderSetting, folderSettings } from '../../core/problem.ts';

export interface Diagnosis {
  /** Version of svc. */
  version: string;
  folders: FolderReport[];
}

interface FolderReport {
  setting: FolderSetting;
  path: string;
  /** Why agents cannot use it; null if the service can read it. */
  problem: string | null;
}

/** Examines the folders in which agents of the main node may work, in the order of the settings; none if none run there. */
export async function diagnose(settings: Pick<Settings, 'get'>): Promise<Diagnosis> {
  if (!settings.get('server.local_node')) return { version, folders: [] };
  const listed = folderSettings.flatMap((setting) =>
    settings.get(setting).map((path) => ({ setting, path })),
  );
  const folders = listed.map(async (folder) => ({ ...folder, problem: await folderProblem(folder.path) }));
  return { version, folders: await Promise.all(folders) };
}

/** Why this process cannot read a folder, worded to follow its path; null if it can. Takes at most `doctor_wait_ms`. */
export async function folderProblem(path: string): Promise<string | null> {
  const answered = new AbortController();
  // A network file system may never answer.
  const late = sleep(limits.doctor_wait_ms, answered.signal).then(() => 'does not answer');
  try {
    return await Promise.race([examineFolder(path), late]);
  } finally {
    answered.abort();
  }
}

async function examineFolder(path: string): Promise<string | null> {
  try {
    if (!(await stat(path)).isDirectory()) return 'is not a folder';
    await access(path, constants.R_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`;
  }
}
