/**
 * The sandbox around agents (`agents.sandbox = "bwrap"`), and around the service's own work in their folders. This
 * module builds bubblewrap's argv: the files that a program sees, the files that it may change, and the namespaces that
 * separate it from all other processes. Agents can replace folders that they write to while the argv is being built. So
 * these folders are held open and identified by device and inode, and the first program inside compares them with what
 * was mounted.
 *
 * `machine-view.ts` contains what every program sees; `agent-state.ts` and `repository-view.ts` add what one agent
 * sees.
 */
import { access } from 'node:fs/promises';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { limits } from '../../base/limits.ts';
import { Problem, problems } from '../../core/problem.ts';
import { isInside, outermost, realRoots } from '../folders/paths.ts';
import { limits as nodeLimits } from '../limits.ts';
import { systemTool } from '../processes/tools.ts';
import { type AgentIdentity, stateMounts } from './agent-state.ts';
import { type HeldFolder, holdFolder, identify } from './held-folder.ts';
import { MachineView } from './machine-view.ts';
import {
  DEVICES,
  expectedEntries,
  inOrder,
  kernelSettingMounts,
  type Mount,
  mountArguments,
  mountsOf,
  PROCESSES,
  readOnly,
  withoutContent,
} from './mounts.ts';
import type { SandboxOptions } from './options.ts';
import { repositoryMounts, wholeRepository } from './repository-view.ts';
import { asUser } from './run-as.ts';
import { seccompFilter } from './seccomp-filter.ts';

export type { SandboxOptions };

/** What one agent sees besides the machine. */
export interface AgentView extends AgentIdentity {
  workdir: string;
  /** Folders that it reads, such as the one with its token. */
  read: readonly string[];
  write: readonly string[];
}

/**
 * What a program of the service sees besides the machine when it works in agents' folders. It has no network. An agent
 * can get git to run programs in its folder, and these could write what they see into a FIFO there. So a view with such
 * a folder contains nothing that the agent does not see, or git runs nothing in it that a repository configures.
 *
 * - `read`: reads one folder and its repository.
 * - `checkout`: writes to one folder as its agent would.
 * - `records`: creates and removes worktrees of a repository. Nothing that the repository configures may run there.
 * - `programs`: runs programs as agents would, to get their versions. They have no input.
 * - `repositories`: reads all repositories that agents cannot configure, among them the one at `path`. The folders that
 *   agents write to are empty.
 */
export type FolderView =
  | { kind: 'programs' }
  | { kind: 'read' | 'checkout'; workdir: string }
  | { kind: 'records'; common_dir: string | null; workdir: string | null }
  | { kind: 'repositories'; path: string };

/** The argv in front of a command, and what the command's first program must check before it does anything else. */
export interface Confinement {
  /** Reads `seccompFilter()` on descriptor 4; in the view `programs`, on descriptor 0. */
  argv: string[];
  /** Absolute paths and, in the same order, what `stat -c %d:%i` must print for each. */
  places: string[];
  ids: string[];
  /**
   * `masks`: folders that are empty except for mounts. `entries`: everything that may be in them. All paths are
   * absolute.
   */
  masks: string[];
  entries: string[];
  /**
   * The command has its own pid namespace. Except for `programs`, bubblewrap then writes its report to descriptor 5.
   */
  pid_namespace: boolean;
  /** Closes the held folders. Call it after the check has ended. Idempotent. */
  release(): Promise<void>;
}

/**
 * The caller passes the filter on descriptor 4; for `programs` on descriptor 0, because `Exec` passes no other
 * descriptors.
 */
const FILTER = ['--seccomp', '4'];
const FILTER_OF_PROGRAMS = ['--seccomp', '0'];
const NO_INPUT = ['/bin/sh', '-c', 'exec "$@" </dev/null', 'svc'];
const INFO = ['--info-fd', '5'];

