/** Waits for the end of a session, or for another event in an agent's log. */

import { sleep } from '../../../base/async.ts';
import type { AgentRecord, Api } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { exitCodes, Failure } from '../../../cli/failure.ts';
import { Show, type ShowOptions } from '../../../cli/show.ts';
import { printable } from '../../../cli/terminal.ts';
import type { EventRecord } from '../../../core/event.ts';
import { limits } from '../limits.ts';
import { isFinal } from '../rules.ts';
import { type Followed, follow } from './follow.ts';

export interface WaitOptions extends ShowOptions {
  /** Whole milliseconds, which `AbortSignal.timeout` needs. */
  timeout?: number;
  quiet?: boolean;
}

/**
 * Follows and shows an agent's log after a position until `until` returns a value other than null. After the timeout, throws
 * a `Failure` with exit code 124 and the message `still`.
 */
export async function watch<T>(
  context: Context,
  api: Api,
  { agent_id, after, still }: { agent_id: string; after: number; still: string },
  options: WaitOptions,
  until: (followed: Followed) => T | null | Promise<T | null>,
): Promise<T> {
  const { io } = context;
  const timeout = options.timeout === undefined ? null : AbortSignal.timeout(options.timeout);
  const signal = timeout ? AbortSignal.any([io.signal, timeout]) : io.signal;
  const show = options.quiet ? null : new Show(io, options);
  let found: T | null = null;
  try {
    for await (const followed of follow(io, api, agent_id, { from: { after }, signal })) {
      if (followed.event !== null) await show?.event(followed.event);
      found = await until(followed);
      if (found !== null) break;
    }
  } finally {
    await show?.end();
  }
  if (found !== null) return found;
  if (timeout?.aborted && !io.signal.aborted) throw new Failure(exitCodes.timeout, still);
  throw new Failure(exitCodes.interrupted, '');
}

/**
 * Follows and shows one session to its end. Returns the final record; throws a `Failure` with exit code 124 after the
 * timeout.
 */
export async function followToEnd(
  context: Context,
  api: Api,
  agent: AgentRecord,
  after: number,
  options: WaitOptions,
): Promise<AgentRecord> {
  const { id, session_id } = agent;
  const at_ms = deadline(options);
  const what = { agent_id: id, after, still: `agent ${id} is still running` };
  const end = await watch(context, api, what, options, ({ event }) =>
    event !== null && endsSession(session_id, event) ? event : null,
  );
  const limit = { at_ms, still: `agent ${id} has ended, but the plane does not answer` };
  const now = await api.readWithRetry('getAgent', { params: { agent_id: id } }, limit);
  if (now.session_id === session_id) return now;
  // The agent was started again in the meantime, so the record gets the end of the session that this call waited for.
  const { status, exit_code = null, exit_signal = null, reason = null } = end as unknown as AgentRecord;
  return { ...now, status, activity: null, exit_code, exit_signal, reason, session_id };
}

/**
 * Waits until the running session ends; first for the start, if the agent is starting, or svc keeps a start for a node that
 * does not answer. Returns at once if there is nothing to wait for. Fails like `followToEnd`.
 */
export async function waitForEnd(
  context: Context,
  api: Api,
  agent: AgentRecord,
  options: WaitOptions,
): Promise<AgentRecord> {
  const { signal } = context.io;
  const until_ms = deadline(options);
  let now = agent;
  while (now.status !== 'running' && startsLater(now)) {
    const still = `agent ${agent.id} has not started${now.pending ? ': its node does not answer' : ''}`;
    if (performance.now() >= until_ms) throw new Failure(exitCodes.timeout, still);
    await sleep(Math.min(limits.cli_pending_poll_ms, until_ms - performance.now()), signal);
    if (signal.aborted) throw new Failure(exitCodes.interrupted, '');
    const limit = { at_ms: until_ms, still };
    now = await api.readWithRetry('getAgent', { params: { agent_id: agent.id } }, limit);
  }
  if (now.status !== 'running') return now;
  const left_ms = Math.ceil(Math.max(0, until_ms - performance.now()));
  const left = options.timeout === undefined ? {} : { timeout: left_ms };
  return followToEnd(context, api, now, now.last_seq, { ...options, ...left, quiet: true });
}

/** When the time limit of an option ends, by `performance.now()`; infinite without one. */
export function deadline({ timeout = Number.POSITIVE_INFINITY }: Pick<WaitOptions, 'timeout'>): number {
  return performance.now() + timeout;
}

function startsLater({ pending, activity }: AgentRecord): boolean {
  return pending === 'start' || pending === 'restart' || activity === 'starting';
}

export function endsSession(session_id: string | null, event: EventRecord): boolean {
  return event.type === 'status' && event.session_id === session_id && isFinal(event.status as never);
}

/** Throws a `Failure` with exit code 3 unless the agent completed. */
export function requireCompleted(agent: AgentRecord): void {
  if (agent.status === 'completed') return;
  const why = agent.exit_signal ?? (agent.exit_code !== null ? `exit code ${agent.exit_code}` : agent.reason);
  throw new Failure(
    exitCodes.bad_end,
    `agent ${agent.id} ${agent.status}${why ? `: ${printable(why)}` : ''}`,
  );
}
