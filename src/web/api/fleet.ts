/** Applies frames of the fleet feed to the query cache. Each frame has a record as it is after a change. */
import type { QueryClient } from '@tanstack/react-query';
import type { Frame } from '../../client/client.ts';
import { Problem } from '../../core/problem.ts';
import type { CachedRecord, CacheKey, Row } from '../feature.ts';
import { features } from '../features.ts';
import { table } from '../table.ts';
import { afterFetch, readAfterFetch, readOnceFetched } from './after-fetch.ts';
import { applyToAllRuns } from './all-runs.ts';
import { keys } from './keys.ts';
import { compareAges } from './record-age.ts';
import { applyToWaitingRuns } from './waiting-runs.ts';
import { applyToWaitingSteps } from './waiting-steps.ts';

/** Where the record of a frame is cached, by the kind of the frame. */
const places: Record<string, (record: Row) => CachedRecord> = Object.assign(
  {
    agent: ({ id }) => ({ list: keys.agents, one: keys.agent(String(id)), id: 'id' }),
    review: ({ id }) => ({ list: keys.reviews, one: keys.review(String(id)), id: 'id' }),
    elicitation: ({ id }) => ({ list: keys.elicitations, one: keys.elicitation(String(id)), id: 'id' }),
    run: ({ id, team_id }) => ({ list: keys.runs(String(team_id)), one: keys.run(String(id)), id: 'id' }),
    step: ({ run_id }) => ({ list: keys.steps(String(run_id)), id: 'step_key' }),
  } satisfies Record<string, (record: Row) => CachedRecord>,
  ...features.map(({ records }) => records),
);

/** Kinds whose frames differ from the cached records: these queries are fetched again. */
const refetched = table<readonly CacheKey[]>({
  node: [keys.nodes, keys.agent_nodes, keys.node_measurements],
});

export function applyFrame(queries: QueryClient, frame: Frame): void {
  if (frame.event === 'activity') applyActivity(queries, frame.data.agents as LastEvent[]);
  for (const { announced } of features) {
    const keys = announced?.[frame.event]?.(frame.data[frame.event] as Row[]) ?? [];
    for (const key of keys) readAfterFetch(queries, key);
  }
  const record = frame.data.record as Row | undefined;
  if (!record) return;
  // Before the steps: it reads their list as it was.
  applyToWaitingRuns(queries, frame);
  applyToWaitingSteps(queries, frame);
  applyToAllRuns(queries, frame);
  for (const key of refetched[frame.event] ?? []) invalidate(queries, key);
  const place = places[frame.event]?.(record);
  if (!place) return;
  const { list, one, id } = place;
  put(queries, list, () => queries.setQueryData<Row[]>(list, (rows) => rows && merged(rows, record, id)));
  if (!one) return;
  const query = queries.getQueryCache().find({ queryKey: one, exact: true });
  if (record.deleted && query?.isActive()) {
    // The page that shows the record keeps it, with an error: without it, the page would ask for it whenever it renders.
    put(queries, one, () =>
      query.setState({ status: 'error', error: new Problem('not_found', 'not_found', '') }),
    );
  } else if (record.deleted) queries.removeQueries({ queryKey: one });
  else {
    put(queries, one, () =>
      queries.setQueryData<Row>(one, (known) => (known && isOlder(record, known) ? known : record)),
    );
  }
}

interface LastEvent {
  id: string;
  last_event_at: string;
}

/** Agents wrote to their logs, which does not change their records otherwise. */
function applyActivity(queries: QueryClient, agents: readonly LastEvent[]): void {
  const times = new Map(agents.map(({ id, last_event_at }) => [id, last_event_at]));
  const updated = (row: Row): Row => {
    const last_event_at = times.get(String(row.id));
    if (last_event_at === undefined || last_event_at <= String(row.last_event_at ?? '')) return row;
    return { ...row, last_event_at, ...(row.activity === 'quiet' && { activity: 'working' }) };
  };
  const list = keys.agents;
  put(queries, list, () => queries.setQueryData<Row[]>(list, (rows) => rows?.map(updated)));
  for (const { id } of agents) {
    const one = keys.agent(id);
    put(queries, one, () => queries.setQueryData<Row>(one, (row) => row && updated(row)));
  }
}

/** Applies a change now, and again after a fetch in progress, whose result may be older than the change. */
function put(queries: QueryClient, queryKey: CacheKey, change: () => void): void {
  const query = queries.getQueryCache().find({ queryKey, exact: true });
  afterFetch(query, change);
  change();
}

/** Reads everything again, because changes may have been missed. */
export function readAgain(queries: QueryClient): void {
  invalidate(queries, []);
}

/**
 * Reads what begins with the key again. A query whose first answer is still on its way is read again after it: that answer may
 * be older than the change, and the query client would not repeat the request.
 */
function invalidate(queries: QueryClient, queryKey: CacheKey): void {
  for (const query of queries.getQueryCache().findAll({ queryKey, fetchStatus: 'fetching' })) {
    if (query.state.data === undefined) readOnceFetched(queries, query);
  }
  void queries.invalidateQueries({ queryKey });
}

/** Lists are newest first, as in the API; a list of steps keeps its order. */
function merged(rows: Row[], record: Row, id: string): Row[] {
  const at = rows.findIndex((row) => row[id] === record[id]);
  if (record.deleted) return at === -1 ? rows : rows.toSpliced(at, 1);
  if (at === -1) {
    // A record that is new to the list is not always a new one: a list may hold only the newest.
    const older = id === 'step_key' ? -1 : rows.findIndex((row) => !isNewer(row, record));
    return older === -1 ? [...rows, record] : rows.toSpliced(older, 0, record);
  }
  return isOlder(record, rows[at]!) ? rows : rows.with(at, record);
}

function isNewer(row: Row, than: Row): boolean {
  const [a, b] = [row.created_at, than.created_at];
  return typeof a === 'string' && typeof b === 'string' && a > b;
}

/** A list that was fetched after the change may already have a newer record. */
function isOlder(record: Row, known: Row): boolean {
  return compareAges(record, known) === 'older';
}
