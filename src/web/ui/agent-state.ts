/** The one status that the web UI shows for an agent (pure): the most useful of its status, its activity and what it waits for. */
import type { AgentRecord } from '../api/queries.ts';

/** In the order in which agents are listed. */
export const agentStates = [
  'needs_you',
  'failed',
  'your_turn',
  'working',
  'quiet',
  'starting',
  'waiting',
  'created',
  'completed',
  'run_ended',
  'cancelled',
] as const;
export type AgentState = (typeof agentStates)[number];

/** The filters of the list of agents: states, and the archive, whose agents no other filter shows. */
export const agentsShown = ['needs_you', 'your_turn', 'working', 'failed', 'archived'] as const;
export type AgentsShown = (typeof agentsShown)[number];

type StateFields = Pick<AgentRecord, 'status' | 'activity' | 'needs_you' | 'run_id' | 'stopped_by_run'>;

export function agentState(agent: StateFields): AgentState {
  const { status, activity, needs_you, run_id } = agent;
  if (needs_you !== null) return 'needs_you';
  if (status === 'cancelled' && agent.stopped_by_run !== null) return 'run_ended';
  if (status !== 'running') return activity === 'starting' ? 'starting' : status;
  switch (activity) {
    // Nothing can be answered: the agent runs but does not speak its protocol.
    case 'needs_you':
      return 'failed';
    // The run prompts its agents, and stops them when it ends.
    case 'idle':
      return run_id === null ? 'your_turn' : 'waiting';
    case 'starting':
    case 'quiet':
      return activity;
    default:
      return 'working';
  }
}

type StopFields = Pick<AgentRecord, 'status' | 'restart_at'>;

/** Whether there is something to stop: the agent, or its restart after a failure. */
export function canStop({ status, restart_at }: StopFields): boolean {
  // Records of earlier versions, from their planes or stored by the browser, have no `restart_at`.
  return status === 'running' || Boolean(restart_at);
}

/** What menus, the command palette and keys call it to stop an agent for which `canStop` is true. */
export function stopLabel({ status }: Pick<StopFields, 'status'>): 'Stop agent' | 'Cancel restart' {
  return status === 'running' ? 'Stop agent' : 'Cancel restart';
}

/** The status in the API, for the tooltip and for screen readers. */
export function apiStatus({ status, activity }: Pick<StateFields, 'status' | 'activity'>): string {
  return activity === null ? status : `${status}, ${activity.replace('_', ' ')}`;
}

/** Whether the agent's turn waits for an answer. */
export function awaitsAnswer({
  pending_reviews,
  pending_elicitations,
}: Pick<AgentRecord, 'pending_reviews' | 'pending_elicitations'>): boolean {
  return pending_reviews + pending_elicitations > 0;
}
