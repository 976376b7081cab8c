/**
 * The node on this machine. It owns `{data_dir}/sessions`: starts sessions, finds them again after whatever happened to
 * us, tells what it sees of them. Closing it, or killing it, touches no agent and no helper of one.
 */
import { constants } from 'node:fs';
import { open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KeyedQueue, sleep } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { failpoint } from '../base/failpoint.ts';
import { makePrivateFolder } from '../base/files.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { hasProc, readBootId } from '../base/proc.ts';
import { version } from '../base/version.ts';
import type { StreamName } from '../domain/event.ts';
import type {
  Folders,
  Node,
  NodeHealth,
  NodeSink,
  ProgramFinding,
  ProgramQuestion,
  SessionFact,
  SessionView,
  StopReport,
} from '../domain/node.ts';
import { invalid, Problem, problems } from '../domain/problem.ts';
import type { Launch, StreamSizes } from '../domain/session.ts';
import type { ActorFiles } from './actor-files.ts';
import { findCgroupParent, makeCgroup, removeCgroup } from './cgroup.ts';
import { Disk, type DiskLimits, diskDefaults } from './disk.ts';
import { agentEnvironment, binFolder, type CommonEnvironment, commonEnvironment } from './environment.ts';
import { Launcher } from './launcher-client.ts';
import { probe } from './probe.ts';
import type { RunAs } from './run-as.ts';
import type { Confinement, Sandbox } from './sandbox.ts';
import { LocalSession, type SessionHost } from './session.ts';
import { SESSION_ID, SessionFiles, withoutSecrets } from './session-files.ts';
import { Spools } from './spools.ts';
import { StepFiles } from './step-files.ts';
import { environmentFile, INNER, SESSION_VERSION, WRAPPER } from './texts.ts';
import { findTools, type Tools } from './tools.ts';

export interface LocalNodeOptions {
  id: string;
  data_dir: string;
  log: Logger;
  clock: Clock;
  folders: Folders;
  /** The launcher to share with others (git runs through it too); without it, one of its own. */
  launcher?: Launcher;
  /** Our own environment, the ground of an agent's; absent: the process's. */
  env?: Record<string, string | undefined>;
  /** Names of our own variables that agents get; null or absent: all but `SVC_*`. */
  env_allow?: readonly string[] | null;
  run_as?: RunAs | null;
  /** Around every agent; absent: none. */
  sandbox?: Sandbox | null;
  /** Folder with the `svc` program, first on the PATH of agents; absent: this package's own. */
  bin_dir?: string | null;
  /** Absent: agents get no way to call the plane. */
  actor_files?: ActorFiles | null;
  /** False: no cgroups, also where they could be made. */
  cgroup?: boolean;
  /** False: no watches, sizes are polled. */
  watches?: boolean;
  /** Other programs than the system's usual ones. */
  tools?: Partial<Tools>;
  disk?: Partial<DiskLimits>;
  /** Pumps that lose nothing on a full disk, at a cost; absent: on small disks. */
  careful_pumps?: boolean;
  sweep_ms?: number;
  helper_check_ms?: number;
  tree_look_ms?: number;
  leftover_grace_ms?: number;
  drain_ms?: number;
  spool_keep_bytes?: number;
}

export interface LocalNode extends Node {
  /** Stops watching. Agents and their helpers live on. */
  close(): Promise<void>;
}

/** Reads every session on the disk, then resolves. Throws when the machine lacks what sessions need. */
export async function openLocalNode(options: LocalNodeOptions): Promise<LocalNode> {
  const folder = join(options.data_dir, 'sessions');
  await makePrivateFolder(folder);
  // As the kernel shows it in /proc, where holders of the FIFOs are looked for.
  const root = await realpath(folder);
  const tools = { ...findTools(), ...options.tools };
  if (options.run_as && !(tools.setpriv && tools.chown))
    throw new Error('agents.run_as needs setpriv (util-linux)');
  const cgroups = options.cgroup === false ? null : await findCgroupParent();
  const node = new Main(options, root, tools, cgroups, readBootId());
  await node.adopt();
  return node;
}

