/** `svc nodes …`: the repositories of a node, and for root the registry of nodes, the connection test and the bootstrap token. */
import { styleText } from 'node:util';
import type { Command } from 'commander';
import { sleep } from '../../../base/async.ts';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context, Io } from '../../../cli/context.ts';
import { exitCodes, Failure, failed, usage } from '../../../cli/failure.ts';
import { remote, waitOption } from '../../../cli/options.ts';
import {
  type Column,
  print,
  printJson,
  printRecord,
  printRows,
  printStatus,
  supportsColor,
} from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import { leftBehindLines } from '../../agents/commands/left-behind.ts';
import { limits } from '../limits.ts';
import type { HealthReport, NodeRecord, RepositoryRecord } from '../rules.ts';
import { listRepositories } from './repositories.ts';

interface Options extends ApiOptions {
  json?: boolean;
}

interface FieldOptions extends Options {
  name?: string;
  target?: string;
  tlsServerName?: string;
  defaultWorktreeRoot?: string;
}

interface RegisterOptions extends FieldOptions {
  target: string;
  timeout: number;
  wait: boolean;
}

export function addNodes(program: Command, context: Context): void {
  const nodes = program
    .command('nodes')
    .description('manage the machines that agents run on (root), and list their repositories');
  addLs(nodes, context);
  addGet(nodes, context);
  addRegister(nodes, context);
  addSet(nodes, context);
  addTest(nodes, context);
  addDelete(nodes, context);
  addToken(nodes, context);
  addRepositories(nodes, context);
}

function addLs(nodes: Command, context: Context): void {
  const { io } = context;
  remote(nodes, 'ls', 'list the registered nodes')
    .alias('list')
    .action(async (options: Options) => {
      const api = await connect(context, options);
      await printRows(
        io,
        await api.all('listAgentNodes', {}),
        [
          { title: 'ID', value: (node) => node.id },
          { title: 'NAME', value: (node) => node.name },
          { title: 'STATUS', value: (node) => node.status },
          { title: 'VERSION', value: (node) => node.version },
          { title: 'AGENTS', value: (node) => node.agents },
          { title: 'LAST SEEN', value: (node) => node.last_seen_at },
        ],
        options,
      );
    });
}

function addGet(nodes: Command, context: Context): void {
  const { io } = context;
  remote(nodes, 'get <node>', 'show a node')
    .alias('show')
    .action(async (node_id: string, options: Options) => {
      const api = await connect(context, options);
      await printRecord(io, await api.call('getAgentNode', { params: { node_id } }), options);
    });
}

function addRegister(nodes: Command, context: Context): void {
  const { io } = context;
  remote(nodes, 'register <id>', 'register a node and wait until it is connected')
    .requiredOption('--target <url>', 'address of the node: https://<host>:<port>')
    .option('--name <name>', 'display name (default: the id)')
    .option('--tls-server-name <name>', 'the name in its certificate, if it differs from the host')
    .option('--default-worktree-root <dir>', 'default folder for new worktrees on the node')
    .addOption(
      waitOption('--timeout <duration>', 'how long to wait for the connection', limits.cli_register_wait_ms),
    )
    .option('--no-wait', 'do not wait for the connection')
    .action(async (id: string, options: RegisterOptions) => {
      const api = await connect(context, options);
      const body = {
        id,
        name: options.name ?? id,
        grpc_target: options.target,
        tls_server_name: options.tlsServerName ?? null,
        default_worktree_root: options.defaultWorktreeRoot ?? null,
      };
      const created = await api.call('registerAgentNode', { body, idempotency_key: crypto.randomUUID() });
      const node = options.wait ? await waitUntilConnected(io, api, created, options) : created;
      await printRecord(io, options.wait ? await checkedRoot(io, api, node) : node, options);
    });
}

