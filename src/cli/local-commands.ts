/** Commands about the plane of this machine: serve, init, stop, doctor, backup, restore, open. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { styleText } from 'node:util';
import type { Command } from 'commander';
import { sleep } from '../base/async.ts';
import { absolutePath } from '../base/files.ts';
import { showArgv } from '../core/argv.ts';
import { parseAddress } from '../core/config.ts';
import { NODE_LISTEN } from '../core/node-toml.ts';
import { Problem, problems } from '../core/problem.ts';
import { type ApiOptions, browserUrl, connect, findAgent, localUrl, planeUrl } from './api.ts';
import type { Context, PlaneHolder } from './context.ts';
import { exitCodes, Failure, failed, usage } from './failure.ts';
import { unknownCommand } from './help.ts';
import { init, nodeConfig } from './init.ts';
import { limits } from './limits.ts';
import { addJsonCommand, collect, type LocalOptions, localFlags, remote, withLocal } from './options.ts';
import { print, printJson, printRecord, printStatus, supportsColor } from './output.ts';
import { readShortSecret } from './prompt.ts';
import { examineService } from './service-doctor.ts';
import { printable } from './terminal.ts';

type Options = LocalOptions & { json?: boolean };

export function addLocalCommands(program: Command, context: Context): void {
  addServe(program, context);
  addInit(program, context);
  addStop(program, context);
  addDoctor(program, context);
  addBackup(program, context);
  addRestore(program, context);
  addOpen(program, context);
}

function addServe(program: Command, context: Context): void {
  const { local } = context;
  withLocal(program.command('serve [words...]', { isDefault: true }))
    .description('run the control plane (the default command)')
    .usage('[options]')
    .option('--listen <host:port>', 'address of the public listener (SVC_SERVER_LISTEN)')
    .option('--set <key=value>', 'set a configuration key (repeatable)', collect)
    .action(async (words: string[], options: LocalOptions) => {
      if (words[0] !== undefined) throw usage(unknownCommand(program, words[0]));
      const code = await local.serve(localFlags(options));
      if (code !== 0) throw new Failure(exitCodes.failed, '');
    });
}

function addInit(program: Command, context: Context): void {
  const { io, local } = context;
  addJsonCommand(program, 'init', 'write a configuration file for this machine')
    .option('--config <file>', 'the file to write (default: where svc looks for it)')
    .option('--data-dir <dir>', 'write this data directory into the file')
    .option('--node', 'configure a remote node of a control plane on another machine')
    .option('--id <id>', 'with --node: its id on the control plane (default: the name of this machine)')
    .option('--token <token>', 'with --node: the bootstrap token (-: the first line of stdin)')
    .option(
      '--listen <host:port>',
      `with --node: address that the control plane connects to (default: ${NODE_LISTEN})`,
    )
    .action(async (options: Options & { node?: boolean; id?: string; token?: string }) => {
      const usual = io.env.SVC_CONFIG ? resolve(io.cwd, io.env.SVC_CONFIG) : local.defaultConfigFile();
      const path = options.config === undefined ? usual : resolve(io.cwd, options.config);
      const start = path === usual ? [] : [`to use it: ${showArgv(['svc', 'serve', '--config', path])}`];
      if (options.dataDir === '') throw usage('--data-dir must not be empty');
      const data_dir = options.dataDir && absolutePath(options.dataDir, io.cwd, io.home);
      if (options.node) return initNode(context, { path, data_dir, start }, options);
      if (options.id ?? options.token ?? options.listen)
        throw usage('--id, --token and --listen need --node');
      await init(path, { data_dir });
      if (options.json) await printJson(io, { path });
      else for (const line of [`wrote ${path}`, ...start]) printStatus(io, line);
    });
}

function addStop(program: Command, context: Context): void {
  const { io, local } = context;
  withLocal(addJsonCommand(program, 'stop', 'stop the plane on this machine; its agents keep running'))
    .option('--agents', 'stop all agents first')
    .option('--url <url>', "with --agents: URL of this plane; default: its listener's address")
    .option('--kill', 'kill the plane immediately (SIGKILL), as in a crash')
    .action(async (options: ApiOptions & { agents?: boolean; kill?: boolean; json?: boolean }) => {
      if (options.url !== undefined && !options.agents) throw usage('--url needs --agents');
      const config = await local.loadConfig(localFlags(options));
      if (options.agents && config.get('server.role') === 'node')
        throw failed(
          'this machine is a node; stop its agents on the control plane: svc agents stop <agent>...',
        );
      const data_dir = config.get('data_dir');
      if ((await local.holderOf(data_dir)) === null) throw failed(`no plane is running on ${data_dir}`);
      // Not SVC_URL, because it may name another plane, whose agents must not be stopped.
      const url = options.url ?? (await localUrl(context, options));
      const stopped = options.agents ? await stopAgents(context, { ...options, url }) : 0;
      const holder = await local.terminate(data_dir, options.kill ? 'SIGKILL' : 'SIGTERM');
      await waitForExit(context, data_dir, holder);
      if (options.json) await printJson(io, { pid: holder.pid, agents_stopped: stopped });
      else
        printStatus(
          io,
          `stopped (pid ${holder.pid})${options.agents ? `, and ${stopped} ${stopped === 1 ? 'agent' : 'agents'}` : ''}`,
        );
    });
}

function addDoctor(program: Command, context: Context): void {
  const { io, local } = context;
  remote(program, 'doctor', 'check that this machine has what svc needs, and ask the running service').action(
    async (options: ApiOptions & { json?: boolean }) => {
      const service = await examineService(context, options);
      const skip_folders = service.has_local_folders;
      const checks = [...(await local.doctor(localFlags(options), { skip_folders })), ...service.checks];
      for (const note of service.notes) printStatus(io, printable(note));
      if (options.json) await printJson(io, checks);
      else
        await print(io, checks.map((check) => checkLine(check, supportsColor(io.stdout, io.env))).join(''));
      const bad = checks.filter(({ ok }) => !ok).length;
      if (bad > 0) throw failed(`${bad} of ${checks.length} checks failed`);
    },
  );
}

function addBackup(program: Command, context: Context): void {
  const { io, local } = context;
  withLocal(
    addJsonCommand(
      program,
      'backup <file>',
      'back up the database and the logs to one file; works while svc is running',
    ),
  ).action(async (file: string, options: Options) => {
    const config = await local.loadConfig(localFlags(options));
    const backup = await local.backup(config, resolve(io.cwd, file));
    if (options.json) await printJson(io, backup);
    else printStatus(io, `wrote ${backup.file} (${backup.bytes} bytes)`);
  });
}

function addRestore(program: Command, context: Context): void {
  const { io, local } = context;
  withLocal(
    addJsonCommand(
      program,
      'restore <file>',
      'restore a backup; svc must be stopped, and the old files are kept',
    ),
  ).action(async (file: string, options: Options) => {
    const config = await local.loadConfig(localFlags(options));
    const data_dir = config.get('data_dir');
    const { aside } = await local.restore(config, resolve(io.cwd, file));
    if (options.json) await printRecord(io, { data_dir, aside }, options);
    else printStatus(io, `restored ${data_dir}${aside ? `; the previous files are in ${aside}` : ''}`);
  });
}

function addOpen(program: Command, context: Context): void {
  const { io, local } = context;
  remote(program, 'open [agent]', 'open the web UI, or an agent in it, in a browser').action(
    async (ref: string | undefined, options: ApiOptions & { json?: boolean }) => {
      let url = await browserUrl(context, options, await planeUrl(context, options));
      if (ref !== undefined) {
        const agent = await findAgent(await connect(context, options), ref);
        url += `/agents/${encodeURIComponent(agent.id)}`;
      }
      const opened = await local.openBrowser(url);
      if (options.json) await printJson(io, { url, opened });
      else await print(io, `${url}\n`);
    },
  );
}

/** `start`: how to start svc with the file, if svc does not look for it there. */
async function initNode(
  context: Context,
  { path, data_dir, start }: { path: string; data_dir: string | undefined; start: string[] },
  options: Options & { id?: string; token?: string },
): Promise<void> {
  const { io } = context;
  const node_id = options.id ?? hostname();
  const { listen, token: bootstrap_token } = options;
  const token = await readShortSecret(io, 'Bootstrap token', bootstrap_token);
  await init(path, { text: nodeConfig({ node_id, token, listen }), data_dir });
  if (options.json) return printJson(io, { path, node_id });
  const { port } = parseAddress(listen ?? NODE_LISTEN)!;
  const known = start.length === 0 ? `; svc on this machine is now node ${node_id}` : '';
  for (const line of [`wrote ${path}${known}`, ...start]) printStatus(io, line);
  printStatus(
    io,
    `run on the control plane: svc nodes register ${node_id} --target https://<this host>:${port}`,
  );
}

