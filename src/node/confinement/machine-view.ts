/**
 * The part of this machine that every program in the sandbox sees: system folders without sockets, home directories
 * without their contents, and the folders that the operator opens. The service's files and those of other agents are
 * hidden.
 */
import { realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { limits } from '../../base/limits.ts';
import { isInside, locate, outermost, realRoots, stepsTo } from '../folders/paths.ts';
import { systemTool } from '../processes/tools.ts';
import { binFolder } from '../sessions/environment.ts';
import { everySessionFolder, everyStateFolder } from './agent-folder.ts';
import { DEVICES, type Mount, mountsOf, PROCESSES } from './mounts.ts';
import type { SandboxOptions } from './options.ts';
import { asUser } from './run-as.ts';

/** Folders with sockets that lead out of the sandbox, and the shared folders for temporary files. */
const EMPTY = ['/run', '/tmp', '/var/tmp'];
/** The files in `/run` that name resolution needs. */
const LOOKUP = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager', '/run/nscd'];
const HOMES = ['/root', '/home'];
/** Folders that are never hidden as home directories, because programs need them. */
export const NO_HOMES = [
  '/',
  '/bin',
  '/dev',
  '/etc',
  '/lib',
  '/opt',
  '/proc',
  '/run',
  '/sbin',
  '/sys',
  '/tmp',
  '/usr',
  '/var',
];
/** Folders that contain files agents need. */
const SHARED = [
  ...NO_HOMES,
  ...['/boot', '/etc/default', '/etc/pki', '/etc/ssl', '/etc/xdg', '/home', '/mnt', '/srv'],
  ...[
    '/usr/lib',
    '/usr/local',
    '/usr/local/etc',
    '/usr/share',
    '/var/cache',
    '/var/lib',
    '/var/log',
    '/var/spool',
  ],
];
/** The files in a home directory that tell git who its user is. Credentials are in other files. */
const GIT_SETTINGS = ['.gitconfig', '.config/git/config', '.config/git/ignore', '.config/git/attributes'];

/** The home directory of agents. */
export function homeOf({ run_as, env }: SandboxOptions): string | undefined {
  return run_as?.home ?? env.HOME;
}

export class MachineView {
  readonly #options: SandboxOptions;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  /**
   * The mounts that every program gets. `pid_namespace`: includes a `/proc` that shows only the namespace's processes.
   */
  async mounts({ pid_namespace }: { pid_namespace: boolean }): Promise<Mount[]> {
    const { writable, readable } = this.#options;
    return [
      DEVICES,
      ...(pid_namespace ? [PROCESSES] : []),
      ...(await mountsOf(EMPTY, 'empty')),
      ...(await mountsOf(LOOKUP, 'read_only')),
      ...(await this.#homes()),
      ...(await mountsOf(await this.unredirectable(readable), 'read_only')),
      ...(await mountsOf(outermost(writable()), 'write')),
      // The service's own programs. Agents run `svc` from there and must not change them.
      ...(await mountsOf([dirname(binFolder), dirname(process.execPath)], 'read_only')),
      ...(await this.#hidden()),
      ...(await this.#othersState()),
      // Worktrees of other agents.
      ...(await mountsOf(await this.#options.worktree_roots(), 'empty')),
    ];
  }

  /** Home directories are empty except for git's settings and the folders of programs. */
  async #homes(): Promise<Mount[]> {
    const { env } = this.#options;
    const home = homeOf(this.#options);
    const homes = (
      await mountsOf([...HOMES, ...[env.HOME, home].filter((path) => path !== undefined)], 'empty')
    ).filter(({ path }) => !NO_HOMES.includes(path));
    const inHome = (path: string) => homes.some((mount) => isInside(mount.path, path));
    const programs = await this.unredirectable(
      (env.PATH ?? '').split(':').filter((path) => isAbsolute(path)),
    );
    const settings = home === undefined ? [] : GIT_SETTINGS.map((name) => join(home, name));
    const own = await this.unredirectable(settings);
    const seen = [...(await mountsOf(programs, 'read_only')), ...(await mountsOf(own, 'read_only', true))];
    return [...homes, ...seen.filter(({ path }) => inHome(path))];
  }

  /**
   * Returns the paths that agents cannot redirect. An agent can redirect a path if it may write to a folder on the way
   * to it.
   */
  async unredirectable(paths: readonly string[]): Promise<string[]> {
    const open = await realRoots(this.#options.writable());
    const steps = await Promise.all(paths.map(stepsTo));
    return paths.filter((_, n) => !steps[n]!.some(({ entry }) => open.some((root) => isInside(root, entry))));
  }

  /**
   * Hides the private state of all users, including state from before the data directory was moved, and the files of
   * sessions, such as tokens. Each agent sees its own in separate mounts.
   */
  async #othersState(): Promise<Mount[]> {
    const { data_dir, env } = this.#options;
    const folders = [...(await everyStateFolder(data_dir)), ...(await everySessionFolder(env))];
    return mountsOf(folders, 'empty');
  }

  /**
   * Hides the configured paths. A mount covers only what exists now: if a file is replaced or a folder is moved,
   * running agents would see the new one. So the parent folder is hidden too, unless agents need something else in it.
   */
  async #hidden(): Promise<Mount[]> {
    const { data_dir, hidden } = this.#options;
    const around = (await this.#around(hidden)).filter(({ needed }) => !needed).map(({ folder }) => folder);
    const within = (path: string) => around.some((folder) => isInside(folder, path));
    const found = (await mountsOf([data_dir, ...hidden], 'empty')).filter(({ path }) => !within(path));
    const covered = found.map(async ({ path }) => {
      const folder = (await stat(path)).isDirectory();
      return { path, kind: folder ? ('empty' as const) : ('no_file' as const) };
    });
    return [...around.map((path) => ({ path, kind: 'empty' as const })), ...(await Promise.all(covered))];
  }

  /** The parent folders of these paths and of what they link to, and whether agents need anything in them. */
  async #around(hidden: readonly string[]): Promise<{ path: string; folder: string; needed: boolean }[]> {
    const { env, readable, repo_roots, writable } = this.#options;
    const programs = [dirname(binFolder), dirname(process.execPath), ...(env.PATH ?? '').split(':')];
    const used = await realRoots([...readable, ...repo_roots(), ...writable(), ...programs]);
    const found: { path: string; folder: string; needed: boolean }[] = [];
    for (const path of hidden.filter((one) => isAbsolute(one))) {
      const real = (await locate(path))?.path ?? path;
      for (const one of new Set([path, real])) {
        const folder = await realpath(dirname(one)).catch(() => null);
        if (folder === null) continue;
        const needed = SHARED.includes(folder) || used.some((root) => isInside(folder, root));
        found.push({ path, folder, needed });
      }
    }
    return found;
  }

  /** Warnings for the operator about hidden paths: running agents would see a file that replaces one of them. */
  async exposed(): Promise<string[]> {
    const { data_dir, hidden, readable, writable, run_as, exec } = this.#options;
    const shown = await realRoots([...readable, ...writable()]);
    const covers = [...(await this.#homes()), ...(await mountsOf([data_dir, ...EMPTY], 'empty'))];
    const masks = covers.filter(({ kind }) => kind === 'empty');
    const found: string[] = [];
    for (const { path, folder, needed } of await this.#around(hidden)) {
      const masked = masks.some((mask) => isInside(mask.path, folder));
      if (!needed || (masked && !shown.some((root) => isInside(root, folder)))) continue;
      const options = {
        cwd: '/',
        env: { LC_ALL: 'C' },
        output_bytes_max: 4_096,
        timeout_ms: limits.doctor_wait_ms,
      };
      // If the agents' user cannot read the file, it cannot read the replacement either.
      if (run_as && (await exec.run(asUser([systemTool('test'), '-r', path], run_as), options)).code !== 0)
        continue;
      found.push(
        `if ${path} is replaced, running agents see the new file, because they need other files in ${folder}: move it to its own folder`,
      );
    }
    return [...new Set(found)];
  }

  /**
   * Omits mounts inside folders that agents can write to. Such a mount would follow links that agents put in its place,
   * and agents could move what it protects.
   */
  async outsideWritable(mounts: Mount[]): Promise<Mount[]> {
    const open = await realRoots(this.#options.writable());
    return mounts.filter(({ path }) => !open.some((root) => isInside(root, path)));
  }
}
