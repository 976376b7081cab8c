/**
 * The sandbox around agents (`agents.sandbox = "bwrap"`), and around what the service itself does in their folders. It
 * works out bubblewrap's argv: which files of this machine a program sees, which of them it may change, and namespaces
 * that keep it from every process outside. What agents can write to may be swapped while this is worked out, so folders
 * are held open and named by device and inode; the first program inside compares them with what was mounted.
 */
import { randomBytes } from 'node:crypto';
import { access, lstat, mkdir, readdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { limits } from '../base/limits.ts';
import { findPreset } from '../domain/presets.ts';
import { Problem } from '../domain/problem.ts';
import { binFolder } from './environment.ts';
import type { Exec } from './exec.ts';
import { isInside, outermost, realRoots } from './folders/paths.ts';
import { type HeldFolder, holdFolder, identify } from './held-folder.ts';
import { repositoryOf } from './repository-link.ts';
import { asUser, type RunAs } from './run-as.ts';

export interface SandboxOptions {
  exec: Exec;
  /** Null: not installed. */
  bwrap: string | null;
  data_dir: string;
  run_as: RunAs | null;
  /** The service's own environment: its HOME, PATH and XDG_CONFIG_HOME decide what lies in a home. */
  env: Readonly<Record<string, string | undefined>>;
  /** Folders and files that no agent sees, beside the data directory. */
  hidden: readonly string[];
  /** Where agents may write; read at each launch. */
  writable(): readonly string[];
  /** What agents see of home directories. */
  readable: readonly string[];
  /** Where worktrees are made: each agent sees its own. Null: nowhere but in the data directory. */
  worktree_root(): string | null;
  /** Where the repositories of worktrees may lie, beside those. */
  repo_roots(): readonly string[];
}

/** What a launch brings. */
export interface AgentView {
  workdir: string;
  /** Folders that it reads, such as the one with its token. */
  read: readonly string[];
  write: readonly string[];
  /** Decides which directories of the home are its own. */
  preset: string | null;
  owner_id: string;
}

/**
 * What a program of the service's sees that works in agents' folders, beside the machine itself. It has no network.
 *
 * - `look`: reads one folder and its repository.
 * - `fill`: writes into one folder as its agent would, for a checkout.
 * - `records`: makes and removes worktrees of a repository. Nothing that the repository configures may run there.
 * - `programs`: runs programs that agents would, to ask for their version.
 */
export type FolderView =
  | { kind: 'programs' }
  | { kind: 'look' | 'fill'; workdir: string }
  | { kind: 'records'; common_dir: string | null; workdir: string | null };

/** An argv in front of a command, and what the command's first program has to check before it does anything. */
export interface Confinement {
  argv: string[];
  /** Absolute paths and, in the same order, what `stat -c %d:%i` must say of each. */
  places: string[];
  ids: string[];
  /** Folders that are empty but for what is mounted in them, and all that may be in them (absolute paths). */
  masks: string[];
  entries: string[];
  /** The command has process ids of its own; `--info-fd` is descriptor 5. */
  pid_namespace: boolean;
  /** To be called once the check is over. */
  release(): Promise<void>;
}

type Kind = 'see' | 'write' | 'empty' | 'no_file' | 'devices' | 'processes';

interface Place {
  path: string;
  kind: Kind;
  /** What is mounted there, where it lies elsewhere. */
  from?: string;
}

/** Where sockets lie that lead out, and everybody's scratch space. */
const EMPTY = ['/run', '/tmp', '/var/tmp'];
/** Of `/run`, what names are looked up with. */
const LOOKUP = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager', '/run/nscd'];
/** As one segment of a path. */
const OWNER_ID = /^[A-Za-z0-9_-]{1,64}$/;
const HOMES = ['/root', '/home'];
/** A home there is no home: programs need the folder. */
const NO_HOMES = [
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
/** Of a home, what git has to know of its user. Credentials lie elsewhere. */
const GIT_SETTINGS = ['.gitconfig', '.config/git/config', '.config/git/ignore', '.config/git/attributes'];
/** What a worktree writes of its repository: all else there could make git run something for others. */
const GIT_SHARED = ['objects', 'refs', 'lfs'];
/** Git follows links where it appends to reflogs, so the ones that others write are not shared. */
const GIT_PRIVATE = ['logs', 'worktrees'];

/** The machine as it is, and nothing of it to be changed. */
const BASE = [
  // As root too: without rights over this machine's namespaces nobody reads another's memory or folders by /proc.
  ...['--unshare-user', '--unshare-ipc', '--cap-drop', 'ALL'],
  ...['--ro-bind', '/', '/', '--chdir', '/'],
];
const DEVICES: Place = { path: '/dev', kind: 'devices' };
const PROCESSES: Place = { path: '/proc', kind: 'processes' };
const PID_NAMESPACE = ['--unshare-pid'];
/** Root owns the kernel's settings, and needs no capability to write them: the mounts have to prevent it. */
const PROBE =
  '! [ -w /proc/sys/kernel/core_pattern ] || { echo "the settings of the kernel stay writable" >&2; exit 1; }';

export class Sandbox {
  readonly #options: SandboxOptions;
  #works = false;
  #pid_namespace = true;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  /** Why no sandbox can be made here, in words for the operator; null when one can. Once it could, it is not asked again. */
  async problem(): Promise<string | null> {
    const { bwrap } = this.#options;
    if (this.#works) return null;
    if (process.platform !== 'linux') return 'agents.sandbox "bwrap" needs Linux';
    if (bwrap === null) return 'bwrap was not found: install bubblewrap';
    const full = [
      ...BASE,
      ...PID_NAMESPACE,
      ...[DEVICES, PROCESSES].flatMap(mount),
      ...(await kernelSettings()),
    ];
    // The wrapper finds the agent's process as the child of its namespace's init.
    this.#pid_namespace =
      (await isThere('/proc/thread-self/children')) && (await this.#try(bwrap, full)) === null;
    const said = this.#pid_namespace ? null : await this.#try(bwrap, [...BASE, ...mount(DEVICES)]);
    this.#works = said === null;
    return said === null ? null : `bwrap cannot make namespaces here: ${said}`;
  }

  /** What the sandbox of this machine cannot guarantee, in words for the operator. To be asked after `problem`. */
  get gaps(): string[] {
    const found: string[] = [];
    if (!this.#pid_namespace) {
      found.push('agents see and can signal processes of others: this machine allows no pid namespace');
    }
    if (process.getuid?.() === 0 && !this.#options.run_as) {
      found.push('agents read what root owns outside of homes, such as /etc/shadow: set agents.run_as too');
    }
    return found;
  }

  /** Throws, as a Problem, when there is no sandbox to put an agent in. */
  async check(): Promise<void> {
    const why = await this.problem();
    if (why === null) return;
    throw new Problem('unavailable', 'sandbox_unavailable', `agents.sandbox cannot be kept: ${why}`);
  }

  /** What goes in front of an agent's command. Throws as `holdFolder` does when its workdir is not there any more. */
  async agent(view: AgentView): Promise<Confinement> {
    const workdir: Place = { path: view.workdir, kind: 'write' };
    const own = [
      ...(await this.#machine()),
      ...(await existing(view.read, 'see')),
      ...(await existing(view.write, 'write')),
      ...(await this.#state(view)),
    ];
    return this.#holding(
      async (hold) => {
        const repository = await this.#repository(await hold(workdir.path), hold);
        return [...own, ...this.#apart([workdir, ...repository])];
      },
      this.#pid_namespace ? ['--info-fd', '5'] : [],
    );
  }

  /** What goes in front of a program of the service's that works in agents' folders. */
  async folders(view: FolderView): Promise<Confinement> {
    const safe = this.#options.writable();
    const repos = outermost([...safe, ...this.#options.repo_roots()]).filter((path) => !safe.includes(path));
    const own = [...(await this.#machine()), ...(await existing(repos, 'see'))];
    return this.#holding(
      async (hold) => {
        if (view.kind === 'programs') return own.map(readOnly);
        if (view.kind === 'records') {
          const records =
            view.common_dir === null ? [] : await wholeRepository((await hold(view.common_dir)).path);
          const made = view.workdir === null ? [] : [(await hold(view.workdir)).path];
          const places = [...records, ...made.map((path) => ({ path, kind: 'write' as const }))];
          return [...own, ...this.#apart(places)];
        }
        const repository = await this.#repository(await hold(view.workdir), hold);
        const places = [...own, ...this.#apart([{ path: view.workdir, kind: 'write' }, ...repository])];
        return view.kind === 'fill' ? places : places.map(readOnly);
      },
      ['--unshare-net'],
    );
  }

  async #try(bwrap: string, options: string[]): Promise<string | null> {
    const { exec, run_as } = this.#options;
    const { code, stderr } = await exec.run(
      asUser([bwrap, ...options, '--', '/bin/sh', '-c', PROBE], run_as),
      {
        cwd: '/',
        env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
        output_bytes_max: 4_096,
        timeout_ms: limits.doctor_wait_ms,
      },
    );
    if (code === 0) return null;
    const last = stderr.toString().trim().split('\n').at(-1);
    return last?.replace(/^bwrap: /, '') || `exit code ${code}`;
  }

  /** Works out places while whatever agents could swap is held open, and names what was held. */
  async #holding(
    work: (hold: (path: string) => Promise<HeldFolder>) => Promise<Place[]>,
    options: readonly string[],
  ): Promise<Confinement> {
    const held: HeldFolder[] = [];
    const release = async () => {
      await Promise.all(held.splice(0).map((folder) => folder.close()));
    };
    try {
      const places = await work(async (path) => {
        const folder = await holdFolder(path);
        held.push(folder);
        return folder;
      });
      const shown = await this.#reachable(inOrder(places));
      const namespaces = this.#pid_namespace ? PID_NAMESPACE : [];
      // After /proc, and before anything that lies in it.
      const mounts = [...shown.flatMap(mount), ...(this.#pid_namespace ? await kernelSettings() : [])];
      const files = shown.filter(({ kind }) => kind === 'no_file').map(({ path }) => path);
      const no_file = await identify('/dev/null');
      return {
        argv: [this.#options.bwrap!, ...BASE, ...namespaces, ...options, ...mounts, '--'],
        places: [...held.map(({ path }) => path), ...files],
        ids: [...held.map(({ id }) => id), ...files.map(() => no_file!)],
        ...contents(shown),
        pid_namespace: this.#pid_namespace,
        release,
      };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** What every program in the sandbox sees of this machine. */
  async #machine(): Promise<Place[]> {
    const { writable, readable, run_as } = this.#options;
    return [
      DEVICES,
      ...(this.#pid_namespace ? [PROCESSES] : []),
      ...(await existing(EMPTY, 'empty')),
      ...(await existing(LOOKUP, 'see')),
      ...(await this.#homes()),
      ...(await existing(readable, 'see')),
      ...(await existing(outermost(writable()), 'write')),
      // Ours: it runs `svc` with it, and must not change it.
      ...(await existing([dirname(binFolder), dirname(process.execPath)], 'see')),
      ...(run_as ? [] : await this.#hidden()),
      ...(await this.#othersWorktrees()),
    ];
  }

  /** Homes are empty, but for git's settings and the folders of programs. */
  async #homes(): Promise<Place[]> {
    const { env } = this.#options;
    const home = this.#home;
    const homes = (
      await existing([...HOMES, ...[env.HOME, home].filter((path) => path !== undefined)], 'empty')
    ).filter(({ path }) => !NO_HOMES.includes(path));
    const inHome = (path: string) => homes.some((place) => isInside(place.path, path));
    const programs = (env.PATH ?? '').split(':').filter((path) => isAbsolute(path));
    const settings = home === undefined ? [] : GIT_SETTINGS.map((name) => join(home, name));
    const seen = [...(await existing(programs, 'see')), ...(await existing(settings, 'see', true))];
    return [...homes, ...seen.filter(({ path }) => inHome(path))];
  }

  /** Of agents. */
  get #home(): string | undefined {
    return this.#options.run_as?.home ?? this.#options.env.HOME;
  }

  /**
   * The directories that an agent keeps its settings and conversations in. Each user of the service has them apart,
   * since what an agent writes there another one would run; of the operator's own it gets a copy of the sign-in.
   * Agents that run as a user of their own have that user's.
   */
  async #state({ preset: id, owner_id }: AgentView): Promise<Place[]> {
    const preset = id === null ? undefined : findPreset(id);
    const home = this.#home;
    if (!preset || home === undefined || NO_HOMES.includes(home) || !OWNER_ID.test(owner_id)) return [];
    const paths = preset.state_dirs.map((name) => join(home, name));
    if (this.#options.run_as) return existingHere(paths, 'write');
    const own = join(this.#options.data_dir, 'state', owner_id, preset.id);
    const places: Place[] = [];
    for (const name of preset.state_dirs) {
      const from = join(own, name);
      await mkdir(from, { recursive: true, mode: 0o700 });
      for (const file of preset.program?.sign_in?.files ?? []) {
        if (dirname(file) === name) await copySignIn(join(home, file), from);
      }
      places.push({ path: join(home, name), kind: 'write', from });
    }
    return places;
  }

  /** Where the agents' user cannot go there is nothing to be done, and bubblewrap would refuse. */
  async #reachable(places: Place[]): Promise<Place[]> {
    const { run_as, exec } = this.#options;
    if (!run_as) return places;
    const script = 'for path; do if [ -e "$path" ]; then echo y; else echo n; fi; done';
    // An empty file need not be there yet.
    const paths = places.map(({ path, kind, from }) => (kind === 'no_file' ? dirname(path) : (from ?? path)));
    const { stdout } = await exec.run(asUser(['/bin/sh', '-c', script, 'svc', ...paths], run_as), {
      cwd: '/',
      env: { LC_ALL: 'C' },
      output_bytes_max: limits.env_value_chars_max,
      timeout_ms: limits.doctor_wait_ms,
    });
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
   * What a worktree sees and writes of its repository. The link to it is the agent's to change, so it counts only where
   * the repository knows this worktree, and may be used. Git makes lock files beside what it changes, so its folder is an
   * empty one in which everything is mounted: what an agent adds there is private to its session.
   */
  async #repository(workdir: HeldFolder, hold: (path: string) => Promise<unknown>): Promise<Place[]> {
    const found = await repositoryOf(workdir);
    if (!found) return [];
    const { common_dir, record } = found;
    const roots = await realRoots([...this.#options.repo_roots(), ...this.#options.writable()]);
    if (!roots.some((root) => isInside(root, common_dir))) return [];
    const names = (await readdir(common_dir)).slice(0, limits.git_folder_entries_max);
    const paths = (wanted: (name: string) => boolean) =>
      names.filter(wanted).map((name) => join(common_dir, name));
    const special = [...GIT_SHARED, ...GIT_PRIVATE];
    const shared = await existingHere(
      paths((name) => GIT_SHARED.includes(name)),
      'write',
    );
    for (const path of [record, ...shared.map((place) => place.path)]) await hold(path);
    return [
      { path: common_dir, kind: 'empty' },
      ...(await existingHere(
        paths((name) => !special.includes(name)),
        'see',
      )),
      ...(await existingHere(
        paths((name) => GIT_PRIVATE.includes(name)),
        'empty',
      )),
      ...shared,
      { path: record, kind: 'write' },
    ];
  }

  /**
   * Without what lies in a folder that agents write to anyway. A mount there would follow the links that they put in its
   * way, and what it protects they could move.
   */
  #apart(places: Place[]): Place[] {
    const open = this.#options.writable();
    return places.filter(({ path }) => !open.some((root) => isInside(root, path)));
  }
}

/**
 * Gives an agent the operator's sign-in where it has none, or an older one. A copy, since the folder is the agent's: a
 * mount in it would go wherever a link leads.
 */
async function copySignIn(file: string, folder: string): Promise<void> {
  const held = await holdFolder(await realpath(folder));
  try {
    const [theirs, its] = await Promise.all([
      stat(file).catch(() => null),
      lstat(join(held.fd_path, basename(file))).catch(() => null),
    ]);
    if (!theirs?.isFile() || theirs.size > limits.sign_in_bytes_max) return;
    if (its && its.mtimeMs >= theirs.mtimeMs) return;
    const temporary = join(held.fd_path, `.${randomBytes(6).toString('hex')}.tmp`);
    await writeFile(temporary, await readFile(file), { flag: 'wx', mode: 0o600 });
    await rename(temporary, join(held.fd_path, basename(file)));
  } finally {
    await held.close();
  }
}

/** All of a repository but what git would run, or take settings from. */
async function wholeRepository(common_dir: string): Promise<Place[]> {
  const names = await readdir(common_dir);
  const guarded = ['hooks', 'config', 'config.worktree', 'modules', 'info'].filter((name) =>
    names.includes(name),
  );
  return [
    { path: common_dir, kind: 'write' },
    ...(await existingHere(
      guarded.map((name) => join(common_dir, name)),
      'see',
    )),
  ];
}

/** Whatever lies deeper counts more; of the same path, what is named later. */
function inOrder(places: Place[]): Place[] {
  const last = new Map(places.map((place) => [place.path, place]));
  return [...last.values()].sort((a, b) => depth(a.path) - depth(b.path));
}

/**
 * What the masked folders of these mounts hold once they are made: a mount that a link led elsewhere shows as one more.
 * Folders on the way to a mount count, what was mounted does not.
 */
function contents(places: readonly Place[]): Pick<Confinement, 'masks' | 'entries'> {
  const masks = new Set(places.filter(({ kind }) => kind === 'empty').map(({ path }) => path));
  const opaque = places.filter(({ kind }) => kind !== 'empty').map(({ path }) => path);
  const inner = (path: string) => opaque.some((other) => isInside(other, path));
  const entries = new Set<string>();
  for (const { path } of places) {
    // Up to the nearest folder that is masked; what lies in a folder that was mounted is not looked at.
    const way: string[] = [];
    let at = path;
    while (at !== '/' && !masks.has(dirname(at)) && !inner(dirname(at))) {
      way.push(at);
      at = dirname(at);
    }
    if (at === '/' || !masks.has(dirname(at))) continue;
    for (const one of [...way, at]) entries.add(one);
  }
  const folders = [...entries].filter((path) => !masks.has(path) && !inner(path));
  return { masks: [...masks, ...folders], entries: [...entries] };
}

/** What root could write in `/proc` without any capability: made read-only on top of it. */
async function kernelSettings(): Promise<string[]> {
  const found = await readdir('/proc', { withFileTypes: true });
  const kept: string[] = [];
  for (const entry of found) {
    const path = join('/proc', entry.name);
    if (/^\d+$/.test(entry.name) || entry.isSymbolicLink()) continue;
    const info = entry.isDirectory() ? null : await stat(path).catch(() => null);
    if (entry.isDirectory() || ((info?.mode ?? 0) & 0o222) !== 0) kept.push('--ro-bind', path, path);
  }
  return kept;
}

function readOnly(place: Place): Place {
  return place.kind === 'write' ? { ...place, kind: 'see' } : place;
}

function mount({ path, kind, from = path }: Place): string[] {
  switch (kind) {
    case 'see':
      return ['--ro-bind', from, path];
    case 'write':
      return ['--bind', from, path];
    case 'empty':
      return ['--tmpfs', path];
    case 'devices':
      return ['--dev', path];
    case 'processes':
      return ['--proc', path];
    case 'no_file':
      return ['--ro-bind', '/dev/null', path];
  }
}

/** Real paths of those that are there; with `named`, at the path that was named. */
async function existing(paths: readonly string[], kind: Kind, named = false): Promise<Place[]> {
  const found = await Promise.all(paths.map((path) => realpath(path).catch(() => null)));
  return found.flatMap((from, n) => {
    if (from === null) return [];
    return named ? { path: paths[n]!, kind, from } : { path: from, kind };
  });
}

/** Those that are there and are no links: in a folder that agents write to, a link leads where they like. */
async function existingHere(paths: readonly string[], kind: Kind): Promise<Place[]> {
  const found = await existing(paths, kind);
  return found.filter(({ path }) => paths.includes(path));
}

function depth(path: string): number {
  return path === '/' ? 0 : path.split('/').length;
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
