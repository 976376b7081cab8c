/**
 * Finds the process trees of many sessions in one scan of the process table, and signals them. It runs in the launcher,
 * so that a slow /proc never stalls the plane. A tree consists of:
 *
 * - the processes in the session's cgroup and, in a sandbox, in its pid namespace,
 * - the session and process group of the main process,
 * - processes with the session's id in their environment, and processes that hold its FIFOs open, if they may be the
 *   agent's: an agent can hand a FIFO to any program that accepts descriptors,
 * - processes that earlier scans found,
 *
 * and all their descendants, except for the service's helpers. Before a process is signaled, its start time is checked
 * again, because its pid may belong to another process by then. No process can make a scan slow or large: what is read
 * about each is bounded, and so is the time for all. A scan throws if it cannot read everything for lack of
 * descriptors or memory, because a tree would seem to be empty.
 */
import { opendirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { uptime } from 'node:os';
import { isExhausted } from '../../base/files.ts';
import {
  commandLine,
  hasProc,
  type ProcessRef,
  type ProcessStat,
  readAllStats,
  readStat,
  readUid,
  readVariable,
  runningThread,
  TICKS_PER_SECOND,
} from '../../base/proc.ts';
import { limits } from '../limits.ts';
import { isPopulated, killCgroup, sessionOfCgroup } from './cgroup.ts';

export interface TreeRequest {
  session_id: string;
  /** Folder of the session's FIFOs; null if no process holds any of them. */
  pipes: string | null;
  cgroup: string | null;
  main: ProcessRef | null;
  /** The init of the main process's pid namespace. It is a helper, but its other children are part of the tree. */
  init: ProcessRef | null;
  wrapper: ProcessRef | null;
  /**
   * The user that `agents.run_as` names. Only processes of that user, or of the main process's, are found by environment
   * or FIFO. Null: of any user.
   */
  agents_uid: number | null;
  /**
   * The wrapper, keeper, pumps and feeder. They are never part of the tree. Of their children, only the main process
   * is.
   */
  helpers: ProcessRef[];
  /** Members that earlier scans found. */
  known: ProcessRef[];
  /** Seconds since boot when the main process was seen to have ended; null if unknown. */
  exit_uptime_s: number | null;
  signal: 'SIGTERM' | 'SIGKILL' | null;
  /** `TreeAnswer.terminated` of the previous scan with SIGTERM; empty for the first scan. */
  terminated: Terminated[];
}

/** The service's own processes for a session. Other sessions' evidence never leads to them. */
export interface SessionOwned {
  session_id: string;
  helpers: ProcessRef[];
  init: ProcessRef | null;
}

/**
 * A process that received SIGTERM, or was started by such a process to clean up. It gets no second SIGTERM, because a
 * second one makes some programs abandon what they are finishing.
 */
export interface Terminated extends ProcessRef {
  /**
   * Processes that it starts from this clock tick on are part of its cleanup; null if the system does not report the
   * time.
   */
  from_tick: number | null;
}

export interface TreeMember extends ProcessRef {
  ppid: number;
  command: string;
}

export interface TreeAnswer {
  session_id: string;
  members: TreeMember[];
  /** The members that received SIGTERM; empty unless SIGTERM was requested. */
  terminated: Terminated[];
  /** `populated` in `cgroup.events`; null without a cgroup. */
  populated: boolean | null;
  /** Journal bytes are being copied to the agent, possibly by a child of a dead feeder. */
  feeding: boolean;
}

/** How many times a scan with SIGKILL is repeated immediately, to outrun a tree that keeps forking. */
const KILL_PASSES = 8;

/**
 * Finds each tree and sends it the requested signal, if any. Resolves with the answers in the order of the requests. `owned`:
 * all living sessions of the service. One call at a time.
 */
export async function sweepTrees(requests: TreeRequest[], owned: SessionOwned[] = []): Promise<TreeAnswer[]> {
  const until = performance.now() + limits.scan_ms_max;
  killContained(requests);
  let answers = await findTrees(requests, owned, until);
  for (const [index, request] of requests.entries()) {
    const answer = answers[index];
    if (answer && request.signal === 'SIGTERM')
      answer.terminated = terminate(answer.members, request.terminated);
  }
  for (let pass = 0; pass < KILL_PASSES; pass++) {
    let killed = 0;
    for (const [index, { signal }] of requests.entries()) {
      if (signal !== 'SIGKILL') continue;
      for (const member of answers[index]?.members ?? []) {
        send(member, 'SIGKILL');
        killed++;
      }
    }
    if (killed === 0) break;
    killContained(requests);
    const found = answers;
    const again = requests.map((request, index) => {
      return { ...request, known: [...request.known, ...(found[index]?.members ?? [])] };
    });
    answers = await findTrees(again, owned, until);
    for (const [index, answer] of answers.entries()) answer.terminated = found[index]?.terminated ?? [];
  }
  return answers;
}

/** Kills what the kernel can end without a scan, so that only what has escaped is left to be found. */
function killContained(requests: TreeRequest[]): void {
  for (const { signal, cgroup, init } of requests) {
    if (signal !== 'SIGKILL') continue;
    // If the kernel does not support this, the signals to members end the processes.
    if (cgroup) killCgroup(cgroup);
    // The kernel then ends the whole namespace, however fast it forks. Without this, an agent could block the init
    // with ptrace, and the init would never notice that all other processes have ended.
    if (init) send(init, 'SIGKILL');
  }
}

/**
 * Sends SIGTERM once to each process, but not to processes that it starts after its SIGTERM, because it may use the
 * grace period to clean up. A process whose parent has ended is no longer part of a cleanup and gets SIGTERM too.
 */
function terminate(members: TreeMember[], before: Terminated[]): Terminated[] {
  const living = new Map(members.map((member) => [member.pid, member]));
  const terminated = new Map(
    before.filter(({ pid, start }) => living.get(pid)?.start === start).map((ref) => [ref.pid, ref]),
  );
  const new_members = members.filter(({ pid }) => !terminated.has(pid));
  const cleaning = new Set(
    new_members.filter(
      ({ ppid, start }) => Number(start) >= (terminated.get(ppid)?.from_tick ?? Number.POSITIVE_INFINITY),
    ),
  );
  const children = Map.groupBy(new_members, ({ ppid }) => ppid);
  for (const { pid } of cleaning) for (const child of children.get(pid) ?? []) cleaning.add(child);
  return [
    ...terminated.values(),
    ...new_members.map((member) => {
      const { pid, start } = member;
      if (cleaning.has(member)) return { pid, start, from_tick: 0 };
      const from_tick = hasProc ? Math.floor(uptime() * TICKS_PER_SECOND) : null;
      send(member, 'SIGTERM');
      send(member, 'SIGCONT');
      return { pid, start, from_tick };
    }),
  ];
}

function send(ref: ProcessRef, signal: NodeJS.Signals): void {
  if (readStat(ref.pid)?.start !== ref.start) return;
  try {
    process.kill(ref.pid, signal);
  } catch {
    // It has ended, or may not be signaled. In the latter case, the answer contains it as a survivor.
  }
}

async function findTrees(
  requests: TreeRequest[],
  owned: SessionOwned[],
  until: number,
): Promise<TreeAnswer[]> {
  const table = new Map<number, ProcessStat>();
  const children = new Map<number, ProcessStat[]>();
  for (const stat of readAllStats()) {
    table.set(stat.pid, stat);
    const siblings = children.get(stat.ppid);
    if (siblings) siblings.push(stat);
    else children.set(stat.ppid, [stat]);
  }
  const owners = findOwners(table, owned);
  const evidence = await readEvidence(candidates(table, children, owned, requests), requests, until);
  return requests.map((request) => findTree(request, table, children, evidence, owners));
}

/** By pid: the session that a helper or init serves; empty for the launcher, the service and their ancestors. */
function findOwners(table: Map<number, ProcessStat>, owned: SessionOwned[]): Map<number, string> {
  const owners = new Map<number, string>();
  for (const { session_id, helpers, init } of owned) {
    for (const ref of [...helpers, ...(init ? [init] : [])]) {
      if (table.get(ref.pid)?.start === ref.start) owners.set(ref.pid, session_id);
    }
  }
  for (let pid = process.pid; pid > 0 && owners.get(pid) !== ''; pid = table.get(pid)?.ppid ?? 0) {
    owners.set(pid, '');
  }
  return owners;
}

function findTree(
  request: TreeRequest,
  table: Map<number, ProcessStat>,
  children: Map<number, ProcessStat[]>,
  evidence: ProcessEvidence,
  owners: Map<number, string>,
): TreeAnswer {
  const present = (ref: ProcessRef | null) => {
    const stat = ref && table.get(ref.pid);
    return stat && stat.start === ref.start ? stat : null;
  };
  const main = present(request.main);
  const helpers = new Set<number>([0, 1, process.pid, process.ppid]);
  const helper_queue = request.helpers.flatMap((ref) => present(ref) ?? []);
  const init = present(request.init);
  // Includes both of bubblewrap's processes, even if the wrapper that started them has ended.
  if (init) for (const pid of [init.pid, init.ppid]) helpers.add(pid);
  for (let stat = helper_queue.pop(); stat; stat = helper_queue.pop()) {
    helpers.add(stat.pid);
    if (stat === init) continue;
    for (const child of children.get(stat.pid) ?? []) {
      if (child.pid !== request.main?.pid && !helpers.has(child.pid)) helper_queue.push(child);
    }
  }

  const members = new Map<number, ProcessStat>();
  const queue: ProcessStat[] = [];
  const add = (stat: ProcessStat | null | undefined) => {
    if (!stat || helpers.has(stat.pid) || members.has(stat.pid)) return;
    members.set(stat.pid, stat);
    queue.push(stat);
  };

  add(main);
  if (init) for (const child of children.get(init.pid) ?? []) add(child);
  for (const ref of request.known) add(present(ref));
  for (const pid of cgroupPids(request.cgroup)) add(table.get(pid));
  const uids = new Set([request.agents_uid, main ? readUid(main.pid) : null]);
  for (const pid of [
    // No process can leave a pid namespace, so the init's children above are the whole tree.
    ...(request.init ? [] : (evidence.by_variable.get(request.session_id) ?? [])),
    ...(request.init ? [] : (evidence.holders.get(request.pipes ?? '') ?? [])),
  ]) {
    // Most were found without this evidence, so nothing more is read about them.
    if (members.has(pid) || helpers.has(pid)) continue;
    if (!mayBelongTo(request.session_id, pid, table, owners)) continue;
    const uid = request.agents_uid === null ? null : readUid(pid);
    if (request.agents_uid === null || (uid !== null && uids.has(uid))) add(table.get(pid));
  }
  // The kernel reuses no pid that is still the id of a session or group, but may reuse it once the last member has
  // ended. So either the leader still exists, or the process must have started before the leader ended.
  const own = request.main?.pid;
  const wrapper = present(request.wrapper)?.pid;
  const ended_ticks = request.exit_uptime_s === null ? null : request.exit_uptime_s * TICKS_PER_SECOND;
  for (const stat of table.values()) {
    if (wrapper !== undefined && (stat.sid === wrapper || stat.pgrp === wrapper)) add(stat);
    if (own === undefined || (stat.sid !== own && stat.pgrp !== own)) continue;
    const started_before_exit =
      hasProc && ended_ticks !== null && !table.has(own) && Number(stat.start) <= ended_ticks;
    if (main || started_before_exit) add(stat);
  }
  for (let stat = queue.pop(); stat; stat = queue.pop()) {
    for (const child of children.get(stat.pid) ?? []) add(child);
  }

  return {
    session_id: request.session_id,
    members: [...members.values()]
      .filter((stat) => !stat.is_dead)
      .map((stat) => ({ pid: stat.pid, start: stat.start, ppid: stat.ppid, command: commandLine(stat) })),
    terminated: [],
    populated: isPopulated(request.cgroup),
    feeding: evidence.feeding.has(request.pipes ?? ''),
  };
}

/** False if a process is the service's own, or belongs to another session: to its cgroup, or below its init or helpers. */
function mayBelongTo(
  session_id: string,
  pid: number,
  table: Map<number, ProcessStat>,
  owners: Map<number, string>,
): boolean {
  const seen = new Set<number>();
  let owner = owners.get(pid);
  // Pid 1 is an ancestor of the service, and the parent of every process that has lost its own.
  for (
    let at = table.get(pid)?.ppid;
    !owner && owner !== '' && at && !seen.has(at);
    at = table.get(at)?.ppid
  ) {
    owner = owners.get(at) || undefined;
    seen.add(at);
  }
  return (owner ?? session_id) === session_id && (sessionOfCgroup(pid) ?? session_id) === session_id;
}

function cgroupPids(folder: string | null): number[] {
  if (!folder) return [];
  try {
    const own = readFileSync(`${folder}/cgroup.procs`, 'latin1').split('\n').filter(Boolean).map(Number);
    const nested = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...own, ...nested.flatMap((entry) => cgroupPids(`${folder}/${entry.name}`))];
  } catch (error) {
    if (isExhausted(error)) throw error;
    return [];
  }
}

