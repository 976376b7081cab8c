/**
 * The `Folders` of this machine: safe workdirs, worktrees and changes. It checks paths, combines identical requests,
 * serves users in turn, and runs the work as jobs (`jobs.ts`).
 */
import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FairQueue } from '../../base/fair-queue.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type {
  Changes,
  ChangesListRequest,
  ChangesRequest,
  DiffOptions,
  FileChange,
  Folders,
  FoundFiles,
  FoundRepositories,
  FoundRepository,
  QueueOwner,
  RepositoriesRequest,
  ResolvedWorkdir,
  Worktree,
  WorktreeRemoval,
  WorktreeRequest,
} from '../../core/node.ts';
import { asDiskSpaceProblem, invalid, Problem, problems, withAllowedPaths } from '../../core/problem.ts';
import type { RunAs } from '../confinement/run-as.ts';
import type { FolderView, Sandbox } from '../confinement/sandbox.ts';
import { limits } from '../limits.ts';
import type { Exec } from '../processes/exec.ts';
import { Git } from './git.ts';
import type { JobAnswer, JobContext, JobName, JobRequest } from './jobs.ts';
import {
  isInside,
  locateInside,
  locateOnce,
  outermost,
  pathProblem,
  realRoots,
  requireFolder,
} from './paths.ts';
import { batchRequests, shareInFlight } from './shared-requests.ts';
import { FolderWorkers, inThisProcess, type RunJob } from './worker-client.ts';
import { WorktreeClaims } from './worktree-claims.ts';
import type { WorktreeRoots } from './worktree-roots.ts';
import {
  checkRepository,
  clearRepository,
  createWorktree,
  removeWorktree,
  type WorktreeOptions,
  whyKept,
} from './worktrees.ts';

/** The functions are called on every use, because settings can change while the service runs. */
export interface FoldersOptions {
  data_dir: string;
  safe_paths: () => readonly string[];
  /** Where worktrees are created if the request names no path; null: such requests are rejected. Always a safe path. */
  worktree_root: () => string | null;
  /** The record of folders in which worktrees were created before. */
  roots?: WorktreeRoots | null;
  /** Where repositories may be, besides the safe paths. */
  repo_roots: () => readonly string[];
  exec: Exec;
  /** The service's environment. */
  env: Record<string, string | undefined>;
  run_as: RunAs | null;
  /** With a sandbox or `run_as`, workers with no more rights than agents do all work in agents' folders. */
  sandbox?: Sandbox | null;
}

export interface LocalFolders extends Folders {
  /** Throws a Problem if a folder cannot be the base of derived workdirs. The folder may not exist yet. */
  checkRoot(root: string): Promise<void>;
  /** Ends the workers. Idempotent. */
  close(): Promise<void>;
}

/** Opens the folders of this machine. Workers start with the first job that needs one. */
export function openFolders(options: FoldersOptions): LocalFolders {
  return new MachineFolders(options);
}

class MachineFolders implements LocalFolders {
  readonly #options: FoldersOptions;
  readonly #sandbox: Sandbox | null;
  readonly #workers: FolderWorkers | null;
  readonly #run: RunJob;
  readonly #claims: WorktreeClaims;
  // Separate queues, so that creating or removing a folder does not wait for reads of other folders.
  readonly #views = new FairQueue(limits.folder_views, problems.tooManyFolderJobs);
  readonly #work = new FairQueue(limits.folder_work, problems.tooManyFolderJobs);
  readonly #repositories = new FairQueue(sharedLimits.repository_work, problems.tooManyFolderJobs);
  readonly #share = shareInFlight();
  readonly #find;

