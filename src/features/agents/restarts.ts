/** The restart policy: if a session of an `on_failure` agent fails, a timer restarts the agent, with growing delays. */

import { MAIN_NODE } from '../../core/node.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import { type AgentCore, SERVICE } from './core.ts';
import type { Lifecycle } from './lifecycle.ts';
import { limits } from './limits.ts';
import { findAgent, findSession, type SessionRow, updateAgent } from './queries/agents.ts';
import { restartsOnFailure } from './records.ts';

/** Schedules the restart after a failed session. The delay doubles each time, up to `limits.restart_backoff_ms_max`. */
export function restartFacts(core: AgentCore): FactHandlers {
  return {
    session_ended: async (tx, { payload }) => {
      const row = await findAgent(tx, payload.agent_id);
      if (!row || !restartsOnFailure(row) || row.session_id !== payload.session_id) return;
      if (payload.status !== 'failed' || row.session_state !== 'ended') return;
      // A session that ran longer than the longest delay resets the delay.
      const session = await findSession(tx, payload.session_id);
      const ran_ms = session ? runTimeMs(session) : 0;
      const count = ran_ms > limits.restart_backoff_ms_max ? 0 : row.restart_count;
      const wait_ms = Math.min(limits.restart_backoff_ms * 2 ** count, limits.restart_backoff_ms_max);
      updateAgent(tx, row.num, { restart_count: count + 1 });
      await core.timers.set(tx, 'agent_restart', row.id, core.clock.now() + wait_ms, {
        session_id: payload.session_id,
      });
    },
  };
}

/** Both times are by the clock of the node, which may differ from that of the plane. 0 if the session never ran. */
function runTimeMs({ started_at, ended_at }: Pick<SessionRow, 'started_at' | 'ended_at'>): number {
  return started_at === null || ended_at === null ? 0 : ended_at - started_at;
}

/**
 * Restarts the agent when its delay is over, unless it has been started, stopped or deleted in the meantime, or
 * agents can no longer run on its node.
 */
export function restartTimers(core: AgentCore, lifecycle: Lifecycle): Pick<TimerHandlers, 'agent_restart'> {
  return {
    agent_restart: async (tx, timer) => {
      const row = await findAgent(tx, timer.ref);
      const session = await findSession(tx, timer.payload.session_id);
      if (!row || !session || session.state !== 'ended' || row.session_id !== session.id) return;
      if (!restartsOnFailure(row)) return;
      // A later request takes precedence.
      if (row.pending !== null || core.deleting.has(row.id)) return;
      if (core.starts.active) {
        const due_at = core.clock.now() + limits.restart_backoff_ms;
        return core.timers.set(tx, 'agent_restart', row.id, due_at, timer.payload);
      }
      if (row.node_id === MAIN_NODE && core.nodes.main_folders() === null) return;
      await lifecycle.enqueueStart(tx, row, SERVICE);
      await core.records.publish(tx, row.id);
    },
  };
}
