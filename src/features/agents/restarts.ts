/**
 * The restart policy: if a session of an `on_failure` agent fails, a timer restarts the agent, with growing delays. A stop
 * cancels it.
 */

import { rfc3339 } from '../../base/clock.ts';
import { MAIN_NODE } from '../../core/node.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import { type AgentCore, auditAgent, type Principal, SERVICE } from './core.ts';
import type { Lifecycle } from './lifecycle.ts';
import { limits } from './limits.ts';
import { type AgentRow, findAgent, findSession, type SessionRow, updateAgent } from './queries/agents.ts';
import { restartsOnFailure } from './records.ts';

/**
 * Schedules the restart after a failed session, if the policy applies to the agent. The delay doubles each time, up to
 * `limits.restart_backoff_ms_max`. Call it in the transaction that ends the session, so that a stop after it can cancel it.
 */
export async function scheduleRestart(
  { clock, timers }: Pick<AgentCore, 'clock' | 'timers'>,
  tx: Tx,
  row: AgentRow,
  session: Pick<SessionRow, 'id' | 'started_at' | 'ended_at'>,
): Promise<void> {
  if (!restartsOnFailure(row) || row.session_id !== session.id) return;
  // A session that ran longer than the longest delay resets the delay.
  const count = runTimeMs(session) > limits.restart_backoff_ms_max ? 0 : row.restart_count;
  const wait_ms = Math.min(limits.restart_backoff_ms * 2 ** count, limits.restart_backoff_ms_max);
  const now = clock.now();
  updateAgent(tx, row.num, { restart_count: count + 1, updated_at: now });
  await timers.set(tx, 'agent_restart', row.id, now + wait_ms, { session_id: session.id });
}

/** Schedules the restarts after ends that an earlier release recorded, which left that to the fact. */
export function restartFacts(core: AgentCore): FactHandlers {
  return {
    session_ended: async (tx, { payload }) => {
      if (payload.restart_decided || payload.status !== 'failed') return;
      const row = await findAgent(tx, payload.agent_id);
      const session = await findSession(tx, payload.session_id);
      if (!row || session?.state !== 'ended') return;
      await scheduleRestart(core, tx, row, session);
      await core.records.publish(tx, row.id);
    },
  };
}

/** Both times are by the clock of the node, which may differ from that of the plane. 0 if the session never ran. */
function runTimeMs({ started_at, ended_at }: Pick<SessionRow, 'started_at' | 'ended_at'>): number {
  return started_at === null || ended_at === null ? 0 : ended_at - started_at;
}

/**
 * Cancels the restart that is scheduled for an agent. Returns true if nothing else is left to stop; false if no restart is
 * scheduled, or a kept request must be withdrawn too. Throws what `find` throws.
 */
export async function cancelRestart(
  core: AgentCore,
  find: (reader: Reader) => Promise<AgentRow>,
  principal: Principal,
): Promise<boolean> {
  const { store, timers, records, clock } = core;
  if ((await store.read(find)).restart_at === null) return false;
  return store.write(async (tx) => {
    const row = await find(tx);
    const { id: agent_id, session_id, restart_at } = row;
    if (restart_at === null) return false;
    await timers.clear(tx, 'agent_restart', agent_id);
    updateAgent(tx, row.num, { updated_at: clock.now() });
    const details = { session_id, restart_at: rfc3339(restart_at) };
    await auditAgent(core, tx, 'agent_stopped', row, principal, details);
    await records.publish(tx, agent_id);
    return row.pending === null;
  });
}

/**
 * Restarts the agent when its delay is over, unless it has been started, stopped or deleted in the meantime, or
 * agents can no longer run on its node.
 */
export function restartTimers(core: AgentCore, lifecycle: Lifecycle): Pick<TimerHandlers, 'agent_restart'> {
  return {
    agent_restart: async (tx, timer) => {
      const row = await findAgent(tx, timer.ref);
      if (!row) return;
      if (await mayRestart(core, tx, row, timer.payload.session_id)) {
        if (core.starts.active) {
          const due_at = core.clock.now() + limits.restart_backoff_ms;
          await core.timers.set(tx, 'agent_restart', row.id, due_at, timer.payload);
        } else await lifecycle.enqueueStart(tx, row, SERVICE);
      }
      updateAgent(tx, row.num, { updated_at: core.clock.now() });
      await core.records.publish(tx, row.id);
    },
  };
}

/** Brings forward restarts that were scheduled while the clock was ahead, so that none waits longer than the longest delay. */
export function capRestarts({ store, clock, timers, records }: AgentCore): Promise<number> {
  return store.write(async (tx) => {
    const agent_ids = await timers.cap(tx, 'agent_restart', limits.restart_backoff_ms_max);
    for (const agent_id of agent_ids) {
      const row = await findAgent(tx, agent_id);
      if (!row) continue;
      updateAgent(tx, row.num, { updated_at: clock.now() });
      await records.publish(tx, agent_id);
    }
    return agent_ids.length;
  });
}

async function mayRestart(
  core: AgentCore,
  tx: Tx,
  row: AgentRow,
  failed_session_id: string,
): Promise<boolean> {
  const session = await findSession(tx, failed_session_id);
  if (session?.state !== 'ended' || row.session_id !== session.id || !restartsOnFailure(row)) return false;
  // A later request takes precedence.
  if (row.pending !== null || core.deleting.has(row.id)) return false;
  return row.node_id !== MAIN_NODE || core.nodes.main_folders() !== null;
}
