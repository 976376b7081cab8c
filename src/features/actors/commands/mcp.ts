/**
 * `svc mcp --actor`: the commands of `svc actor` as tools of an MCP server over stdio. ACP agents of teams get this
 * server with their session; any other client may start it as well.
 */
import type { Command } from 'commander';
import { readStat, readVariable } from '../../../base/proc.ts';
import type { Context, Io } from '../../../cli/context.ts';
import { type LocalOptions, withLocal } from '../../../cli/options.ts';

export function addMcp(program: Command, context: Context): void {
  withLocal(program.command('mcp'))
    .description('serve tools for an agent, as an MCP server over stdio')
    .requiredOption('--actor', 'serve the tools of an actor: team, mailbox, steps and reviews')
    .action(async (options: LocalOptions) => {
      const { serveActorTools } = await import('./mcp-actor.ts');
      const env = withParentEnv(context.io.env, process.ppid);
      await serveActorTools({ ...context, io: { ...context.io, env } }, options);
    });
}

const NEEDED = ['SVC_ACTOR_ENDPOINT', 'SVC_ACTOR_TOKEN_FILE', 'SVC_ACTOR_CA_FILE', 'SVC_SESSION_ID'];

/**
 * Clients often start servers with an almost empty environment. The agent's variables are then read from the parent
 * processes (in /proc).
 */
export function withParentEnv(env: Io['env'], parent_pid: number): Io['env'] {
  if (env.SVC_ACTOR_TOKEN_FILE) return env;
  for (let pid = parent_pid; pid > 1; pid = readStat(pid)?.ppid ?? 0) {
    if (readVariable(pid, 'SVC_ACTOR_TOKEN_FILE') === null) continue;
    const found = NEEDED.flatMap((name) => {
      const value = readVariable(pid, name);
      return value === null ? [] : [[name, Buffer.from(value, 'latin1').toString()] as const];
    });
    return { ...env, ...Object.fromEntries(found) };
  }
  return env;
}