  constructor(options: FoldersOptions) {
    const { data_dir, exec, env, run_as, sandbox = null } = options;
    this.#options = options;
    this.#sandbox = sandbox;
    this.#claims = new WorktreeClaims(data_dir);
    const repo_roots = () => this.#repoRoots();
    const context: JobContext = {
      exec,
      git: new Git({ exec, env, run_as: null, roots: repo_roots, locks: true }),
      repo_roots,
      confined: false,
    };
    this.#workers =
      run_as === null && sandbox === null ? null : new FolderWorkers({ env, run_as, sandbox, repo_roots });
    this.#run = this.#workers ? this.#workers.run : inThisProcess(context);
    this.#find = batchRequests(async (folder, owner, takeQueries) => {
      const { path: workdir } = await this.#resolve(folder);
      return this.#read(workdir, owner, 'files', () => ({ workdir, queries: takeQueries() }));
    });
  }

  resolve(workdir: string, options?: { to_create?: boolean }): Promise<ResolvedWorkdir> {
    return this.#resolve(workdir, options).catch(this.#withAllowedPaths({ workdir }));
  }

  async checkRoot(root: string): Promise<void> {
    const problem = pathProblem('default_worktree_root', root);
    if (problem) throw problem;
    const located = await locateInside(root, await this.#workdirRoots(), problems.workdirNotSafe);
    await this.#checkSeparate(located.path);
    const above = located.missing.length;
    const there = join(located.path, ...Array.from({ length: above }, () => '..'));
    await access(there, constants.W_OK | constants.X_OK).catch(() => {
      throw invalid(`default_worktree_root: ${there} cannot be written to`, 'worktree_root_not_writable');
    });
  }

  createWorktree(request: WorktreeRequest): Promise<Worktree> {
    const worktrees = this.#worktrees(this.#work, request.owner);
    return createWorktree(worktrees, request).catch((error: unknown) =>
      this.#withAllowedPaths(request)(asDiskSpaceProblem(error)),
    );
  }

  removeWorktree(
    worktree: Worktree,
    { force, owner }: { force: boolean } & QueueOwner,
  ): Promise<WorktreeRemoval> {
    return removeWorktree(this.#worktrees(this.#work, owner), worktree, force);
  }

  whyKept(worktree: Worktree, { owner }: QueueOwner = {}): Promise<string | null> {
    return whyKept(this.#worktrees(this.#work, owner), worktree);
  }

  changes({ base, owner, skip_remote = false, ...request }: ChangesListRequest): Promise<Changes> {
    return this.#share(`list ${JSON.stringify([request.workdir, base, skip_remote])}`, async () => {
      const { path: workdir } = await this.#resolve(request.workdir);
      return this.#read(workdir, owner, 'changes', () => ({ workdir, base, skip_remote }));
    });
  }

  change(request: ChangesRequest, path: string, { context }: DiffOptions = {}): Promise<FileChange> {
    const { base, owner } = request;
    return this.#share(`one ${JSON.stringify([request.workdir, base, path, context])}`, async () => {
      const { path: workdir } = await this.#resolve(request.workdir);
      return this.#read(workdir, owner, 'change', () => ({ workdir, base, path, context }));
    });
  }

  patch(request: ChangesRequest): Promise<Uint8Array> {
    return this.#share(`patch ${JSON.stringify([request.workdir, request.base])}`, async () => {
      const { path: workdir } = await this.#resolve(request.workdir);
      const patchRequest = () => ({ workdir, base: request.base });
      return Buffer.from(await this.#read(workdir, request.owner, 'patch', patchRequest), 'base64');
    });
  }

  files(workdir: string, query: string, { owner }: QueueOwner = {}): Promise<FoundFiles> {
    return this.#find(workdir, owner, query);
  }

  async repositories({ path = null, first, owner }: RepositoriesRequest): Promise<FoundRepositories> {
    if (path === null) return this.#findRepositories(first, owner);
    const worktrees = this.#worktrees(this.#views, owner);
    const checked = await checkRepository(worktrees, path).catch(this.#withAllowedPaths({ repo: path }));
    return this.#findRepositories([checked, ...first], owner);
  }

  #findRepositories(first: readonly string[], owner: string | undefined): Promise<FoundRepositories> {
    return this.#share(`repositories ${JSON.stringify(first)}`, async () => {
      const { safe_paths, repo_roots } = this.#options;
      const hidden = await realRoots(await this.#worktreeRoots());
      const isHidden = (path: string) => isInsideAny(hidden, path);
      const allowed = new Set(await realRoots([...safe_paths(), ...repo_roots()]));
      const roots = [...allowed].filter((root) => !isHidden(root));
      const found = await Promise.all(
        (await this.#searches(roots, hidden)).map(({ view, ...folders }) =>
          this.#inTurns(this.#views, owner)(view, 'repositories', {
            ...folders,
            first: first.slice(0, sharedLimits.used_repositories_max),
          }),
        ),
      );
      const rank = new Map(first.map((path, n) => [path, n]));
      const rankOf = ({ path }: FoundRepository) => rank.get(path) ?? first.length;
      const repositories = found
        .flatMap((one) => one.repositories)
        .filter(({ path }) => isInsideAny(roots, path) && !isHidden(path))
        .sort((a, b) => rankOf(a) - rankOf(b));
      const max = sharedLimits.found_repositories_max;
      const truncated = repositories.length > max || found.some((one) => one.truncated);
      return { roots, repositories: repositories.slice(0, max), truncated };
    });
  }

  /**
   * The searches for repositories below these roots. In a sandbox, those that agents can configure are examined where
   * others are not visible.
   */
  async #searches(
    roots: readonly string[],
    hidden: readonly string[],
  ): Promise<{ view: FolderView; roots: string[]; hidden: readonly string[] }[]> {
    const writable = (await this.#sandbox?.writable()) ?? roots;
    const below = writable.filter((folder) => isInsideAny(roots, folder) && !isInsideAny(hidden, folder));
    const open = await existing([
      ...new Set([...roots.filter((root) => isInsideAny(writable, root)), ...below]),
    ]);
    const closed = await existing(roots.filter((root) => !isInsideAny(writable, root)));
    const [[workdir], [path]] = [open, closed];
    return [
      ...(workdir === undefined ? [] : [{ view: { kind: 'read' as const, workdir }, roots: open, hidden }]),
      ...(path === undefined
        ? []
        : [
            {
              view: { kind: 'repositories' as const, path },
              roots: closed,
              hidden: [...hidden, ...writable],
            },
          ]),
    ];
  }

  async close(): Promise<void> {
    await this.#workers?.close();
  }

  async #resolve(workdir: string, { to_create = false } = {}): Promise<ResolvedWorkdir> {
    if (workdir === '') throw problems.workdirRequired();
    const problem = pathProblem('workdir', workdir);
    if (problem) throw problem;
    const resolve = locateOnce();
    const worktree_roots = await this.#worktreeRoots();
    const allowed = outermost([...this.#options.safe_paths(), ...worktree_roots]);
    const located = await locateInside(workdir, allowed, problems.workdirNotSafe, resolve);
    if (!to_create) await requireFolder('workdir', located);
    const { path } = located;
    const roots = (await realRoots(worktree_roots, resolve)).filter((root) => isInside(root, path));
    if (to_create) return { path, below_worktree_root: roots.length > 0, claimed_by: null };
    // Each worktree belongs to one agent, so no other agent may reach it through a link or use the folder that contains
    // all worktrees.
    if (roots.includes(path) || (roots.length > 0 && workdir.replace(/\/+$/, '') !== path)) {
      throw problems.workdirNotSafe();
    }
    const claimed_by = await this.#claims.agentOf(path);
    return { path, below_worktree_root: roots.length > 0, claimed_by };
  }

  /**
   * Runs a job that only reads a folder. Git may block on FIFOs there, and such a job cannot remove them. If it times
   * out, they are removed, so that the next job succeeds.
   */
  #read<Name extends JobName>(
    workdir: string,
    owner: string | undefined,
    job: Name,
    request: () => JobRequest<Name>,
  ): Promise<JobAnswer<Name>> {
    return this.#views
      .run({ owner: owner ?? workdir, resource: workdir }, () =>
        this.#run({ kind: 'read', workdir }, job, request()),
      )
      .catch(async (error) => {
        if (error instanceof Problem && error.code === 'git_timeout') {
          const worktrees = this.#worktrees(this.#views, owner);
          await clearRepository(worktrees, workdir).catch(() => {});
        }
        throw error;
      });
  }

  #inTurns(queue: FairQueue, owner: string | undefined): RunJob {
    return (view, job, request) => {
      const resource = placeOf(view) ?? owner ?? '';
      return queue.run({ owner: owner ?? resource, resource }, () => this.#run(view, job, request));
    };
  }

  /** The view in which git may open a repository (its real path). */
  async #viewOf(path: string): Promise<FolderView> {
    const open = await this.#sandbox?.writable();
    const is_open = !open || isInsideAny([...open, ...(await realRoots(await this.#worktreeRoots()))], path);
    return is_open ? { kind: 'read', workdir: path } : { kind: 'repositories', path };
  }

  #worktrees(turns: FairQueue, owner: string | undefined): WorktreeOptions {
    const { data_dir, run_as, roots, safe_paths, worktree_root } = this.#options;
    return {
      run: this.#inTurns(turns, owner),
      viewOf: (path) => this.#viewOf(path),
      run_as,
      sandboxed: this.#sandbox !== null,
      inRepository: (resource, work) => this.#repositories.run({ owner: owner ?? resource, resource }, work),
      worktree_root,
      addRoot: async (root) => {
        const shared = await realRoots([data_dir, ...safe_paths()]);
        if (!shared.some((folder) => isInside(folder, root))) await roots?.record(root);
      },
      worktree_roots: () => this.#worktreeRoots(),
      claims: this.#claims,
      checkSeparate: (root) => this.#checkSeparate(root),
      workdir_roots: () => this.#workdirRoots(),
      repo_roots: () => this.#repoRoots(),
    };
  }

  /**
   * A sandbox mounts nothing in folders that agents write to, so it could not hide a worktree there from other agents.
   */
  async #checkSeparate(root: string): Promise<void> {
    const shared = this.#sandbox === null ? [] : await realRoots(this.#options.safe_paths());
    if (!shared.some((folder) => isInside(folder, root))) return;
    throw invalid(
      `worktrees below ${root} would be visible to other agents: with agents.sandbox, they must be in a folder outside ` +
        'safe_paths; set worktree.default_root on that machine',
      'worktree_root_shared',
    );
  }

  async #worktreeRoots(): Promise<string[]> {
    const { data_dir, safe_paths, roots } = this.#options;
    const root = this.#options.worktree_root();
    return [
      join(data_dir, 'worktrees'),
      ...(root === null ? [] : [root]),
      ...((await roots?.outsideShared(safe_paths())) ?? []),
    ];
  }

  async #workdirRoots(): Promise<string[]> {
    return outermost([...this.#options.safe_paths(), ...(await this.#worktreeRoots())]);
  }

  async #repoRoots(): Promise<string[]> {
    return realRoots(outermost([...(await this.#workdirRoots()), ...this.#options.repo_roots()]));
  }

  /** Returns a handler that throws the error again. `paths`: the paths of the request. */
  #withAllowedPaths(paths: { workdir?: string | null; repo?: string | null }): (error: unknown) => never {
    const { safe_paths, repo_roots } = this.#options;
    return (error) => {
      throw withAllowedPaths(error, { safe_paths: safe_paths(), repo_roots: repo_roots() }, paths);
    };
  }
}

async function existing(folders: readonly string[]): Promise<string[]> {
  const found = await Promise.all(folders.map((folder) => stat(folder).catch(() => null)));
  return folders.filter((_, n) => found[n]?.isDirectory());
}

function isInsideAny(folders: readonly string[], path: string): boolean {
  return folders.some((folder) => isInside(folder, path));
}

function placeOf(view: FolderView): string | null {
  if (view.kind === 'programs') return null;
  if (view.kind === 'repositories') return view.path;
  return view.kind === 'records' ? (view.common_dir ?? view.workdir) : view.workdir;
}
