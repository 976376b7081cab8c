/**
 * Retention by total size: whose logs become shorter. Each step shortens the share of the owner, or of the node that agents were
 * recovered from, that is then the largest. So whoever writes much cannot push out the logs of others.
 */
import type { Clock } from '../base/clock.ts';
import { bytesOfLogs, bytesOfShares, type LogShare, largestLogOf } from '../store/event-rows/heads.ts';
import type { Store } from '../store/store.ts';
import { limits } from './limits.ts';
import { oldestSegmentsOf } from './queries/segments.ts';

export interface LogShortening {
  store: Store;
  clock: Clock;
  /** Ends the work after the current step. */
  signal: AbortSignal;
  /** Returns its bytes, 0 if it cannot be deleted, or null if others could not be deleted at the moment either. */
  dropSegment(id: number): Promise<number | null>;
  /** Deletes some of an agent's oldest rows, of at least `bytes` if there are so many in one step. Returns their bytes. */
  dropRows(agent_num: number, bytes: number): Promise<number>;
}

interface Share extends LogShare {
  bytes: number;
  /** Ids of its oldest segments that were read but not yet deleted, oldest first. */
  segments: number[];
  /** Ids of segments that could not be deleted in this pass. */
  skipped: number[];
}

/** Reduces all logs to `bytes_max`. If nothing more of the largest share can be deleted, the rest stays. */
export async function shortenLogs(bytes_max: number, by: LogShortening): Promise<void> {
  let shares: Share[] = [];
  let read_ms: number | null = null;
  // For the whole pass, which would otherwise try the same segments again and again.
  const skipped = new Map<string, number[]>();
  const readShare = (of: LogShare & { bytes: number }): Share => {
    const key = JSON.stringify([of.owner_id, of.recovered_from]);
    const ids = skipped.get(key) ?? [];
    skipped.set(key, ids);
    return { ...of, segments: [], skipped: ids };
  };
  while (!by.signal.aborted) {
    const excess = (await by.store.read(bytesOfLogs)) - bytes_max;
    if (excess <= 0) return;
    const now_ms = by.clock.now();
    // Rarely: with 10,000 agents, this takes much longer than the sum. But a share that grows during a long pass would count as
    // small, and others would lose their logs.
    if (read_ms === null || now_ms - read_ms >= limits.retention_shares_ms) {
      shares = (await by.store.read(bytesOfShares)).map(readShare);
      read_ms = now_ms;
    }
    const largest = largestOf(shares);
    if (!largest) return;
    const deleted = await shorten(largest, excess, by);
    if (deleted === null) return;
    largest.bytes -= deleted;
  }
}

/**
 * Deletes the oldest segment of a share, or some of the rows of its largest log. Returns how many bytes were deleted: 0 for
 * a segment that cannot be deleted and is skipped from then on, null if nothing is left. If segments were skipped, rows
 * stay, because they are newer.
 */
async function shorten(share: Share, excess_bytes: number, by: LogShortening): Promise<number | null> {
  if (share.segments.length === 0) {
    const count = limits.retention_segments_per_read;
    share.segments = await by.store.read((reader) => oldestSegmentsOf(reader, share, share.skipped, count));
  }
  const oldest = share.segments.shift();
  if (oldest !== undefined) {
    const deleted = await by.dropSegment(oldest);
    if (deleted === 0) share.skipped.push(oldest);
    return deleted;
  }
  const log = await by.store.read((reader) => largestLogOf(reader, share));
  if (log === undefined || share.skipped.length > 0) return null;
  return (await by.dropRows(log, excess_bytes)) || null;
}

function largestOf(shares: readonly Share[]): Share | undefined {
  return shares.reduce<Share | undefined>(
    (one, other) => (one === undefined || other.bytes > one.bytes ? other : one),
    undefined,
  );
}
