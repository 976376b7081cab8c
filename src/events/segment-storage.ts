/** Where the segments of a database are. */
import type { Store } from '../store/store.ts';
import type { SegmentReader, SegmentStorage } from './segment.ts';
import { SegmentFiles } from './segment-files.ts';
import { SegmentRowReader, SegmentRows } from './segment-rows.ts';

/** `folder`: of segments that are files. */
export function segmentReader(store: Pick<Store, 'read' | 'source'>, folder: string): SegmentReader {
  return store.source.kind === 'sqlite' ? new SegmentFiles(store, folder) : new SegmentRowReader(store);
}

/** `folder`: of segments that are files. */
export function segmentStorage(store: Store, folder: string): SegmentStorage {
  return store.source.kind === 'sqlite' ? new SegmentFiles(store, folder) : new SegmentRows(store);
}