interface ProcessEvidence {
  /** By session id: processes with this id in their environment. */
  by_variable: Map<string, number[]>;
  /** By FIFO folder: processes that hold one of the FIFOs on the agent's side. */
  holders: Map<string, number[]>;
  /** FIFO folders to which a `cat` is copying bytes for stdin. */
  feeding: Set<string>;
}

/** The processes that evidence could lead to. Kernel threads and dead processes have neither environment nor files. */
function candidates(
  table: Map<number, ProcessStat>,
  children: Map<number, ProcessStat[]>,
  owned: SessionOwned[],
  requests: TreeRequest[],
): ProcessStat[] {
  const requested = new Set(requests.map(({ session_id }) => session_id));
  const skipped = new Set<number>([process.pid, process.ppid]);
  const present = ({ pid, start }: ProcessRef) => table.get(pid)?.start === start;
  const others = owned.filter(({ session_id }) => !requested.has(session_id));
  const inits = [...others, ...requests].flatMap(({ init }) => (init && present(init) ? [init.pid] : []));
  for (const pid of inits) {
    if (skipped.has(pid)) continue;
    skipped.add(pid);
    for (const child of children.get(pid) ?? []) inits.push(child.pid);
  }
  for (const helper of others.flatMap(({ helpers }) => helpers)) if (present(helper)) skipped.add(helper.pid);
  return [...table.values()].filter(
    ({ pid, ppid, is_dead }) => ppid !== 2 && pid !== 2 && !is_dead && !skipped.has(pid),
  );
}

