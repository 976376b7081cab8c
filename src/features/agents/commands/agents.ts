/** `svc agents …`: records and lifecycle. `agent-output.ts` has their output, `agent-prompt.ts` their conversations. */

import { isAbsolute, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Answer } from '../../../api/route.ts';
import type { RouteOf } from '../../../api/routes.ts';
import { addAgentDoctor } from '../../../cli/agent-doctor.ts';
import { type AgentRecord, type Api, type ApiOptions, connect, findAgent } from '../../../cli/api.ts';
import type { Context, Io } from '../../../cli/context.ts';
import { exitCodes, Failure, failed, usage } from '../../../cli/failure.ts';
import { collect, integer, parsePair, remote, timeLimit, withTimeout } from '../../../cli/options.ts';
import {
  type Column,
  jsonText,
  print,
  printRecord,
  printRows,
  printStatus,
  report,
} from '../../../cli/output.ts';
import { textOrStdin } from '../../../cli/prompt.ts';
import { printable } from '../../../cli/terminal.ts';
import type { CallArgs } from '../../../client/client.ts';
import { MAIN_NODE } from '../../../core/node.ts';
import { Problem } from '../../../core/problem.ts';
import { withRepositoryHint } from '../../nodes/commands/repositories.ts';
import { withOfferToAllow } from '../../settings/commands/allow.ts';
import { findRun, findTeam } from '../../teams/commands/team-refs.ts';
import type { AgentStatus } from '../rules.ts';
import { addGet, formatStatus } from './agent-get.ts';
import { addAgentOutput } from './agent-output.ts';
import { addPromptCommands } from './agent-prompt.ts';
import { watchAgents } from './agents-watch.ts';
import { each } from './each.ts';
import { leftBehindLines } from './left-behind.ts';
import { followToEnd, requireCompleted, type WaitOptions, waitForEnd } from './wait.ts';

interface Common extends ApiOptions, WaitOptions {
  follow?: boolean;
  grace?: number;
}

interface ListOptions extends ApiOptions {
  status?: AgentStatus;
  node?: string;
  name?: string;
  label?: string[];
  owner?: string;
  team?: string;
  run?: string;
  repo?: string;
  query?: string;
  archived?: boolean;
  /** False with `--no-runs`. */
  runs: boolean;
  watch?: boolean;
  json?: boolean;
}

interface CreateOptions extends Common {
  command?: string;
  preset?: string;
  workdir?: string;
  repo?: string;
  ref?: string;
  node?: string;
  env?: string[];
  label?: string[];
  restart?: string;
  protocol?: string;
  permissionMode?: string;
  prompt?: string;
  stdin?: boolean;
  keep?: boolean;
  start?: boolean;
  replace?: boolean;
}

interface DeleteOptions extends Common {
  force?: boolean;
  deleteWorktree?: boolean;
  forget?: boolean;
  dryRun?: boolean;
}

const columns: Column<AgentRecord>[] = [
  { title: 'ID', value: (agent) => agent.id },
  { title: 'NAME', value: (agent) => agent.name },
  { title: 'STATUS', value: formatStatus },
  { title: 'NODE', value: (agent) => agent.node_id },
  { title: 'CREATED', value: (agent) => agent.created_at, spare: true },
  { title: 'WORKDIR', value: (agent) => agent.workdir, spare: true },
];

export function addAgents(program: Command, context: Context): void {
  const agents = program.command('agents').description('create, run and inspect agents');
  addLs(agents, context);
  addGet(agents, context);
  addCreate(agents, context);
  addStart(agents, context);
  addStop(agents, context);
  addRestart(agents, context);
  addWithdraw(agents, context);
  addArchive(agents, context, 'archive');
  addArchive(agents, context, 'unarchive');
  addWait(agents, context);
  addDelete(agents, context);
  addAgentOutput(agents, context);
  addPromptCommands(agents, context);
  addAgentDoctor(agents, context);
}

