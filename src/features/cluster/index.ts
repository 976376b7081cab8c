/** The control planes that share the database. Each keeps its own row alive (`store/postgres/member.ts`). */
import { rfc3339 } from '../../base/clock.ts';
import type { Core, Feature } from '../feature.ts';
import { listPlanes } from './queries.ts';
import { type PlaneRecord, stateOf } from './rules.ts';

export function openCluster({ store }: Pick<Core, 'store'>): Feature {
  return {
    name: 'cluster',
    routes: { listPlanes: () => store.read(async (reader) => toRecords(await listPlanes(reader))) },
  };
}

function toRecords(rows: Awaited<ReturnType<typeof listPlanes>>): PlaneRecord[] {
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    state: stateOf(row, rows),
    version: row.version,
    address: row.address,
    started_at: rfc3339(row.started_at),
    last_seen_at: rfc3339(row.beat_at),
  }));
}
