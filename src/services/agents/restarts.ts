/** The restart policy: a failed session of an `on_failure` agent sets a timer, with growing backoff; a timer starts anew. */
import { limits } from '../../base/limits.ts';
import type { FactHandlers } from '../../flow/facts.ts';
import { findAgent, findSession, updateAgent } from '../../store/agents.ts';
import type { TimerHandlers } from '../../timers/timers.ts';
import { type AgentsContext, SERVICE } from './context.ts';
import type { Lifecycle } from './lifecycle.ts';

export function restartFacts(context: AgentsContext): FactHandlers {
  return {
    session_ended: (tx, { payload, ts_ms }) => {
      const row = findAgent(tx, payload.agent_id);
      if (row?.restart_policy !== 'on_failure' || row.session_id !== payload.session_id) return;
      if (payload.status !== 'failed' || row.session_state !== 'ended') return;
      // A session that ran for longer than the longest wait begins the backoff anew.
      const ran_ms = payload.started_at_ms === null ? 0 : ts_ms - payload.started_at_ms;
      const count = ran_ms > limits.restart_backoff_ms_max ? 0 : row.restart_count;
      const wait_ms = Math.min(limits.restart_backoff_ms * 2 ** count, limits.restart_backoff_ms_max);
      updateAgent(tx, row.num, { restart_count: count + 1 });
      context.options.timers.set(tx, 'agent_restart', row.id, context.now() + wait_ms, {
        session_id: payload.session_id,
      });
    },
  };
}

export function restartTimers(
  context: AgentsContext,
  lifecycle: Lifecycle,
): Pick<TimerHandlers, 'agent_restart'> {
  return {
    agent_restart: (tx, timer) => {
      const row = findAgent(tx, timer.ref);
      const session = findSession(tx, timer.payload.session_id);
      if (!row || !session || session.state !== 'ended' || row.session_id !== session.id) return;
      // Somebody asked for something else since, and that comes first.
      if (row.pending !== null) return;
      lifecycle.begin(tx, row, SERVICE);
      context.publish(tx, row.id);
    },
  };
}
