/** What a timeline and a list of files show of a conversation (pure). */
import type { Item, Permission, Tool } from './items.ts';

/** Something that took its time. */
export interface Span {
  readonly key: string;
  readonly seq: number;
  readonly label: string;
  readonly turn: number | null;
  readonly started_ts: number;
  /** Null while it goes on. */
  readonly ended_ts: number | null;
}

export function toolSpans(items: readonly Item[]): Span[] {
  return items
    .filter((item): item is Tool => item.kind === 'tool')
    .map((tool) => ({ ...placeOf(tool), label: tool.call.title, ended_ts: tool.ended_ts }));
}

/** From a question to its answer. */
export function waitSpans(items: readonly Item[]): Span[] {
  return items
    .filter((item): item is Permission => item.kind === 'permission')
    .map((asked) => ({ ...placeOf(asked), label: asked.call.title, ended_ts: asked.settled_ts }));
}

function placeOf({ key, seq, turn, ts }: Item): Omit<Span, 'label' | 'ended_ts'> {
  return { key, seq, turn, started_ts: ts };
}

export interface TouchedFile {
  readonly path: string;
  readonly added: number;
  readonly removed: number;
  /** A tool showed a change of it that did not fail. */
  readonly edited: boolean;
  /** The last tool that had to do with it. */
  readonly seq: number;
}

/** In the order in which they came up. */
export function filesOf(items: readonly Item[]): TouchedFile[] {
  const files = new Map<string, TouchedFile>();
  const touch = (path: string, seq: number, more: { added: number; removed: number } | null) => {
    const before = files.get(path);
    files.set(path, {
      path,
      added: (before?.added ?? 0) + (more?.added ?? 0),
      removed: (before?.removed ?? 0) + (more?.removed ?? 0),
      edited: more !== null || before?.edited === true,
      seq,
    });
  };
  for (const item of items) {
    if (item.kind !== 'tool') continue;
    for (const { path } of item.call.locations) touch(path, item.seq, null);
    const was_done = item.status !== 'failed' && item.status !== 'cancelled';
    for (const one of item.call.content) {
      if (one.type === 'diff') touch(one.path, item.seq, was_done ? one : null);
    }
  }
  return [...files.values()];
}
