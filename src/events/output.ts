/**
 * The raw bytes of a session: one stream, or both in the order of arrival. Positions count kept bytes; `lost_bytes` is
 * the number of bytes that retention deleted before them. The index of a sealed block lists its bytes, and rows are
 * found by binary search, so the cost of reading a range depends only on its length.
 */
import { setImmediate } from 'node:timers/promises';
import { type EventRecord, type StreamName, streamNames } from '../core/event.ts';
import { problems } from '../core/problem.ts';
import { headOf } from '../store/event-rows/heads.ts';
import { streamName } from '../store/event-rows/numbers.ts';
import { firstSeqFrom, selectOutput } from '../store/event-rows/read.ts';
import { outputEnd, spoolsOf } from '../store/event-rows/spools.ts';
import type { Reader, Store } from '../store/store.ts';
import type { AgentRef } from './agent-ref.ts';
import { asBuffer, frameRecord, frameType, splitFrames } from './frame.ts';
import { limits } from './limits.ts';
import { segmentAfter } from './queries/segments.ts';
import { type Block, parseBlocks, type Run, type SegmentName, type SegmentReader } from './segment.ts';

export interface Output {
  /** Number of kept bytes, which is the end of the range of positions. */
  size_bytes: number;
  /** Bytes before position 0 that are no longer kept. */
  lost_bytes: number;
  /**
   * Yields bytes `from` (inclusive) to `to` (exclusive), none of which was written after the output was opened. Throws
   * `OutputMissing` if bytes before the last one are missing, because retention has deleted them meanwhile or their segment
   * is damaged.
   */
  read(from: number, to: number): AsyncGenerator<Buffer>;
}

/** Some of an output cannot be read, and perhaps never again. */
export class OutputMissing extends Error {}

interface Target {
  agent: AgentRef;
  session_id: string;
  session_num: number;
  streams: readonly StreamName[];
  first_seq: number;
  /** Committed output length of each stream. */
  committed: Record<StreamName, number>;
}

/** Opens the output of a session: one stream, or both (null). Throws `session not found`. */
export async function openOutput(
  store: Pick<Store, 'read'>,
  segments: SegmentReader,
  agent: AgentRef,
  session_id: string,
  stream: StreamName | null,
): Promise<Output> {
  const target = await store.read((reader) => findTarget(reader, agent, session_id, stream));
  const output = new OutputReader(store, segments, target);
  const first_offsets = await Promise.all(target.streams.map((name) => output.firstKept(name)));
  const committed = target.streams.reduce((sum, name) => sum + target.committed[name], 0);
  const lost_bytes = first_offsets.reduce((sum, offset) => sum + offset, 0);
  return {
    size_bytes: committed - lost_bytes,
    lost_bytes,
    read: (from, to) => output.read(from, to, first_offsets),
  };
}

async function findTarget(
  reader: Reader,
  agent: AgentRef,
  session_id: string,
  stream: StreamName | null,
): Promise<Target> {
  const session = await reader.get(
    reader.sql
      .selectFrom('sessions')
      .select(['num', 'first_seq'])
      .where('id', '=', session_id)
      .where('agent_num', '=', agent.num),
  );
  if (!session) throw problems.sessionNotFound();
  const { stdout, stderr } = await spoolsOf(reader, session.num);
  return {
    agent,
    session_id,
    session_num: session.num,
    streams: stream ? [stream] : streamNames,
    first_seq: session.first_seq,
    committed: { stdout: outputEnd(stdout), stderr: outputEnd(stderr) },
  };
}

interface SegmentRef extends SegmentName {
  last_seq: number;
  blocks: Block[];
}

/**
 * A read position: events up to `after` are finished, the next `skip` bytes are skipped, and then `left` bytes are
 * read. `next`: the offset at which each stream continues.
 */
interface ReadPosition {
  after: number;
  skip: number;
  left: number;
  next: Record<StreamName, number>;
}

/** Moves the position of a stream from `from` to `to`. Throws `OutputMissing` if `from` is not where it is. */
function advance({ next }: ReadPosition, stream: StreamName, from: number, to: number): void {
  if (next[stream] !== from)
    throw new OutputMissing(`bytes ${next[stream]} to ${from} of ${stream} are missing`);
  next[stream] = to;
}

/** Bytes of an event, with the offset where they begin in their stream. */
interface Piece {
  stream: StreamName;
  from: number;
  bytes: Buffer;
}

class OutputReader {
  readonly #store: Pick<Store, 'read'>;
  readonly #segments: SegmentReader;
  readonly #target: Target;