/** Stops all agents, and returns how many. After that, the plane starts none for long enough to stop it. */
async function stopAgents(context: Context, options: ApiOptions): Promise<number> {
  const api = await connect(context, options);
  const { stopped, still_running } = await api.call('stopAllAgents', { body: {} }).catch((error) => {
    throw explainRefusedStop(error);
  });
  if (still_running.length > 0) {
    const lines = still_running.map(({ agent_id, error }) => printable(`${agent_id}: ${error}`));
    throw failed(`the plane was not stopped, because these agents are still running:\n${lines.join('\n')}`);
  }
  return stopped;
}

function explainRefusedStop(error: unknown): unknown {
  if (!(error instanceof Problem)) return error;
  if (error.code === problems.rootRequired().code)
    return new Failure(exitCodes.unauthenticated, '--agents needs a root user');
  if (error.kind === 'not_found')
    return failed('the running plane is too old for --agents: stop its agents with svc agents stop');
  return error;
}

async function waitForExit(context: Context, data_dir: string, holder: PlaneHolder): Promise<void> {
  const { io, local } = context;
  const deadline = Date.now() + limits.stop_wait_ms;
  for (;;) {
    const now = await local.holderOf(data_dir);
    if (now === null || now.pid !== holder.pid) return;
    if (Date.now() > deadline) throw new Failure(exitCodes.timeout, `pid ${holder.pid} is still running`);
    await sleep(100, io.signal);
    if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
  }
}

function checkLine(
  { ok, name, detail, hint }: { ok: boolean; name: string; detail: string; hint?: string },
  colored: boolean,
): string {
  const mark = ok ? 'ok  ' : 'FAIL';
  const styled = colored ? styleText(ok ? 'green' : 'red', mark, { validateStream: false }) : mark;
  const more = !ok && hint ? `\n      ${printable(hint)}` : '';
  return `${styled}  ${printable(name)}: ${printable(detail)}${more}\n`;
}
