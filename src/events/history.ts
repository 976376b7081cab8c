/**
 * Reads stored events of one agent, forwards or backwards: sealed ranges from segments, the rest from rows. Within
 * a segment's range only the segment counts. Rows that still exist there, because their deletion is pending or because
 * status events are kept permanently, become visible again only when the segment is deleted.
 *
 * Streams need frames, in parts without gaps; pages, search and its index need records. Rows become either one
 * directly; segments contain frames.
 */

import type { Compilable } from 'kysely';
import type { EventRecord, EventType } from '../core/event.ts';
import {
  dataOf,
  EventDecoder,
  isSameKind,
  largeDataOf,
  type SeqRange,
  selectEvents,
  selectEventsOf,
  selectRange,
  seqOf,
} from '../store/event-rows/read.ts';
import type { Reader, Store } from '../store/store.ts';
import type { AgentRef } from './agent-ref.ts';
import { eventRecord, frameRecord, frameSeq, frameType, frameWriter, splitFrames } from './frame.ts';
import { limits } from './limits.ts';
import { type SegmentRow, segmentAfter, segmentBefore, segmentsContaining } from './queries/segments.ts';
import { type Block, parseBlocks, type SegmentReader } from './segment.ts';

/**
 * Consecutive frames, ready to send. If `first_seq` is after the requested position, the events in between are missing.
 */
export interface Part {
  first_seq: number;
  last_seq: number;
  frames: Buffer;
}

/** A record with the size of what is stored of it. */
export interface StoredRecord {
  record: EventRecord;
  bytes: number;
}

/** Selects the events of a page. `after` and `before` are exclusive. Without `types`, the page has all types. */
export interface PageOptions {
  after?: number | undefined;
  before?: number | undefined;
  limit: number;
  types?: readonly EventType[] | undefined;
}

/** Events, oldest first. */
export interface EventPage {
  events: EventRecord[];
  /** Whether more events match: later ones, or earlier ones if the page has those before a number. */
  has_more: boolean;
}

export class History {
  readonly #store: Pick<Store, 'read'>;
  readonly #segments: SegmentReader;
  readonly #decoder = new EventDecoder();

  constructor(store: Pick<Store, 'read'>, segments: SegmentReader) {
    this.#store = store;
    this.#segments = segments;
  }

