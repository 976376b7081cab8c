/** Which reviews are shown, in which order (pure): what waits longest first; what was settled meanwhile keeps its place. */
import type { AgentRecord, ReviewRecord } from '../../api/queries.ts';
import type { Choice } from '../../ui/select.tsx';

export interface Wanted {
  team?: string | undefined;
  agent?: string | undefined;
  kind?: string | undefined;
}

/** `seen`: those that waited while somebody looked. */
export function shownReviews(
  reviews: readonly ReviewRecord[],
  wanted: Wanted,
  seen: ReadonlySet<string>,
): ReviewRecord[] {
  return reviews
    .filter(({ id, status }) => status === 'pending' || seen.has(id))
    .filter(
      (review) =>
        (!wanted.team || review.team_id === wanted.team) &&
        (!wanted.agent || review.agent_id === wanted.agent) &&
        (!wanted.kind || kindOf(review) === wanted.kind),
    )
    .sort((a, b) => a.created_at.localeCompare(b.created_at) || a.id.localeCompare(b.id));
}

/** The newest decisions first. */
export function recentReviews(
  reviews: readonly ReviewRecord[],
  seen: ReadonlySet<string>,
  count: number,
): ReviewRecord[] {
  return reviews
    .filter(({ id, status }) => status !== 'pending' && !seen.has(id))
    .sort((a, b) => (b.answered_at ?? '').localeCompare(a.answered_at ?? ''))
    .slice(0, count);
}

export function kindOf({ tool_call }: ReviewRecord): string {
  return typeof tool_call.kind === 'string' ? tool_call.kind : 'other';
}

/** What there is to choose from among the reviews that wait, and what is chosen now. */
export function choicesOf(
  reviews: readonly ReviewRecord[],
  wanted: Wanted,
  names: { agents: readonly AgentRecord[]; teams: ReadonlyMap<string, string> },
): Record<keyof Wanted, Choice[]> {
  const waiting = reviews.filter(({ status }) => status === 'pending');
  const list = (all: string, values: (string | null | undefined)[], nameOf: (value: string) => string) => {
    const distinct = [...new Set(values)].filter((value) => typeof value === 'string' && value !== '');
    const choices = distinct.map((value) => ({ value: value!, label: nameOf(value!) }));
    return [{ value: '', label: all }, ...choices.sort((a, b) => a.label.localeCompare(b.label))];
  };
  const agentName = (id: string) => names.agents.find((agent) => agent.id === id)?.name ?? id;
  return {
    team: list(
      'all teams',
      [...waiting.map(({ team_id }) => team_id), wanted.team],
      (id) => names.teams.get(id) ?? id,
    ),
    agent: list('all agents', [...waiting.map(({ agent_id }) => agent_id), wanted.agent], agentName),
    kind: list('all kinds', [...waiting.map(kindOf), wanted.kind], (kind) => kind),
  };
}
