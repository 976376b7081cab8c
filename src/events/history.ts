/**
 * Reads stored events of one agent, oldest first or backwards: sealed ranges from segment files, the rest from rows.
 * Within a segment's range only the segment counts: rows that are still there, because they are being deleted or
 * because status events are kept for good, are seen again only when the segment is gone.
 */
import type { FileHandle } from 'node:fs/promises';
import { limits } from '../base/limits.ts';
import type { EventRecord, EventType } from '../domain/event.ts';
import type { Reader, Store } from '../store/store.ts';
import {
  frameRecord,
  frameSeq,
  frameText,
  frameType,
  record,
  STATUS,
  splitFrames,
  typeNumber,
} from './frame.ts';
import { type AgentRef, EventRows, selectEvents } from './rows.ts';
import { type Block, openSegment, parseBlocks, readBlock } from './segment.ts';

/** Consecutive frames, ready to send. `first_seq` may lie beyond where one read from: what is between is gone. */
export interface Part {
  first_seq: number;
  last_seq: number;
  frames: Buffer;
}

export interface PageOptions {
  after?: number | undefined;
  before?: number | undefined;
  limit: number;
  types?: readonly EventType[] | undefined;
}

interface SegmentRow {
  id: number;
  first_seq: number;
  last_seq: number;
  path: string;
}

type Step = { rows: Part | null; segment: SegmentRow | null; blocks: Block[] };

export class History {
  readonly #store: Pick<Store, 'read'>;
  readonly #folder: string;
  readonly #rows = new EventRows();

  constructor(store: Pick<Store, 'read'>, folder: string) {
    this.#store = store;
    this.#folder = folder;
  }

  /** Everything committed after `cursor`, in parts; ends when there is no more. Rows are read up to `until()` only. */
  async *after(agent: AgentRef, cursor: number, until: () => number = () => Infinity): AsyncGenerator<Part> {
    let unreadable = 0;
    let rows_max: number = limits.replay_rows_min;
    while (true) {
      const from = Math.max(cursor, unreadable);
      const step = await this.#store.read((reader) => this.#step(reader, agent, from, until(), rows_max));
      if (step.rows) {
        const { first_seq, last_seq, frames } = step.rows;
        // As many as make a part, going by the last one.
        const fits = Math.ceil((limits.replay_part_bytes * (last_seq - first_seq + 1)) / frames.length);
        rows_max = Math.min(limits.replay_rows_max, Math.max(limits.replay_rows_min, fits));
        cursor = last_seq;
        yield step.rows;
      } else if (step.segment) {
        for await (const part of this.#fromSegment(step.segment, step.blocks, from)) {
          cursor = part.last_seq;
          yield part;
        }
        // Gone or broken: go on behind it, and the follower tells the hole.
        unreadable = step.segment.last_seq;
      } else return;
    }
  }

  /** Up to `limit` records after `after`, or the last ones before `before`; oldest first. */
  page(agent: AgentRef, options: PageOptions): Promise<EventRecord[]> {
    if (options.types?.length === 1 && options.types[0] === 'status') return this.#statuses(agent, options);
    if (options.before !== undefined && options.after === undefined) {
      return this.#pageBefore(agent, options.before, options);
    }
    return this.#pageAfter(agent, options);
  }