async function readEvidence(
  processes: ProcessStat[],
  requests: TreeRequest[],
  until: number,
): Promise<ProcessEvidence> {
  const evidence: ProcessEvidence = { by_variable: new Map(), holders: new Map(), feeding: new Set() };
  if (!hasProc) return evidence;
  const sessions = new Set(requests.map((request) => request.session_id));
  const folders = new Set(requests.flatMap(({ pipes }) => pipes ?? []));
  const variables = new Map<string, string | null>();
  const helper_pids = new Set(requests.flatMap((request) => request.helpers.map((ref) => ref.pid)));
  const hold = (stat: ProcessStat, held: HeldPipes) => {
    for (const [fd, folder] of held.pipes) {
      if (!folders.has(folder)) continue;
      if (fd.endsWith('in') && fd.startsWith('1 ') && stat.name === 'cat' && !helper_pids.has(stat.pid)) {
        evidence.feeding.add(folder);
      }
      addMember(evidence.holders, folder, stat.pid);
    }
  };
  const pause = slices();
  const with_more: { stat: ProcessStat; task: number }[] = [];
  for (const stat of processes) {
    if (performance.now() > until) break;
    await pause();
    const task = runningThread(stat);
    const session_id = sessionOf(stat, task, variables);
    if (session_id && sessions.has(session_id)) addMember(evidence.by_variable, session_id, stat.pid);
    // Most sessions end without one, and this is half of a scan.
    if (folders.size === 0) continue;
    const held = heldPipes(task, 0, limits.scan_descriptors);
    hold(stat, held);
    if (held.has_more) with_more.push({ stat, task });
  }
  // Last, so that the processes of one agent cannot use up the time for those of others.
  const further_until = Math.min(until, performance.now() + limits.scan_further_ms);
  for (const { stat, task } of with_more) {
    if (performance.now() > further_until) break;
    await pause();
    const by_cgroup = sessionOfCgroup(stat.pid);
    if (by_cgroup !== null && !sessions.has(by_cgroup)) continue;
    hold(stat, heldPipes(task, limits.scan_descriptors, limits.scan_descriptors_max));
  }
  last_variables = variables;
  return evidence;
}

