/** Filters, sorts and groups agents. Agents that need the user come first. */
import type { AgentRecord } from '../../api/queries.ts';
import { table } from '../../table.ts';
import { type AgentsShown, agentState, agentStates, agentsShown } from '../../ui/agent-state.ts';

/** For each agent that waits for the user, since when, in RFC 3339. */
export type Waits = ReadonlyMap<string, { since: string }>;

/**
 * Sorts by state. Of the agents that wait for the user, the one that has waited longest comes first, as on the page
 * Approvals; of the others, the one that started last. Then by id, so that the order is stable.
 */
export const compareAttention =
  (waits: Waits) =>
  (a: AgentRecord, b: AgentRecord): number =>
    agentStates.indexOf(agentState(a)) - agentStates.indexOf(agentState(b)) ||
    byText(waits.get(a.id)?.since ?? NO_WAIT, waits.get(b.id)?.since ?? NO_WAIT) ||
    byText(b.started_at ?? b.created_at, a.started_at ?? a.created_at) ||
    byText(a.id, b.id);

/** After every time. */
const NO_WAIT = '~';

/** Not `localeCompare`, whose first call takes longer than rendering the list. These texts are ASCII. */
function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The filter that shows it, besides `All`, which leaves out archived agents. A quiet agent is still at work. */
function filterOf(agent: AgentRecord): AgentsShown | undefined {
  if (isArchived(agent)) return 'archived';
  const state = agentState(agent);
  return state === 'quiet' ? 'working' : agentsShown.find((show) => show === state);
}

/** Whether lists leave it out. An agent that needs the user is never left out, for example if its step waits for an answer. */
export function isArchived({
  archived_at,
  needs_you,
}: Pick<AgentRecord, 'archived_at' | 'needs_you'>): boolean {
  return archived_at !== null && needs_you === null;
}

/** How many agents each filter shows. */
export function counts(agents: readonly AgentRecord[]): Record<AgentsShown | 'all', number> {
  const numbers = { all: 0, needs_you: 0, your_turn: 0, working: 0, failed: 0, archived: 0 };
  for (const agent of agents) {
    const shown = filterOf(agent);
    if (shown) numbers[shown] += 1;
    if (shown !== 'archived') numbers.all += 1;
  }
  return numbers;
}

export interface AgentFilter {
  show?: AgentsShown | undefined;
  q?: string | undefined;
}

export function filterAgents(
  agents: readonly AgentRecord[],
  { show, q = '' }: AgentFilter,
  waits: Waits,
): AgentRecord[] {
  const query = q.toLowerCase().split(/\s+/).filter(Boolean);
  return agents
    .filter((agent) => (show ? filterOf(agent) === show : !isArchived(agent)))
    .filter((agent) => {
      const text = [
        agent.name,
        agent.id,
        getProgram(agent),
        agent.command,
        agent.node_id,
        agent.workdir,
        agent.worktree_branch,
      ];
      const all = text.join('\n').toLowerCase();
      return query.every((word) => all.includes(word));
    })
    .sort(compareAttention(waits));
}

export type Grouping = 'repo' | 'node' | 'team' | 'none';

/** By repository once the agents that are not archived use two, unless the user has chosen. */
export function groupingOf(agents: readonly AgentRecord[], chosen: Grouping | undefined): Grouping {
  if (chosen) return chosen;
  const current = agents.filter((agent) => !isArchived(agent));
  const repositories = new Set(
    current.map(({ worktree_repo }) => worktree_repo).filter((repo) => repo !== null),
  );
  return repositories.size >= 2 ? 'repo' : 'none';
}

export interface Group {
  /** Empty for the only group, which has no heading. */
  name: string;
  agents: AgentRecord[];
}

/**
 * First the agents that need the user, so that they are not below the rows of other groups; then groups in the order of their
 * first agents. `teams`: names by id.
 */
