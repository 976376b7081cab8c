/**
 * Starts sessions: checks the request, creates the session directory, and starts the wrapper in its sandbox. A session
 * starts at most once, because wrappers compete for the file `claimed`. A node that is killed in between finds the
 * directory at its next start and decides from its files (`session.ts`).
 */
import { dirname, join } from 'node:path';
import { failpoint } from '../../base/failpoint.ts';
import { isExhausted } from '../../base/files.ts';
import type { Folders } from '../../core/node.ts';
import { asDiskSpaceProblem, invalid, problems } from '../../core/problem.ts';
import type { Launch } from '../../core/session.ts';
import type { Confinement } from '../confinement/sandbox.ts';
import { seccompFilter } from '../confinement/seccomp-filter.ts';
import type { LocalNodeOptions } from '../options.ts';
import { makeCgroup, prepareMove, removeCgroup } from '../processes/cgroup.ts';
import type { Disk } from './disk.ts';
import { agentEnvironment, type CommonEnvironment } from './environment.ts';
import { LocalSession, type SessionHost } from './session.ts';
import { SESSION_ID, SessionFiles, withoutSecrets } from './session-files.ts';
import { environmentFile, INNER, SESSION_VERSION, shellScript, WRAPPER } from './shell-scripts.ts';
import type { StepFiles } from './step-files.ts';

export interface SessionStarterOptions {
  node: LocalNodeOptions;
  host: SessionHost;
  folders: Folders;
  disk: Disk;
  steps: StepFiles;
  /** The folder of all session directories, with the path that the kernel shows. */
  root: string;
  /** The folder in which cgroups can be created, or null. */
  cgroups: string | null;
  common_environment: CommonEnvironment;
  /** Called when the directory of a session exists, before anything is started. */
  onCreated(session: LocalSession): void;
  /** Forgets a session that was never started. */
  drop(session: LocalSession): Promise<void>;
  /** Deletes the token of a session that could not be created. */
  dropToken(session_id: string): void;
  onError(message: string, error: unknown): void;
  isClosed(): boolean;
}

/** Throws `invalid_launch` if the request is malformed, or has values that no process can receive. */
export function checkLaunch({ session_id, argv, env }: Launch): void {
  if (!SESSION_ID.test(session_id)) throw invalid('session_id is not valid', 'invalid_launch');
  if (argv.length === 0) throw invalid('argv must not be empty', 'invalid_launch');
  if ([argv, Object.entries(env)].flat(2).some((text) => text.includes('\0'))) {
    throw invalid('argv and env must not contain NUL', 'invalid_launch');
  }
}

export class SessionStarter {
  readonly #options: SessionStarterOptions;

  constructor(options: SessionStarterOptions) {
    this.#options = options;
  }

