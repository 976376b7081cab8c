/** Arranges items as a tree (pure): a sub-agent's items are in its group, inside the groups of its ancestors. */
import type { Delegation, Item } from '../../../../acp/transcript/items.ts';

export interface Group {
  readonly kind: 'group';
  readonly head: Delegation;
  /** Its head is before the items. */
  readonly began_before: boolean;
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

/** The items from `start` to `end`: a group may have started before. It keeps its head, and comes first. */
export function groupItems(items: readonly Item[], start: number, end: number): (Item | Group)[] {
  const root: (Item | Group)[] = [];
  /** The newest group of each sub-agent. */
  const open = new Map<string, Open>();
  const seeking = new Set<string>();
  const begin = (head: Delegation, began_before = false): Open => {
    const maker = head.subagent === null ? null : openGroup(head.subagent, null);
    const siblings = maker === null ? root : maker.depth < DEPTH ? maker.group.parts : maker.siblings;
    const group: Group = { kind: 'group', head, began_before, parts: [] };
    if (began_before) siblings.splice(siblings.findLastIndex(isBefore) + 1, 0, group);
    else siblings.push(group);
    const one = { group, depth: (maker?.depth ?? 0) + 1, siblings };
    open.set(head.id, one);
    return one;
  };
  const openGroup = (id: string, item: Item | null): Open | null => {
    const known = open.get(id);
    if (known || seeking.has(id)) return known ?? null;
    seeking.add(id);
    const before = headBefore(items, start, id);
    const head = before ?? (item && lostHead(id, item));
    const found = head && begin(head, before !== null);
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

function isBefore(part: Item | Group): boolean {
  return part.kind === 'group' && part.began_before;
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
