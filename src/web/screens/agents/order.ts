/** Filters, sorts and groups agents. Agents that need the user come first. */
import type { AgentRecord } from '../../api/queries.ts';
import { type AgentsShown, agentState, agentStates, agentsShown } from '../../ui/agent-state.ts';

/** Sorts by state, then newest start first, then by id, so that the order is stable. */
export function compareAttention(a: AgentRecord, b: AgentRecord): number {
  return (
    agentStates.indexOf(agentState(a)) - agentStates.indexOf(agentState(b)) ||
    byText(b.started_at ?? b.created_at, a.started_at ?? a.created_at) ||
    byText(a.id, b.id)
  );
}

/** Not `localeCompare`, whose first call takes longer than rendering the list. These texts are ASCII. */
function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** How many agents each filter shows. */
export function counts(agents: readonly AgentRecord[]): Record<AgentsShown | 'all', number> {
  const numbers = { all: agents.length, needs_you: 0, your_turn: 0, working: 0, failed: 0 };
  for (const agent of agents) {
    const shown = agentsShown.find((show) => show === agentState(agent));
    if (shown) numbers[shown] += 1;
  }
  return numbers;
}

export interface AgentFilter {
  show?: AgentsShown | undefined;
  q?: string | undefined;
}

export function filterAgents(agents: readonly AgentRecord[], { show, q = '' }: AgentFilter): AgentRecord[] {
  const query = q.toLowerCase().split(/\s+/).filter(Boolean);
  return agents
    .filter((agent) => !show || agentState(agent) === show)
    .filter((agent) => {
      const text = [
        agent.name,
        agent.id,
        getProgram(agent),
        agent.node_id,
        agent.workdir,
        agent.worktree_branch,
      ];
      const all = text.join('\n').toLowerCase();
      return query.every((word) => all.includes(word));
    })
    .sort(compareAttention);
}

export type Grouping = 'repo' | 'node' | 'team' | undefined;

export interface Group {
  /** Empty for the only group, which has no heading. */
  name: string;
  agents: AgentRecord[];
}

/** Groups in the order of their first agents. `teams`: names by id. */
export function groupAgents(
  agents: readonly AgentRecord[],
  by: Grouping,
  teams: ReadonlyMap<string, string>,
): Group[] {
  if (!by) return [{ name: '', agents: [...agents] }];
  const name = (agent: AgentRecord) => {
    if (by === 'node') return agent.node_id;
    if (by === 'team')
      return agent.team_id === null ? 'No team' : (teams.get(agent.team_id) ?? agent.team_id);
    return agent.worktree_repo === null ? 'No repository' : lastPart(agent.worktree_repo);
  };
  const groups = Map.groupBy(agents, name);
  return [...groups].map(([group, members]) => ({ name: group, agents: members }));
}

/** What it runs, in one word: the preset, or the program of its command; `sh` for a script. */
export function getProgram(agent: Pick<AgentRecord, 'preset' | 'argv' | 'command'>): string {
  if (agent.preset !== null) return agent.preset;
  const word = agent.argv?.[0] ?? agent.command.trim().split(/\s+/)[0] ?? '';
  return /^[\w./@+-]+$/.test(word) && !KEYWORDS.has(word) ? lastPart(word) : 'sh';
}

const KEYWORDS = new Set(['for', 'if', 'while', 'until', 'case', 'set', 'cd', 'export', 'exec']);

/** Its repository or its folder; null if svc made an empty folder for it. */
export function folderOf({ id, worktree_repo, workdir }: AgentRecord): string | null {
  return worktree_repo ?? (lastPart(workdir).includes(id) ? null : workdir);
}

/** The name of a branch; of one that svc created, without the parts that svc added. */
export function shortBranch(branch: string): string {
  return branch.replace(/^svc\/(.+)-agt_[a-z0-9]+$/, '$1');
}

export function lastPart(path: string): string {
  return path.split('/').filter(Boolean).at(-1) ?? path;
}

/** What exit codes mean to a shell. */
const exitCodes: Record<number, string> = {
  126: 'command not executable (exit 126)',
  127: 'command not found (exit 127)',
  130: 'interrupted (exit 130)',
  137: 'killed (exit 137), often out of memory',
  143: 'terminated (exit 143)',
};

/** Why it ended. */
export function describeEnd(agent: AgentRecord): string {
  const parts = [
    agent.exit_code !== null && (exitCodes[agent.exit_code] ?? `exit ${agent.exit_code}`),
    agent.exit_signal,
    agent.reason !== null &&
      !['exit_code', 'signal'].includes(agent.reason) &&
      agent.reason.replaceAll('_', ' '),
  ];
  return parts.filter(Boolean).join(' · ');
}
