/** The control planes that share the database. Each keeps its own row alive (`store/postgres/member.ts`). */
import { hostname } from 'node:os';
import { rfc3339 } from '../../base/clock.ts';
import { version } from '../../base/version.ts';
import { asShortList } from '../../server/list.ts';
import { databaseAnswers } from '../../store/store.ts';
import type { Core, Feature } from '../feature.ts';
import { listPlanes, type PlaneRow } from './queries.ts';
import { countStates, type PlaneRecord, planeStates, withStates } from './rules.ts';

export function openCluster({ store, config, metrics }: Pick<Core, 'store' | 'config' | 'metrics'>): Feature {
  // Rows may be left of a time when the database was shared, or of the database that this one was moved from.
  const is_shared = config.get('cluster.listen') !== null;
  const planes = async () => (is_shared ? withStates(await store.read(listPlanes)) : []);
  // Only the active plane answers /metrics; the others forward it.
  const name = config.get('cluster.name') ?? hostname();
  metrics.gauges(
    'svc_plane_info',
    'Always 1. Its labels say which control plane answered, which is the active one.',
    ['name', 'version'],
    () => [{ labels: { name, version }, value: 1 }],
  );
  metrics.gauges(
    'svc_planes',
    'Control planes of the database, by state. Without cluster.listen, only the active one.',
    ['state'],
    async () => {
      if (!is_shared) return [{ labels: { state: 'active' }, value: 1 }];
      if (!databaseAnswers(store)) return [];
      const counts = countStates(await planes());
      return planeStates.map((state) => ({ labels: { state }, value: counts[state] }));
    },
  );
  return {
    name: 'cluster',
    routes: { listPlanes: async ({ query }) => asShortList(query, toRecords(await planes())) },
  };
}

function toRecords(rows: readonly (PlaneRow & Pick<PlaneRecord, 'state'>)[]): PlaneRecord[] {
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    state: row.state,
    version: row.version,
    address: row.address,
    started_at: rfc3339(row.started_at),
    last_seen_at: rfc3339(row.beat_at),
  }));
}
