/**
 * `svc doctor`: checks what the plane or the node needs on this machine, and shows a fix for each failure. Changes
 * nothing.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, statfs } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { GIB, limits } from '../base/limits.ts';
import { type DoctorCheck, type DoctorOptions, failed, folderNames, passed } from '../cli/context.ts';
import { pinnedFetch } from '../cli/pinned-fetch.ts';
import { type Config, parseAddress } from '../core/config.ts';
import { folderSettings, Problem } from '../core/problem.ts';
import { folderProblem } from '../features/settings/diagnosis.ts';
import { asUser, findUser } from '../node/confinement/run-as.ts';
import { WorktreeRoots } from '../node/folders/worktree-roots.ts';
import { directExec } from '../node/processes/exec.ts';
import { systemTool } from '../node/processes/tools.ts';
import { refusals } from './config.ts';
import { fileSystemOf, isNetworkFileSystem } from './data-dir.ts';
import { databaseCheck } from './doctor-database.ts';
import { linkChecks } from './doctor-link.ts';
import { presetChecks } from './doctor-presets.ts';
import { type Holder, holderOf } from './lock.ts';
import { configuredSandbox, protectedPaths } from './open-node.ts';
import { portHolder } from './port-holder.ts';
import { replaceablePath } from './run-as-paths.ts';
import { findReadableKeys, findUnreachable } from './run-as-reach.ts';
import { sandboxConflict, sandboxPaths } from './sandbox-paths.ts';

const execute = promisify(execFile);
const NODE_MAJOR_MIN = 26;
const INOTIFY_WATCHES_MIN = 8_192;

/** `skip_folders`: leaves out the folders of the configuration, because the running service has examined those that it uses. */
export async function doctor(
  load: () => Promise<Config> | Config,
  env: Record<string, string | undefined>,
  { skip_folders = false }: DoctorOptions = {},
): Promise<DoctorCheck[]> {
  const checks: DoctorCheck[] = [nodeCheck()];
  let config: Config;
  try {
    config = await load();
  } catch (error) {
    return [...checks, failed('configuration', (error as Error).message, 'fix it; see svc config show')];
  }
  const data_dir = config.get('data_dir');
  const user = config.get('agents.run_as');
  const runs_agents = config.get('server.local_node');
  if (runs_agents) checks.push(await gitCheck(user, env));
  checks.push(configCheck(config), ...config.warnings.map((text) => failed('configuration', text)));
  checks.push(await dataDirCheck(data_dir), await diskCheck(data_dir));
  const database = isNode(config) ? null : await databaseCheck(config);
  if (database) checks.push(database);
  const holder = holderOf(data_dir);
  for (const key of listenersOf(config)) checks.push(await listenerCheck(config, key, holder));
  if (holder) checks.push(await (isNode(config) ? runningNodeCheck(holder) : planeCheck(holder)));
  checks.push(...(await linkChecks(config, Date.now())));
  if (!runs_agents) return checks;
  if (!skip_folders) checks.push(...(await folderChecks(config)));
  if (user !== null) checks.push(await runAsCheck(user, config, env));
  if (config.get('agents.sandbox') === 'bwrap') checks.push(await sandboxCheck(user, config, env));
  if (process.platform === 'linux') checks.push(await inotifyCheck());
  checks.push(...(await presetChecks(config, env)));
  return checks;
}

function nodeCheck(): DoctorCheck {
  const { node } = process.versions;
  return Number.parseInt(node, 10) >= NODE_MAJOR_MIN
    ? passed('node', node)
    : failed('node', node, `install Node ${NODE_MAJOR_MIN} or later`);
}

/**
 * Runs git as the agents' user, as the service does. A user who may write to a folder in PATH decides which program runs.
 */
async function gitCheck(
  user: string | null,
  { PATH = '/usr/bin:/bin' }: Record<string, string | undefined>,
): Promise<DoctorCheck> {
  try {
    const run_as = user === null ? null : await findUser(directExec, user);
    const { code, stdout } = await directExec.run(asUser(['git', '--version'], run_as), {
      cwd: '/',
      env: { PATH, LC_ALL: 'C' },
      output_bytes_max: 4_096,
      timeout_ms: limits.doctor_wait_ms,
    });
    if (code === 0)
      return passed(
        'git',
        stdout
          .toString()
          .trim()
          .replace(/^git version /, ''),
      );
  } catch (error) {
    if (error instanceof Problem) return failed('git', `not checked: ${error.message}`);
  }
  return failed('git', 'not found', 'install git: worktrees and changes need it');
}