  constructor(store: Pick<Store, 'read'>, segments: SegmentReader, target: Target) {
    this.#store = store;
    this.#segments = segments;
    this.#target = target;
  }

  /** Offset of the first kept byte of a stream; its committed length if no byte is kept. */
  async firstKept(stream: StreamName): Promise<number> {
    const committed = this.#target.committed[stream];
    return committed === 0 ? 0 : Math.min(committed, await this.#firstOffset(stream));
  }

  async #firstOffset(stream: StreamName): Promise<number> {
    let after = this.#target.first_seq - 1;
    while (true) {
      for (let segment = await this.#segment(after); segment; segment = await this.#segment(after)) {
        const run = segment.blocks
          .flatMap((block) => block.runs)
          .find((one) => this.#isOfTarget(one, [stream]));
        if (run) return run.from;
        after = segment.last_seq;
      }
      const row = await this.#firstRow(after, [stream]);
      if (row !== 'sealed') return row?.offset ?? Infinity;
    }
  }

  async *read(from: number, to: number, first_offsets: readonly number[]): AsyncGenerator<Buffer> {
    const { streams, first_seq } = this.#target;
    const next = { stdout: 0, stderr: 0 };
    for (const [i, stream] of streams.entries()) next[stream] = first_offsets[i]!;
    let position: ReadPosition = { after: first_seq - 1, skip: from, left: to - from, next };
    let has_sought = streams.length > 1;
    while (position.left > 0) {
      // The segment is looked up at each step, because rows may be sealed during the read.
      const segment = await this.#segment(position.after);
      if (segment) {
        yield* this.#readSegment(segment, position);
        continue;
      }
      if (!has_sought) {
        has_sought = true;
        const wanted = to - position.left + first_offsets[0]!;
        const found = await this.#seek(position.after, streams[0]!, wanted);
        if (found) {
          position.after = found.seq - 1;
          position.skip = wanted - found.offset;
          position.next[streams[0]!] = found.offset;
        }
      }
      const begin = position;
      // The read may run more than once.
      const { parts, end } = await this.#store.read((reader) =>
        this.#readRows(reader, structuredClone(begin)),
      );
      if (!end) return;
      position = end;
      if (parts.length > 0) yield Buffer.concat(parts);
      else await setImmediate();
    }
  }

