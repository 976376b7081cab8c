/** Follows a run to its end: on a terminal with a table, elsewhere with a line per change or its events as JSON. */

import type { Api } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { exitCodes, Failure } from '../../../cli/failure.ts';
import { printStatus } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import { onConnectionChange } from '../../agents/commands/follow.ts';
import { isRunOver, type Run, type Step } from '../rules/run.ts';
import { RunLog } from './run-log.ts';
import { watchReviews } from './run-reviews.ts';
import { RunTable } from './run-table.ts';

export interface WatchOptions {
  json?: boolean;
  /** Milliseconds. */
  timeout?: number;
}

/**
 * Shows a run from beginning to end. `run`: the record that was read before. Returns the final record of a completed run.
 * Throws a `Failure` with exit code 3 if the run failed or was cancelled, and with 124 after the timeout.
 */
export async function watchRun(context: Context, api: Api, run: Run, options: WatchOptions): Promise<Run> {
  const { io } = context;
  const timeout = options.timeout === undefined ? null : AbortSignal.timeout(options.timeout);
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal, ...(timeout ? [timeout] : [])]);
  const params = { team_id: run.team_id, run_id: run.id };
  const in_place = Boolean(io.stdout.isTTY) && io.env.TERM !== 'dumb' && !options.json;
  const view = in_place
    ? new RunTable(io, await formatTitle(api, run), run, await api.call('listSteps', { params }))
    : new RunLog(io, api, run, options.json ?? false);
  const reviews_done = watchReviews(api.withSignal(signal), run.id, signal, (waiting) =>
    view.reviews(waiting),
  );
  let end: Run | null = null;
  const onState = onConnectionChange((lost) => view.connection(lost));
  try {
    for await (const frame of api.client.follow('followRun', { params, signal }, { onState })) {
      if (frame.data.type === 'heartbeat') continue;
      await view.frame(frame);
      if (frame.data.type === 'run' && hasEnded(run, frame.data.record as Run)) {
        end = frame.data.record as Run;
        break;
      }
    }
  } finally {
    stop.abort();
    await reviews_done;
    await view.end();
  }
  if (end !== null) {
    if (end.status === 'failed') await explainFailure(context, api, end);
    return completed(end);
  }
  if (timeout?.aborted && !io.signal.aborted) {
    throw new Failure(exitCodes.timeout, `run ${run.id} is still running`);
  }
  throw new Failure(exitCodes.interrupted, '');
}

/** Prints the command for the output of each failed step. Without an answer, the run's own error has to do. */
async function explainFailure({ io }: Context, api: Api, { id: run_id, team_id }: Run): Promise<void> {
  const steps = await api.call('listSteps', { params: { team_id, run_id } }).catch(() => []);
  for (const step of steps) {
    const command = await outputCommand(api, step);
    if (command !== null) printStatus(io, printable(`for all output of step ${step.step_key}: ${command}`));
  }
}

/**
 * The command for the output of a failed step. Null if its agent does not exist: it was deleted, or the step failed before
 * the agent was created.
 */
export async function outputCommand(
  api: Api,
  { status, agent_id }: Pick<Step, 'status' | 'agent_id'>,
): Promise<string | null> {
  if (status !== 'failed' || agent_id === null) return null;
  const agent = await api.call('getAgent', { params: { agent_id } }).catch(() => null);
  return agent && `svc logs ${agent_id}`;
}

/** `<team>#<number>`. */
async function formatTitle(api: Api, { team_id, number }: Run): Promise<string> {
  return `${(await api.call('getTeam', { params: { team_id } })).name}#${number}`;
}

/** Whether the record is the end of the known run, and not an earlier end after which the run was resumed or restarted. */
function hasEnded(known: Run, record: Run): boolean {
  if (!isRunOver(record)) return false;
  return record.version >= known.version || (isRunOver(known) && record.ended_at === known.ended_at);
}

/** Throws a `Failure` with exit code 3 unless the run completed. */
export function completed(run: Run): Run {
  if (run.status === 'completed') return run;
  // Each line of the message is made printable when it is printed.
  const why = run.error === null ? '' : `: ${run.error}`;
  throw new Failure(exitCodes.bad_end, `run ${run.id} ${run.status}${why}`);
}