function addSet(nodes: Command, context: Context): void {
  const { io } = context;
  remote(nodes, 'set <node>', 'change a node; an empty value clears an optional field')
    .option('--target <url>', 'address of the node: https://<host>:<port>')
    .option('--name <name>', 'display name')
    .option('--tls-server-name <name>', 'the name in its certificate, if it differs from the host')
    .option('--default-worktree-root <dir>', 'default folder for new worktrees on the node')
    .option('--accept-disk', 'accept the disk that connects next; agents that are not on it are lost')
    .action(async (node_id: string, options: FieldOptions & { acceptDisk?: boolean }) => {
      const { name, target, tlsServerName, defaultWorktreeRoot, acceptDisk } = options;
      const body = {
        ...(name !== undefined && { name }),
        ...(target !== undefined && { grpc_target: target }),
        ...(tlsServerName !== undefined && { tls_server_name: tlsServerName || null }),
        ...(defaultWorktreeRoot !== undefined && { default_worktree_root: defaultWorktreeRoot || null }),
        ...(acceptDisk && { accept_disk: true }),
      };
      if (Object.keys(body).length === 0) throw usage('nothing to change: give at least one option');
      const api = await connect(context, options);
      const node = await api.call('updateAgentNode', { params: { node_id }, body });
      await printRecord(io, node, options);
    });
}

function addTest(nodes: Command, context: Context): void {
  const { io } = context;
  remote(nodes, 'test <node>', 'test the connection to a node, step by step').action(
    async (node_id: string, options: Options) => {
      const api = await connect(context, options);
      const report = await api.call('getAgentNodeHealth', { params: { node_id } });
      if (options.json) await printJson(io, report);
      else await print(io, reportLines(report, supportsColor(io.stdout, io.env)));
      if (report.status !== 'ok') throw failed(`node ${node_id} is ${report.status}`);
    },
  );
}

function addDelete(nodes: Command, context: Context): void {
  const { io } = context;
  remote(nodes, 'delete <node>', 'delete a node without agents')
    .alias('rm')
    .option('--forget', 'also delete the records of its agents, because its machine is permanently gone')
    .action(async (node_id: string, options: Options & { forget?: boolean }) => {
      const api = await connect(context, options);
      const query = { forget: options.forget };
      const left = await api.call('deleteAgentNode', { params: { node_id }, query });
      if (options.json) return printRecord(io, left ?? { id: node_id }, options);
      printStatus(io, printable(`deleted ${node_id}`));
      if (left) for (const line of leftBehindLines(left.left_behind)) printStatus(io, printable(line));
    });
}

function addToken(nodes: Command, context: Context): void {
  const { io } = context;
  remote(nodes, 'token', 'print the bootstrap token and the configuration that a node needs to join')
    .option('--rotate', 'create a new token; earlier ones become invalid')
    .option('--toml', 'print only the configuration')
    .action(async (options: Options & { rotate?: boolean; toml?: boolean }) => {
      const api = await connect(context, options);
      const shown = await api.call(options.rotate ? 'rotateBootstrapToken' : 'getBootstrapToken', {});
      if (options.json) return printJson(io, shown);
      const until =
        shown.expires_at === null ? 'for any number of nodes' : `for one node, until ${shown.expires_at}`;
      printStatus(io, `${until}; run on the node: svc init --node --token -`);
      await print(io, options.toml ? shown.toml : `${shown.token}\n\n${shown.toml}`);
    });
}

function addRepositories(nodes: Command, context: Context): void {
  const { io } = context;
  remote(
    nodes,
    'repositories [node]',
    'list the git repositories for agents on a node (default: main, or the only node)',
  )
    .alias('repos')
    .action(async (node_id: string | undefined, options: Options) => {
      const api = await connect(context, options);
      const found = await listRepositories(api, node_id);
      if (options.json) return printJson(io, found);
      await printRows(io, found.repositories, repositoryColumns, options);
      const { roots, repositories, truncated } = found;
      if (roots.length === 0) printStatus(io, 'no folder is allowed; a root user can add one to safe_paths');
      else if (repositories.length === 0)
        printStatus(io, printable(`no repositories in ${roots.join(', ')}`));
      if (truncated) printStatus(io, 'there may be more repositories; the search stopped at a limit');
    });
}

