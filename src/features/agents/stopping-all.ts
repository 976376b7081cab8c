/** Stops every agent, before the plane stops. */
import { authorize } from '../../core/policy.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AgentCore } from './core.ts';
import { limits } from './limits.ts';
import { liveAgentIds, restartingAgentIds } from './queries/agents.ts';
import type { Agents } from './service.ts';

export interface AllStopped {
  /** How many agents were stopped. */
  stopped: number;
  still_running: { agent_id: string; error: string }[];
}

/**
 * Stops all agents, also those that are starting, and cancels scheduled restarts. Meanwhile no agent starts, so a run or a
 * restart policy cannot replace a stopped one; if all were stopped, none starts for `limits.start_pause_ms` after that.
 * `grace_ms`: between TERM and KILL.
 */
export async function stopAllAgents(
  core: AgentCore,
  agents: Pick<Agents, 'stop'>,
  caller: Caller,
  grace_ms: number,
): Promise<AllStopped> {
  authorize(caller, 'agents.stop_all');
  const stopped = new Set<string>();
  const errors = new Map<string, string>();
  // Alone, because it must not miss a start that was already being stored when the pause began.
  const listLive = () => core.store.write((tx) => liveAgentIds(tx), { alone: true });
  const stop = async (agent_id: string) => {
    try {
      await agents.stop(caller, agent_id, grace_ms).catch(ignoreGone);
      stopped.add(agent_id);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      errors.set(agent_id, error.message);
    }
  };
  let live: string[] = [];
  await core.starts.during(async () => {
    live = await listLive();
    let open = live;
    for (let round = 0; round < limits.stop_all_rounds && open.length > 0; round++) {
      await Promise.all(open.map(stop));
      live = await listLive();
      open = live.filter((agent_id) => !errors.has(agent_id));
    }
    // The next plane must not start them either.
    await Promise.all((await core.store.read(restartingAgentIds)).map(stop));
    return live.length === 0;
  });
  const still_running = live.map((agent_id) => ({
    agent_id,
    error: errors.get(agent_id) ?? 'it has not ended yet; try again',
  }));
  return { stopped: [...stopped].filter((agent_id) => !live.includes(agent_id)).length, still_running };
}

/** An agent that has ended or was deleted meanwhile is stopped. */
function ignoreGone(error: unknown): void {
  const gone = [problems.agentNotRunning().code, problems.agentNotFound().code];
  if (!(error instanceof Problem) || !gone.includes(error.code)) throw error;
}