  /** Frames of everything committed after `cursor`, in parts. Reads rows up to `until()` only. */
  async *after(agent: AgentRef, cursor: number, until: () => number = () => Infinity): AsyncGenerator<Part> {
    let tried: number | null = null;
    let rows_max: number = limits.replay_rows_first;
    while (true) {
      const next = await this.#store.read((reader) =>
        this.#next(reader, agent, cursor, (range) =>
          this.#part(reader, agent, { ...range, up_to: Math.min(range.up_to, until()) }, rows_max),
        ),
      );
      if (next === null) return;
      if ('rows' in next) {
        const { first_seq, last_seq, frames } = next.rows;
        // Uses the size of the last part to estimate how many events fit in the next one.
        const fits = Math.ceil((limits.replay_part_bytes * (last_seq - first_seq + 1)) / frames.length);
        rows_max = Math.min(limits.replay_rows_max, fits);
        cursor = last_seq;
        yield next.rows;
      } else {
        const { id, last_seq } = next.segment;
        for await (const part of this.#fromSegment(next.segment, cursor)) {
          cursor = part.last_seq;
          yield part;
        }
        // The segment may have been deleted meanwhile. If it still exists, it is damaged: reading continues after it, and
        // the follower reports the gap.
        if (tried === id) cursor = last_seq;
        tried = id;
      }
    }
  }

  /**
   * Records after `cursor`, oldest first, in batches that are never empty; at most `limit` per batch of rows. A batch
   * from a segment may also contain records from `before` on.
   */
  async *records(
    agent: AgentRef,
    cursor: number,
    { before = Infinity, limit, types }: Omit<PageOptions, 'after'>,
  ): AsyncGenerator<StoredRecord[]> {
    let tried: number | null = null;
    while (cursor + 1 < before) {
      const next = await this.#store.read((reader) =>
        this.#next(reader, agent, cursor, ({ after, up_to }) =>
          this.#rows(reader, agent, { after, up_to: Math.min(up_to, before - 1) }, limit, types),
        ),
      );
      if (next === null || ('segment' in next && next.segment.first_seq >= before)) return;
      if ('rows' in next) {
        cursor = next.rows.at(-1)!.record.seq;
        yield next.rows;
      } else {
        const { id, last_seq } = next.segment;
        for await (const part of this.#fromSegment(next.segment, cursor)) {
          const records = recordsIn(part.frames, (_, type) => !types || types.includes(type));
          if (records.length > 0) yield records;
          cursor = part.last_seq;
        }
        // As in `after`.
        if (tried === id) cursor = last_seq;
        tried = id;
      }
    }
  }

  /**
   * Up to `limit` records after `after`, or the last ones before `before`; fewer if they are larger than
   * `limits.page_bytes_max` together, but at least one.
   */
  async page(agent: AgentRef, options: PageOptions): Promise<EventPage> {
    const { after, before, limit, types } = options;
    const backwards = before !== undefined && after === undefined;
    // One more shows whether there are more.
    const wanted = { ...options, limit: limit + 1 };
    let batches: AsyncIterable<StoredRecord[]>;
    if (types?.length === 1 && types[0] === 'status') batches = this.#statuses(agent, wanted);
    else if (backwards) batches = this.#recordsBefore(agent, before, wanted);
    else batches = this.records(agent, after ?? 0, wanted);
    const events: EventRecord[] = [];
    const page = (has_more: boolean) => ({ events: backwards ? events.reverse() : events, has_more });
    let size = 0;
    for await (const batch of batches) {
      for (const { record, bytes } of batch) {
        if (before !== undefined && record.seq >= before) return page(false);
        if (events.length >= limit || size >= limits.page_bytes_max) return page(true);
        events.push(record);
        size += bytes;
      }
    }
    return page(false);
  }

  /** The requested records by number, without those that are no longer kept, in batches. Reads each block once. */
  async *at(agent: AgentRef, seqs: readonly number[]): AsyncGenerator<StoredRecord[]> {
    let left = seqs;
    let segments: SegmentRow[] = [];
    while (left.length > 0) {
      const found = await this.#store.read((reader) => this.#rowsAt(reader, agent, left));
      segments = found.segments;
      left = found.left;
      if (found.rows.length > 0) yield found.rows;
      if (left.every((seq) => segments.some((segment) => contains(segment, seq)))) break;
    }
    const wanted = new Set(left);
    for (const segment of segments) {
      const blocks = parseBlocks(segment.blocks).filter((block) => left.some((seq) => contains(block, seq)));
      for await (const frames of this.#blocks(segment, blocks)) {
        yield recordsIn(frames, (seq) => wanted.has(seq));
      }
    }
  }

  /** Some rows with these numbers, the segments that contain others, and the numbers to look for there or in more rows. */
  async #rowsAt(reader: Reader, agent: AgentRef, seqs: readonly number[]) {
    const segments = await segmentsContaining(reader, agent.num, seqs);
    const sealed = seqs.filter((seq) => segments.some((segment) => contains(segment, seq)));
    const unsealed = seqs.filter((seq) => !sealed.includes(seq));
    if (unsealed.length === 0) return { rows: [], segments, left: sealed };
    const query = selectEvents(reader, agent.num).where('seq', 'in', unsealed).orderBy('seq');
    const rows = await this.#decode(reader, agent, query);
    const last = rows.at(-1)?.record.seq ?? Infinity;
    return { rows, segments, left: [...sealed, ...unsealed.filter((seq) => seq > last)] };
  }

  /** Records before `before`, newest first, in batches; at most `limit` per batch of rows. */
  async *#recordsBefore(
    agent: AgentRef,
    before: number,
    { limit, types }: Pick<PageOptions, 'limit' | 'types'>,
  ): AsyncGenerator<StoredRecord[]> {
    let cursor = before;
    while (cursor > 1) {
      const { rows, segment } = await this.#store.read((reader) =>
        this.#previous(reader, agent, cursor, limit, types),
      );
      if (rows.length > 0) {
        cursor = rows.at(-1)!.record.seq;
        yield rows;
        continue;
      }
      if (!segment) return;
      const blocks = parseBlocks(segment.blocks).filter((block) => block.first_seq < cursor);
      for await (const frames of this.#blocks(segment, blocks.reverse())) {
        yield recordsIn(frames, (seq, type) => seq < cursor && (!types || types.includes(type))).reverse();
      }
      cursor = segment.first_seq;
    }
  }

  /** Like `page`, for status events, which are all rows. */
  async *#statuses(
    agent: AgentRef,
    { after, before, limit }: Omit<PageOptions, 'types'>,
  ): AsyncGenerator<StoredRecord[]> {
    const backwards = before !== undefined && after === undefined;
    yield await this.#store.read((reader) => {
      let query = selectEventsOf(reader, agent.num, ['status']).limit(limit);
      if (after !== undefined) query = query.where('seq', '>', after);
      if (before !== undefined) query = query.where('seq', '<', before);
      return this.#decode(reader, agent, query.orderBy('seq', backwards ? 'desc' : 'asc'));
    });
  }

  /** Returns what follows `cursor`: rows, as returned by `read`, or a segment; null at the end. */
  async #next<Rows>(
    reader: Reader,
    agent: AgentRef,
    cursor: number,
    read: (range: SeqRange) => Promise<Rows | null>,
  ): Promise<{ rows: Rows } | { segment: SegmentRow } | null> {
    const segment = await segmentAfter(reader, agent.num, cursor);
    if (segment && segment.first_seq <= cursor + 1) return { segment };
    const rows = await read({ after: cursor, up_to: segment ? segment.first_seq - 1 : Infinity });
    if (rows !== null) return { rows };
    return segment ? { segment } : null;
  }

  /** Frames of rows up to a gap, or until the part is large enough; null if there are none. */
  async #part(reader: Reader, agent: AgentRef, range: SeqRange, rows_max: number): Promise<Part | null> {
    const rows = await reader.arrays(selectRange(reader, agent.num, range, rows_max));
    let [kind] = rows;
    if (!kind) return null;
    const writerFor = async (row: readonly unknown[]) =>
      frameWriter(agent.id, await this.#decoder.kind(reader, row));
    let write = await writerFor(kind);
    const first_seq = seqOf(kind);
    let last_seq = first_seq - 1;
    let text = '';
    for (const row of rows) {
      // A part never spans a gap.
      if (seqOf(row) !== last_seq + 1) break;
      if (!isSameKind(row, kind)) {
        kind = row;
        write = await writerFor(row);
      }
      last_seq++;
      text += write(last_seq, dataOf(row) ?? (await largeDataOf(reader, agent.num, row)));
      if (text.length >= limits.replay_part_bytes) break;
    }
    return { first_seq, last_seq, frames: Buffer.from(text) };
  }

  /** Records of rows; null if there are none. */
  async #rows(
    reader: Reader,
    agent: AgentRef,
    range: SeqRange,
    rows_max: number,
    types: readonly EventType[] | undefined,
  ): Promise<StoredRecord[] | null> {
    const query = types
      ? inRange(selectEventsOf(reader, agent.num, types), range).limit(rows_max)
      : selectRange(reader, agent.num, range, rows_max);
    const records = await this.#decode(reader, agent, query);
    return records.length > 0 ? records : null;
  }

  /** Returns the rows between the last segment before `cursor` and `cursor`, newest first, and that segment. */
  async #previous(
    reader: Reader,
    agent: AgentRef,
    cursor: number,
    limit: number,
    types?: readonly EventType[],
  ) {
    const segment = (await segmentBefore(reader, agent.num, cursor)) ?? null;
    if (segment && segment.last_seq >= cursor - 1) return { rows: [], segment };
    const events = types ? selectEventsOf(reader, agent.num, types) : selectEvents(reader, agent.num);
    let query = events.where('seq', '<', cursor).orderBy('seq', 'desc').limit(limit);
    if (segment) query = query.where('seq', '>', segment.last_seq);
    return { rows: await this.#decode(reader, agent, query), segment };
  }

  /** Records of rows, until they have `limits.page_bytes_max`, and one more. */
  async #decode(reader: Reader, agent: AgentRef, query: Compilable<unknown>): Promise<StoredRecord[]> {
    const records: StoredRecord[] = [];
    let size = 0;
    for (const row of await reader.arrays(query)) {
      const event = await this.#decoder.event(reader, agent.num, row);
      const bytes = event.data.length;
      records.push({ record: eventRecord(agent.id, event), bytes });
      if (size >= limits.page_bytes_max) break;
      size += bytes;
    }
    return records;
  }

  /** A segment's frames after `cursor`, up to the first damaged block; none if its blocks are missing. */
  async *#fromSegment(segment: SegmentRow, cursor: number): AsyncGenerator<Part> {
    const left = parseBlocks(segment.blocks).filter((block) => block.last_seq > cursor);
    const opened = await this.#segments.open(segment);
    if (!opened) return;
    try {
      let next = left[0] ? opened.read(left[0]) : null;
      for (let i = 0; i < left.length; i++) {
        const block = left[i]!;
        const frames = await next!;
        const ahead = left[i + 1];
        // Read one block ahead, so that decompressing and sending alternate between threads.
        next = ahead ? opened.read(ahead) : null;
        next?.catch(() => {});
        if (!frames) return;
        if (block.first_seq > cursor) {
          yield { first_seq: block.first_seq, last_seq: block.last_seq, frames };
        } else {
          yield { first_seq: cursor + 1, last_seq: block.last_seq, frames: framesAfter(frames, cursor) };
        }
      }
      await next;
    } finally {
      await opened.close();
    }
  }

  /** The frames of some blocks, in the given order. Omits damaged blocks. */
  async *#blocks(segment: SegmentRow, blocks: readonly Block[]): AsyncGenerator<Buffer> {
    const opened = blocks.length > 0 ? await this.#segments.open(segment) : null;
    if (!opened) return;
    try {
      for (const block of blocks) {
        const frames = await opened.read(block);
        if (frames) yield frames;
      }
    } finally {
      await opened.close();
    }
  }
}

function contains({ first_seq, last_seq }: { first_seq: number; last_seq: number }, seq: number): boolean {
  return first_seq <= seq && seq <= last_seq;
}

function inRange(events: ReturnType<typeof selectEvents>, { after, up_to }: SeqRange) {
  const following = events.where('seq', '>', after).orderBy('seq');
  return up_to === Infinity ? following : following.where('seq', '<=', up_to);
}

/** The matching records in consecutive frames. */
function recordsIn(frames: Buffer, matches: (seq: number, type: EventType) => boolean): StoredRecord[] {
  const records: StoredRecord[] = [];
  for (const one of splitFrames(frames)) {
    if (matches(frameSeq(one), frameType(one))) records.push({ record: frameRecord(one), bytes: one.length });
  }
  return records;
}

function framesAfter(frames: Buffer, cursor: number): Buffer {
  let from = 0;
  for (const one of splitFrames(frames)) {
    if (frameSeq(one) > cursor) break;
    from += one.length;
  }
  return frames.subarray(from);
}
