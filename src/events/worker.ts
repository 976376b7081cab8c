/**
 * The worker thread of the event log. It makes segments and maintains the search index, but never writes to the store.
 */
import { workerData } from 'node:worker_threads';
import { serveCalls } from '../base/worker-calls.ts';
import { openReader } from '../store/open.ts';
import type { StoreSource } from '../store/store.ts';
import { type SealRequest, seal, type WriteSegment } from './seal-job.ts';
import { SearchIndex, type SearchRequest } from './search-index.ts';
import { writeSegmentFile } from './segment-files.ts';
import { segmentReader } from './segment-storage.ts';

export interface EventsWorkerData {
  source: StoreSource;
  /** Folder of segments that are files. */
  folder: string;
  search_path: string;
}

const { source, folder, search_path } = workerData as EventsWorkerData;
const reader = await openReader(source);
const segments = segmentReader(reader, folder);
const write: WriteSegment = source.kind === 'sqlite' ? (segment) => writeSegmentFile(folder, segment) : null;
let index: Promise<SearchIndex> | null = null;
const search = () => {
  index ??= SearchIndex.open(search_path, reader, segments).catch((error: unknown) => {
    // The next call tries again, for example when the database is back.
    index = null;
    throw error;
  });
  return index;
};

const tasks = {
  seal: (request: SealRequest) => seal(reader, request, write),
  /** Agents whose index entries are out of date. Called once after a start. */
  stale: async (_: null) => (await search()).stale(),
  /** Updates the index for these agents. */
  index: async (agent_nums: number[]) => (await search()).update(agent_nums),
  search: async (request: SearchRequest) => (await search()).find(request),
  forget: async (agent_num: number) => (await search()).forget(agent_num),
};
export type EventsTasks = typeof tasks;

serveCalls(tasks);
