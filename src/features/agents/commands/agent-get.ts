/** `svc agents get`, and how an agent's status is shown. */
import type { Command } from 'commander';
import { type AgentRecord, type ApiOptions, connect, findAgent } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { remote } from '../../../cli/options.ts';
import { type OutputOptions, partsText, printRecord } from '../../../cli/output.ts';

/** The status for people: what the agent does or waits for, why it failed, or that it ended with its run. */
export function formatStatus(
  agent: Pick<
    AgentRecord,
    | 'status'
    | 'activity'
    | 'needs_you'
    | 'stopped_by_run'
    | 'exit_signal'
    | 'exit_code'
    | 'reason'
    | 'restart_at'
  >,
): string {
  if (agent.needs_you !== null) return `${agent.status} (needs_you)`;
  if (agent.status === 'running' && agent.activity) return `running (${agent.activity})`;
  if (agent.stopped_by_run !== null) return `run ${agent.stopped_by_run}`;
  if (agent.status !== 'failed') return agent.status;
  const why = agent.exit_signal ?? (agent.exit_code !== null ? agent.exit_code : agent.reason);
  // An older plane sends no `restart_at`.
  return `failed (${why}${agent.restart_at ? ', will restart' : ''})`;
}

export function addGet(agents: Command, context: Context): void {
  const { io } = context;
  remote(agents, 'get <agent>', 'show one agent')
    .alias('show')
    .action(async (ref: string, options: ApiOptions & OutputOptions) => {
      const agent = await findAgent(await connect(context, options), ref);
      if (options.json) return printRecord(io, agent, options);
      const { stopped_by_run, ...shown } = agent;
      const status = stopped_by_run === null ? agent.status : formatStatus(agent);
      const [summary, labels] = [partsText(agent.summary), partsText(agent.labels)];
      await printRecord(io, { ...shown, status, summary, labels }, options);
    });
}
