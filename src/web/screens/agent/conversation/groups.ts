/** Arranges items as a tree (pure): a sub-agent's items are in its group, inside the groups of its ancestors. */
import type { Delegation, Item } from '../../../../acp/transcript/items.ts';

export interface Group {
  readonly kind: 'group';
  readonly head: Delegation;
  readonly parts: (Item | Group)[];
}

/** Deeper groups are shown beside their parent. */
const DEPTH = 4;

interface Open {
  group: Group;
  depth: number;
  /** The index of the group. */
  siblings: (Item | Group)[];
}

/** The items from `start` to `end`: a group may have started before, and keeps its head. */
export function groupItems(items: readonly Item[], start: number, end: number): (Item | Group)[] {
  const root: (Item | Group)[] = [];
  /** The newest group of each sub-agent. */
  const open = new Map<string, Open>();
  const seeking = new Set<string>();
  const begin = (head: Delegation): Open => {
    const maker = head.subagent === null ? null : openGroup(head.subagent, null);
    const siblings = maker === null ? root : maker.depth < DEPTH ? maker.group.parts : maker.siblings;
    const group: Group = { kind: 'group', head, parts: [] };
    siblings.push(group);
    const one = { group, depth: (maker?.depth ?? 0) + 1, siblings };
    open.set(head.id, one);
    return one;
  };
  const openGroup = (id: string, item: Item | null): Open | null => {
    const known = open.get(id);
    if (known || seeking.has(id)) return known ?? null;
    seeking.add(id);
    const head = headBefore(items, start, id) ?? (item && lostHead(id, item));
    const found = head && begin(head);
    seeking.delete(id);
    return found;
  };
  for (const item of items.slice(start, end)) {
    if (item.kind === 'delegation') begin(item);
    else if (item.subagent === null) root.push(item);
    else (openGroup(item.subagent, item)?.group.parts ?? root).push(item);
  }
  return root;
}

function headBefore(items: readonly Item[], start: number, id: string): Delegation | null {
  for (let at = start - 1; at >= 0; at--) {
    const item = items[at]!;
    if (item.kind === 'delegation' && item.id === id) return item;
  }
  return null;
}

/** A stand-in for a head that is no longer on the page. */
function lostHead(id: string, { key, seq, ts, turn }: Item): Delegation {
  return {
    ...{ kind: 'delegation', key: `${key} ${id}`, seq, ts, turn, subagent: null },
    ...{ id, name: null, description: null, status: 'unknown', stop_reason: null },
    ...{ tool_calls: 0, unknown_session: false },
  };
}