/** Mounts the whole machine read-only. */
const BASE = [
  // These apply to root too: without rights over the machine's namespaces, it cannot read other processes' memory or
  // folders through /proc.
  ...['--unshare-user', '--unshare-ipc', '--cap-drop', 'ALL'],
  ...['--ro-bind', '/', '/', '--chdir', '/'],
];
const PID_NAMESPACE = ['--unshare-pid'];
/**
 * Without this, file systems that the host mounts later would appear in the sandbox, on top of read-only and hidden
 * folders. Unprivileged users can use it because it creates a user namespace.
 */
const PRIVATE_MOUNTS = ['--user', '--map-current-user', '--mount', '--propagation', 'private'];
/**
 * The kernel counts a user's namespaces in every namespace above them, so a limit in the outer one applies to all in the
 * sandbox, and only capabilities in the outer one can raise it. bubblewrap refuses to start with them.
 */
const USER_NAMESPACE_LIMIT = [
  ...['--keep-caps', '--', '/bin/sh', '-c'],
  `echo ${nodeLimits.sandbox_user_namespaces_max} >/proc/sys/user/max_user_namespaces && exec "$@"`,
  ...['svc', systemTool('setpriv'), '--ambient-caps=-all', '--inh-caps=-all'],
];
/**
 * Fails if the kernel settings are writable. Root owns them and needs no capability to write them, so mounts must
 * prevent it.
 */
const PROBE =
  '! [ -w /proc/sys/kernel/core_pattern ] || { echo "the kernel settings stay writable" >&2; exit 1; }';

export class Sandbox {
  readonly #options: SandboxOptions;
  readonly #machine: MachineView;
  #works = false;
  #pid_namespace = true;
  #private_mounts = true;
  #user_namespace_limit = true;

  constructor(options: SandboxOptions) {
    this.#options = options;
    this.#machine = new MachineView(options);
  }

