/** Runs the plane or the node in this process until a signal ends it: banner, SIGHUP, shutdown. */
import { hostname, userInfo } from 'node:os';
import { closeInheritedDescriptors } from '../base/descriptors.ts';
import type { Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import type { Io } from '../cli/context.ts';
import { type Config, parseAddress } from '../core/config.ts';
import { invalid, type Problem } from '../core/problem.ts';
import { banner, forBrowsers, nodeBanner } from './banner.ts';
import { refusals } from './config.ts';
import { collectWhenIdle, letHeapDouble } from './heap.ts';
import { limits } from './limits.ts';
import type { PlaneStart } from './plane.ts';
import { portHolder } from './port-holder.ts';

/** The interface of both roles for the process that runs them. */
interface Service {
  log: Logger;
  /** Resolves if the service cannot continue. */
  failed?: Promise<Problem>;
  close(): Promise<void>;
}

/** Returns the exit code, 0 after an orderly shutdown. Throws why the service could not start or continue. */
export async function serve(config: Config, io: Io): Promise<number> {
  const refused = refusals(config);
  if (refused.length > 0) throw invalid(refused.join('\n'), 'invalid_config');
  closeInheritedDescriptors();
  const is_node = config.get('server.role') === 'node';
  process.title = is_node ? `svc: node ${config.get('server.node_id')}` : 'svc: plane';
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  if (io.signal.aborted) stop();
  io.signal.addEventListener('abort', stop, { once: true });
  // If the log goes to the terminal, a hang-up ends the service, as it ends other programs there.
  const hangsUp = config.get('logging.output') === null && Boolean(io.stderr.isTTY);
  const reloads: (() => void)[] = [];
  const onHangUp = () => {
    if (hangsUp) stop();
    else for (const reload of reloads) reload();
  };
  const handleSignals = () => {
    process.once('SIGTERM', stop);
    process.on('SIGHUP', onHangUp);
  };
  // One that stands by may be stopped or reloaded at any time. Others do not handle signals before they have started.
  const may_stand_by = config.get('cluster.listen') !== null;
  if (may_stand_by) handleSignals();
  const onReload = (reload: () => void) => reloads.push(reload);
  let service: Service;
  try {
    service = await (is_node
      ? startAsNode(config, io, onReload)
      : startAsPlane(config, io, { signal: stopping.signal, onReload }));
  } catch (error) {
    if (stopping.signal.aborted && error === stopping.signal.reason) return 0;
    const { syscall } = error as NodeJS.ErrnoException;
    if (syscall !== 'listen') throw error;
    throw invalid(await cannotListen(config, error as NodeJS.ErrnoException), 'cannot_listen');
  }
  letHeapDouble();
  collectWhenIdle();
  const { log } = service;
  // After an unexpected error, the state of the process is unknown, and a crash loses nothing.
  const onFault = (error: unknown) => {
    log.fatal({ err: error }, 'unexpected error: exiting like a crash, which loses nothing');
    process.exit(1);
  };
  process.on('uncaughtException', onFault);

  let failure: Problem | null = null;
  if (!may_stand_by) handleSignals();
  try {
    await new Promise<void>((resolve) => {
      if (stopping.signal.aborted) resolve();
      stopping.signal.addEventListener('abort', () => resolve(), { once: true });
      void service.failed?.then((problem) => {
        failure = problem;
        log.error(`${problem.message}: stopping, and agents keep running`);
        resolve();
      });
    });
    const late = setTimeout(() => {
      log.warn('shutdown takes too long: exiting like a crash, which loses nothing');
      process.exit(failure === null ? 0 : 1);
    }, limits.plane_stop_ms);
    await service.close();
    clearTimeout(late);
  } finally {
    process.off('SIGHUP', onHangUp);
    process.off('uncaughtException', onFault);
  }
  if (failure !== null) throw failure;
  return 0;
}

// A role loads only its own modules: a node needs no features, and most planes need no certificates and no gRPC.
async function startAsPlane(
  config: Config,
  io: Io,
  handling: Pick<PlaneStart, 'signal' | 'onReload'>,
): Promise<Service> {
  const { startPlane } = await import('./plane.ts');
  const onStandby = (url: string) => {
    if (io.stdout.isTTY)
      io.stdout.write(`Standing by at ${forBrowsers(url)}: another control plane is active\n`);
  };
  const plane = await startPlane({ config, env: { ...io.env }, onStandby, ...handling });
  const { log, data_dir, adopted, warnings } = plane;
  const shown = (url: string) => (plane.localhost_taken ? url : forBrowsers(url));
  const url = shown(plane.url);
  const join = plane.join && { ...plane.join, url: shown(plane.join.url) };
  if (io.stdout.isTTY) {
    const ssh = io.env.SSH_CONNECTION ? { user: userInfo().username, host: hostname() } : null;
    const facts = { version, url, data_dir, home: io.home, join, adopted, warnings, ssh };
    io.stdout.write(banner({ ...facts, colors: hasColors(io) }));
  } else if (join) {
    // Printed for the reader of the start-up output, not logged, because logs are kept and forwarded.
    const { url, pin, expires_at } = join;
    io.stdout.write(`Create the root user\n  Open   ${url}\n  PIN    ${pin}\n  Valid until ${expires_at}\n`);
    log.info({ file: `${data_dir}/join.json` }, 'create the root user with the link and PIN in this file');
  }
  return plane;
}

async function startAsNode(config: Config, io: Io, onReload: PlaneStart['onReload']): Promise<Service> {
  const { startNode } = await import('./node.ts');
  const node = await startNode(config, { ...io.env });
  onReload(() => node.reopenLog());
  if (io.stdout.isTTY) {
    const { id, listen, data_dir, adopted, joinable, warnings } = node;
    const facts = { version, id, listen, data_dir, home: io.home, adopted, joinable, warnings };
    io.stdout.write(nodeBanner({ ...facts, colors: hasColors(io) }));
  }
  return node;
}

function hasColors({ env }: Io): boolean {
  return !env.NO_COLOR && env.TERM !== 'dumb';
}

async function cannotListen(
  config: Config,
  { code, port }: NodeJS.ErrnoException & { port?: number },
): Promise<string> {
  const key =
    (['internal_grpc.listen', 'cluster.listen', 'server.listen'] as const).find(
      (name) => parseAddress(config.get(name) ?? '')?.port === port,
    ) ?? 'server.listen';
  const listen = config.get(key) ?? '';
  if (code !== 'EADDRINUSE') return `${key} ${listen} cannot be bound: ${code}`;
  const holder = await portHolder(parseAddress(listen)!.port);
  const who = holder ? `pid ${holder.pid} (${holder.program})` : 'another program';
  const other = key === 'server.listen' ? ': try --listen 127.0.0.1:8090' : '';
  return `${key} ${listen} is in use by ${who}${other}`;
}
