/**
 * The sandbox around agents (`agents.sandbox = "bwrap"`): what of this machine an agent sees, and what of that it may
 * change. It only works out bubblewrap's argv; the folders that are the agent's own come with each launch. Processes are
 * not hidden: stopping an agent relies on seeing its tree, so its pids are the machine's.
 */
import { readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { limits } from '../base/limits.ts';
import { Problem } from '../domain/problem.ts';
import { binFolder } from './environment.ts';
import type { Exec } from './exec.ts';
import { isInside, realRoots } from './folders/paths.ts';
import { asUser, type RunAs } from './run-as.ts';

export interface SandboxOptions {
  exec: Exec;
  /** Null: not installed. */
  bwrap: string | null;
  data_dir: string;
  run_as: RunAs | null;
  /** Folders and files that no agent sees, beside the data directory. */
  hidden: readonly string[];
  /** Where agents may write; read at each launch. */
  writable(): readonly string[];
  /** Where worktrees are made: each agent sees its own. Null: nowhere but in the data directory. */
  worktree_root(): string | null;
  /** Where the repositories of worktrees may lie, beside those. */
  repo_roots(): readonly string[];
}

/** What a launch brings. */
export interface OwnFolders {
  workdir: string;
  /** Folders that it reads, such as the one with its token. */
  read: readonly string[];
  write: readonly string[];
}

type Kind = 'see' | 'write' | 'empty' | 'no_file' | 'devices';

interface Place {
  path: string;
  kind: Kind;
}

/** Where sockets lie that lead out, and everybody's scratch space. */
const EMPTY = ['/run', '/tmp', '/var/tmp'];
/** Of `/run`, what names are looked up with. */
const LOOKUP = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager', '/run/nscd'];

export class Sandbox {
  readonly #options: SandboxOptions;
  #works = false;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  /** Why no sandbox can be made here, in words for the operator; null when one can. Once it could, it is not asked again. */
  async problem(): Promise<string | null> {
    const { bwrap, exec, run_as } = this.#options;
    if (this.#works) return null;
    if (process.platform !== 'linux') return 'agents.sandbox "bwrap" needs Linux';
    if (bwrap === null) return 'bwrap was not found: install bubblewrap';
    const probe: [string, ...string[]] = [bwrap, ...BASE, ...mount(DEVICES), '--', '/bin/sh', '-c', ':'];
    const { code, stderr } = await exec.run(asUser(probe, run_as), {
      cwd: '/',
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
      output_bytes_max: 4_096,
      timeout_ms: limits.doctor_wait_ms,
    });
    this.#works = code === 0;
    if (code === 0) return null;
    const said =
      stderr
        .toString()
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^bwrap: /, '') || `exit code ${code}`;
    return `bwrap cannot make namespaces here: ${said}`;
  }

  /** Throws, as a Problem, when there is no sandbox to put an agent in. */
  async check(): Promise<void> {
    const why = await this.problem();
    if (why === null) return;
    throw new Problem('unavailable', 'sandbox_unavailable', `agents.sandbox cannot be kept: ${why}`);
  }

  /** The argv in front of a command. */
  async argv(own: OwnFolders): Promise<string[]> {
    return [this.#options.bwrap!, ...BASE, ...(await this.#places(own)).flatMap(mount), '--'];
  }

  /** Whatever lies deeper counts more; of the same path, what is named later. */
  async #places(own: OwnFolders): Promise<Place[]> {
    const { writable, run_as } = this.#options;
    const places: Place[] = [
      DEVICES,
      ...(await existing(EMPTY, 'empty')),
      ...(await existing(LOOKUP, 'see')),
      ...(await existing(writable(), 'write')),
      // Ours: it runs `svc` with it, and must not change it.
      ...(await existing([dirname(binFolder), dirname(process.execPath)], 'see')),
      ...(run_as ? [] : await this.#hidden()),
      ...(await this.#othersWorktrees()),
      ...(await existing(own.read, 'see')),
      ...(await existing(own.write, 'write')),
      ...(await this.#repository(own.workdir)),
      { path: own.workdir, kind: 'write' },
    ];
    const last = new Map(places.map((place) => [place.path, place]));
    const seen = run_as ? await this.#reachable([...last.values()], run_as) : [...last.values()];
    return seen.sort((a, b) => depth(a.path) - depth(b.path));
  }

  /** Where the agents' user cannot go there is nothing to be done, and bubblewrap would refuse. */
  async #reachable(places: Place[], run_as: RunAs): Promise<Place[]> {
    const script = 'for path; do if [ -e "$path" ]; then echo y; else echo n; fi; done';
    const paths = places.map(({ path }) => path);
    const { stdout } = await this.#options.exec.run(
      asUser(['/bin/sh', '-c', script, 'svc', ...paths], run_as),
      {
        cwd: '/',
        env: { LC_ALL: 'C' },
        output_bytes_max: limits.env_value_chars_max,
        timeout_ms: limits.doctor_wait_ms,
      },
    );
    const answers = stdout.toString().split('\n');
    return places.filter((_, n) => answers[n] === 'y');
  }

  /** Another user cannot enter the data directory anyway, nor could bubblewrap in its name. */
  async #hidden(): Promise<Place[]> {
    const { data_dir, hidden } = this.#options;
    const found = await existing([data_dir, ...hidden], 'empty');
    return Promise.all(
      found.map(async ({ path }) => {
        const folder = (await stat(path)).isDirectory();
        return { path, kind: folder ? ('empty' as const) : ('no_file' as const) };
      }),
    );
  }

  async #othersWorktrees(): Promise<Place[]> {
    const root = this.#options.worktree_root();
    return root === null ? [] : existing([root], 'empty');
  }

  /**
   * What a worktree writes of its repository, but for what git would run for others. The link to it is the agent's to
   * change, so it counts only where the repository knows this worktree, and may be used.
   */
  async #repository(workdir: string): Promise<Place[]> {
    const link = await readFile(join(workdir, '.git'), 'utf8').catch(() => '');
    const named = /^gitdir: (\/.*)$/m.exec(link)?.[1];
    const own = named && (await realpath(named).catch(() => null));
    if (!own || basename(dirname(own)) !== 'worktrees') return [];
    const back = (await readFile(join(own, 'gitdir'), 'utf8').catch(() => '')).trim();
    if ((await realpath(back).catch(() => null)) !== join(workdir, '.git')) return [];
    const common = dirname(dirname(own));
    const { repo_roots, writable } = this.#options;
    const roots = await realRoots([...repo_roots(), ...writable(), ...this.#roots()]);
    if (!roots.some((root) => isInside(root, common))) return [];
    const guarded = ['hooks', 'config', 'config.worktree', 'modules'].map((name) => join(common, name));
    return [{ path: common, kind: 'write' }, ...(await existing(guarded, 'see'))];
  }

  #roots(): string[] {
    const root = this.#options.worktree_root();
    return [join(this.#options.data_dir, 'worktrees'), ...(root === null ? [] : [root])];
  }
}

/** The machine as it is, and nothing of it to be changed. */
const BASE = [
  // As root too: without rights over this machine's namespaces nobody reads another's memory or folders by /proc.
  ...['--unshare-user', '--unshare-ipc', '--cap-drop', 'ALL'],
  ...['--ro-bind', '/', '/', '--chdir', '/'],
];

const DEVICES: Place = { path: '/dev', kind: 'devices' };

function mount({ path, kind }: Place): string[] {
  switch (kind) {
    case 'see':
      return ['--ro-bind', path, path];
    case 'write':
      return ['--bind', path, path];
    case 'empty':
      return ['--tmpfs', path];
    case 'devices':
      return ['--dev', path];
    case 'no_file':
      return ['--ro-bind', '/dev/null', path];
  }
}

/** Real paths of those that are there. */
async function existing(paths: readonly string[], kind: Kind): Promise<Place[]> {
  const found = await Promise.all(paths.map((path) => realpath(path).catch(() => null)));
  return found.flatMap((path) => (path === null ? [] : { path, kind }));
}

function depth(path: string): number {
  return path === '/' ? 0 : path.split('/').length;
}