function addLs(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'ls', 'list agents that are not archived, newest first')
    .alias('list')
    .option('--status <status>', 'only agents with this status')
    .option('--node <id>', 'only agents of this node')
    .option('--name <name>', 'only agents with exactly this name')
    .option('-l, --label <name=value>', 'only agents with this label; repeat it for several', collect)
    .option('--owner <user>', 'only agents of this user')
    .option('--team <team>', 'only agents of this team')
    .option('--run <run>', 'only agents of this run')
    .option('--repo <dir>', 'only agents in a worktree of this repository')
    .option('-q, --query <words>', 'only agents with these words in id, name, command, workdir or labels')
    .option('--archived', 'only archived agents')
    .option('--no-runs', 'without the agents of team runs')
    .option('-w, --watch', 'then print each agent that changes, until Ctrl-C')
    .action(async (options: ListOptions) => {
      const api = await connect(context, options);
      const team_id = options.team === undefined ? undefined : (await findTeam(api, options.team)).id;
      const run_id = options.run === undefined ? undefined : (await findRun(api, options.run)).id;
      const query = { ...listQuery(io.cwd, options), team_id, run_id };
      const list = async () => {
        const found = await api.all('listAgents', { query });
        return options.runs ? found : found.filter(({ member_id }) => member_id === null);
      };
      if (!options.watch) return printRows(io, await list(), columns, options);
      await watchAgents(io, api, printChanges(io, list, options));
    });
}

/** Each call prints the agents whose status or activity has changed since the previous one, or that are new. */
function printChanges(io: Io, list: () => Promise<AgentRecord[]>, options: ListOptions): () => Promise<void> {
  const shown = new Map<string, string>();
  return async () => {
    const rows = (await list()).filter((agent) => shown.get(agent.id) !== formatStatus(agent));
    for (const agent of rows) shown.set(agent.id, formatStatus(agent));
    if (options.json) for (const agent of rows) await print(io, jsonText(agent));
    else if (rows.length > 0) await printRows(io, rows, columns, options);
  };
}

function addCreate(agents: Command, context: Context): void {
  const { io } = context;
  followable(
    'start it, and show its output until it ends; exit code 3 if it failed or was cancelled',
    remote(agents, 'create <name> [program...]', 'create an agent; a program after -- runs without a shell')
      .option('-c, --command <text>', 'a shell command')
      .option('-p, --preset <id>', 'a built-in preset (svc presets ls)')
      .option('-w, --workdir <dir>', 'working folder; default: a new empty folder')
      .option('--repo <dir>', 'create a git worktree of this repository (at --workdir, if given)')
      .option('--ref <ref>', "commit to start the worktree's branch from; default: HEAD")
      .option('--node <id>', 'the node that runs it')
      .option(
        '-e, --env <name[=value]>',
        'an environment variable (repeatable); without a value, copied from this shell',
        collect,
      )
      .option('-l, --label <name=value>', 'a label (repeatable)', collect)
      .option('--restart <policy>', 'never, or on_failure')
      .option(
        '--protocol <name>',
        'acp: the agent speaks the Agent Client Protocol; plain: it does not; default: auto',
      )
      .option(
        '--permission-mode <mode>',
        'ask: it asks before it acts, if its preset supports that; agent: its own mode; default: ask',
      )
      .option('--prompt <text>', 'the first prompt of an agent that speaks ACP (-: read from stdin)')
      .option('--stdin', 'keep stdin open, for svc agents input')
      .option('--keep', 'keep the processes that the command leaves behind')
      .option('--start', 'start the agent')
      .option('--replace', 'first delete your other agents of this name, unless one is running'),
  ).action(async (name: string, argv: string[], options: CreateOptions) => {
    const api = await connect(context, options);
    const body = createBody(context, name, argv, options);
    if (options.prompt !== undefined) body.prompt = await textOrStdin(io, options.prompt);
    const query = { replace: options.replace };
    const is_main = body.node_id === undefined || body.node_id === MAIN_NODE;
    const agent = await withOfferToAllow(io, api, { is_main }, () =>
      withRepositoryHint(api, { repo: body.worktree_repo ?? undefined, node_id: body.node_id }, () =>
        api.call('createAgent', { query, body, idempotency_key: crypto.randomUUID() }),
      ),
    );
    await followOrReport(context, api, agent, 0, options);
  });
}

