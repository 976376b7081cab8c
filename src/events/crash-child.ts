/** Child process of `crash.test.ts`. It seals events, and dies at the failpoint that the environment names. */
import { silentLog } from '../base/log.ts';
import { openSqlite } from '../store/sqlite.ts';
import { openEventLog } from './log.ts';

const data_dir = process.argv[2]!;
const store = await openSqlite({ path: `${data_dir}/svc.db`, log: silentLog });
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