  /**
   * Creates a session that does not exist yet and starts its wrapper. Throws the Problems of `Folders.resolve` for its
   * workdir, `disk_space`, `sandbox_unavailable`, `no_step_folder`, `process_not_started`, `node_unreachable` if the node is
   * closed, or `session_not_found` if `cancelled` aborts before the session exists; no session exists then. If the wrapper cannot
   * be started for a reason that will not pass, the session exists and ends with `spawn_failed`.
   */
  async start(requested: Launch, cancelled: AbortSignal): Promise<LocalSession> {
    const { node, host, folders, disk, onError, isClosed } = this.#options;
    if (isClosed()) throw problems.nodeUnreachable();
    const launch = { ...requested, workdir: (await folders.resolve(requested.workdir)).path };
    if (!disk.space().starts_allowed) throw problems.diskSpace();
    const id = launch.session_id;
    await node.sandbox?.check();
    const { session, is_new, file, variables } = await this.#create(launch, cancelled);
    await session.open(is_new, node.watches !== false);
    if (!is_new) return session;
    failpoint('claim');
    try {
      const confinement = await this.#confine(launch, variables);
      if (confinement) {
        // The folders are held until the wrapper is inside the sandbox, so that none of them can be replaced before.
        // The release is registered first, because the next steps can fail.
        void session
          .started()
          .catch(() => {})
          .then(confinement.release);
        session.files.putFilter(seccompFilter());
      }
      const script = shellScript(`session of ${launch.agent_id}`, WRAPPER);
      const argv = [...script.options, ...this.#wrapperArguments(launch, file.cgroup, confinement)];
      const env = { ...script.env, svc_inner: INNER, PATH: SYSTEM_PATH, LC_ALL: 'C', SVC_SESSION_ID: id };
      session.launched(await host.launcher.spawn([host.tools.sh, ...argv], session.files.dir, env));
      failpoint('spawn');
    } catch (error) {
      host.log.error({ session_id: id, error: String(error) }, 'cannot start the wrapper of a session');
      if (isExhausted(error) && (await this.#abandon(session))) throw problems.processNotStarted();
      session.launched(null, error as Error);
    }
    void disk.ensureGuard().catch((error) => onError('cannot start the disk guard', error));
    return session;
  }

  /** Removes a session whose wrapper was not started. Returns whether nothing of it is left, and nothing can start any more. */
  async #abandon(session: LocalSession): Promise<boolean> {
    const { drop, dropToken, onError } = this.#options;
    try {
      // A wrapper that was started nevertheless, by a launcher that was killed, cannot continue without the claim.
      if (!session.files.claim()) return false;
      dropToken(session.id);
      await drop(session);
      return true;
    } catch (error) {
      onError('cannot remove a session that was not started', error);
      return false;
    }
  }

  /**
   * Creates the session, with its directory and the agent's files outside it. Removes both again if an error occurs, or if
   * the start was cancelled. A session that was created before, and lost its `launch.json`, keeps its files.
   */
  async #create(launch: Launch, cancelled: AbortSignal) {
    const { node, host, disk, steps, root, cgroups, common_environment, onCreated, dropToken } =
      this.#options;
    const id = launch.session_id;
    const dir = join(root, id);
    const cgroup = await makeCgroup(cgroups, id);
    if (cgroups && cgroup) prepareMove(cgroups);
    const file = {
      version: SESSION_VERSION,
      boot_id: host.boot_id,
      cgroup,
      launch: withoutSecrets(launch),
    };
    const careful = node.careful_pumps ?? disk.isSmall();
    const existed = new SessionFiles(dir).hasFiles();
    try {
      if (!existed) await this.#makeFiles(launch);
      const variables = await this.#fileVariables(launch);
      const environment = environmentFile(
        agentEnvironment(launch, { ...common_environment, more: variables }),
      );
      // Nothing may wait between this check and `onCreated`, from which on a stop finds the session.
      if (cancelled.aborted) throw problems.sessionNotFound();
      const is_new = SessionFiles.create(dir, join(root, `.${id}.tmp`), file, environment, careful);
      const files = new SessionFiles(dir);
      const session = is_new
        ? new LocalSession(id, files, file, [], host)
        : new LocalSession(id, files, { ...file, boot_id: '' }, files.readFacts(), host);
      onCreated(session);
      return { session, is_new, file, variables };
    } catch (error) {
      if (!existed) {
        dropToken(id);
        if (launch.step_input !== undefined) await steps.drop(id);
        if (cgroup) await removeCgroup(cgroup);
      }
      throw asDiskSpaceProblem(error);
    }
  }

  /** Creates the agent's files outside the session directory. */
  async #makeFiles({ session_id, actor_token, step_input }: Launch): Promise<void> {
    const { node, steps } = this.#options;
    if (actor_token !== undefined) await node.actor_files?.storeToken(session_id, actor_token);
    if (step_input !== undefined) await steps.make(session_id, step_input);
  }

  /** The sandbox of an agent, or null. `variables` name the files that belong to the agent. */
  async #confine(launch: Launch, variables: Record<string, string>): Promise<Confinement | null> {
    const { SVC_ACTOR_TOKEN_FILE: token, SVC_STEP_INPUT: step } = variables;
    const { workdir, owner_id, preset = null, team_id = null } = launch;
    const confinement = await this.#options.node.sandbox?.agent({
      ...{ workdir, owner_id, preset, team_id },
      read: token === undefined ? [] : [dirname(token)],
      write: step === undefined ? [] : [dirname(step)],
    });
    return confinement ?? null;
  }

  /** `shell-scripts.ts` documents them. */
  #wrapperArguments(launch: Launch, cgroup: string | null, confinement: Confinement | null): string[] {
    const { host, node } = this.#options;
    const { sh, mkfifo, mv, cat, ps, chown, setsid, setpriv, dd, sleep, stat } = host.tools;
    const user = node.run_as;
    const drop = user
      ? [
          setpriv ?? 'setpriv',
          `--reuid=${user.uid}`,
          `--regid=${user.gid}`,
          '--init-groups',
          '--inh-caps=-all',
        ]
      : [];
    const { places = [], ids = [], masks = [], entries = [] } = confinement ?? {};
    const mounted = [places, ids, masks, entries].map((lines) => lines.join('\n'));
    // `setsid` runs inside the sandbox, so that the session leader is the agent and not the process that waits for it
    // there.
    const command = [
      ...drop,
      ...(confinement?.argv ?? []),
      ...(setsid ? [setsid] : []),
      ...[sh, '-c', 'eval "$svc_inner"', 'svc', launch.workdir, cat, stat ?? 'stat', ...mounted],
      ...launch.argv,
    ];
    const owner = user ? [chown ?? 'chown', `${user.uid}:${user.gid}`] : ['', ''];
    const stdin = launch.stdin ? '1' : '0';
    const boxed = confinement?.pid_namespace ? '1' : '';
    const tools = [mkfifo, mv, cat, ps ?? ''];
    return ['svc', ...tools, ...owner, host.boot_id, stdin, cgroup ?? '', ...[dd, sleep, boxed], ...command];
  }

  /** The variables with which an agent finds its files. */
  async #fileVariables({ session_id, actor_token, step_input }: Launch): Promise<Record<string, string>> {
    const { node, steps } = this.#options;
    const actor = actor_token === undefined ? undefined : node.actor_files?.environment(session_id);
    const step = step_input === undefined ? undefined : await steps.environment(session_id);
    return { ...actor, ...step };
  }
}

/** The PATH of the wrapper and its helpers, which call their programs by absolute path. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/sbin:/sbin';
