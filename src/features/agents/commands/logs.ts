/** `svc logs`: shows an agent's output, its conversation, or all events of its log. */
import type { Command } from 'commander';
import { type AgentRecord, type Api, type ApiOptions, connect, findAgent } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { exitCodes, Failure, usage } from '../../../cli/failure.ts';
import { LastLines } from '../../../cli/last-lines.ts';
import { integer, remote } from '../../../cli/options.ts';
import { print } from '../../../cli/output.ts';
import { Show, type ShowOptions } from '../../../cli/show.ts';
import { limits } from '../limits.ts';
import { type FollowOptions, follow } from './follow.ts';

interface LogsOptions extends ApiOptions, ShowOptions {
  follow?: boolean;
  tail?: number;
}

export function addLogs(program: Command, context: Context): void {
  const { io } = context;
  remote(program, 'logs <agent>', "show an agent's output and its conversation")
    .option('-f, --follow', 'keep showing new output')
    .option('-n, --tail <n>', 'only the last n lines (events with --events or --json)', integer)
    .option('--events', 'show every event, one per line')
    .option('--stream <name>', 'only stdout, or only stderr')
    .option('--subagents', 'in a conversation, also show what sub-agents say and do')
    .option('--raw', 'do not filter terminal output; show all messages of a conversation')
    .action(async (ref: string, options: LogsOptions) => {
      checkStream(options.stream);
      const api = await connect(context, options);
      const agent = await findAgent(api, ref);
      const head = agent.last_seq;
      const { tail } = options;
      if (!options.follow && (head === 0 || tail === 0)) return;
      const in_lines = tail !== undefined && !options.events && !options.json;
      const show = in_lines ? await showLast(context, api, agent, tail, options) : new Show(io, options);
      let from: FollowOptions['from'] = tail === undefined ? 'start' : lastEvents(head, tail);
      if (in_lines) from = { after: head };
      if (options.follow || !in_lines) {
        const reading = { from, signal: io.signal, finite: !options.follow };
        for await (const { seq, event } of follow(io, api, agent.id, reading)) {
          if (event !== null) await show.event(event);
          if (!options.follow && seq >= head) break;
        }
      }
      await show.end();
      if (io.signal.aborted) throw new Failure(exitCodes.interrupted, '');
    });
}

export function checkStream(stream: string | undefined): void {
  if (stream !== undefined && stream !== 'stdout' && stream !== 'stderr') {
    throw usage('--stream must be stdout or stderr');
  }
}

/**
 * Shows the last lines up to the newest event of the record, and returns the object that shows later events. The number of
 * events per line is unknown, so it reads more events if the first ones contain too few lines.
 */
async function showLast(
  { io }: Context,
  api: Api,
  { id, last_seq: head }: AgentRecord,
  lines: number,
  options: LogsOptions,
): Promise<Show> {
  if (lines === 0 || head === 0) return new Show(io, options);
  for (let tail = lines + limits.cli_tail_spare_events; ; tail *= limits.cli_tail_growth) {
    const show = new Show(io, options);
    const last = new LastLines(lines);
    let count = 0;
    const reading = { from: lastEvents(head, tail), signal: io.signal, finite: !options.follow };
    for await (const { seq, event } of follow(io, api, id, reading)) {
      if (event !== null) count += 1;
      if (event !== null && seq <= head) last.add(show.data(event));
      if (seq >= head) break;
    }
    const all = count < tail || tail > limits.cli_tail_events_max;
    if (!last.isFull && !all && !io.signal.aborted) continue;
    await print(io, last.bytes());
    return show;
  }
}

/** Counted from the head that the command knows: with `tail`, the service would also count events that were added since. */
function lastEvents(head: number, count: number): { after: number } {
  return { after: Math.max(head - count, 0) };
}