function addStart(agents: Command, context: Context): void {
  const { io } = context;
  followable(SHOW_OUTPUT, remote(agents, 'start <agent...>', 'start agents')).action(
    async (refs: string[], options: Common) => {
      followsOne(refs, options);
      const api = await connect(context, options);
      await each(io, refs, async (ref) => {
        const { id, last_seq } = await findAgent(api, ref);
        const args = { params: { agent_id: id }, idempotency_key: crypto.randomUUID() };
        await followOrReport(
          context,
          api,
          await explainPending(ref, api.call('startAgent', args)),
          last_seq,
          options,
        );
      });
    },
  );
}

function addStop(agents: Command, context: Context): void {
  const { io } = context;
  withGrace(remote(agents, 'stop <agent...>', 'stop agents and every process that they started')).action(
    async (refs: string[], options: Common) => {
      const api = await connect(context, options);
      await each(io, refs, async (ref) => {
        const { id } = await findAgent(api, ref);
        const args = { params: { agent_id: id }, body: graceBody(options) };
        await reportAgent(context, await explainPending(ref, api.call('stopAgent', args)), options);
      });
    },
  );
}

function addRestart(agents: Command, context: Context): void {
  const { io } = context;
  followable(
    SHOW_OUTPUT,
    withGrace(remote(agents, 'restart <agent...>', 'stop agents if they are running, then start them')),
  ).action(async (refs: string[], options: Common) => {
    followsOne(refs, options);
    const api = await connect(context, options);
    await each(io, refs, async (ref) => {
      const { id, last_seq } = await findAgent(api, ref);
      const key = { idempotency_key: crypto.randomUUID() };
      const args = { params: { agent_id: id }, body: graceBody(options), ...key };
      await followOrReport(
        context,
        api,
        await explainPending(ref, api.call('restartAgent', args)),
        last_seq,
        options,
      );
    });
  });
}

function addWithdraw(agents: Command, context: Context): void {
  const { io } = context;
  remote(
    agents,
    'withdraw <agent>',
    'withdraw a start, stop or restart that is waiting for an unreachable node',
  ).action(async (ref: string, options: Common) => {
    const api = await connect(context, options);
    const { id, pending } = await findAgent(api, ref);
    await api.call('withdrawPending', { params: { agent_id: id } });
    if (options.json) await printRecord(io, { id, withdrawn: pending }, options);
    else printStatus(io, pending === null ? 'nothing is pending' : `withdrew the ${pending}`);
  });
}

function addArchive(agents: Command, context: Context, verb: 'archive' | 'unarchive'): void {
  const descriptions = {
    archive: 'leave ended agents out of lists until they are started again',
    unarchive: 'show archived agents in lists again',
  };
  remote(agents, `${verb} <agent...>`, descriptions[verb]).action(async (refs: string[], options: Common) => {
    const api = await connect(context, options);
    const body = { archived: verb === 'archive' };
    await each(context.io, refs, async (ref) => {
      const { id } = await findAgent(api, ref, { archived: !body.archived });
      await reportAgent(context, await api.call('updateAgent', { params: { agent_id: id }, body }), options);
    });
  });
}

function addWait(agents: Command, context: Context): void {
  remote(agents, 'wait <agent>', 'wait until an agent ends; exit code 3 if it failed or was cancelled')
    .option('--timeout <duration>', 'time limit (exit code 124)', timeLimit)
    .action(async (ref: string, options: Common) => {
      const api = await connect(context, options);
      const ended = await waitForEnd(context, api, await findAgent(api, ref), options);
      await reportAgent(context, ended, options);
      requireCompleted(ended);
    });
}