  async #pageAfter(agent: AgentRef, { after, before, limit, types }: PageOptions): Promise<EventRecord[]> {
    const found: EventRecord[] = [];
    for await (const part of this.after(agent, after ?? 0)) {
      for (const one of splitFrames(part.frames)) {
        if (before !== undefined && frameSeq(one) >= before) return found;
        if (types && !types.includes(frameType(one))) continue;
        found.push(frameRecord(one));
        if (found.length >= limit) return found;
      }
    }
    return found;
  }

  async #pageBefore(agent: AgentRef, before: number, { limit, types }: PageOptions): Promise<EventRecord[]> {
    const found: EventRecord[] = [];
    let cursor = before;
    while (found.length < limit && cursor > 1) {
      const { rows, segment, blocks } = await this.#store.read((reader) =>
        this.#stepBack(reader, agent, cursor, limit - found.length, types),
      );
      found.push(...rows);
      if (!segment) break;
      for (const block of blocks.toReversed()) {
        if (found.length >= limit) break;
        if (block.first_seq >= cursor) continue;
        const frames = await this.#blockOrNull(segment, block);
        for (const one of frames ? [...splitFrames(frames)].reverse() : []) {
          if (frameSeq(one) >= cursor || found.length >= limit) continue;
          if (!types || types.includes(frameType(one))) found.push(frameRecord(one));
        }
      }
      cursor = segment.first_seq;
    }
    return found.reverse();
  }

  async #statuses(agent: AgentRef, { after, before, limit }: PageOptions): Promise<EventRecord[]> {
    const backwards = before !== undefined && after === undefined;
    return await this.#store.read((reader) => {
      let query = selectEvents(reader, agent.num).where('type', '=', STATUS).limit(limit);
      if (after !== undefined) query = query.where('seq', '>', after);
      if (before !== undefined) query = query.where('seq', '<', before);
      const found: EventRecord[] = [];
      reader.each(query.orderBy('seq', backwards ? 'desc' : 'asc'), (row) => {
        found.push(record(agent.id, this.#rows.event(reader, row)));
        return true;
      });
      return backwards ? found.reverse() : found;
    });
  }

  #step(reader: Reader, agent: AgentRef, cursor: number, until: number, rows_max: number): Step {
    const segment = reader.get(
      selectSegments(reader, agent).where('last_seq', '>', cursor).orderBy('last_seq').limit(1),
    );
    if (segment && segment.first_seq <= cursor + 1) {
      return { rows: null, segment, blocks: parseBlocks(segment.blocks) };
    }
    let query = selectEvents(reader, agent.num).where('seq', '>', cursor).orderBy('seq');
    if (segment) query = query.where('seq', '<', segment.first_seq);
    if (until !== Infinity) query = query.where('seq', '<=', until);
    const rows = reader.arrays(query.limit(rows_max));
    let text = '';
    let first_seq = 0;
    let last_seq = 0;
    for (const row of rows) {
      const event = this.#rows.event(reader, row);
      // A part never crosses a hole.
      if (first_seq === 0) first_seq = event.seq;
      else if (event.seq !== last_seq + 1) break;
      text += frameText(agent.id, event);
      last_seq = event.seq;
    }
    if (first_seq > 0) {
      return { rows: { first_seq, last_seq, frames: Buffer.from(text) }, segment: null, blocks: [] };
    }
    return { rows: null, segment: segment ?? null, blocks: segment ? parseBlocks(segment.blocks) : [] };
  }

  #stepBack(reader: Reader, agent: AgentRef, cursor: number, limit: number, types?: readonly EventType[]) {
    const segment = reader.get(
      selectSegments(reader, agent).where('first_seq', '<', cursor).orderBy('first_seq', 'desc').limit(1),
    );
    const rows: EventRecord[] = [];
    if (!segment || segment.last_seq < cursor - 1) {
      let query = selectEvents(reader, agent.num)
        .where('seq', '<', cursor)
        .orderBy('seq', 'desc')
        .limit(limit);
      if (segment) query = query.where('seq', '>', segment.last_seq);
      if (types) query = query.where('type', 'in', types.map(typeNumber));
      reader.each(query, (row) => {
        rows.push(record(agent.id, this.#rows.event(reader, row)));
        return true;
      });
    }
    return { rows, segment: segment ?? null, blocks: segment ? parseBlocks(segment.blocks) : [] };
  }

  async *#fromSegment(segment: SegmentRow, blocks: Block[], cursor: number): AsyncGenerator<Part> {
    const left = blocks.filter((block) => block.last_seq > cursor);
    const file = await openSegment(this.#folder, segment.path);
    if (!file) return;
    try {
      let next = left[0] ? readBlock(file, left[0]) : null;
      for (let i = 0; i < left.length; i++) {
        const block = left[i]!;
        const frames = await next!;
        const ahead = left[i + 1];
        // Read ahead by one: inflating and sending take turns on different threads.
        next = ahead ? readBlock(file, ahead) : null;
        next?.catch(() => {});
        if (!frames) return;
        if (block.first_seq > cursor) {
          yield { first_seq: block.first_seq, last_seq: block.last_seq, frames };
        } else {
          yield { first_seq: cursor + 1, last_seq: block.last_seq, frames: cutBefore(frames, cursor) };
        }
      }
      await next;
    } finally {
      await file.close();
    }
  }

  async #blockOrNull(segment: SegmentRow, block: Block): Promise<Buffer | null> {
    const file: FileHandle | null = await openSegment(this.#folder, segment.path);
    if (!file) return null;
    try {
      return await readBlock(file, block);
    } finally {
      await file.close();
    }
  }
}

function selectSegments(reader: Reader, agent: AgentRef) {
  return reader.sql
    .selectFrom('segments')
    .select(['id', 'first_seq', 'last_seq', 'path', 'blocks'])
    .where('agent_num', '=', agent.num);
}

/** The frames after `cursor`. */
function cutBefore(frames: Buffer, cursor: number): Buffer {
  let from = 0;
  for (const one of splitFrames(frames)) {
    if (frameSeq(one) > cursor) break;
    from += one.length;
  }
  return frames.subarray(from);
}
