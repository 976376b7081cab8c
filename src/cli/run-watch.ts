/** Following a run to its end: on a terminal a table that is drawn in place, elsewhere a line per change, or its events as JSON. */
import { isRunOver, type Run } from '../domain/run.ts';
import type { Api } from './api.ts';
import type { Context } from './context.ts';
import { exitCodes, Failure } from './failure.ts';
import { onLink } from './follow.ts';
import { RunChanges } from './run-changes.ts';
import { lookForReviews } from './run-reviews.ts';
import { RunTable } from './run-table.ts';
import { visible } from './terminal.ts';

export interface WatchOptions {
  json?: boolean;
  /** Milliseconds. */
  timeout?: number;
}

/**
 * Shows a run from its beginning until it is over; `run`: its record before. Ends with 3 when it failed or was cancelled, 124
 * when the time is up, and answers the record of one that completed.
 */
export async function watchRun(context: Context, api: Api, run: Run, options: WatchOptions): Promise<Run> {
  const { io } = context;
  const timeout = options.timeout === undefined ? null : AbortSignal.timeout(options.timeout);
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal, ...(timeout ? [timeout] : [])]);
  const params = { team_id: run.team_id, run_id: run.id };
  const in_place = Boolean(io.stdout.isTTY) && io.env.TERM !== 'dumb' && !options.json;
  const view = in_place
    ? new RunTable(io, await titleOf(api, run), run, await api.call('listSteps', { params }))
    : new RunChanges(io, api, run, options.json ?? false);
  const looked = lookForReviews(api.upTo(signal), run.id, signal, (waiting) => view.reviews(waiting));
  let end: Run | null = null;
  const onState = onLink((lost) => view.link(lost));
  try {
    for await (const frame of api.client.follow('followRun', { params, signal }, { onState })) {
      if (frame.data.type === 'heartbeat') continue;
      await view.frame(frame);
      if (frame.data.type === 'run' && isEndOf(run, frame.data.record as Run)) {
        end = frame.data.record as Run;
        break;
      }
    }
  } finally {
    stop.abort();
    await looked;
    await view.end();
  }
  if (end !== null) return completed(end);
  if (timeout?.aborted && !io.signal.aborted) {
    throw new Failure(exitCodes.timeout, `run ${run.id} goes on`);
  }
  throw new Failure(exitCodes.interrupted, '');
}

/** As people call it. */
async function titleOf(api: Api, { team_id, number }: Run): Promise<string> {
  return `${(await api.call('getTeam', { params: { team_id } })).name}#${number}`;
}

/** Not an end of before: one that it was resumed or restarted after by the time of `known`. */
function isEndOf(known: Run, told: Run): boolean {
  if (!isRunOver(told)) return false;
  return told.version >= known.version || (isRunOver(known) && told.ended_at === known.ended_at);
}

/** Throws exit 3 unless the run completed. */
export function completed(run: Run): Run {
  if (run.status === 'completed') return run;
  const why = run.error === null ? '' : `: ${visible(run.error)}`;
  throw new Failure(exitCodes.bad_end, `run ${run.id} ${run.status}${why}`);
}
