/** Commands that wait: for the end of a session, or for anything else that an agent's log tells. */
import { isFinal } from '../domain/agent.ts';
import type { EventRecord } from '../domain/event.ts';
import type { AgentRecord, Api } from './api.ts';
import type { Context } from './context.ts';
import { exitCodes, Failure } from './failure.ts';
import { type Followed, follow } from './follow.ts';
import { Show, type ShowOptions } from './show.ts';
import { visible } from './terminal.ts';

export interface WaitOptions extends ShowOptions {
  /** Milliseconds. */
  timeout?: number;
  quiet?: boolean;
}

/**
 * Follows an agent's log after a position, showing it, until `until` answers something. Ends with 124 and `still` when the
 * time is up.
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
 * Follows one session to its end, showing it; ends with 3 when it failed or was cancelled, 124 when the time is up.
 * Answers the final record.
 */
export async function followToEnd(
  context: Context,
  api: Api,
  agent: AgentRecord,
  after: number,
  options: WaitOptions,
): Promise<AgentRecord> {
  const { id, session_id } = agent;
  const what = { agent_id: id, after, still: `agent ${id} is still running` };
  const end = await watch(context, api, what, options, ({ event }) =>
    event !== null && isEndOf(session_id, event) ? event : null,
  );
  const now = await api.call('getAgent', { params: { agent_id: id } });
  if (now.session_id === session_id) return now;
  // Started again already: the answer is about the session that was waited for.
  const { status, exit_code = null, exit_signal = null, reason = null } = end as unknown as AgentRecord;
  return { ...now, status, activity: null, exit_code, exit_signal, reason, session_id };
}

export function isEndOf(session_id: string | null, event: EventRecord): boolean {
  return event.type === 'status' && event.session_id === session_id && isFinal(event.status as never);
}

/** Throws exit 3 unless the agent completed. */
export function requireCompleted(agent: AgentRecord): void {
  if (agent.status === 'completed') return;
  const why = agent.exit_signal ?? (agent.exit_code !== null ? `exit code ${agent.exit_code}` : agent.reason);
  throw new Failure(exitCodes.bad_end, `agent ${agent.id} ${agent.status}${why ? `: ${visible(why)}` : ''}`);
}
