/** The tool calls and waits that a timeline shows of a conversation (pure). */
import { escapeHidden } from '../../core/visible.ts';
import type { Item, Permission, Tool } from './items.ts';

/** A tool call or a wait for an answer. */
export interface Span {
  readonly key: string;
  readonly seq: number;
  readonly label: string;
  readonly turn: number | null;
  readonly started_ts: number;
  /** Null until it ends. */
  readonly ended_ts: number | null;
}

export function toolSpans(items: readonly Item[]): Span[] {
  const label = labels(items);
  return items
    .filter((item): item is Tool => item.kind === 'tool')
    .map((tool) => ({ ...itemPosition(tool), label: label(tool), ended_ts: tool.ended_ts }));
}

/** The time from each permission request to its answer. */
export function waitSpans(items: readonly Item[]): Span[] {
  const label = labels(items);
  return items
    .filter((item): item is Permission => item.kind === 'permission')
    .map((request) => ({ ...itemPosition(request), label: label(request), ended_ts: request.settled_ts }));
}

/** Labels of calls and requests. Those of sub-agents include the name of the sub-agent. */
function labels(items: readonly Item[]): (item: Tool | Permission) => string {
  const names = new Map<string, string>();
  for (const item of items) {
    if (item.kind !== 'delegation') continue;
    const name = item.unknown_session ? `unknown session ${item.id}` : (item.name ?? `sub-agent ${item.id}`);
    names.set(item.id, escapeHidden(name));
  }
  return ({ subagent, call }) =>
    subagent === null ? call.title : `${names.get(subagent) ?? escapeHidden(subagent)}: ${call.title}`;
}

function itemPosition({ key, seq, turn, ts }: Item): Omit<Span, 'label' | 'ended_ts'> {
  return { key, seq, turn, started_ts: ts };
}
