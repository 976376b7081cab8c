/** Commands about this machine's own plane: serve, init, stop, doctor, backup, restore, open. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { styleText } from 'node:util';
import type { Command } from 'commander';
import { closest, distance } from 'fastest-levenshtein';
import { sleep } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import { parseAddress } from '../contract/config.ts';
import { NODE_LISTEN } from '../contract/node-toml.ts';
import { Problem } from '../domain/problem.ts';
import { type Api, type ApiOptions, connect, findAgent, localUrl, planeUrl } from './api.ts';
import type { Context, PlaneHolder } from './context.ts';
import { exitCodes, Failure, failed, usage } from './failure.ts';
import { init, nodeConfig } from './init.ts';
import { collect, type LocalOptions, leaf, localFlags, remote, withLocal } from './options.ts';
import { colours, print, printJson, printRecord, say } from './output.ts';
import { secretOf } from './prompt.ts';
import { visible } from './terminal.ts';

type Options = LocalOptions & { json?: boolean };

export function addMachine(program: Command, context: Context): void {
  const { io, local } = context;

  withLocal(program.command('serve [words...]', { isDefault: true }))
    .description('run the control plane (what svc alone does)')
    .usage('[options]')
    .option('--listen <host:port>', 'public listener (SVC_SERVER_LISTEN)')
    .option('--set <key=value>', 'any configuration key', collect)
    .action(async (words: string[], options: LocalOptions) => {
      if (words[0] !== undefined) throw usage(unknownCommand(program, words[0]));
      const code = await local.serve(localFlags(options));
      if (code !== 0) throw new Failure(exitCodes.failed, '');
    });

  leaf(program, 'init', 'write a first configuration for this machine')
    .option('--config <file>', 'where; default: the place where svc looks')
    .option('--node', 'as a remote node of a control plane elsewhere')
    .option('--id <id>', 'with --node: its id on the control plane; default: the name of this machine')
    .option('--token <token>', 'with --node: its bootstrap token (-: the first line of standard input)')
    .option('--listen <host:port>', `with --node: where the control plane connects; default: ${NODE_LISTEN}`)
    .action(async (options: Options & { node?: boolean; id?: string; token?: string }) => {
      const path = options.config === undefined ? local.defaultConfigFile() : resolve(io.cwd, options.config);
      if (options.node) return initNode(path, options);
      if (options.id ?? options.token ?? options.listen)
        throw usage('--id, --token and --listen need --node');
      await init(path);
      if (options.json) await printJson(io, { path });
      else say(io, `wrote ${path}`);
    });

  remote(program, 'stop', 'stop the plane of this machine; its agents go on')
    .option('--agents', 'stop all agents first')
    .option('--kill', 'end it at once (kill -9), as a crash would')
    .action(async (options: ApiOptions & { agents?: boolean; kill?: boolean; json?: boolean }) => {
      const data_dir = local.loadConfig(localFlags(options)).get('data_dir');
      if (local.holderOf(data_dir) === null) throw failed(`no plane runs on ${data_dir}`);
      const stopped = options.agents ? await stopAgents({ ...options, url: localUrl(context, options) }) : 0;
      const holder = local.terminate(data_dir, options.kill ? 'SIGKILL' : 'SIGTERM');
      await untilGone(data_dir, holder);
      if (options.json) await printJson(io, { pid: holder.pid, agents_stopped: stopped });
      else say(io, `stopped (pid ${holder.pid})${options.agents ? `, and ${stopped} agents` : ''}`);
    });

  withLocal(leaf(program, 'doctor', 'check what svc needs on this machine')).action(
    async (options: Options) => {
      const checks = await local.doctor(localFlags(options));
      if (options.json) await printJson(io, checks);
      else await print(io, checks.map((check) => checkLine(check, colours(io.stdout, io.env))).join(''));
      const bad = checks.filter(({ ok }) => !ok).length;
      if (bad > 0) throw failed(`${bad} of ${checks.length} checks failed`);
    },
  );

  withLocal(leaf(program, 'backup <file>', 'write database and log into one file; svc may run')).action(
    async (file: string, options: Options) => {
      const data_dir = local.loadConfig(localFlags(options)).get('data_dir');
      const made = await local.backup(data_dir, resolve(io.cwd, file));
      if (options.json) await printJson(io, made);
      else say(io, `wrote ${made.file} (${made.bytes} bytes)`);
    },
  );

  withLocal(
    leaf(program, 'restore <file>', 'put a backup back; svc must be stopped, the old files stay aside'),
  ).action(async (file: string, options: Options) => {
    const data_dir = local.loadConfig(localFlags(options)).get('data_dir');
    const { aside } = await local.restore(data_dir, resolve(io.cwd, file));
    if (options.json) await printRecord(io, { data_dir, aside }, options);
    else say(io, `restored ${data_dir}${aside ? `; what was there is in ${aside}` : ''}`);
  });

  remote(program, 'open [agent]', 'open the plane, or an agent, in a browser').action(
    async (ref: string | undefined, options: ApiOptions & { json?: boolean }) => {
      let url = await planeUrl(context, options);
      if (ref !== undefined) {
        const agent = await findAgent(await connect(context, options), ref);
        url += `/agents/${encodeURIComponent(agent.id)}`;
      }
      const opened = await local.openBrowser(url);
      if (options.json) await printJson(io, { url, opened });
      else await print(io, `${url}\n`);
    },
  );

  async function initNode(path: string, options: Options & { id?: string; token?: string }): Promise<void> {
    const node_id = options.id ?? hostname();
    const { listen, token: given } = options;
    const token = await secretOf(io, 'Bootstrap token', given);
    await init(path, nodeConfig({ node_id, token, listen }));
    if (options.json) return printJson(io, { path, node_id });
    const { port } = parseAddress(listen ?? NODE_LISTEN)!;
    say(io, `wrote ${path}; svc on this machine now is node ${node_id}`);
    say(io, `on the control plane: svc nodes register ${node_id} --target https://<this host>:${port}`);
  }

  async function stopAgents(options: ApiOptions): Promise<number> {
    const api = await connect(context, options);
    const { username, role } = await api.call('getMe', {});
    if (role !== 'root') throw failed(`${username} sees only their own agents: --agents needs a root user`);
    const running = await api.all('listAgents', { query: { status: 'running' } });
    const results = await Promise.allSettled(running.map(({ id }) => stopAgent(api, id)));
    const left = results.flatMap((result, at) =>
      result.status === 'rejected' ? [`${running[at]!.id}: ${result.reason?.message}`] : [],
    );
    if (left.length > 0)
      throw failed(`the plane goes on, because agents do:\n${left.map(visible).join('\n')}`);
    return running.length;
  }

  async function stopAgent(api: Api, agent_id: string): Promise<void> {
    try {
      await api.patiently('stopAgent', { params: { agent_id }, body: {} });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.code !== 'agent_not_running' && error.code !== 'agent_not_found') throw error;
    }
  }

  async function untilGone(data_dir: string, holder: PlaneHolder): Promise<void> {
    const deadline = Date.now() + limits.cli_stop_wait_ms;
    for (;;) {
      const now = local.holderOf(data_dir);
      if (now === null || now.pid !== holder.pid) return;
      if (Date.now() > deadline) throw new Failure(exitCodes.timeout, `pid ${holder.pid} still runs`);
      await sleep(100, io.signal);
      if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
    }
  }
}

function unknownCommand(program: Command, word: string): string {
  const names = program.commands.map((command) => command.name());
  const near = closest(word, names);
  const guess = distance(word, near) <= 2 ? `: did you mean ${near}?` : ' (svc help lists them)';
  return `unknown command ${visible(word)}${guess}`;
}

function checkLine(
  { ok, name, detail, hint }: { ok: boolean; name: string; detail: string; hint?: string },
  coloured: boolean,
): string {
  const mark = ok ? 'ok  ' : 'FAIL';
  const styled = coloured ? styleText(ok ? 'green' : 'red', mark, { validateStream: false }) : mark;
  const more = !ok && hint ? `\n      ${visible(hint)}` : '';
  return `${styled}  ${visible(name)}: ${visible(detail)}${more}\n`;
}
