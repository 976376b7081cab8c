/** What people may change in an agent's record. */
import { showArgv } from '../../core/argv.ts';
import { invalid, problems } from '../../core/problem.ts';
import { withPreset } from './creation.ts';
import type { AgentRow } from './queries/agents.ts';
import { isLive } from './records.ts';
import type { PermissionMode, RestartPolicy } from './rules.ts';

export interface UpdateAgent {
  name?: string | undefined;
  labels?: Record<string, string> | undefined;
  command?: string | undefined;
  argv?: string[] | null | undefined;
  env?: Record<string, string> | undefined;
  restart_policy?: RestartPolicy | undefined;
  permission_mode?: PermissionMode | undefined;
  archived?: boolean | undefined;
}

/**
 * Returns the columns with their new values. An agent that is already archived keeps its time. Throws `agent is running` for
 * changes that need a stopped agent, and `command is required`. `now`: Unix milliseconds.
 */
export function changedColumns(row: AgentRow, changes: UpdateAgent, now: number) {
  if (changes.restart_policy === 'on_failure' && row.member_id !== null)
    throw invalid('restart_policy is not allowed for members of teams');
  const { name, labels, command, argv, env, restart_policy, permission_mode, archived } = changes;
  const rest = [command, argv, env, restart_policy, permission_mode];
  const needs_rest = archived === true || rest.some((value) => value !== undefined);
  if (needs_rest && isLive(row)) throw problems.agentRunning();
  if (argv === null && command === undefined && row.argv !== null) throw problems.commandRequired();
  return {
    ...(name !== undefined && { name }),
    ...(labels !== undefined && { labels: JSON.stringify(labels) }),
    ...(command !== undefined && { command, argv: null }),
    ...(argv && { command: showArgv(argv), argv: JSON.stringify(argv) }),
    ...(env !== undefined && { env: JSON.stringify(withPreset(row.preset, env)) }),
    ...(restart_policy !== undefined && { restart_policy }),
    ...(permission_mode !== undefined && { permission_mode }),
    ...(archived !== undefined && { archived_at: archived ? (row.archived_at ?? now) : null }),
  };
}