export function groupAgents(
  agents: readonly AgentRecord[],
  by: Grouping,
  teams: ReadonlyMap<string, string>,
): Group[] {
  if (by === 'none') return [{ name: '', agents: [...agents] }];
  const urgent = agents.filter((agent) => agentState(agent) === 'needs_you');
  const rest = agents.filter((agent) => agentState(agent) !== 'needs_you');
  // If all of them need the user, the groups say more.
  if (urgent.length > 0 && rest.length > 0)
    return [{ name: 'Needs you', agents: urgent }, ...groupAgents(rest, by, teams)];
  const name = (agent: AgentRecord) => {
    if (by === 'node') return agent.node_id;
    if (by === 'team')
      return agent.team_id === null ? 'No team' : (teams.get(agent.team_id) ?? agent.team_id);
    return agent.worktree_repo === null ? 'Other folders' : lastPart(agent.worktree_repo);
  };
  const groups = Map.groupBy(agents, name);
  return [...groups].map(([group, members]) => ({ name: group, agents: members }));
}

/** What it runs, in one word: the preset, or the program of its command; `sh` for a script or several commands. */
export function getProgram(agent: Pick<AgentRecord, 'preset' | 'argv' | 'command'>): string {
  if (agent.preset !== null) return agent.preset;
  if (agent.argv === null && isScript(agent.command)) return SHELL;
  const word = agent.argv?.[0] ?? agent.command.trim().split(/\s+/)[0] ?? '';
  return /^[\w./@+-]+$/.test(word) && !KEYWORDS.has(word) ? lastPart(word) : SHELL;
}

/** Runs commands without `argv`. */
const SHELL = 'sh';

/** Whether a shell runs more than one command. */
function isScript(command: string): boolean {
  return /[;&|\n]/.test(command.trim().replace(/'[^']*'|"[^"]*"|[<>]&|&>/g, ''));
}

const KEYWORDS = new Set(['for', 'if', 'while', 'until', 'case', 'set', 'cd', 'export', 'exec']);

/** Its repository or its folder; null if svc made an empty folder, for it or for its member of a team. */
export function folderOf({ worktree_repo, workdir }: AgentRecord): string | null {
  return worktree_repo ?? (/(^|-)agt_[a-z0-9]+$/.test(lastPart(workdir)) ? null : workdir);
}

/** The name of a branch; of one that svc created, without the parts that svc added. */
export function shortBranch(branch: string): string {
  return branch.replace(/^svc\/(.+)-agt_[a-z0-9]+$/, '$1');
}

export function lastPart(path: string): string {
  return path.split('/').filter(Boolean).at(-1) ?? path;
}

/** What exit codes mean to a shell. `of_program`: `: ` and what it runs; empty for a shell, which may have run any command. */
const exitCodes: Record<number, (of_program: string) => string> = {
  126: (of_program) => `Not executable${of_program} (126)`,
  127: (of_program) => `Command not found${of_program} (127)`,
  130: () => 'Interrupted (130)',
  137: () => 'Killed (137), often out of memory',
  143: () => 'Terminated (143)',
};

const signals = table({
  SIGKILL: 'Killed (SIGKILL), often out of memory',
  SIGTERM: 'Terminated (SIGTERM)',
  SIGINT: 'Interrupted (SIGINT)',
  SIGSEGV: 'Crashed (SIGSEGV)',
  SIGABRT: 'Aborted (SIGABRT)',
});

const reasons = table({
  spawn_failed: 'Could not be started',
  workdir_refused: 'Not allowed in its folder',
  exit_status_unknown: 'Exit status unknown',
  host_restarted: 'Its machine restarted',
  session_lost: 'Its session was lost',
});

/** Why it failed, in a few words; empty if nothing is known. */
export function describeEnd(agent: AgentRecord): string {
  const { exit_code, exit_signal, reason } = agent;
  const program = getProgram(agent);
  if (exit_code !== null && exit_code !== 0)
    return exitCodes[exit_code]?.(program === SHELL ? '' : `: ${program}`) ?? `Exit code ${exit_code}`;
  if (exit_signal !== null) return signals[exit_signal] ?? `Ended by ${exit_signal}`;
  return reason === null ? '' : (reasons[reason] ?? reason.replaceAll('_', ' '));
}