function addDelete(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'delete <agent...>', 'delete agents; worktrees with unsaved work are kept')
    .alias('rm')
    .option('--force', 'stop the agent first if it is running')
    .option('--delete-worktree', 'delete the worktree even if it has unsaved work')
    .option('--forget', "delete only the record, because the node's machine is permanently gone (root)")
    .option('--dry-run', 'only show what would happen and what would be lost')
    .action(async (refs: string[], options: DeleteOptions) => {
      const api = await connect(context, options);
      const { force, deleteWorktree: delete_worktree, forget, dryRun: dry_run } = options;
      await each(io, refs, async (ref) => {
        const { id } = await findAgent(api, ref);
        const query = { force, delete_worktree, forget, dry_run };
        const left = (await api.call('deleteAgent', { params: { agent_id: id }, query })) ?? { id };
        if (options.json) return printRecord(io, left, options);
        const lines = dry_run ? previewLines(left) : deletionLines(left);
        for (const line of lines) printStatus(io, printable(line));
      });
    });
}

type AgentDeletion = NonNullable<Answer<RouteOf<'deleteAgent'>>>;

function deletionLines(deletion: AgentDeletion): string[] {
  const { id, worktree_kept, branch_kept, left_behind } = deletion;
  return [
    `deleted ${id}`,
    ...(worktree_kept
      ? [
          `kept ${worktree_kept.workdir}: ${worktree_kept.reason}`,
          `to remove it later: svc worktrees rm ${id}`,
        ]
      : []),
    ...(branch_kept ? [`kept branch ${branch_kept.branch}: ${branch_kept.reason}`] : []),
    ...leftoverLines(deletion),
    ...(left_behind ? leftBehindLines([left_behind]) : []),
  ];
}

function leftoverLines({ leftovers = [] }: AgentDeletion): string[] {
  return leftovers.map(({ pid, command }) => `its last session left process ${pid} running: ${command}`);
}

function previewLines(deletion: AgentDeletion): string[] {
  const { id, worktree_kept, worktree_removed, left_behind } = deletion;
  const lines = [`would delete ${id}`];
  if (worktree_kept) lines.push(`would keep ${worktree_kept.workdir}: ${worktree_kept.reason}`);
  if (worktree_removed) {
    const { workdir, lost, uncommitted, truncated } = worktree_removed;
    lines.push(`would remove ${workdir}${lost === null ? '' : `: ${lost}`}`);
    for (const { status, path } of uncommitted ?? []) lines.push(`  ${status.replaceAll('_', ' ')} ${path}`);
    if (truncated) lines.push('  the list is incomplete: there are more files');
  }
  lines.push(...leftoverLines(deletion));
  if (left_behind) lines.push(...leftBehindLines([left_behind]));
  return lines;
}

function reportAgent(context: Context, agent: AgentRecord, options: Common): Promise<void> {
  const { io } = context;
  const line = `${agent.id}  ${agent.name}  ${formatStatus(agent)}`;
  return report(io, agent, { line, columns: columns.slice(0, 3) }, options);
}

async function followOrReport(
  context: Context,
  api: Api,
  agent: AgentRecord,
  after: number,
  options: Common,
): Promise<void> {
  const { io } = context;
  if (!options.follow) {
    await reportAgent(context, agent, options);
    return requireStarted(api, agent);
  }
  printStatus(io, printable(`${agent.id}  ${agent.name}`));
  requireCompleted(await followToEnd(context, api, agent, after, options));
}

/** Throws if a start failed, with what to install if the program of the agent's preset is missing. */
async function requireStarted(api: Api, agent: AgentRecord): Promise<void> {
  const { id, status, reason, preset, node_id } = agent;
  if (status !== 'failed' || !unstarted.includes(reason ?? '')) return;
  const lines = [`${id} did not start: ${reason}`, `for the cause: svc logs ${id}`];
  if (preset !== null && reason === 'spawn_failed') {
    const found = await api.call('listPresets', { query: { node_id, refresh: true } }).catch(() => []);
    const { install_hint } = found.find((one) => one.id === preset && one.installed === false) ?? {};
    if (install_hint) lines.push(`${preset} is not installed on node ${node_id}: ${install_hint}`);
  }
  throw failed(lines.join('\n'));
}