  async *#readSegment(segment: SegmentRef, position: ReadPosition): AsyncGenerator<Buffer> {
    const opened = await this.#segments.open(segment);
    try {
      for (const block of segment.blocks) {
        if (position.left <= 0) return;
        if (block.last_seq <= position.after) continue;
        const runs = this.#runsOf(block);
        const block_bytes = runs.reduce((sum, run) => sum + run.to - run.from, 0);
        if (block_bytes === 0) continue;
        if (block.first_seq > position.after && position.skip >= block_bytes) {
          for (const { stream, from, to } of runs) advance(position, stream, from, to);
          position.skip -= block_bytes;
          continue;
        }
        const frames = await opened?.read(block);
        if (!frames) throw new OutputMissing(`a block of ${segment.path} cannot be read`);
        for (const piece of this.#pieces(frames, block, position.after)) {
          const part = this.#take(piece, position);
          if (part) yield part;
        }
      }
      position.after = segment.last_seq;
    } finally {
      await opened?.close();
    }
  }

  /** Bytes of the next rows, and the position after them, which is `position`; null if there are no rows. */
  async #readRows(reader: Reader, position: ReadPosition) {
    const parts: Buffer[] = [];
    if (await segmentAfter(reader, this.#target.agent.num, position.after)) return { parts, end: position };
    let bytes = 0;
    let rows = 0;
    const query = this.#rows(reader, position.after, this.#target.streams).select(['stream', 'data']);
    await reader.each(query, (row) => {
      const [seq, from, , stream_num, data] = row as [number, number, number, number, Uint8Array];
      position.after = seq;
      const part = this.#take({ stream: streamName(stream_num)!, from, bytes: asBuffer(data) }, position);
      if (part) parts.push(part);
      bytes += part?.length ?? 0;
      rows++;
      return position.left > 0 && bytes < limits.replay_part_bytes && rows < limits.scan_rows_per_slice;
    });
    return { parts, end: rows === 0 ? null : position };
  }

  /** The requested part of an event's bytes; null if the event has no such part. */
  #take({ stream, from, bytes }: Piece, position: ReadPosition): Buffer | null {
    const committed = this.#target.committed[stream];
    // It was written after the output was opened.
    const is_new = from >= committed;
    advance(position, stream, is_new ? committed : from, is_new ? committed : from + bytes.length);
    if (is_new) return null;
    if (position.skip >= bytes.length) {
      position.skip -= bytes.length;
      return null;
    }
    const part = bytes.subarray(position.skip, position.skip + position.left);
    position.skip = 0;
    position.left -= part.length;
    return part.length > 0 ? part : null;
  }

  /** A row of the stream at or shortly before `offset`; null if the caller must read from the beginning instead. */
  async #seek(
    after: number,
    stream: StreamName,
    offset: number,
  ): Promise<{ seq: number; offset: number } | null> {
    const head = await this.#store.read((reader) => headOf(reader, this.#target.agent.num));
    let low = after;
    let high = head?.last_seq ?? after;
    let best: { seq: number; offset: number } | null = null;
    while (high - low > limits.scan_window_rows) {
      const middle = Math.floor((low + high) / 2);
      const row = await this.#store.read((reader) => this.#seekNear(reader, middle, [stream]));
      // The stream has few events in this range, so reading continues from here.
      if (!row) break;
      if (row.offset <= offset) {
        best = row;
        low = Math.max(row.seq, middle);
      } else high = middle;
    }
    return best;
  }

  /** `sealed`: rows after `after` were moved to a segment in the meantime. */
  async #firstRow(
    after: number,
    streams: readonly StreamName[],
  ): Promise<{ seq: number; offset: number } | null | 'sealed'> {
    while (true) {
      const found = await this.#store.read(async (reader) => {
        if (await segmentAfter(reader, this.#target.agent.num, after)) return 'sealed';
        const row = await this.#seekNear(reader, after, streams);
        const next = await firstSeqFrom(
          reader,
          this.#target.agent.num,
          after + limits.scan_rows_per_slice + 1,
        );
        return { row, next };
      });
      if (found === 'sealed') return found;
      if (found.row) return found.row;
      if (found.next === undefined) return null;
      after = found.next - 1;
      await setImmediate();
    }
  }

  /** The stream's first row within a slice of rows after `after`. */
  async #seekNear(
    reader: Reader,
    after: number,
    streams: readonly StreamName[],
  ): Promise<{ seq: number; offset: number } | null> {
    const row = await reader.get(
      this.#rows(reader, after, streams)
        .where('seq', '<=', after + limits.scan_rows_per_slice)
        .limit(1),
    );
    return row ? { seq: row.seq, offset: row.offset! } : null;
  }

  #rows(reader: Reader, after: number, streams: readonly StreamName[]) {
    const { agent, session_num } = this.#target;
    return selectOutput(reader, { agent_num: agent.num, session_num, streams }, after);
  }

  async #segment(after: number): Promise<SegmentRef | null> {
    const row = await this.#store.read((reader) => segmentAfter(reader, this.#target.agent.num, after));
    return row ? { ...row, blocks: parseBlocks(row.blocks) } : null;
  }

  #isOfTarget(run: Run, streams: readonly StreamName[]): boolean {
    const stream = streamName(run.stream);
    return run.session_num === this.#target.session_num && stream !== null && streams.includes(stream);
  }

  /** The target's bytes in a block, without those that were written after the output was opened. */
  #runsOf(block: Block): { stream: StreamName; seq: number; from: number; to: number }[] {
    const { streams, committed } = this.#target;
    return block.runs
      .filter((run) => this.#isOfTarget(run, streams))
      .map(({ seq, from, to, ...run }) => ({ stream: streamName(run.stream)!, seq, from, to }))
      .map((run) => ({ ...run, to: Math.min(run.to, committed[run.stream]) }))
      .filter(({ from, to }) => from < to);
  }

  /** The target's bytes in a block's frames after an event, in order. Frames have no offsets, but the block's runs have. */
  *#pieces(frames: Buffer, block: Block, after: number): Generator<Piece> {
    const { session_id, streams } = this.#target;
    const runs = this.#runsOf(block);
    const next: Partial<Record<StreamName, number>> = {};
    for (const one of splitFrames(frames)) {
      if (frameType(one) !== 'output') continue;
      const record = frameRecord(one) as EventRecord & {
        stream: StreamName;
        data: string;
        encoding?: 'base64';
      };
      const { seq, stream } = record;
      if (record.session_id !== session_id || !streams.includes(stream)) continue;
      const from = runs.find((run) => run.stream === stream && run.seq === seq)?.from ?? next[stream];
      if (from === undefined) continue;
      const bytes = Buffer.from(record.data, record.encoding ?? 'utf8');
      next[stream] = from + bytes.length;
      if (seq > after) yield { stream, from, bytes };
    }
  }
}
