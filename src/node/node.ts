/**
 * The node of this machine. It owns `{data_dir}/sessions`: it starts sessions, finds them again after any restart, and
 * reports what it observes. Closing or killing it affects no agent and no helper.
 *
 * `sessions/` contains the life of one session, `processes/` how programs run and end, `confinement/` what agents may
 * see and change, and `folders/` the work in their folders.
 */
import { renameSync } from 'node:fs';
import { readdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { KeyedQueue, sleep } from '../base/async.ts';
import { makePrivateFolder } from '../base/files.ts';
import { readBootId } from '../base/proc.ts';
import { version } from '../base/version.ts';
import type { StreamName } from '../core/event.ts';
import {
  directLink,
  type Folders,
  type Link,
  type Node,
  type NodeHealth,
  type NodeSink,
  type ProgramFinding,
  type ProgramQuestion,
  type SessionFact,
  type SessionView,
  type StopReport,
} from '../core/node.ts';
import { problems } from '../core/problem.ts';
import type { Launch, StreamSizes } from '../core/session.ts';
import { removeOwnerState } from './confinement/owner-state.ts';
import { limits } from './limits.ts';
import type { LocalNodeOptions } from './options.ts';
import { findCgroupParent, removeLeftoverCgroups } from './processes/cgroup.ts';
import { Launcher } from './processes/launcher-client.ts';
import { probe } from './processes/program-probe.ts';
import { removeTree } from './processes/remove-tree.ts';
import { findTools, type Tools } from './processes/tools.ts';
import { Adopter } from './sessions/adopter.ts';
import { Disk, diskDefaults } from './sessions/disk.ts';
import { binFolder, type CommonEnvironment, commonEnvironment } from './sessions/environment.ts';
import type { LocalSession, SessionHost } from './sessions/session.ts';
import { SESSION_ID, SessionFiles } from './sessions/session-files.ts';
import { Spools } from './sessions/spools.ts';
import { checkLaunch, SessionStarter } from './sessions/start.ts';
import { appendInput, isLastingFileError } from './sessions/stdin-journal.ts';
import { StepFiles } from './sessions/step-files.ts';
import { Supervisor } from './sessions/supervisor.ts';

export type { LocalNode, LocalNodeOptions };

/** A start, from the request until its wrapper was started. */
interface Starting {
  session: Promise<LocalSession>;
  /** Prevents the session if it does not exist yet. */
  cancel: AbortController;
}

/** Reads every session on disk, then resolves. Throws an Error if the machine lacks programs that sessions need. */
export async function openLocalNode(options: LocalNodeOptions): Promise<LocalNode> {
  const folder = join(options.data_dir, 'sessions');
  await makePrivateFolder(folder);
  // The path as the kernel shows it in /proc, where the node looks up processes that hold the FIFOs.
  const root = await realpath(folder);
  const tools = { ...findTools(), ...options.tools };
  if (options.run_as && !(tools.setpriv && tools.chown))
    throw new Error('agents.run_as needs setpriv (util-linux)');
  const cgroups = options.cgroup === false ? null : await findCgroupParent();
  const node = new LocalNode(options, root, tools, cgroups, readBootId());
  await node.adopt();
  return node;
}

class LocalNode implements Node {
  readonly id: string;
  readonly link: Link;
  readonly folders: Folders;
  readonly #host: SessionHost;
  readonly #options: LocalNodeOptions;
  readonly #root: string;
  readonly #cgroups: string | null;
  readonly #sessions = new Map<string, LocalSession>();
  readonly #starts = new Map<string, Starting>();
  readonly #queue = new KeyedQueue();
  readonly #disk: Disk;
  readonly #spools: Spools;
  readonly #steps: StepFiles;
  readonly #starter: SessionStarter;
  readonly #supervisor: Supervisor;
  readonly #adopter: Adopter;
  readonly #opened_at = performance.now();
  #sink: NodeSink | null = null;
  /** Facts that arrive while a sink receives its snapshot. */
  #held: SessionFact[] | null = null;
  #cgroups_swept_at = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(
    options: LocalNodeOptions,
    root: string,
    tools: Tools,
    cgroups: string | null,
    boot_id: string,
  ) {
    this.#options = options;
    this.#root = root;
    this.#cgroups = cgroups;
    this.id = options.id;
    this.link = directLink(options.id);
    this.folders = options.folders;
    const { log, clock, launcher = new Launcher() } = options;
    this.#host = {
      boot_id,
      launcher,
      agents_uid: options.run_as?.uid ?? null,
      tools,
      log,
      clock,
      leftover_grace_ms: options.leftover_grace_ms ?? limits.leftover_grace_ms,
      drain_ms: options.drain_ms ?? limits.drain_ms,
      isPaused: () => this.#supervisor.paused,
      fact: (fact) => this.#fact(fact),
      wake: (session_id, stream) => this.#wake(session_id, stream),
    };
    this.#disk = new Disk(root, { ...diskDefaults, ...options.disk }, launcher, tools);
    const keep_bytes = options.spool_keep_bytes ?? limits.spool_keep_bytes;
    this.#spools = new Spools(launcher, tools, keep_bytes, log);
    const { data_dir, run_as = null, env = process.env } = options;
    this.#steps = new StepFiles({ data_dir, run_as, env, exec: launcher, log });
    this.#supervisor = new Supervisor(root, this.#sessions, this.#disk, options);
    this.#adopter = new Adopter({
      root,
      sessions: this.#sessions,
      host: this.#host,
      watches: options.watches !== false,
      retry_ms: options.helper_check_ms ?? limits.helper_check_ms,
      onReadable: (session) => this.#reportReadable(session),
    });
    this.#starter = new SessionStarter({
      node: options,
      host: this.#host,
      folders: this.folders,
      disk: this.#disk,
      steps: this.#steps,
      root,
      cgroups,
      common_environment: commonOptions(options),
      onCreated: (session) => this.#sessions.set(session.id, session),
      drop: (session) => this.#drop(session),
      dropToken: (session_id) => this.#dropToken(session_id),
      onError: (message, error) => this.#supervisor.logError(message, error),
      isClosed: () => this.#closed,
    });
  }

  /** Finds the sessions of earlier processes, and deletes what interrupted operations left behind. */
  async adopt(): Promise<void> {
    const names = await readdir(this.#root);
    this.#supervisor.paused = names.includes('.paused');
    for (const name of names) if (/^\..*\.(tmp|gone)$/.test(name)) await this.#remove(join(this.#root, name));
    const ids = names.filter((name) => SESSION_ID.test(name));
    await this.#adopter.adopt(ids);
    // A session that could not be adopted may still run.
    const live = ids.filter((id) => !this.#sessions.get(id)?.end);
    // An agent may prevent both. The node starts nevertheless.
    await this.#options.actor_files
      ?.sweep(new Set(live))
      .catch((error: unknown) => this.#supervisor.logError('cannot delete old actor tokens', error));
    await this.#steps
      .sweep(new Set(ids))
      .catch((error: unknown) => this.#supervisor.logError('cannot delete old step folders', error));
    void this.#removeLeftoverCgroups();
    this.#supervisor.start();
  }

  /** Removes the cgroups of sessions that were forgotten while processes were left in them (`on_exit: keep`). */
  async #removeLeftoverCgroups(): Promise<void> {
    const now = performance.now();
    if (now - this.#cgroups_swept_at < limits.leftover_cgroup_ms) return;
    this.#cgroups_swept_at = now;
    const isKnown = (id: string) =>
      this.#sessions.has(id) || this.#starts.has(id) || this.#adopter.unreadable.has(id);
    await removeLeftoverCgroups(this.#cgroups, isKnown);
  }

  /** Deletes a session's folder. An agent may prevent that, so the node tries again when it starts. */
  async #remove(path: string): Promise<void> {
    try {
      await rm(path, { recursive: true, force: true });
    } catch {
      const why = await removeTree({ exec: this.#host.launcher, run_as: null }, path);
      if (why !== null) this.#supervisor.logError('cannot delete the folder of a session', why);
    }
  }

  /** Stops watching. Agents and their helpers keep running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#adopter.close();
    this.#supervisor.close();
    this.#sink = null;
    await this.#waitForStarts();
    if (!this.#options.launcher) this.#host.launcher.close();
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
    await this.#supervisor.idle();
    this.#spools.close();
  }

  /**
   * Waits up to `limits.start_wait_ms` for starts whose wrapper is not running yet. The next service process could only
   * report them as failed.
   */
  async #waitForStarts(): Promise<void> {
    const begun = async () => {
      await Promise.allSettled([...this.#starts.values()].map(({ session }) => session));
      const launching = [...this.#sessions.values()].filter((session) => session.launching);
      await Promise.allSettled(launching.map((session) => session.started()));
    };
    await within(limits.start_wait_ms, begun());
  }

  /** The sessions on disk, after their files and processes have been examined. */
  async sessions(): Promise<SessionView[]> {
    const found = [...this.#sessions.values()];
    await Promise.all(found.map((session) => session.settled()));
    return found.map((session) => session.view());
  }

  // --- calls from the plane ---------------------------------------------------------------------------------------

  async attach(sink: NodeSink): Promise<void> {
    this.#sink = sink;
    this.#held = [];
    const begun = [...this.#starts.keys()].filter((id) => !this.#sessions.has(id));
    await sink.snapshot(
      [...this.#sessions.values()].map((session) => session.view()),
      this.link,
      [...this.#adopter.unreadable, ...begun],
    );
    if (this.#sink !== sink) return;
    const held = this.#held;
    this.#held = null;
    for (const fact of held ?? []) sink.fact(fact);
    for (const [id, session] of this.#sessions) if (!session.end) sink.wake(id);
  }

  async detach(): Promise<void> {
    this.#sink = null;
    this.#held = null;
  }

  async start(launch: Launch): Promise<SessionView> {
    const id = launch.session_id;
    checkLaunch(launch);
    let session = this.#find(id);
    if (!session) {
      let starting = this.#starts.get(id);
      if (!starting) {
        const cancel = new AbortController();
        const started = this.#starter.start(launch, cancel.signal).finally(() => this.#starts.delete(id));
        starting = { session: started, cancel };
        this.#starts.set(id, starting);
      }
      session = await starting.session;
    }
    // The plane sends a stop only after this answer, so one that hangs while it starts must not hold it back.
    await within(this.#options.start_answer_ms ?? limits.start_answer_ms, session.started());
    return session.view();
  }

  async stop(session_id: string, grace_ms: number): Promise<StopReport> {
    if (this.#cancelStart(session_id)) throw problems.sessionNotFound();
    return this.#get(session_id).stop(grace_ms);
  }

  input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number> {
    return this.#queue.run(session_id, async () => {
      const session = this.#get(session_id);
      if (!session.launch.stdin) throw problems.agentNoStdin();
      if (session.end) throw problems.agentNotRunning();
      const { log } = this.#host;
      const length = await appendInput(session.files, { offset, data, eof }).catch((err: unknown) => {
        if (!isLastingFileError(err)) throw err;
        log.warn({ session_id, err }, 'cannot store the input of a session');
        throw problems.inputNotStored();
      });
      await session.stdinGrew(length);
      return length;
    });
  }

  async read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    return this.#spools.read(this.#get(session_id).files, stream, from, max, into);
  }

  committed(session_id: string, offsets: StreamSizes, _fact: number): void {
    const session = this.#sessions.get(session_id);
    if (!session) return;
    for (const stream of ['stdout', 'stderr'] as const) {
      this.#spools.release(session.files, stream, offsets[stream]).catch((error: unknown) => {
        // The session may have been forgotten in the meantime, and its directory deleted.
        const failed = !this.#closed && this.#sessions.get(session_id) === session;
        if (failed)
          this.#host.log.error({ session_id, error: String(error) }, 'cannot free the disk space of a spool');
      });
    }
  }

  async stepOutput(session_id: string, max: number): Promise<Uint8Array | null> {
    return this.#steps.output(this.#get(session_id).id, max);
  }

  async forgetOwner(owner_id: string): Promise<void> {
    await removeOwnerState(this.#host.launcher, this.#options.data_dir, owner_id);
  }

  async forget(session_id: string): Promise<void> {
    const session = this.#find(session_id);
    if (!session) return void this.#cancelStart(session_id);
    if (!session.end) throw problems.agentRunning();
    await this.#drop(session);
    void this.#removeLeftoverCgroups();
  }

  async #drop(session: LocalSession): Promise<void> {
    await session.close();
    await this.#steps.drop(session.id);
    this.#sessions.delete(session.id);
    this.#spools.forget(session.files);
    await session.removeCgroup();
    const gone = join(this.#root, `.${session.id}.gone`);
    try {
      renameSync(session.files.dir, gone);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    if (!SessionFiles.remove(gone)) await this.#remove(gone);
  }

  async reach(): Promise<void> {}

  async health(): Promise<NodeHealth> {
    const live = [...this.#sessions.values()].filter((session) => !session.end);
    return {
      version,
      uptime_seconds: Math.floor((performance.now() - this.#opened_at) / 1000),
      sessions_live: live.length,
      disk: this.#disk.space(),
    };
  }

  /** Runs one probe at a time, because each one starts programs. */
  probe(programs: readonly ProgramQuestion[]): Promise<ProgramFinding[]> {
    return this.#queue.run('probe', async () => {
      await this.#options.sandbox?.check();
      const confinement = await this.#options.sandbox?.folders({ kind: 'programs' });
      return probe(programs, {
        exec: this.#host.launcher,
        env: commonEnvironment(commonOptions(this.#options)),
        run_as: this.#options.run_as ?? null,
        confinement: confinement?.argv ?? [],
      });
    });
  }

  // --- callbacks from sessions ------------------------------------------------------------------------------------

  #fact(fact: SessionFact): void {
    if (fact.body.kind === 'ended') this.#dropToken(fact.session_id);
    if (this.#held) this.#held.push(fact);
    else this.#sink?.fact(fact);
  }

  #dropToken(session_id: string): void {
    this.#options.actor_files
      ?.drop(session_id)
      .catch((error: unknown) =>
        this.#supervisor.logError('cannot delete an actor token', error, session_id),
      );
  }

  #wake(session_id: string, stream?: StreamName): void {
    if (!this.#held) this.#sink?.wake(session_id, stream);
  }

  /** Reports a session that was reported as unreadable. */
  #reportReadable(session: LocalSession): void {
    for (const fact of session.facts) this.#fact(fact);
    this.#wake(session.id);
  }

  /** Cancels a start whose session does not exist yet, so that it never will. Returns whether there was one. */
  #cancelStart(session_id: string): boolean {
    const starting = this.#starts.get(session_id);
    if (!starting || this.#sessions.has(session_id)) return false;
    starting.cancel.abort();
    return true;
  }

  /** Throws `session_unreadable` if the session exists, but its files cannot be read at the moment. */
  #find(session_id: string): LocalSession | undefined {
    if (this.#adopter.unreadable.has(session_id)) throw problems.sessionUnreadable();
    return this.#sessions.get(session_id);
  }

  #get(session_id: string): LocalSession {
    const session = this.#find(session_id);
    if (session) return session;
    throw this.#starts.has(session_id) ? problems.sessionUnreadable() : problems.sessionNotFound();
  }
}

/** Resolves with `work`, or after `ms` without it. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, sleep(ms, done.signal)]);
  } finally {
    done.abort();
  }
}

function commonOptions({ env, env_allow, run_as, sandbox, bin_dir }: LocalNodeOptions): CommonEnvironment {
  return {
    own: env ?? process.env,
    allow: env_allow ?? null,
    run_as: run_as ?? null,
    sandboxed: sandbox != null,
    bin_dir: bin_dir === undefined ? binFolder : bin_dir,
  };
}