class Main implements LocalNode {
  readonly id: string;
  readonly folders: Folders;
  readonly #host: SessionHost;
  readonly #options: LocalNodeOptions;
  readonly #root: string;
  readonly #cgroups: string | null;
  readonly #sessions = new Map<string, LocalSession>();
  readonly #starts = new Map<string, Promise<LocalSession>>();
  readonly #queue = new KeyedQueue();
  readonly #disk: Disk;
  readonly #spools: Spools;
  readonly #steps: StepFiles;
  readonly #opened_at = performance.now();
  #sink: NodeSink | null = null;
  /** Facts that came while a snapshot is being handed over. */
  #held: SessionFact[] | null = null;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | null = null;
  #checked: string[] = [];
  #last_disk_check = Number.NEGATIVE_INFINITY;
  #next_look = 0;
  #paused = false;
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
    this.folders = options.folders;
    const { log, clock, launcher = new Launcher() } = options;
    this.#host = {
      boot_id,
      launcher,
      tools,
      log,
      clock,
      leftover_grace_ms: options.leftover_grace_ms ?? limits.leftover_grace_ms,
      drain_ms: options.drain_ms ?? limits.drain_ms,
      isPaused: () => this.#paused,
      fact: (fact) => this.#fact(fact),
      wake: (session_id) => this.#wake(session_id),
    };
    this.#disk = new Disk(root, { ...diskDefaults, ...options.disk }, launcher, tools);
    const keep_bytes = options.spool_keep_bytes ?? limits.spool_keep_bytes;
    this.#spools = new Spools(launcher, tools, keep_bytes, log);
    const { data_dir, run_as = null, env = process.env } = options;
    this.#steps = new StepFiles({ data_dir, run_as, env, exec: launcher, log });
  }

  async adopt(): Promise<void> {
    const names = await readdir(this.#root);
    this.#paused = names.includes('.paused');
    const left = names.filter((name) => /^\..*\.(tmp|gone)$/.test(name));
    for (const name of left) await rm(join(this.#root, name), { recursive: true, force: true });
    const ids = names.filter((name) => SESSION_ID.test(name));
    const readNext = async () => {
      for (let id = ids.pop(); id; id = ids.pop()) await this.#adoptOne(id);
    };
    await Promise.all(Array.from({ length: limits.adopt_parallel }, readNext));
    const live = [...this.#sessions.values()].filter((session) => !session.end);
    await this.#options.actor_files?.sweep(new Set(live.map((session) => session.id)));
    await this.#steps.sweep(new Set(this.#sessions.keys()));
    const sweep_ms = this.#options.sweep_ms ?? limits.sweep_ms;
    this.#timer = setInterval(() => this.#sweep(), sweep_ms);
    this.#timer.unref();
  }

  async #adoptOne(id: string): Promise<void> {
    const files = new SessionFiles(join(this.#root, id));
    const launch = await files.readLaunch();
    if (launch?.launch.session_id !== id) {
      this.#host.log.error({ session_id: id }, 'session_directory_unreadable');
      return;
    }
    const session = new LocalSession(id, files, launch, await files.readFacts(), this.#host);
    this.#sessions.set(id, session);
    await session.open(false, this.#options.watches !== false);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#sink = null;
    await this.#startsUnderWay();
    if (!this.#options.launcher) this.#host.launcher.close();
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
    await this.#sweeping;
    await this.#spools.close();
  }

  /** The next process could only call a start failed that has not come to its wrapper: waits for it, but not for ever. */
  async #startsUnderWay(): Promise<void> {
    const late = new AbortController();
    const begun = async () => {
      await Promise.allSettled(this.#starts.values());
      const launching = [...this.#sessions.values()].filter((session) => session.launching);
      await Promise.allSettled(launching.map((session) => session.started()));
      late.abort();
    };
    await Promise.race([begun(), sleep(limits.start_wait_ms, late.signal)]);
  }

  // --- what a plane calls ----------------------------------------------------------------------------------------

  async attach(sink: NodeSink): Promise<void> {
    this.#sink = sink;
    this.#held = [];
    await sink.snapshot([...this.#sessions.values()].map((session) => session.view()));
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
    let session = this.#sessions.get(id);
    if (!session) {
      let starting = this.#starts.get(id);
      if (!starting) {
        starting = this.#launch(launch).finally(() => this.#starts.delete(id));
        this.#starts.set(id, starting);
      }
      session = await starting;
    }
    await session.started();
    return session.view();
  }

  async stop(session_id: string, grace_ms: number): Promise<StopReport> {
    return this.#get(session_id).stop(grace_ms);
  }

  input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number> {
    return this.#queue.run(session_id, async () => {
      const session = this.#get(session_id);
      if (!session.launch.stdin) throw problems.agentNoStdin();
      if (session.end) throw problems.agentNotRunning();
      const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
      const file = await open(session.files.path('stdin'), flags);
      let length: number;
      try {
        const { size } = await file.stat();
        if (offset > size) throw new Problem('conflict', 'stdin_gap', `stdin ends at ${size}`);
        const fresh = data.subarray(size - offset);
        // The end is said once; what came after it would never be read.
        if (fresh.length > 0 && (await session.files.has('stdin.eof'))) throw problems.agentNoStdin();
        for (let done = 0; done < fresh.length; ) {
          done += (await file.write(fresh, done, fresh.length - done, size + done)).bytesWritten;
        }
        length = size + fresh.length;
        if (fresh.length > 0) await file.datasync();
      } finally {
        await file.close();
      }
      if (eof) await session.files.mark('stdin.eof');
      await session.fed(length);
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
        // A session that was forgotten meanwhile took its directory with it.
        const lost = !this.#closed && this.#sessions.get(session_id) === session;
        if (lost) this.#host.log.error({ session_id, error: String(error) }, 'spool_release_failed');
      });
    }
  }

  async stepOutput(session_id: string, max: number): Promise<Uint8Array | null> {
    return this.#steps.output(this.#get(session_id).id, max);
  }

  async forget(session_id: string): Promise<void> {
    const session = this.#sessions.get(session_id);
    if (!session) return;
    if (!session.end) throw problems.agentRunning();
    await session.close();
    await this.#steps.drop(session_id);
    this.#sessions.delete(session_id);
    await this.#spools.forget(session.files);
    await session.removeCgroup();
    const gone = join(this.#root, `.${session_id}.gone`);
    await rename(session.files.dir, gone).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    await rm(gone, { recursive: true, force: true });
  }

  async reach(): Promise<void> {}

  async health(): Promise<NodeHealth> {
    const live = [...this.#sessions.values()].filter((session) => !session.end);
    return {
      version,
      uptime_seconds: Math.floor((performance.now() - this.#opened_at) / 1000),
      sessions_live: live.length,
      disk: await this.#disk.space(),
    };
  }

  /** One probe at a time: each starts programs. */
  probe(programs: readonly ProgramQuestion[]): Promise<ProgramFinding[]> {
    return this.#queue.run('probe', async () => {
      await this.#options.sandbox?.check();
      const confinement = await this.#options.sandbox?.folders({ kind: 'programs' });
      return probe(programs, {
        exec: this.#host.launcher,
        env: commonEnvironment(this.#common()),
        run_as: this.#options.run_as ?? null,
        confinement: confinement?.argv ?? [],
      });
    });
  }

  // --- what a session calls --------------------------------------------------------------------------------------

  #fact(fact: SessionFact): void {
    if (fact.body.kind === 'ended') this.#dropToken(fact.session_id);
    if (this.#held) this.#held.push(fact);
    else this.#sink?.fact(fact);
  }

  #dropToken(session_id: string): void {
    this.#options.actor_files
      ?.drop(session_id)
      .catch((error: unknown) => this.#complain('actor_token_not_removed', error, session_id));
  }

  #wake(session_id: string): void {
    if (!this.#held) this.#sink?.wake(session_id);
  }

  // --- starting --------------------------------------------------------------------------------------------------

  #get(session_id: string): LocalSession {
    const session = this.#sessions.get(session_id);
    if (!session) throw problems.sessionNotFound();
    return session;
  }

  async #launch(asked: Launch): Promise<LocalSession> {
    if (this.#closed) throw problems.nodeUnreachable();
    const launch = { ...asked, workdir: (await this.folders.resolve(asked.workdir)).path };
    if (!(await this.#disk.space()).starts_allowed) throw problems.diskSpace();
    const id = launch.session_id;
    await this.#options.sandbox?.check();
    const dir = join(this.#root, id);
    const cgroup = await makeCgroup(this.#cgroups, id);
    const file = {
      version: SESSION_VERSION,
      boot_id: this.#host.boot_id,
      created_at_ms: this.#host.clock.now(),
      cgroup,
      launch: withoutSecrets(launch),
    };
    const careful = this.#options.careful_pumps ?? (await this.#disk.isSmall());
    let own: Record<string, string>;
    try {
      if (launch.actor_token !== undefined) await this.#options.actor_files?.keep(id, launch.actor_token);
      if (launch.step_input !== undefined) await this.#steps.make(id, launch.step_input);
      own = await this.#own(launch);
      const environment = environmentFile(agentEnvironment(launch, { ...this.#common(), more: own }));
      await SessionFiles.create(dir, join(this.#root, `.${id}.tmp`), file, environment, careful);
    } catch (error) {
      this.#dropToken(id);
      if (cgroup) await removeCgroup(cgroup);
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOSPC' || code === 'EDQUOT') throw problems.diskSpace();
      throw error;
    }
    const session = new LocalSession(id, new SessionFiles(dir), file, [], this.#host);
    this.#sessions.set(id, session);
    await session.open(true, this.#options.watches !== false);
    failpoint('claim');
    try {
      const confinement = await this.#confine(launch, own);
      // Until the wrapper is inside, whoever holds what it was given keeps it from becoming something else.
      if (confinement)
        void session
          .started()
          .catch(() => {})
          .then(confinement.release);
      const env = { PATH: SYSTEM_PATH, LC_ALL: 'C', SVC_SESSION_ID: id };
      session.launched(await this.#host.launcher.spawn(this.#wrapper(launch, cgroup, confinement), dir, env));
      failpoint('spawn');
    } catch (error) {
      this.#host.log.error({ session_id: id, error: String(error) }, 'wrapper_not_started');
      session.launched(null, error as Error);
    }
    void this.#disk.ensureGuard().catch((error) => this.#complain('guard_not_started', error));
    return session;
  }

  /** What an agent is put into; null without a sandbox. Its variables say which files are its own. */
  async #confine(launch: Launch, own: Record<string, string>): Promise<Confinement | null> {
    const { SVC_ACTOR_TOKEN_FILE: token, SVC_STEP_INPUT: step } = own;
    const { workdir, owner_id, preset = null } = launch;
    const confinement = await this.#options.sandbox?.agent({
      ...{ workdir, owner_id, preset },
      read: token === undefined ? [] : [dirname(token)],
      write: step === undefined ? [] : [dirname(step)],
    });
    return confinement ?? null;
  }

  #wrapper(launch: Launch, cgroup: string | null, confinement: Confinement | null): [string, ...string[]] {
    const { sh, mkdir, mkfifo, mv, cat, ps, chown, setsid, setpriv, dd, sleep, stat } = this.#host.tools;
    const user = this.#options.run_as;
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
    // Inside the sandbox, so that its leader is the agent and not who waits for the agent there.
    const command = [
      ...drop,
      ...(confinement?.argv ?? []),
      ...(setsid ? [setsid] : []),
      ...[sh, '-c', INNER, 'svc', launch.workdir, cat, stat ?? 'stat', ...mounted],
      ...launch.argv,
    ];
    const owner = user ? [chown ?? 'chown', `${user.uid}:${user.gid}`] : ['', ''];
    const stdin = launch.stdin ? '1' : '0';
    const boxed = confinement?.pid_namespace ? '1' : '';
    const tools = [mkdir, mkfifo, mv, cat, ps ?? ''];
    return [
      ...([sh, '-c', WRAPPER, 'svc'] as const),
      ...tools,
      ...owner,
      this.#host.boot_id,
      stdin,
      cgroup ?? '',
      ...[dd, sleep, boxed],
      ...command,
    ];
  }

  /** The variables by which an agent finds its files. */
  async #own({ session_id, actor_token, step_input }: Launch): Promise<Record<string, string>> {
    const actor = actor_token === undefined ? undefined : this.#options.actor_files?.environment(session_id);
    const step = step_input === undefined ? undefined : await this.#steps.environment(session_id);
    return { ...actor, ...step };
  }

  #common(): CommonEnvironment {
    const { env, env_allow, run_as, bin_dir } = this.#options;
    return {
      own: env ?? process.env,
      allow: env_allow ?? null,
      run_as: run_as ?? null,
      bin_dir: bin_dir === undefined ? binFolder : bin_dir,
    };
  }

  // --- the sweep -------------------------------------------------------------------------------------------------

  #sweep(): void {
    if (this.#sweeping !== null) return;
    this.#sweeping = this.#sweepOnce()
      .catch((error) => this.#complain('sweep_failed', error))
      .finally(() => {
        this.#sweeping = null;
      });
  }

  #complain(event: string, error: unknown, session_id?: string): void {
    if (!this.#closed)
      this.#host.log.error({ error: String(error), ...(session_id && { session_id }) }, event);
  }

  async #sweepOnce(): Promise<void> {
    const live = [...this.#sessions.values()].filter((session) => !session.end);
    if (live.length === 0) return;
    for (const session of live) {
      await this.#oneByOne(session, () => {
        if (session.polled) session.poll();
        else if (session.orphaned) session.poke();
      });
    }
    await this.#checkDisk(live);
    await this.#checkSome(live);
    await this.#noteTrees(live);
  }

  /** What is wrong with one session must not keep the others from being looked after. */
  async #oneByOne(session: LocalSession, look: () => Promise<void> | void): Promise<void> {
    try {
      await look();
    } catch (error) {
      this.#complain('session_sweep_failed', error, session.id);
    }
  }

  /** Every session's helpers once in `helper_check_ms` (later when there are very many), a share of them at each sweep. */
  async #checkSome(live: LocalSession[]): Promise<void> {
    const sweep_ms = this.#options.sweep_ms ?? limits.sweep_ms;
    const check_ms = this.#options.helper_check_ms ?? limits.helper_check_ms;
    const share = Math.min(Math.ceil((live.length * sweep_ms) / check_ms), limits.helper_checks_per_sweep);
    if (this.#checked.length === 0) this.#checked = live.map((session) => session.id);
    for (const id of this.#checked.splice(0, share)) {
      const session = this.#sessions.get(id);
      if (session) await this.#oneByOne(session, () => session.checkHelpers());
      if (this.#closed) return;
    }
  }

  async #checkDisk(live: LocalSession[]): Promise<void> {
    const paused = await stat(join(this.#root, '.paused')).then(
      () => true,
      () => false,
    );
    this.#paused = paused;
    for (const session of live) {
      const told = session.lastTrouble(['output_paused', 'output_resumed']) === 'output_paused';
      if (told === paused || session.phase !== 'running') continue;
      const { free_bytes, total_bytes } = await this.#disk.space();
      const details = { free_bytes, total_bytes };
      await this.#oneByOne(session, () =>
        paused
          ? session.trouble('output_paused', 'the disk is nearly full: output is held back', details)
          : session.trouble('output_resumed', 'the disk has space again', details),
      );
    }
    const now = performance.now();
    if (now - this.#last_disk_check < (this.#options.helper_check_ms ?? limits.helper_check_ms)) return;
    this.#last_disk_check = now;
    await this.#disk.ensureGuard();
  }

  /** Without a cgroup a process can only be told by its descent: notes it while it still shows. */
  async #noteTrees(live: LocalSession[]): Promise<void> {
    const now = performance.now();
    const bare = hasProc ? live.filter((session) => !session.hasCgroup) : [];
    if (bare.length === 0 || now < this.#next_look) return;
    await Promise.all(bare.map((session) => session.note()));
    const took_ms = performance.now() - now;
    this.#next_look = now + Math.max(this.#options.tree_look_ms ?? limits.tree_look_ms, took_ms * 50);
  }
}

/** For the wrapper and its helpers, which name their programs by absolute path. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/sbin:/sbin';

/** What no plane asks for, and no process can be given. */
function checkLaunch({ session_id, argv, env }: Launch): void {
  if (!SESSION_ID.test(session_id)) throw invalid('session_id is not valid', 'invalid_launch');
  if (argv.length === 0) throw invalid('argv must not be empty', 'invalid_launch');
  if ([argv, Object.entries(env)].flat(2).some((text) => text.includes('\0'))) {
    throw invalid('argv and env must not contain NUL', 'invalid_launch');
  }
}
