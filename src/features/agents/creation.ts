/** Creates the records of agents, with the defaults of their preset, for people and for runs of teams. */
import { showArgv } from '../../core/argv.ts';
import type { Worktree } from '../../core/node.ts';
import { invalid, problems } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import { findUser } from '../../store/users.ts';
import { findPreset } from '../presets/rules/catalog.ts';
import { permissionEnv } from '../presets/rules/preset.ts';
import { type AgentCore, auditAgent, type Principal } from './core.ts';
import { assertPathFree, sharesWorktree } from './placement.ts';
import { type AgentRow, findAgent, insertAgent } from './queries/agents.ts';
import { newAgentDefaults } from './records.ts';
import {
  defaultWorktreeMode,
  type OnExit,
  type PermissionMode,
  type Protocol,
  type RestartPolicy,
  type WorktreeMode,
} from './rules.ts';
import { keepWorktree } from './unused-worktrees.ts';

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
  /** The first prompt; only for an agent that speaks ACP. */
  prompt: string | null;
  start: boolean;
}

/** A request of a client, which may leave out the mode and the node. */
export type AgentRequest = Omit<CreateAgent, 'worktree_mode' | 'node_id'> & {
  node_id?: string | undefined;
  worktree_mode?: WorktreeMode | undefined;
};

/** Completes a request with the default mode and node. An empty `worktree_repo` is an absent one. Throws `no_local_node`. */
export function withDefaults({ nodes }: Pick<AgentCore, 'nodes'>, request: AgentRequest): CreateAgent {
  const worktree_repo = request.worktree_repo || null;
  const { worktree_mode = defaultWorktreeMode(worktree_repo) } = request;
  return { ...request, worktree_repo, worktree_mode, node_id: nodes.choose(request.node_id) };
}

/**
 * Completes a request with the defaults of its preset. A command in the request replaces the preset's program, but not its
 * variables. Throws `unknown preset: <id>`, and `command is required` if neither has a command.
 */
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

/** The variables that make the agent ask before it acts; empty if its permission mode is `agent`. */
export function getPermissionEnv({ preset, permission_mode }: AgentRow): Record<string, string> {
  const known = preset === null || permission_mode !== 'ask' ? null : findPreset(preset);
  return known ? permissionEnv(known) : {};
}

/**
 * Inserts the record and creates its log. `membership`: set for an agent of a run. Throws `invalid token` if the owner is gone,
 * `node not found`, and `workdir path must be within allowed safe paths`, because all may have changed since they were checked.
 */
export async function insertNew(
  core: AgentCore,
  tx: Tx,
  id: string,
  { user_id, principal }: { user_id: string; principal: Principal },
  request: CreateAgent,
  worktree: Worktree,
  membership: Partial<Pick<AgentRow, 'team_num' | 'run_num' | 'member_id' | 'state_team'>> = {},
): Promise<AgentRow> {
  // The owner may have been deleted while the worktree was made, which revoked their tokens.
  if (!(await findUser(tx, user_id))) throw problems.invalidToken();
  // The node may have been deleted since it resolved the workdir.
  if (!(await core.nodes.isRegistered(tx, request.node_id))) throw problems.nodeNotFound();
  if (request.worktree_mode === 'create_worktree') {
    await assertPathFree(tx, request.node_id, worktree.workdir, (row) => sharesWorktree(row, membership));
  }
  const num = await insertAgent(tx, {
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
    ...newAgentDefaults(core.clock.now()),
  });
  await core.events.create(tx, num);
  await core.extensions.onAgentCreated(tx, { id, num }, { prompt: request.prompt, user_id });
  const row = (await findAgent(tx, id))!;
  if (request.worktree_mode === 'create_worktree') await keepWorktree(core, tx, id);
  const details = { name: row.name, command: row.command };
  await auditAgent(core, tx, 'agent_created', row, principal, details);
  await core.records.publish(tx, id);
  return row;
}
