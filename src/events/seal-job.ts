/**
 * Writes one segment file from an agent's oldest rows: encode, compress, write, fsync, rename. Runs in the worker, with
 * its own reader. It does not change the database: until its result is recorded, the file is an orphan.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';
import type { Selectable } from 'kysely';
import { writeFileAtomic } from '../base/files.ts';
import { limits as sharedLimits } from '../base/limits.ts';
import { streamNumber } from '../store/event-rows/numbers.ts';
import {
  EventDecoder,
  type StoredEvent,
  selectEvents,
  seqOf,
  sessionNumOf,
} from '../store/event-rows/read.ts';
import type { Reader, Store } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import type { AgentRef } from './agent-ref.ts';
import { frameText } from './frame.ts';
import { limits } from './limits.ts';
import { type Block, blockIndex, type Run } from './segment.ts';

export interface SealRequest {
  folder: string;
  agent: AgentRef;
  /** Everything up to this number is already sealed or deleted. */
  after: number;
  /** Later events stay as rows. */
  up_to: number;
}

/** The content of the segment's row. */
export interface Sealed extends Omit<Selectable<Tables['segments']>, 'id' | 'agent_num' | 'swept'> {
  /** Size of the rows that the segment replaces; excludes status rows, which stay. */
  row_bytes: number;
}

/** Returns null if there is nothing to seal. */
export async function seal(reader: Pick<Store, 'read'>, request: SealRequest): Promise<Sealed | null> {
  const writer = new SegmentWriter();
  await reader.read((rows) => collect(rows, request, writer));
  writer.flush();
  const { summary } = writer;
  if (!summary) return null;
  const folder = String(request.agent.num);
  if (mkdirSync(join(request.folder, folder), { recursive: true, mode: 0o700 })) syncFolder(request.folder);
  const name = `${summary.first_seq}-${summary.last_seq}-${randomBytes(4).toString('hex')}.seg`;
  const path = `${folder}/${name}`;
  const bytes = Buffer.concat(writer.packed);
  await writeFileAtomic(join(request.folder, path), bytes);
  return { ...summary, path, bytes: bytes.length, blocks: blockIndex(writer.blocks) };
}

/** Syncs a folder, so that a new entry in it survives a power failure. */
function syncFolder(path: string): void {
  const file = openSync(path, 'r');
  fsyncSync(file);
  closeSync(file);
}

async function collect(
  reader: Reader,
  { agent, after, up_to }: SealRequest,
  writer: SegmentWriter,
): Promise<void> {
  const decode = new EventDecoder();
  const query = selectEvents(reader, agent.num)
    .select('offset')
    .where('seq', '<=', up_to)
    .orderBy('seq')
    .limit(limits.seal_rows_per_read);
  let last = 0;
  while (writer.raw_bytes < limits.segment_raw_bytes) {
    const rows = await reader.arrays(query.where('seq', '>', Math.max(after, last)));
    for (const row of rows) {
      if (writer.raw_bytes >= limits.segment_raw_bytes) break;
      // A segment never spans a gap, so that readers can detect it.
      if (last > 0 && seqOf(row) !== last + 1) return;
      const event = await decode.event(reader, row);
      last = event.seq;
      writer.add(frameText(agent.id, event.seq, event), event, outputOf(event, row));
    }
    if (rows.length < limits.seal_rows_per_read) return;
  }
}

/** Where an event's bytes are in its stream's output; null if it is not output. */
function outputOf({ stream }: StoredEvent, row: readonly unknown[]): Omit<Run, 'seq' | 'to'> | null {
  if (stream === null) return null;
  return { session_num: sessionNumOf(row), stream: streamNumber(stream), from: row[4] as number };
}

class SegmentWriter {
  readonly blocks: Block[] = [];
  readonly packed: Buffer[] = [];
  summary: Omit<Sealed, 'path' | 'bytes' | 'blocks'> | null = null;
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
    if (this.#text.length >= limits.replay_part_bytes) this.flush();
  }

  flush(): void {
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
