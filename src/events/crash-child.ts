/** Child process of `crash.test.ts`. It seals events, and dies at the failpoint that the environment names. */
import { silentLog } from '../base/log.ts';
import { openPostgres } from '../store/postgres/postgres.ts';
import { openSqlite } from '../store/sqlite.ts';
import { openEventLog } from './log.ts';

const data_dir = process.argv[2]!;
/** Of a PostgreSQL database. */
const url = process.env.SVC_TEST_DATABASE_URL;
const store =
  url === undefined
    ? await openSqlite({ path: `${data_dir}/svc.db`, log: silentLog })
    : await openPostgres({ url, log: silentLog });
const events = openEventLog({
  store,
  data_dir,
  clock: { now: () => 1_700_000_000_123 },
  log: silentLog,
  sealing: { from_bytes: 1, busy_ms: 0, keep_bytes: 0, idle_from_bytes: 1 },
});
await events.runMaintenance();
await events.close();
await store.close();
