/** Runs the plane in this process until a signal ends it: banner, SIGHUP, draining. */
import { hostname, userInfo } from 'node:os';
import { limits } from '../base/limits.ts';
import { version } from '../base/version.ts';
import type { Io } from '../cli/context.ts';
import { type Config, parseAddress } from '../contract/config.ts';
import { invalid } from '../domain/problem.ts';
import { banner } from './banner.ts';
import { refusals } from './config.ts';
import { startPlane } from './plane.ts';
import { portHolder } from './port-holder.ts';

/** Answers the exit code, 0 after an orderly stop. */
export async function serve(config: Config, io: Io): Promise<number> {
  const refused = refusals(config);
  if (refused.length > 0) throw invalid(refused.join('\n'), 'invalid_config');
  const plane = await startPlane(config, { ...io.env }).catch(async (error: NodeJS.ErrnoException) => {
    throw error.syscall === 'listen' ? invalid(await cannotListen(config, error), 'cannot_listen') : error;
  });
  const { log } = plane;
  // The last resort: nobody knows what holds any more, and a crash loses nothing.
  const onFault = (error: unknown) => {
    log.fatal({ err: error }, 'an unexpected fault: ending as after a crash, which loses nothing');
    process.exit(1);
  };
  process.on('uncaughtException', onFault);
  const warnings = [...plane.warnings];
  if (config.get('internal_grpc.enabled')) {
    const text =
      'internal_grpc.enabled is set, but this release does not serve the internal gRPC surface yet';
    log.warn({ listen: config.get('internal_grpc.listen') }, text);
    warnings.push(text);
  }
  if (io.stdout.isTTY) {
    io.stdout.write(
      banner({
        version,
        url: plane.url,
        data_dir: plane.data_dir,
        home: io.home,
        join: plane.join,
        adopted: plane.adopted,
        warnings,
        ssh: io.env.SSH_CONNECTION ? { user: userInfo().username, host: hostname() } : null,
        colours: !io.env.NO_COLOR && io.env.TERM !== 'dumb',
      }),
    );
  } else if (plane.join) {
    // To whoever reads the output of the start, and not into the log, which travels further.
    const { url, pin, expires_at } = plane.join;
    io.stdout.write(`Create the root user\n  Open   ${url}\n  PIN    ${pin}\n  Valid until ${expires_at}\n`);
    log.info({ file: `${plane.data_dir}/join.json` }, 'create the root user: link and PIN are in the file');
  }

  // A hang-up of the terminal that the log goes to ends the service, as it ends other programs there.
  const hangsUp = config.get('logging.output') === null && Boolean(io.stderr.isTTY);
  let stop = () => {};
  const onHangUp = () => (hangsUp ? stop() : plane.reopenLog());
  process.on('SIGHUP', onHangUp);
  try {
    await new Promise<void>((resolve) => {
      stop = resolve;
      process.once('SIGTERM', () => resolve());
      if (io.signal.aborted) resolve();
      io.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    const late = setTimeout(() => {
      log.warn('stopping takes too long: ending as after a crash, which loses nothing');
      process.exit(0);
    }, limits.plane_stop_ms);
    await plane.close();
    clearTimeout(late);
  } finally {
    process.off('SIGHUP', onHangUp);
    process.off('uncaughtException', onFault);
  }
  return 0;
}

async function cannotListen(config: Config, { code }: NodeJS.ErrnoException): Promise<string> {
  const listen = config.get('server.listen');
  if (code === 'EADDRINUSE') {
    const holder = await portHolder(parseAddress(listen)!.port);
    const who = holder ? `pid ${holder.pid} (${holder.program})` : 'another program';
    return `server.listen ${listen} is used by ${who}: try --listen 127.0.0.1:8090`;
  }
  return `server.listen ${listen} cannot be opened: ${code}`;
}