  /**
   * Returns why a sandbox cannot be created here, as a message for the operator; null if it can. Remembers a success.
   */
  async problem(): Promise<string | null> {
    const { bwrap, unshare } = this.#options;
    if (this.#works) return null;
    if (process.platform !== 'linux') return 'agents.sandbox "bwrap" needs Linux';
    if (bwrap === null) return 'bwrap was not found: install bubblewrap';
    const processes = [...PID_NAMESPACE, ...mountArguments(PROCESSES), ...(await kernelSettingMounts())];
    // The wrapper finds the agent's process as a child of its namespace's init.
    const can_find_children = await exists('/proc/thread-self/children');
    let refusal: string | null = null;
    // Ordered from the strongest combination to the weakest.
    for (const [pid_namespace, private_mounts, user_namespace_limit] of [
      [true, true, true],
      [true, true, false],
      [true, false, false],
      [false, true, true],
      [false, true, false],
      [false, false, false],
    ] as const) {
      if ((pid_namespace && !can_find_children) || (private_mounts && unshare === null)) continue;
      this.#pid_namespace = pid_namespace;
      this.#private_mounts = private_mounts;
      this.#user_namespace_limit = user_namespace_limit;
      refusal = await this.#try([...mountArguments(DEVICES), ...(pid_namespace ? processes : [])]);
      if (refusal === null) break;
    }
    this.#works = refusal === null;
    return refusal === null ? null : `bwrap cannot create namespaces here: ${refusal}`;
  }

  /** Messages for the operator about what the sandbox cannot guarantee here. Call `problem` first. */
  get gaps(): string[] {
    const found: string[] = [];
    if (!this.#pid_namespace) {
      found.push(
        'agents can see and signal other processes: allow unprivileged pid namespaces with a new /proc',
      );
    }
    if (!this.#private_mounts) {
      found.push(
        'agents see file systems that this machine mounts while they run: install util-linux 2.36 or later, and allow unshare user namespaces',
      );
    }
    if (!this.#user_namespace_limit) {
      found.push(
        'an agent can use up the user namespaces of its user, so that nothing starts in a sandbox: install util-linux 2.36 or later, and make /proc/sys/user writable',
      );
    }
    if (process.getuid?.() === 0 && !this.#options.run_as) {
      found.push('agents read what root owns outside of homes, such as /etc/shadow: set agents.run_as too');
    }
    return found;
  }

  /** Throws `sandbox_unavailable` if a sandbox cannot be created here. */
  async check(): Promise<void> {
    const why = await this.problem();
    if (why === null) return;
    throw new Problem('unavailable', 'sandbox_unavailable', `agents.sandbox does not work: ${why}`);
  }

  /**
   * Returns the confinement for an agent's command. Creates its private state directories. Throws the errors of
   * `holdFolder` if the workdir no longer exists, and `workdir_not_safe` for a path with control characters. Call
   * `check` first, and `release` afterwards.
   */
  async agent(view: AgentView): Promise<Confinement> {
    const workdir: Mount = { path: view.workdir, kind: 'write' };
    const own = [
      ...(await this.#machine.mounts({ pid_namespace: this.#pid_namespace })),
      ...(await mountsOf(view.read, 'read_only')),
      ...(await mountsOf(view.write, 'write')),
      ...(await stateMounts(this.#options, view)),
    ];
    return this.#confine(
      async (hold) => {
        const repository = await repositoryMounts(this.#options, await hold(workdir.path), hold);
        return [...own, ...(await this.#machine.outsideWritable([workdir, ...repository]))];
      },
      { options: this.#startOptions },
    );
  }

  /**
   * Returns the confinement for a program of the service that works in agents' folders. Throws the same errors as
   * `agent`. Call `check` first, and `release` afterwards.
   */
  async folders(view: FolderView): Promise<Confinement> {
    const own = [
      ...(await this.#machine.mounts({ pid_namespace: this.#pid_namespace })),
      ...(await mountsOf([getCompileCacheDir() ?? []].flat(), 'read_only')),
    ];
    return this.#confine(
      async (hold) => {
        if (view.kind === 'programs') return own.map(readOnly);
        if (view.kind === 'repositories')
          return [...own.map(withoutContent), ...(await this.#repositories())];
        if (view.kind === 'records') {
          const records =
            view.common_dir === null ? [] : await wholeRepository((await hold(view.common_dir)).path);
          const made = view.workdir === null ? [] : [(await hold(view.workdir)).path];
          const mounts = [...records, ...made.map((path) => ({ path, kind: 'write' as const }))];
          return [...own, ...(await this.#machine.outsideWritable(mounts))];
        }
        const repository = await repositoryMounts(this.#options, await hold(view.workdir), hold);
        const mounts = [
          ...own,
          ...(await this.#machine.outsideWritable([{ path: view.workdir, kind: 'write' }, ...repository])),
        ];
        return view.kind === 'checkout' ? mounts : mounts.map(readOnly);
      },
      {
        // Everything in the sandbox ends when the service does.
        options: [
          ...['--unshare-net', '--die-with-parent'],
          ...(view.kind === 'programs' ? FILTER_OF_PROGRAMS : this.#startOptions),
        ],
        command: view.kind === 'programs' ? NO_INPUT : [],
      },
    );
  }

  /** The real paths of the folders that all agents can write to. */
  writable(): Promise<string[]> {
    return realRoots(this.#options.writable());
  }

  /** The folders of repositories that agents cannot configure. */
  async #repositories(): Promise<Mount[]> {
    const { data_dir, repo_roots, worktree_roots } = this.#options;
    const open = this.#options.writable();
    const repos = outermost([...open, ...repo_roots()]).filter((path) => !open.includes(path));
    const mounts = await mountsOf(await this.#machine.unredirectable(repos), 'read_only');
    // A mount over a hidden folder would uncover other agents' worktrees.
    const hidden = await realRoots([data_dir, ...(await worktree_roots())]);
    return mounts.filter(({ path }) => !hidden.some((root) => isInside(root, path)));
  }

  /** The argv of bubblewrap itself. Call `problem` first. */
  get #bwrap(): [string, ...string[]] {
    const { bwrap, unshare } = this.#options;
    if (!this.#private_mounts) return [bwrap!];
    const limit = this.#user_namespace_limit ? USER_NAMESPACE_LIMIT : [];
    return [unshare!, ...PRIVATE_MOUNTS, ...limit, '--', bwrap!];
  }

  /** The options for the descriptors that bubblewrap reads from and reports to. */
  get #startOptions(): string[] {
    return [...FILTER, ...(this.#pid_namespace ? INFO : [])];
  }

  /** Tries to run a program with these options. Returns null, or the last line of the error. */
  async #try(options: string[]): Promise<string | null> {
    const { exec, run_as } = this.#options;
    const argv: [string, ...string[]] = [...this.#bwrap, ...FILTER_OF_PROGRAMS, ...BASE, ...options];
    const { code, stderr } = await exec.run(asUser([...argv, '--', '/bin/sh', '-c', PROBE], run_as), {
      cwd: '/',
      stdin: seccompFilter(),
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
      output_bytes_max: 4_096,
      timeout_ms: limits.doctor_wait_ms,
    });
    if (code === 0) return null;
    const last = stderr.toString().trim().split('\n').at(-1);
    return last?.replace(/^bwrap: /, '') || `exit code ${code}`;
  }

  /** Builds a confinement from the mounts that `work` returns. Every folder that agents could replace is held open. */
  async #confine(
    work: (hold: (path: string) => Promise<HeldFolder>) => Promise<Mount[]>,
    { options, command = [] }: { options: readonly string[]; command?: readonly string[] },
  ): Promise<Confinement> {
    const held: HeldFolder[] = [];
    const release = async () => {
      await Promise.all(held.splice(0).map((folder) => folder.close()));
    };
    try {
      const mounts = await work(async (path) => {
        const folder = await holdFolder(path);
        held.push(folder);
        return folder;
      });
      // The check inside the sandbox reads them as lines.
      if ([...held, ...mounts].some(({ path }) => /[\x00-\x1f\x7f]/.test(path))) {
        throw problems.workdirNotSafe();
      }
      const shown = await this.#reachable(inOrder(mounts));
      const namespaces = this.#pid_namespace ? PID_NAMESPACE : [];
      // The kernel settings come after /proc.
      const arguments_ = [
        ...shown.flatMap(mountArguments),
        ...(this.#pid_namespace ? await kernelSettingMounts() : []),
      ];
      const files = shown.filter(({ kind }) => kind === 'no_file').map(({ path }) => path);
      const no_file = await identify('/dev/null');
      return {
        argv: [...this.#bwrap, ...BASE, ...namespaces, ...options, ...arguments_, '--', ...command],
        places: [...held.map(({ path }) => path), ...files],
        ids: [...held.map(({ id }) => id), ...files.map(() => no_file!)],
        ...expectedEntries(shown),
        pid_namespace: this.#pid_namespace,
        release,
      };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /**
   * Omits paths that the agents' user cannot reach. There is nothing to hide, and bubblewrap would refuse the mount.
   */
  async #reachable(mounts: Mount[]): Promise<Mount[]> {
    const { run_as, exec } = this.#options;
    if (!run_as) return mounts;
    const script = 'for path; do if [ -e "$path" ]; then echo y; else echo n; fi; done';
    // A link's target may not exist yet.
    const paths = mounts.map(({ path, kind, from }) => (kind === 'link' ? dirname(path) : (from ?? path)));
    const { stdout } = await exec.run(asUser(['/bin/sh', '-c', script, 'svc', ...paths], run_as), {
      cwd: '/',
      env: { LC_ALL: 'C' },
      output_bytes_max: limits.env_value_chars_max,
      timeout_ms: limits.doctor_wait_ms,
    });
    const answers = stdout.toString().split('\n');
    return mounts.filter((_, n) => answers[n] === 'y');
  }

  /** See `MachineView.exposed`. */
  exposed(): Promise<string[]> {
    return this.#machine.exposed();
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
