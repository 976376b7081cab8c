/**
 * Splits a stream's bytes into output events (pure). An event contains whole lines if possible, and at most 64 KiB. It
 * never splits a UTF-8 character, and does not mix text with lines that are not UTF-8 if they are cheap to separate.
 */
import { isUtf8 } from 'node:buffer';
import { limits } from '../limits.ts';

export interface Cut {
  /** Bytes of the chunk that the events use. The rest waits for more bytes. */
  used: number;
  /** Exclusive ends of the events, ascending. */
  ends: number[];
  /** Per event: whether the line continues in the next one. */
  partial: boolean[];
  /** Per event: whether its bytes are valid UTF-8. */
  is_text: boolean[];
}

export interface CutOptions {
  /** More bytes are known to follow, so an unfinished line at the end may wait for them. */
  more: boolean;
  /** The stream ends here, so everything becomes an event. */
  last: boolean;
  event_bytes_max?: number;
}

const NEWLINE = 0x0a;
/** A chunk that changes more often than this between text and other bytes is not split at these changes. */
const RUNS_MAX = 16;

/** Splits a chunk into events. `used` is 0 if all of it should wait for more bytes. Never throws. */
export function cut(chunk: Uint8Array, options: CutOptions): Cut {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const max = options.event_bytes_max ?? limits.event_output_bytes_max;
  const result: Cut = { used: 0, ends: [], partial: [], is_text: [] };
  while (result.used < bytes.length) {
    const end = eventEnd(bytes, result.used, max, options);
    if (end === result.used) break;
    for (const run of runs(bytes, result.used, end)) {
      result.ends.push(run.end);
      result.partial.push(bytes[run.end - 1] !== NEWLINE);
      result.is_text.push(run.is_text);
    }
    result.used = end;
  }
  const at_end = result.used === bytes.length;
  if (options.last && at_end && result.partial.length > 0) result.partial[result.partial.length - 1] = false;
  return result;
}

/** The end of the event that begins at `from`, or `from` itself if its bytes should wait. */
function eventEnd(bytes: Buffer, from: number, max: number, options: CutOptions): number {
  const limit = Math.min(bytes.length, from + max);
  // Searches only up to the limit. Otherwise, each event of a long line would search back to the beginning.
  const line_end = from + bytes.subarray(from, limit).lastIndexOf(NEWLINE) + 1;
  const full = limit === from + max;
  if (line_end > from && (full || line_end === limit)) return line_end;
  if (!full) {
    if (options.more) return line_end;
    if (options.last) return limit;
  }
  return characterEnd(bytes, from, limit);
}

/** Returns `end`, or up to 3 bytes less if `end` would split a UTF-8 character. */
function characterEnd(bytes: Buffer, from: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= from; back++) {
    const byte = bytes[end - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return byte >= 0xc2 && byte <= 0xf4 && length > back ? end - back : end;
  }
  return end;
}

/** Consecutive lines that are either all UTF-8 or all not. */
interface Run {
  end: number;
  is_text: boolean;
}

/** Splits a range into runs. Does not split it if there would be too many. */
function runs(bytes: Buffer, from: number, end: number): Run[] {
  if (isUtf8(bytes.subarray(from, end))) return [{ end, is_text: true }];
  const found: Run[] = [];
  let valid: boolean | null = null;
  for (let start = from; start < end; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    const stop = newline === -1 || newline >= end ? end : newline + 1;
    const line_valid = isUtf8(bytes.subarray(start, stop));
    if (valid !== null && valid !== line_valid) found.push({ end: start, is_text: valid });
    if (found.length > RUNS_MAX) return [{ end, is_text: false }];
    valid = line_valid;
    start = stop;
  }
  found.push({ end, is_text: valid === true });
  return found;
}
