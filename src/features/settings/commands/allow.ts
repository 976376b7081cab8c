/** Lets agents of the main node use a folder: with `svc config allow`, with `svc join`, or after a path was refused. */
import type { Api } from '../../../cli/api.ts';
import type { Io } from '../../../cli/context.ts';
import { printStatus } from '../../../cli/output.ts';
import { ask } from '../../../cli/prompt.ts';
import { printable } from '../../../cli/terminal.ts';
import { type FolderSetting, Problem, settingForRefusedPath } from '../../../core/problem.ts';

/** Adds a folder to a setting. Needs root. Returns all its folders. Idempotent. */
export async function allowFolder(api: Api, setting: FolderSetting, path: string): Promise<string[]> {
  return (await api.call('allowFolder', { body: { setting, path } })).folders;
}

/**
 * Makes a request for an agent. If its path is refused and root is at the terminal, offers to allow the folder and then
 * makes the request again. `is_main`: the agent is to run on the main node, whose folders the plane can change.
 */
export async function withOfferToAllow<T>(
  io: Io,
  api: Api,
  { is_main }: { is_main: boolean },
  request: () => Promise<T>,
): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!is_main || !io.stdin.isTTY || !io.stderr.isTTY || !(error instanceof Problem)) throw error;
    const setting = settingForRefusedPath(error);
    const { message, refused_path } = error;
    if (setting === null || refused_path === undefined) throw error;
    if ((await api.call('getMe', {})).role !== 'root') throw error;
    printStatus(io, printable(`${message}: ${refused_path}`));
    const answer = await ask(
      io,
      printable(`add ${refused_path} to ${setting}, for agents of all users? [y/N]`),
    );
    if (!/^y(es)?$/i.test(answer.trim())) throw error;
    await allowFolder(api, setting, refused_path);
    return request();
  }
}
