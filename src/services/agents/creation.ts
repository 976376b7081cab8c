/** How an agent comes to be: what its preset gives it, its workdir, its record. For people's agents and those of teams alike. */
import { idFrom } from '../../base/ids.ts';
import type { OnExit, PermissionMode, Protocol, RestartPolicy, WorktreeMode } from '../../domain/agent.ts';
import { showArgv } from '../../domain/command.ts';
import type { Folders, Worktree } from '../../domain/node.ts';
import { permissionEnv } from '../../domain/preset.ts';
import { findPreset } from '../../domain/presets.ts';
import { invalid, problems } from '../../domain/problem.ts';
import { type AgentRow, agentsOfWorktree, findAgent, insertAgent } from '../../store/agents.ts';
import { isNode } from '../../store/nodes.ts';
import { queuePrompt } from '../../store/prompts.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import { type AgentsContext, type Doer, unlived } from './context.ts';

export interface CreateAgent {
  name: string;
  command: string | null;
  argv: string[] | null;
  preset: string | null;
  permission_mode: PermissionMode;
  workdir: string | null;
  worktree_mode: WorktreeMode;
  worktree_repo: string | null;
  worktree_ref: string | null;
  node_id: string;
  env: Record<string, string>;
  protocol: Protocol;
  labels: Record<string, string>;
  restart_policy: RestartPolicy;
  stdin: boolean;
  on_exit: OnExit;
  /** The first one, for an agent that speaks ACP. */
  prompt: string | null;
  start: boolean;
}

/** What the request leaves open is the preset's; a command of its own takes the preset's place, not its variables. */
export function fromPreset(request: CreateAgent): CreateAgent {
  if (request.preset === null) return request;
  const preset = findPreset(request.preset);
  if (!preset) throw invalid(`unknown preset: ${request.preset}`, 'unknown_preset');
  const own = request.argv !== null || Boolean(request.command?.trim());
  if (!own && !preset.program) throw problems.commandRequired();
  return {
    ...request,
    ...(!own && preset.program && { command: null, argv: [...preset.program.argv] }),
    protocol: request.protocol === 'auto' ? preset.protocol : request.protocol,
    env: withPreset(request.preset, request.env),
  };
}

export function withPreset(preset: string | null, env: Record<string, string>): Record<string, string> {
  return { ...(preset !== null && findPreset(preset)?.env), ...env };
}

/** What its preset sets at each start, so that the agent asks; nothing for one that may act on its own. */
export function permissionEnvOf({ preset, permission_mode }: AgentRow): Record<string, string> {
  const known = preset === null || permission_mode !== 'ask' ? null : findPreset(preset);
  return known ? permissionEnv(known) : {};
}

/** Which worktrees of others an agent may be given. */
export interface WorktreeRights {
  store: Store;
  /** Whoever the agent is made for may do as they like with this one. */
  mayOperate(reader: Reader, row: AgentRow): boolean;
  /** Everybody's, as root. */
  all: boolean;
}

/** Checks or makes the workdir. */
export async function place(
  folders: Folders,
  agent_id: string,
  request: Pick<
    CreateAgent,
    'name' | 'node_id' | 'workdir' | 'worktree_mode' | 'worktree_repo' | 'worktree_ref'
  >,
  rights: WorktreeRights,
): Promise<Worktree> {
  if (request.worktree_mode === 'create_worktree') {
    return folders.createWorktree({
      agent_id,
      name: request.name,
      workdir: request.workdir,
      repo: request.worktree_repo,
      ref: request.worktree_ref,
    });
  }
  if (request.workdir === null || request.workdir === '') throw problems.workdirRequired();
  const { path, below_worktree_root } = await folders.resolve(request.workdir);
  if (below_worktree_root && !rights.all) await mustBeTheirs(request.node_id, path, rights);
  return { workdir: request.workdir, repo: null, branch: null, base: null };
}

/** Throws unless a folder is exactly the worktree of an agent that whoever asks may operate. */
async function mustBeTheirs(
  node_id: string,
  path: string,
  { store, mayOperate }: WorktreeRights,
): Promise<void> {
  const theirs = await store.read((reader) =>
    agentsOfWorktree(reader, node_id, path).some((row) => mayOperate(reader, row)),
  );
  if (!theirs) throw problems.workdirNotSafe();
}

/** Inside a transaction: the record, its log and its first prompt. `membership`: of an agent that a team's run makes. */
export function insertNew(
  context: AgentsContext,
  tx: Tx,
  id: string,
  { user_id, doer }: { user_id: string; doer: Doer },
  request: CreateAgent,
  worktree: Worktree,
  membership: Partial<Pick<AgentRow, 'team_num' | 'run_num' | 'member_id'>> = {},
): AgentRow {
  // It may have been deleted since it was asked for the workdir.
  if (!isNode(tx, request.node_id)) throw problems.nodeNotFound();
  if (request.worktree_mode === 'create_worktree') {
    const { run_num, member_id } = membership;
    const shares = (row: AgentRow) =>
      run_num != null && row.run_num === run_num && row.member_id === member_id;
    const taken = agentsOfWorktree(tx, request.node_id, worktree.workdir).some((row) => !shares(row));
    if (taken) throw problems.workdirNotSafe();
  }
  const num = insertAgent(tx, {
    id,
    name: request.name,
    owner_id: user_id,
    node_id: request.node_id,
    workdir: worktree.workdir,
    command: request.argv ? showArgv(request.argv) : request.command!,
    argv: request.argv ? JSON.stringify(request.argv) : null,
    protocol: request.protocol,
    preset: request.preset,
    permission_mode: request.permission_mode,
    worktree_mode: request.worktree_mode,
    worktree_repo: worktree.repo,
    worktree_ref: request.worktree_ref,
    worktree_branch: worktree.branch,
    worktree_base: worktree.base,
    env: JSON.stringify(request.env),
    labels: JSON.stringify(request.labels),
    restart_policy: request.restart_policy,
    stdin: request.stdin || request.protocol === 'acp' ? 1 : 0,
    on_exit: request.on_exit,
    ...membership,
    ...unlived(context.now()),
  });
  context.options.log.create(tx, num);
  if (request.prompt !== null) {
    const content = [{ type: 'text', text: request.prompt }];
    const now = context.now();
    queuePrompt(tx, num, { id: idFrom('prm', id), content, created_by: user_id, created_at: now });
  }
  const row = findAgent(tx, id)!;
  const details = { name: row.name, command: row.command };
  const { workdir } = row;
  context.options.audit.record(tx, { event: 'agent_created', agent_id: id, workdir, ...doer, details });
  context.publish(tx, id);
  return row;
}
