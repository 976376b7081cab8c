/** The order of the list of agents as the user last saw it, for the keys that step through it on an agent's page. */
import type { AgentRecord, TeamRecord } from '../../api/queries.ts';
import type { AgentsSearch } from '../../router.tsx';
import { filterAgents, groupAgents, groupingOf, type Waits } from './order.ts';

let last: AgentsSearch = {};

export function rememberList(search: AgentsSearch): void {
  last = search;
}

/** The agents of the list, from top to bottom. */
export function listedAgents(
  agents: readonly AgentRecord[],
  teams: readonly Pick<TeamRecord, 'id' | 'name'>[],
  waits: Waits,
): AgentRecord[] {
  const names = new Map(teams.map(({ id, name }) => [id, name]));
  const groups = groupAgents(filterAgents(agents, last, waits), groupingOf(agents, last.group), names);
  return groups.flatMap((group) => group.agents);
}

/** The agent in the row before or after this one's. If the list no longer shows it, the last or the first row. */
export function neighborOf(
  agent_id: string,
  step: 1 | -1,
  listed: readonly AgentRecord[],
): AgentRecord | undefined {
  const at = listed.findIndex(({ id }) => id === agent_id);
  if (at === -1) return listed.at(step === 1 ? 0 : -1);
  return listed[at + step];
}