function configCheck(config: Config): DoctorCheck {
  const found = refusals(config);
  return found.length > 0
    ? failed('configuration', found.join('; '), 'svc does not start with this configuration')
    : passed('configuration', config.file ?? 'no file, defaults');
}

async function dataDirCheck(path: string): Promise<DoctorCheck> {
  const found = await stat(path).catch(() => null);
  if (found === null) return passed('data directory', `${path} (created at the first start)`);
  if (!found.isDirectory()) return failed('data directory', `${path} is not a directory`);
  const type = await fileSystemOf(path);
  if (type !== null && isNetworkFileSystem(type)) {
    return failed('data directory', `${path} is on a network file system (${type})`, 'use a local disk');
  }
  if (process.getuid && found.uid !== process.getuid()) {
    return failed('data directory', `${path} belongs to user id ${found.uid}`, 'run svc as that user');
  }
  return (found.mode & 0o077) === 0
    ? passed('data directory', path)
    : failed(
        'data directory',
        `${path} is open to other users`,
        `chmod 700 ${path}; or start svc, which does this`,
      );
}

async function diskCheck(data_dir: string): Promise<DoctorCheck> {
  let folder = data_dir;
  while ((await stat(folder).catch(() => null)) === null) folder = dirname(folder);
  const disk = await statfs(folder);
  const free = disk.bavail * disk.bsize;
  const needed = Math.min(limits.disk_no_start_bytes, disk.blocks * disk.bsize * limits.disk_no_start_share);
  const detail = `${(free / GIB).toFixed(1)} GiB free`;
  return free > needed
    ? passed('disk', detail)
    : failed('disk', detail, 'agents cannot start: free some space');
}

function isNode(config: Config): boolean {
  return config.get('server.role') === 'node';
}

const listenerNames = {
  'server.listen': 'listener',
  'internal_grpc.listen': 'internal listener',
  'cluster.listen': 'cluster listener',
} as const;
type ListenerKey = keyof typeof listenerNames;

/** The listeners that the process opens. */
function listenersOf(config: Config): ListenerKey[] {
  if (isNode(config)) return ['internal_grpc.listen'];
  const keys: ListenerKey[] = ['server.listen'];
  // Only agents on this machine call it.
  if (config.get('internal_grpc.enabled') && config.get('server.local_node'))
    keys.push('internal_grpc.listen');
  if (config.get('cluster.listen') !== null) keys.push('cluster.listen');
  return keys;
}

async function listenerCheck(config: Config, key: ListenerKey, holder: Holder | null): Promise<DoctorCheck> {
  const listen = config.get(key)!;
  const name = listenerNames[key];
  if (holder) {
    // The process that holds the data directory records the listener to which people connect.
    const noted = isNode(config) || key === 'server.listen' ? holder.url : null;
    return passed(name, `${noted ?? listen}, held by pid ${holder.pid}`);
  }
  const { host, port } = parseAddress(listen)!;
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, resolve);
    });
    return passed(name, `${listen} is free`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const other = code === 'EADDRINUSE' ? await portHolder(port) : null;
    const who = other ? `, used by pid ${other.pid} (${other.program})` : '';
    const hint = key === 'server.listen' ? 'try --listen 127.0.0.1:8090' : `set another ${key}`;
    return failed(name, `${listen}: ${code}${who}`, hint);
  } finally {
    server.close();
  }
}

async function planeCheck({ url, certificate, pid, since }: Holder): Promise<DoctorCheck> {
  if (url === null) return failed('plane', `pid ${pid} has been starting since ${since}`);
  try {
    const get = certificate === null ? fetch : pinnedFetch(certificate);
    const response = await get(`${url}/readyz`, { signal: AbortSignal.timeout(limits.doctor_wait_ms) });
    return response.ok
      ? passed('plane', `ready at ${url}, pid ${pid} since ${since}`)
      : failed('plane', `${url} answers ${response.status}`, 'see its log');
  } catch (error) {
    return failed('plane', `${url} does not answer: ${(error as Error).message}`, 'see its log');
  }
}