const repositoryColumns: Column<RepositoryRecord>[] = [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'BRANCH', value: ({ branch }) => branch ?? '(detached)' },
  { title: 'CHANGES', value: ({ dirty }) => (dirty === null ? 'unknown' : dirty ? 'uncommitted' : 'none') },
  { title: 'LAST USED', value: ({ last_used_at }) => last_used_at },
  { title: 'PATH', value: ({ path }) => path },
];

/** Polls the record. At the deadline, runs the connection test to report the reason. */
async function waitUntilConnected(
  io: Io,
  api: Api,
  created: NodeRecord,
  options: RegisterOptions,
): Promise<NodeRecord> {
  const at_ms = performance.now() + options.timeout;
  const still = `node ${created.id} is registered, but not connected yet; the plane keeps trying`;
  const params = { node_id: created.id };
  let node = created;
  while (node.status !== 'connected') {
    const left_ms = at_ms - performance.now();
    if (left_ms <= 0) {
      const report = await api.call('getAgentNodeHealth', { params });
      printStatus(io, reportLines(report, supportsColor(io.stderr, io.env)).trimEnd());
      throw new Failure(exitCodes.timeout, still);
    }
    await sleep(Math.min(limits.cli_register_poll_ms, left_ms), io.signal);
    if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
    node = await api.readWithRetry('getAgentNode', { params }, { at_ms, still }).catch((error) => {
      // The connection test then says why.
      if (error instanceof Failure && error.exit === exitCodes.timeout) return node;
      throw error;
    });
  }
  return node;
}

/** A node reports problems with its worktree root right after it connects. Asking here waits for that report. */
async function checkedRoot(io: Io, api: Api, node: NodeRecord): Promise<NodeRecord> {
  if (node.default_worktree_root === null || node.worktree_root_problem !== null) return warned(io, node);
  const { checks } = await api.call('getAgentNodeHealth', { params: { node_id: node.id } });
  const { error } = checks.find(({ name }) => name === 'worktree_root') ?? {};
  return warned(io, { ...node, worktree_root_problem: error ?? null });
}

function warned(io: Io, node: NodeRecord): NodeRecord {
  const { default_worktree_root, worktree_root_problem } = node;
  if (worktree_root_problem !== null) {
    const warning = `agents cannot work below ${default_worktree_root} of node ${node.id}: ${worktree_root_problem}`;
    printStatus(
      io,
      printable(`warning: ${warning}; see safe_paths of the node, or svc nodes set --default-worktree-root`),
    );
  }
  return node;
}

function reportLines(report: HealthReport, colored: boolean): string {
  const mark = (ok: boolean) => {
    const text = ok ? '✓' : '✗';
    return colored ? styleText(ok ? 'green' : 'red', text, { validateStream: false }) : text;
  };
  const line = (ok: boolean, name: string, detail: string, hint?: string) =>
    `${mark(ok)} ${name.padEnd(13)}  ${printable(detail)}\n${hint ? `    ${printable(hint)}\n` : ''}`;
  const lines = report.checks.map(({ name, ok, ms, error, hint }) =>
    line(ok, name, ok ? `${ms} ms` : (error ?? ''), hint),
  );
  const { clock_skew_ms, disk, version, agents } = report;
  if (clock_skew_ms !== null) {
    const ok = Math.abs(clock_skew_ms) <= limits.clock_skew_ms;
    lines.push(
      line(ok, 'clock', `${clock_skew_ms} ms off`, ok ? undefined : 'synchronize both clocks with NTP'),
    );
  }
  if (disk !== null) {
    const free = `${(disk.free_bytes / 1024 ** 3).toFixed(1)} GiB free at ${disk.path}`;
    lines.push(
      line(disk.starts_allowed, 'disk', free, disk.starts_allowed ? undefined : 'too little to start agents'),
    );
  }
  const more = [version && `svc ${version}`, agents !== null && `running agents: ${agents}`].filter(Boolean);
  return `${lines.join('')}${report.status}${more.length > 0 ? ` (${printable(more.join(', '))})` : ''}\n`;
}