/** The reasons of a failed start. */
const unstarted: readonly string[] = ['spawn_failed', 'workdir_refused'];

function listQuery(cwd: string, options: ListOptions): NonNullable<CallArgs<'listAgents'>['query']> {
  const { status, node, name, label, owner, repo, query, archived = false } = options;
  for (const pair of label ?? []) parsePair(pair, '--label');
  return {
    ...{ status, node_id: node, name, label, owner, q: query, archived },
    ...(repo !== undefined && { repo: here(cwd, repo, node) }),
  };
}

/** If the plane keeps the request for an unreachable node, throws an error that says so and explains how to withdraw it. */
async function explainPending<T>(ref: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof Problem) || error.pending === undefined) throw error;
    const lines = [
      `${error.message}; svc keeps the ${error.pending} and carries it out when the node answers`,
      `to withdraw it: svc agents withdraw ${ref}`,
    ];
    throw new Failure(exitCodes.unreachable, lines.join('\n'));
  }
}

const SHOW_OUTPUT = 'show the output until the agent ends; exit code 3 if it failed or was cancelled';

function followable(description: string, command: Command): Command {
  return withTimeout(command.option('-f, --follow', description), 'follow');
}

function followsOne(refs: readonly string[], { follow }: Common): void {
  if (follow && refs.length > 1) throw usage('--follow takes one agent');
}

function withGrace(command: Command): Command {
  return command.option('--grace <seconds>', 'seconds between SIGTERM and SIGKILL, 0 to 60', integer);
}

function graceBody(options: Common): { grace_seconds?: number } {
  return options.grace === undefined ? {} : { grace_seconds: options.grace };
}

function createBody(
  { io }: Context,
  name: string,
  argv: string[],
  options: CreateOptions,
): NonNullable<CallArgs<'createAgent'>['body']> {
  const { command, preset, repo, workdir } = options;
  const pairs = (command === undefined ? 0 : 1) + (argv.length > 0 ? 1 : 0);
  if (pairs > 1 || (pairs === 0 && preset === undefined)) {
    throw usage('give either --command TEXT, or a program after --, or --preset ID');
  }
  const creates_worktree = repo !== undefined || workdir === undefined;
  return {
    name,
    ...(command !== undefined && { command }),
    ...(argv.length > 0 && { argv }),
    ...(preset !== undefined && { preset }),
    ...(workdir !== undefined && { workdir: here(io.cwd, workdir, options.node) }),
    ...(creates_worktree && { worktree_mode: 'create_worktree' as const }),
    ...(repo !== undefined && { worktree_repo: here(io.cwd, repo, options.node) }),
    ...(options.ref !== undefined && { worktree_ref: options.ref }),
    ...(options.node !== undefined && { node_id: options.node }),
    ...(options.env && { env: variables(options.env, io.env) }),
    ...(options.label && {
      labels: Object.fromEntries(options.label.map((pair) => parsePair(pair, '--label'))),
    }),
    ...(options.restart !== undefined && { restart_policy: options.restart as 'never' }),
    ...(options.protocol !== undefined && { protocol: options.protocol as 'acp' }),
    ...(options.permissionMode !== undefined && { permission_mode: options.permissionMode as 'ask' }),
    ...(options.stdin && { stdin: true }),
    ...(options.keep && { on_exit: 'keep' as const }),
    ...((options.start || options.follow) && { start: true }),
  };
}

/** Resolves a path on this machine against the working directory. The plane checks paths on other nodes. */
function here(cwd: string, path: string, node: string | undefined): string {
  return isAbsolute(path) || (node !== undefined && node !== 'main') ? path : resolve(cwd, path);
}

function variables(pairs: string[], env: Context['io']['env']): Record<string, string> {
  const named = pairs.map((text): [string, string] => {
    if (text.includes('=')) return parsePair(text, '--env');
    const value = env[text];
    if (value === undefined) throw usage(`--env ${text}: this shell has no such variable`);
    return [text, value];
  });
  return Object.fromEntries(named);
}
