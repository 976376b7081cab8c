/** Metrics of a database on a server. With the embedded one, `svc_postgresql_up` is 1, and the others are 0. */
import type { Metrics } from '../server/metrics.ts';
import { databaseAnswers, type Store } from '../store/store.ts';

export function registerDatabaseMetrics(metrics: Metrics, store: Pick<Store, 'server'>): void {
  const { server } = store;
  metrics.gauge(
    'svc_postgresql_up',
    'Whether PostgreSQL answers: 1 or 0. 1 with the embedded database.',
    () => Number(databaseAnswers(store)),
  );
  metrics.gauge(
    'svc_postgresql_connections',
    'Open connections to PostgreSQL for reads and writes.',
    () => server?.connections().open ?? 0,
  );
  metrics.gauge(
    'svc_postgresql_waiting',
    'Transactions that wait for a connection to PostgreSQL or for other writes.',
    () => server?.connections().waiting ?? 0,
  );
  metrics.counter(
    'svc_postgresql_transactions_total',
    'Transactions on PostgreSQL, each counted once even if it ran again.',
    () => server?.transactions ?? 0,
  );
  metrics.counter(
    'svc_postgresql_writes_total',
    'Writes to PostgreSQL, each counted once, except batches of output. Several may share a transaction.',
    () => server?.writes ?? 0,
  );
  metrics.counter(
    'svc_postgresql_conflicts_total',
    'Writes that ran again because they conflicted with others.',
    () => server?.conflicts ?? 0,
  );
  metrics.counter(
    'svc_postgresql_lost_total',
    'Reads and writes that ran again because the connection to PostgreSQL was lost.',
    () => server?.lost ?? 0,
  );
  metrics.counter(
    'svc_postgresql_unknown_commits_total',
    'Commits whose outcome remained unknown. Their requests failed with storage_failed.',
    () => server?.unknown_commits ?? 0,
  );
}
