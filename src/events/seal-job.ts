/**
 * Makes one segment from an agent's oldest rows: encode, compress, and write it to a file if segments are files. Runs in
 * the worker, with its own reader. It does not change the database: until its result is recorded, the blocks are orphans.
 */
import { randomBytes } from 'node:crypto';
import { constants, zstdCompressSync } from 'node:zlib';
import type { Selectable } from 'kysely';
import { limits as sharedLimits } from '../base/limits.ts';
import { streamNumber } from '../store/event-rows/numbers.ts';
import {
  EventDecoder,
  type StoredEvent,
  selectEvents,
  seqOf,
  sessionNumOf,
} from '../store/event-rows/read.ts';
import type { Reader, StoreReader } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import type { AgentRef } from './agent-ref.ts';
import { frameText } from './frame.ts';
import { limits } from './limits.ts';
import { type Block, blockIndex, type PackedSegment, type Run } from './segment.ts';

export interface SealRequest {
  agent: AgentRef;
  /** Everything up to this number is already sealed or deleted. */
  after: number;
  /** Later events stay as rows. */
  up_to: number;
}

export interface Sealed {
  /** The segment's row. */
  row: Omit<Selectable<Tables['segments']>, 'id'>;
  /** Size of the rows that the segment replaces; excludes status rows, which stay. */
  row_bytes: number;
  /** Its compressed blocks, unless they were written. */
  packed: readonly Uint8Array[];
}

/** Writes the blocks, if the worker can do that; null if the caller stores them. */
export type WriteSegment = ((segment: PackedSegment) => Promise<void>) | null;

/** Returns null if there is nothing to seal. */
export async function seal(
  reader: Pick<StoreReader, 'read'>,
  request: SealRequest,
  write: WriteSegment,
): Promise<Sealed | null> {
  const writer = await reader.read((rows) => collect(rows, request));
  const { summary, packed } = writer;
  if (!summary) return null;
  const agent_num = request.agent.num;
  const { row_bytes, ...range } = summary;
  const path = `${agent_num}/${range.first_seq}-${range.last_seq}-${randomBytes(4).toString('hex')}.seg`;
  await write?.({ agent_num, path, packed });
  const bytes = packed.reduce((sum, block) => sum + block.length, 0);
  const row = { agent_num, ...range, path, bytes, blocks: blockIndex(writer.blocks), swept: 0 } as const;
  return { row, row_bytes, packed: write ? [] : packed };
}

async function collect(reader: Reader, { agent, after, up_to }: SealRequest): Promise<SegmentWriter> {
  const writer = new SegmentWriter();
  const decode = new EventDecoder();
  const query = selectEvents(reader, agent.num).select('offset').where('seq', '<=', up_to).orderBy('seq');
  let last = 0;
  let rows_max: number = limits.seal_rows_min;
  while (writer.raw_bytes < limits.segment_raw_bytes) {
    const before_bytes = writer.raw_bytes;
    const rows = await reader.arrays(query.where('seq', '>', Math.max(after, last)).limit(rows_max));
    for (const row of rows) {
      if (writer.raw_bytes >= limits.segment_raw_bytes) break;
      // A segment never spans a gap, so that readers can detect it.
      if (last > 0 && seqOf(row) !== last + 1) return writer.end();
      const event = await decode.event(reader, agent.num, row);
      last = event.seq;
      writer.add(frameText(agent.id, event.seq, event), event, outputOf(event, row));
    }
    if (rows.length < rows_max) break;
    const fits = Math.ceil((limits.seal_read_bytes * rows.length) / (writer.raw_bytes - before_bytes));
    rows_max = Math.min(limits.seal_rows_max, Math.max(limits.seal_rows_min, fits));
  }
  return writer.end();
}

/** Where an event's bytes are in its stream's output; null if it is not output. */
function outputOf({ stream }: StoredEvent, row: readonly unknown[]): Omit<Run, 'seq' | 'to'> | null {
  if (stream === null) return null;
  return { session_num: sessionNumOf(row), stream: streamNumber(stream), from: row[4] as number };
}

type Summary = Pick<Sealed['row'], 'first_seq' | 'last_seq' | 'last_ts'> & Pick<Sealed, 'row_bytes'>;

class SegmentWriter {
  readonly blocks: Block[] = [];
  readonly packed: Buffer[] = [];
  summary: Summary | null = null;
  raw_bytes = 0;
  #at = 0;
  #text = '';
  #first_seq = 0;
  #runs: Run[] = [];

  /** Adds an event and its frame. `output`: the position of its bytes in the stream's output; null for other events. */
  add(text: string, event: StoredEvent, output: Omit<Run, 'seq' | 'to'> | null): void {
    const { seq, ts_ms, type } = event;
    const length = Buffer.byteLength(event.data);
    this.summary ??= { first_seq: seq, last_seq: seq, last_ts: ts_ms, row_bytes: 0 };
    this.summary.last_seq = seq;
    this.summary.last_ts = ts_ms;
    if (type !== 'status') this.summary.row_bytes += length + sharedLimits.event_row_bytes;
    if (this.#text === '') this.#first_seq = seq;
    this.#text += text;
    this.raw_bytes += text.length;
    if (output) this.#extend(output, seq, length);
    if (this.#text.length >= limits.replay_part_bytes) this.#flush();
  }

  end(): this {
    this.#flush();
    return this;
  }

  #flush(): void {
    if (this.#text === '') return;
    const raw = Buffer.from(this.#text);
    const packed = zstdCompressSync(raw, {
      params: {
        [constants.ZSTD_c_compressionLevel]: limits.segment_level,
        [constants.ZSTD_c_checksumFlag]: 1,
      },
    });
    this.packed.push(packed);
    this.blocks.push({
      first_seq: this.#first_seq,
      last_seq: this.summary!.last_seq,
      at: this.#at,
      bytes: packed.length,
      raw_bytes: raw.length,
      runs: this.#runs,
    });
    this.#at += packed.length;
    this.#text = '';
    this.#runs = [];
  }

  #extend(output: Omit<Run, 'seq' | 'to'>, seq: number, length: number): void {
    const run = this.#runs.findLast(
      (known) => known.session_num === output.session_num && known.stream === output.stream,
    );
    if (run?.to === output.from) run.to += length;
    else this.#runs.push({ ...output, seq, to: output.from + length });
  }
}
