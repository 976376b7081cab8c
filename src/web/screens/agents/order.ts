/** Which agents are shown, in which order, under which heading. What needs a person comes first. */
import type { AgentRecord } from '../../api/queries.ts';
import { needsYou } from '../../ui/status.tsx';

const RANKS = ['needs_you', 'failed', 'running', 'created', 'completed', 'cancelled'] as const;
export type Attention = (typeof RANKS)[number];

export function attention(agent: AgentRecord): Attention {
  return needsYou(agent) ? 'needs_you' : agent.status;
}

/** Newest activity first within one rank; a name, then an id, so that nothing changes places by itself. */
export function byAttention(a: AgentRecord, b: AgentRecord): number {
  return (
    RANKS.indexOf(attention(a)) - RANKS.indexOf(attention(b)) ||
    (b.started_at ?? b.created_at).localeCompare(a.started_at ?? a.created_at) ||
    a.id.localeCompare(b.id)
  );
}

export function counts(agents: readonly AgentRecord[]): Record<'needs_you' | 'running' | 'failed', number> {
  const of = (which: (agent: AgentRecord) => boolean) => agents.filter(which).length;
  return {
    needs_you: of(needsYou),
    running: of(({ status }) => status === 'running'),
    failed: of(({ status }) => status === 'failed'),
  };
}

export interface Wanted {
  show?: 'needs_you' | 'running' | 'failed' | undefined;
  q?: string | undefined;
}

export function chosen(agents: readonly AgentRecord[], { show, q = '' }: Wanted): AgentRecord[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  return agents
    .filter((agent) => !show || (show === 'needs_you' ? needsYou(agent) : agent.status === show))
    .filter((agent) => {
      const text = [
        agent.name,
        agent.id,
        programOf(agent),
        agent.node_id,
        agent.workdir,
        agent.worktree_branch,
      ];
      const all = text.join('\n').toLowerCase();
      return words.every((word) => all.includes(word));
    })
    .sort(byAttention);
}

export type Grouping = 'repo' | 'node' | 'team' | undefined;

export interface Group {
  /** Empty: the only group, without a heading. */
  name: string;
  agents: AgentRecord[];
}

/** Groups in the order of their first agents; within one the given order stays. `teams`: names by id. */
export function grouped(
  agents: readonly AgentRecord[],
  by: Grouping,
  teams: ReadonlyMap<string, string>,
): Group[] {
  if (!by) return [{ name: '', agents: [...agents] }];
  const name = (agent: AgentRecord) => {
    if (by === 'node') return agent.node_id;
    if (by === 'team')
      return agent.team_id === null ? 'no team' : (teams.get(agent.team_id) ?? agent.team_id);
    return agent.worktree_repo === null ? 'no repository' : lastPart(agent.worktree_repo);
  };
  const groups = Map.groupBy(agents, name);
  return [...groups].map(([group, members]) => ({ name: group, agents: members }));
}

/** What it runs, in a word: the preset, or the program of its command; a script has none. */
export function programOf(agent: Pick<AgentRecord, 'preset' | 'argv' | 'command'>): string {
  if (agent.preset !== null) return agent.preset;
  const word = agent.argv?.[0] ?? agent.command.trim().split(/\s+/)[0] ?? '';
  return /^[\w./@+-]+$/.test(word) && !KEYWORDS.has(word) ? lastPart(word) : 'sh';
}

const KEYWORDS = new Set(['for', 'if', 'while', 'until', 'case', 'set', 'cd', 'export', 'exec']);

function lastPart(path: string): string {
  return path.split('/').filter(Boolean).at(-1) ?? path;
}

/** Why it failed, for people. */
export function endOf(agent: AgentRecord): string {
  const parts = [
    agent.exit_code !== null && `exit ${agent.exit_code}`,
    agent.exit_signal,
    agent.reason !== null &&
      !['exit_code', 'signal'].includes(agent.reason) &&
      agent.reason.replaceAll('_', ' '),
  ];
  return parts.filter(Boolean).join(' · ');
}
