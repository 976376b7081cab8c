/** The fleet stream's frames, put into what screens have read: each is a record as it is after a change. */
import type { QueryClient } from '@tanstack/react-query';
import type { Frame } from '../../client/client.ts';

type Row = Record<string, unknown>;

/** The lists and single records that a frame of each kind belongs to. */
const places: Record<string, (record: Row) => { lists: unknown[][]; one?: unknown[]; id: string }> = {
  agent: () => ({ lists: [['agents']], one: ['agent'], id: 'id' }),
  review: () => ({ lists: [['reviews']], one: ['review'], id: 'id' }),
  elicitation: () => ({ lists: [['elicitations']], one: ['elicitation'], id: 'id' }),
  run: (record) => ({ lists: [['runs', record.team_id]], one: ['run'], id: 'id' }),
  step: (record) => ({ lists: [['steps', record.run_id]], id: 'step_key' }),
  task: (record) => ({ lists: [['tasks', record.team_id]], one: ['task'], id: 'id' }),
};

/** Kinds whose frames are not the records that lists hold: those are read again. */
const readAgain: Record<string, unknown[][]> = {
  node: [['nodes'], ['agent-nodes']],
};

export function applyFrame(queries: QueryClient, frame: Frame): void {
  const record = frame.data.record as Row | undefined;
  if (!record) return;
  for (const key of readAgain[frame.event] ?? []) void queries.invalidateQueries({ queryKey: key });
  const place = places[frame.event]?.(record);
  if (!place) return;
  const { lists, one, id } = place;
  for (const key of lists) {
    put(queries, key, () => queries.setQueryData<Row[]>(key, (rows) => rows && merged(rows, record, id)));
  }
  if (!one) return;
  const key = [...one, record[id]];
  if (record.deleted) queries.removeQueries({ queryKey: key });
  else {
    put(queries, key, () =>
      queries.setQueryData<Row>(key, (known) => (known && isOlder(record, known) ? known : record)),
    );
  }
}

/** Now, and again after what is being read meanwhile: that may have been read before the change. */
function put(queries: QueryClient, queryKey: unknown[], change: () => void): void {
  const reading = queries.getQueryCache().find({ queryKey, exact: true })?.promise;
  change();
  reading?.then(
    () => setTimeout(change),
    () => {},
  );
}

/** Newest first, as the lists of the API are; a steps list keeps its order. */
function merged(rows: Row[], record: Row, id: string): Row[] {
  const at = rows.findIndex((row) => row[id] === record[id]);
  if (record.deleted) return at === -1 ? rows : rows.toSpliced(at, 1);
  if (at === -1) return id === 'step_key' ? [...rows, record] : [record, ...rows];
  return isOlder(record, rows[at]!) ? rows : rows.with(at, record);
}

/** A list that was read after the change already holds something newer. */
function isOlder(record: Row, known: Row): boolean {
  const [a, b] = [record.updated_at, known.updated_at];
  return typeof a === 'string' && typeof b === 'string' && a < b;
}