/** Returns a function to await between pieces of work, which lets other work run after `limits.scan_slice_ms`. */
function slices(): () => Promise<void> | undefined {
  let begun = performance.now();
  return () => {
    if (performance.now() - begun < limits.scan_slice_ms) return undefined;
    return new Promise((resolve) =>
      setImmediate(() => {
        begun = performance.now();
        resolve();
      }),
    );
  };
}

/** `SVC_SESSION_ID` of the processes at the last scan. Reading all environments again was a fifth of a scan. */
let last_variables = new Map<string, string | null>();

/** The session id in a process's environment, or null. Adds it to `variables`. */
function sessionOf(stat: ProcessStat, task: number, variables: typeof last_variables): string | null {
  const { pid, start, environment_at } = stat;
  if (environment_at === null) return readVariable(task, 'SVC_SESSION_ID');
  const key = `${pid} ${start} ${environment_at}`;
  const known = last_variables.get(key);
  const value = known === undefined ? readVariable(task, 'SVC_SESSION_ID') : known;
  variables.set(key, value);
  return value;
}

function addMember(map: Map<string, number[]>, key: string, pid: number): void {
  const pids = map.get(key);
  if (pids) pids.push(pid);
  else map.set(key, [pid]);
}

interface HeldPipes {
  /** For each FIFO that the process holds on the agent's side: `<fd> <FIFO name>` and the folder. */
  pipes: [string, string][];
  /** It has more descriptors. */
  has_more: boolean;
}

/** Reads the descriptors of a process from the one with index `from` to before the one with index `to`. */
function heldPipes(pid: number, from: number, to: number): HeldPipes {
  const held: HeldPipes = { pipes: [], has_more: false };
  try {
    const folder = opendirSync(`/proc/${pid}/fd`, { bufferSize: limits.scan_descriptors });
    try {
      for (let index = 0; ; index++) {
        const fd = folder.readSync()?.name;
        held.has_more = fd !== undefined && index >= to;
        if (fd === undefined || held.has_more) break;
        if (index < from) continue;
        const path = linkOrNull(`/proc/${pid}/fd/${fd}`);
        if (!path?.startsWith('/')) continue;
        const match = /^(.*\/pipes)\/(in|out|err)(?: \(deleted\))?$/.exec(path);
        if (match?.[1]) held.pipes.push([`${fd} ${match[2]}`, match[1]]);
      }
    } finally {
      folder.closeSync();
    }
  } catch (error) {
    if (isExhausted(error)) throw error;
    // The process has ended, or belongs to another user.
  }
  return held;
}

function linkOrNull(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
