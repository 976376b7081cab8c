/**
 * The sub-agents of a conversation and the row of each, which contains all its items. A sub-agent gets a row when it is
 * announced or starts to work, and another in each later turn in which it does something.
 */

import type { Fields } from '../json.ts';
import { asString, truncateText } from '../json.ts';
import {
  type Announcement,
  readLaunch,
  readMarkedName,
  type SubagentWork,
  unreportedWork,
} from '../subagent-reports.ts';
import { bounds } from './bounds.ts';
import type { ItemList } from './item-list.ts';
import type { Delegation, Requester } from './items.ts';
import type { ItemPosition } from './message-writer.ts';

type About = Pick<Delegation, 'name' | 'description' | 'status' | 'stop_reason' | 'unknown_session'>;

interface Known {
  id: string;
  has_session: boolean;
  parent_id: string | null;
  about: About;
  /** The position of its newest row. */
  at: number | null;
  turn: number | null;
}

/** The same limit as in the service: longer ids are ignored, and longer names are truncated. */
const NAME_CHARS = 256;
const unknown_subagent: About = {
  ...{ name: null, description: null, ...unreportedWork },
  unknown_session: false,
};

export class Subagents {
  readonly #items: ItemList;
  readonly #known = new Map<string, Known>();

  constructor(items: ItemList) {
    this.#items = items;
  }

  /** Call this when the agent was restarted and may reuse ids. */
  begin(): void {
    this.#known.clear();
  }

  /** Ensures that there is a row before an item of a sub-agent. `unknown_session`: the sub-agent was not announced. */
  ensureRow(where: ItemPosition, unknown_session: boolean): void {
    const { subagent: id, turn } = where;
    if (id === null) return;
    const known = this.#get(id, null);
    if (unknown_session) known.about = { ...known.about, unknown_session };
    const is_there = known.at !== null && this.#items.get(known.at) !== undefined && known.turn === turn;
    if (!is_there) this.#add(known, where, `${where.key} ${id}`);
  }

  /** Counts the start of a tool call of a sub-agent. */
  countCall(id: string | null): void {
    const known = id === null ? undefined : this.#known.get(id);
    const row = known && this.#row(known);
    if (row) this.#items.replace(known.at!, { ...row, tool_calls: row.tool_calls + 1 }, 0);
  }

  /**
   * Handles an announcement in the session of `maker`. `where`: null for a replay, which adds no row. Returns the id if the
   * sub-agent is idle.
   */
  announced(
    { ids, name, description, work }: Announcement,
    where: ItemPosition | null,
    maker: string | null,
  ): string | null {
    const id = firstId(ids);
    if (id === null || id === maker) return null;
    const before = this.#known.get(id);
    if (before && (!before.has_session || before.parent_id !== maker)) return null;
    const known = before ?? this.#get(id, this.#isWithin(maker, id) ? null : maker);
    known.has_session = true;
    const about = {
      ...known.about,
      ...(name !== undefined && { name: brief(name) }),
      ...(description !== undefined && { description: brief(description) }),
      ...briefWork(work),
    };
    known.about = about;
    const begins = known.at === null || (about.status === 'running' && known.turn !== where?.turn);
    if (where !== null && begins) this.#add(known, where, where.key);
    else this.#change(known);
    return about.status === 'idle' ? id : null;
  }

  /** Handles an update in the agent's session, which may be the tool call that launches a sub-agent. */
  launched(update: Fields, where: ItemPosition): void {
    const launch = readLaunch(update);
    const id = firstId([launch.id]);
    const before = id === null ? undefined : this.#known.get(id);
    if (id === null || before?.has_session || (launch.name === null && !before)) return;
    const known = before ?? this.#get(id, where.subagent);
    known.about = {
      ...known.about,
      ...(launch.name !== null && { name: brief(launch.name) }),
      description: brief(launch.description) ?? known.about.description ?? brief(launch.title),
      ...briefWork(launch.work),
    };
    this.#change(known);
  }

  /** Handles a mark that names the tool call that launched the author. The call may be unknown. */
  marked(id: string, update: Fields): void {
    if (this.#known.has(id)) return;
    const name = brief(readMarkedName(update));
    this.#get(id, null).about = { ...unknown_subagent, name, status: 'running' };
  }

  /** Call this when the process has ended. The end of unfinished work was not reported. */
  processEnded(): void {
    for (const known of this.#known.values()) {
      const { status } = known.about;
      if (status !== 'running' && status !== 'requires_action') continue;
      known.about = { ...known.about, status: 'unknown' };
      this.#change(known);
    }
  }

  requester(id: string | null, unknown_session: boolean): Requester | null {
    if (id === null) return null;
    return { id, name: this.#known.get(id)?.about.name ?? null, unknown_session };
  }

  /** The name of the sub-agent with this id, or the id if it has no name; null if it is not known. */
  nameOf(id: unknown): string | null {
    const known = this.#known.get(asString(id) ?? '');
    return known ? (known.about.name ?? known.id) : null;
  }

  #get(id: string, parent_id: string | null): Known {
    const before = this.#known.get(id);
    if (before) return before;
    const known: Known = { id, has_session: false, parent_id, about: unknown_subagent, at: null, turn: null };
    this.#known.set(id, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > bounds.subagents) this.#known.delete(oldest!);
    return known;
  }

  /** Ensures that its parent has a row in the same turn. */
  #add(known: Known, where: ItemPosition, key: string): void {
    const { id, parent_id, about } = known;
    if (parent_id !== null) this.ensureRow({ ...where, subagent: parent_id }, false);
    const row: Delegation = {
      ...{ kind: 'delegation', ...where, key, subagent: parent_id, id },
      ...{ ...about, tool_calls: 0 },
    };
    known.at = this.#items.add(row, (about.name?.length ?? 0) + (about.description?.length ?? 0));
    known.turn = where.turn;
  }

  #change(known: Known): void {
    const row = this.#row(known);
    if (row) this.#items.replace(known.at!, { ...row, ...known.about }, 0);
  }

  #row({ at }: Known): Delegation | undefined {
    return at === null ? undefined : (this.#items.get(at) as Delegation | undefined);
  }

  #isWithin(at: string | null, id: string): boolean {
    for (let next = at; next !== null; next = this.#known.get(next)?.parent_id ?? null) {
      if (next === id) return true;
    }
    return false;
  }
}

/** The first text that is an id, and short enough to be kept. */
function firstId(texts: readonly (string | null)[]): string | null {
  return texts.find((text) => text !== null && text !== '' && text.length <= NAME_CHARS) ?? null;
}

function brief(text: string | null): string | null {
  return text === null ? null : truncateText(text, NAME_CHARS);
}

function briefWork(work: SubagentWork | null | undefined): Partial<SubagentWork> {
  return work ? { status: work.status, stop_reason: brief(work.stop_reason) } : {};
}