/** Checks whether the node is listening. It has no health endpoint, because it answers only its control plane. */
async function runningNodeCheck({ url, pid, since }: Holder): Promise<DoctorCheck> {
  if (url === null) return failed('agent node', `pid ${pid} has been starting since ${since}`);
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const socket = connect({ host: everywhere[host] ?? host, port: Number(port) });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(limits.doctor_wait_ms) });
    return passed('agent node', `listens at ${hostname}:${port}, pid ${pid} since ${since}`);
  } catch (error) {
    return failed('agent node', `${url} does not answer: ${(error as Error).message}`, 'see its log');
  } finally {
    socket.destroy();
  }
}

async function folderChecks(config: Config): Promise<DoctorCheck[]> {
  const checks = folderSettings.flatMap((setting) =>
    config.get(setting).map((path) => folderCheck(folderNames[setting], path)),
  );
  return Promise.all(checks);
}

async function folderCheck(name: string, path: string): Promise<DoctorCheck> {
  const problem = await folderProblem(path);
  return problem === null
    ? passed(name, path)
    : failed(name, `${path} ${problem}`, 'create it, or remove it from the list');
}

async function runAsCheck(
  user: string,
  config: Config,
  env: Record<string, string | undefined>,
): Promise<DoctorCheck> {
  if (process.getuid?.() !== 0) return failed('agents.run_as', user, 'needs svc to run as root');
  try {
    const found = await findUser(directExec, user);
    await execute(systemTool('setpriv'), ['--version']);
    const exposed = await replaceablePath(directExec, found, protectedPaths(config, env));
    if (exposed !== null)
      return failed('agents.run_as', exposed, 'svc does not start with this configuration');
    const root = config.get('worktree.default_root') ?? join(config.get('data_dir'), 'worktrees');
    const keys = config.get('agents.sandbox') === 'bwrap' ? null : await findReadableKeys(directExec, found);
    const problem = (await findUnreachable(directExec, found, root)) ?? keys;
    return problem === null ? passed('agents.run_as', user) : failed('agents.run_as', problem);
  } catch (error) {
    return failed(
      'agents.run_as',
      `${user}: ${(error as Error).message.split('\n')[0]}`,
      'create that user, and install setpriv',
    );
  }
}

async function sandboxCheck(
  user: string | null,
  config: Config,
  env: Record<string, string | undefined>,
): Promise<DoctorCheck> {
  const name = 'agents.sandbox';
  try {
    const roots = await WorktreeRoots.open(config.get('data_dir'));
    const live = {
      safe_paths: config.get('safe_paths'),
      repo_roots: config.get('worktree.repo_roots'),
      worktree_roots: [config.get('worktree.default_root') ?? [], await roots.inUse()].flat(),
    };
    const conflict = await sandboxConflict(await sandboxPaths(config, env, live));
    if (conflict !== null) return failed(name, conflict, 'svc does not start with this configuration');
    const run_as = user === null ? null : await findUser(directExec, user);
    const sandbox = configuredSandbox(config, env, directExec, run_as);
    const why = await sandbox!.problem();
    if (why !== null) return failed(name, why, 'no agent can start until this is fixed');
    const found = [...sandbox!.gaps, ...(await sandbox!.exposed())];
    return found.length === 0
      ? passed(name, 'bwrap, isolates files, processes and signals')
      : failed(name, `bwrap, but ${found.join('; ')}`);
  } catch (error) {
    return failed(name, (error as Error).message);
  }
}

async function inotifyCheck(): Promise<DoctorCheck> {
  const path = '/proc/sys/fs/inotify/max_user_watches';
  const watches = Number(await readFile(path, 'utf8').catch(() => '0'));
  return watches >= INOTIFY_WATCHES_MIN
    ? passed('inotify', `${watches} watches`)
    : failed(
        'inotify',
        `${watches} watches`,
        'sysctl fs.inotify.max_user_watches=65536; until then svc polls',
      );
}
