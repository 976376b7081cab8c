/** The items that Approvals shows (pure): the longest wait first; those settled meanwhile keep their place. */
import { escapeHidden } from '../../../core/visible.ts';
import type { AgentRecord, WaitingRunRecord, WaitingStepRecord } from '../../api/queries.ts';
import { table } from '../../table.ts';
import type { Choice } from '../../ui/select.tsx';
import { shortSpan } from '../../ui/time.tsx';
import { compareWaits, keyOf, linkNames, type WaitingItem } from '../../waiting/queue.ts';
import { waitingText } from '../../waiting/text.ts';

/** Search parameters without a link to an item. */
export const NO_LINK = Object.fromEntries(Object.values(linkNames).map((name) => [name, undefined]));

export interface ItemFilter {
  team?: string | undefined;
  agent?: string | undefined;
  kind?: string | undefined;
}

/** `seen`: keys of items that were open while the page was open. */
export function filterItems(
  items: readonly WaitingItem[],
  filter: ItemFilter,
  seen: ReadonlySet<string>,
): WaitingItem[] {
  return items
    .filter((item) => item.open || seen.has(keyOf(item)))
    .filter(
      (item) =>
        (!filter.team || item.team_id === filter.team) &&
        (!filter.agent || item.agent_id === filter.agent) &&
        (!filter.kind || getKind(item) === filter.kind),
    )
    .sort(compareWaits);
}

/** How many settled items keep their place among the open ones; older ones are among the recent decisions. */
export const SETTLED_MAX = 20;

/**
 * The keys of the items that keep their place: those that are open now, the linked one, and the last ones that were open
 * before. `seen`: the result for earlier items.
 */
export function keysInPlace(
  seen: ReadonlySet<string>,
  items: readonly WaitingItem[],
  linked: string | undefined,
): ReadonlySet<string> {
  const open = new Set(items.filter((item) => item.open || item.id === linked).map(keyOf));
  // The open ones come last, so the others are in the order in which they were settled.
  const settled = [...seen].filter((key) => !open.has(key));
  return new Set([...settled.slice(-SETTLED_MAX), ...open]);
}

/** The newest decisions first. */
export function listRecent(
  items: readonly WaitingItem[],
  seen: ReadonlySet<string>,
  count: number,
): WaitingItem[] {
  return items
    .filter((item) => !item.open && !seen.has(keyOf(item)))
    .sort((a, b) => (b.settled_at ?? '').localeCompare(a.settled_at ?? ''))
    .slice(0, count);
}

/** Who asks: the agent, or the run if it asks itself or its member has no agent. Hidden characters are visible. */
export function sourceName(item: WaitingItem, agents: readonly AgentRecord[]): string {
  const agent = agents.find(({ id }) => id === item.agent_id);
  if (agent) return escapeHidden(agent.name);
  const run = runOf(item);
  return run ? escapeHidden(`${run.team_name} #${run.run_number}`) : 'Agent';
}

/** What the checkbox of a request is called: the titles of two requests may be the same. */
export function selectName(item: WaitingItem, agents: readonly AgentRecord[]): string {
  return `Select ${sourceName(item, agents)}: ${waitingText(item)}`;
}

/** The run of a question or a waiting run. */
export function runOf(item: WaitingItem): WaitingStepRecord | WaitingRunRecord | undefined {
  if (item.kind === 'question') return item.step;
  return item.kind === 'run' ? item.run : undefined;
}

/** The item to answer after this one: the next in the list, or else the first. `items`: the longest wait first. */
export function nextItem(items: readonly WaitingItem[], after: WaitingItem): WaitingItem | undefined {
  const others = items.filter((item) => item.open && item.id !== after.id);
  return others.find((item) => compareWaits(item, after) > 0) ?? others[0];
}

/** For a permission review, the kind of the tool call. */
export function getKind(item: WaitingItem): string {
  if (item.kind === 'elicitation') return 'input';
  if (item.kind !== 'permission') return item.kind.replace('_', '-');
  const { kind } = item.review.tool_call;
  return typeof kind === 'string' ? kind : 'other';
}

const kindNames = table({
  input: 'Form or link',
  question: 'Question',
  run: 'Run',
  'sign-in': 'Sign in',
});

/** What cards call a kind. */
function kindName(kind: string): string {
  return kindNames[kind] ?? `Permission · ${escapeHidden(kind)}`;
}

/** What the row of an item calls its kind. The kind of a permission's tool call is left out, because the row is short. */
export function shortKindName(item: WaitingItem): string {
  return item.kind === 'permission' ? 'Permission' : kindName(getKind(item));
}

/** Filter options: those of the open items, plus the current choice. */
export function listChoices(
  items: readonly WaitingItem[],
  filter: ItemFilter,
  names: { agents: readonly AgentRecord[]; teams: ReadonlyMap<string, string> },
): Record<keyof ItemFilter, Choice[]> {
  const waiting = items.filter(({ open }) => open);
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
    kind: list('All kinds', [...waiting.map(getKind), filter.kind], kindName),
  };
}

const DAY_MS = 86_400_000;

/** How many requests were answered in the last day, and how long they waited; empty if none was. */
export function answeredInLastDay(items: readonly WaitingItem[], now_ms: number): string {
  const waits = items
    .filter(({ settled_at }) => settled_at !== null && now_ms - Date.parse(settled_at) < DAY_MS)
    .map(({ since, settled_at }) => Date.parse(settled_at!) - Date.parse(since))
    .sort((a, b) => a - b);
  if (waits.length === 0) return '';
  const median = shortSpan(waits[Math.floor(waits.length / 2)]!);
  return `${waits.length} answered in the last 24 hours · median wait ${median}`;
}
