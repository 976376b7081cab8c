/** Which reviews and elicitations are shown, longest pending first (pure); those settled meanwhile keep their place. */
import type { AgentRecord } from '../../api/queries.ts';
import { type AgentRequest, isReview } from '../../reviews/agent-request.ts';
import type { Choice } from '../../ui/select.tsx';

export interface RequestFilter {
  team?: string | undefined;
  agent?: string | undefined;
  kind?: string | undefined;
}

/** `seen`: ids that were pending while the page was open. */
export function filterRequests(
  requests: readonly AgentRequest[],
  filter: RequestFilter,
  seen: ReadonlySet<string>,
): AgentRequest[] {
  return requests
    .filter(({ id, status }) => status === 'pending' || seen.has(id))
    .filter(
      (request) =>
        (!filter.team || request.team_id === filter.team) &&
        (!filter.agent || request.agent_id === filter.agent) &&
        (!filter.kind || getKind(request) === filter.kind),
    )
    .sort((a, b) => a.created_at.localeCompare(b.created_at) || a.id.localeCompare(b.id));
}

/** The newest decisions first. */
export function listRecent(
  requests: readonly AgentRequest[],
  seen: ReadonlySet<string>,
  count: number,
): AgentRequest[] {
  return requests
    .filter(({ id, status }) => status !== 'pending' && !seen.has(id))
    .sort((a, b) => (b.answered_at ?? '').localeCompare(a.answered_at ?? ''))
    .slice(0, count);
}

export function getKind(request: AgentRequest): string {
  if (!isReview(request)) return 'input';
  const { tool_call } = request;
  return typeof tool_call.kind === 'string' ? tool_call.kind : 'other';
}

/** Filter options: those of the pending ones, plus the current choice. */
export function listChoices(
  requests: readonly AgentRequest[],
  filter: RequestFilter,
  names: { agents: readonly AgentRecord[]; teams: ReadonlyMap<string, string> },
): Record<keyof RequestFilter, Choice[]> {
  const waiting = requests.filter(({ status }) => status === 'pending');
  const list = (all: string, values: (string | null | undefined)[], nameOf: (value: string) => string) => {
    const distinct = [...new Set(values)].filter((value) => typeof value === 'string' && value !== '');
    const choices = distinct.map((value) => ({ value: value!, label: nameOf(value!) }));
    return [{ value: '', label: all }, ...choices.sort((a, b) => a.label.localeCompare(b.label))];
  };
  const agentName = (id: string) => names.agents.find((agent) => agent.id === id)?.name ?? id;
  return {
    team: list(
      'All teams',
      [...waiting.map(({ team_id }) => team_id), filter.team],
      (id) => names.teams.get(id) ?? id,
    ),
    agent: list('All agents', [...waiting.map(({ agent_id }) => agent_id), filter.agent], agentName),
    kind: list('All kinds', [...waiting.map(getKind), filter.kind], (kind) => kind),
  };
}
