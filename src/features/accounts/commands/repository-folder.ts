/** Finds the folder in which a person keeps git repositories, and offers to let agents work in it. */
import { lstat, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Api } from '../../../cli/api.ts';
import type { Io } from '../../../cli/context.ts';
import { Failure } from '../../../cli/failure.ts';
import { printStatus } from '../../../cli/output.ts';
import { ask, InputEnded } from '../../../cli/prompt.ts';
import { printable } from '../../../cli/terminal.ts';
import { MAIN_NODE } from '../../../core/node.ts';
import { allowFolder } from '../../settings/commands/allow.ts';
import { limits } from '../limits.ts';

/** Common names of such folders, below the home folder. */
const names = ['src', 'code', 'repos', 'projects', 'Projects', 'git', 'dev', 'Developer', 'work'];

/**
 * If such a folder is found, asks the new root user whether to add it to `safe_paths`. Does nothing without a terminal, or if
 * no agents run on the machine of the service. Errors are only reported, because the account exists anyway. Ctrl-C throws.
 */
export async function offerRepositoryFolder(io: Io, api: Api): Promise<void> {
  if (!io.stdin.isTTY) return;
  const found = await findRepositoryFolder(io.home);
  if (found === null) return;
  const folder = printable(found);
  try {
    const nodes = await api.all('listNodes', {});
    if (!nodes.some(({ id }) => id === MAIN_NODE)) return;
    printStatus(io, `Agents may only work in folders that you allow. Found repositories in ${folder}.`);
    if (await agrees(io, `Allow agents to work in ${folder}?`)) {
      await allowFolder(api, 'safe_paths', found);
      printStatus(io, `agents may work in ${folder}`);
    } else {
      printStatus(io, 'to allow a folder later: svc config allow FOLDER');
    }
  } catch (error) {
    if (io.signal.aborted || error instanceof Failure) throw error;
    printStatus(io, printable(`${found} is not allowed yet: ${(error as Error).message}`));
  }
}

/** No answer counts as no. */
async function agrees(io: Io, question: string): Promise<boolean> {
  try {
    return /^y(es)?$/i.test((await ask(io, `${question} [y/N]`)).trim());
  } catch (error) {
    if (!(error instanceof InputEnded)) throw error;
    printStatus(io, '');
    return false;
  }
}

/** The first of these folders that contains a git repository, or null. */
async function findRepositoryFolder(home: string): Promise<string | null> {
  for (const name of names) {
    const folder = await realpath(join(home, name)).catch(() => null);
    if (folder !== null && (await holdsRepository(folder))) return folder;
  }
  return null;
}

async function holdsRepository(folder: string): Promise<boolean> {
  const entries = await readdir(folder).catch(() => []);
  for (const entry of entries.slice(0, limits.repository_entries_max)) {
    if (await lstat(join(folder, entry, '.git')).catch(() => null)) return true;
  }
  return false;
}
