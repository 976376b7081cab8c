import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { openPostgres } from '../store/postgres/postgres.ts';
import { openSqlite } from '../store/sqlite.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { createDatabase, postgresTest } from '../testing/postgres.ts';
import { openEventLog } from './log.ts';
import { parseFrames, storedSegments } from './testing.ts';

const TOTAL = 600;

interface Database {
  open(): Promise<Store>;
  /** Variables with which the child finds the database. */
  env: Record<string, string>;
  drop(): Promise<void>;
}

const kinds: {
  kind: string;
  it: typeof postgresTest;
  create(folder: string): Promise<Database>;
}[] = [
  {
    kind: 'SQLite',
    it: test,
    create: async (folder) => ({
      open: () => openSqlite({ path: join(folder, 'svc.db'), log: silentLog }),
      env: {},
      drop: async () => {},
    }),
  },
  {
    kind: 'PostgreSQL',
    it: postgresTest,
    create: async () => {
      const { url, drop } = await createDatabase();
      const open = () => openPostgres({ url, log: silentLog });
      return { open, env: { SVC_TEST_DATABASE_URL: url }, drop };
    },
  },
];

describe.each(kinds)('$kind', ({ it, create }) => {
  it.for([
    ['seal_written:kill', 0],
    ['seal_recorded:kill', 1],
    // The kill happens while the rows that the segment replaces are being deleted.
    ['committed:kill@3', 1],
  ] as const)(
    'after a kill at %s every event exists once, in a segment or as a row',
    async ([failpoint, segments]) => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-seal-'));
      const database = await create(folder);
      try {
        let store = await database.open();
        await addSession(store, await addAgent(store, 'agt_1'), 'ses_1');
        const expected = Array.from({ length: TOTAL }, (_, i) => `line ${i}\n`);
        await store.ingest(batch('agt_1', 'ses_1', 0, expected));
        await store.close();

        const script = fileURLToPath(new URL('./crash-child.ts', import.meta.url));
        const child = spawn(process.execPath, [script, folder], {
          stdio: 'inherit',
          env: { ...process.env, ...database.env, SVC_FAILPOINT: failpoint },
        });
        await once(child, 'close');
        expect(child.signalCode).toBe('SIGKILL');

        store = await database.open();
        const events = openEventLog({
          store,
          data_dir: folder,
          clock: { now: () => 1_700_000_000_123 },
          log: silentLog,
        });
        const replay = async () => {
          const stop = new AbortController();
          let text = '';
          for await (const bytes of events.follow('agt_1', 'start', stop.signal)) {
            text += bytes.toString();
            if (text.includes(`id: ${TOTAL}\n`)) stop.abort();
          }
          return parseFrames(text).map((frame) => frame.data.data);
        };
        expect(await replay()).toEqual(expected);
        expect(await storedSegments(store, folder)).toHaveLength(1);
        events.start();
        const stored = () => storedSegments(store, folder);
        const rows = () =>
          store.read(async (r) => (await r.all(r.sql.selectFrom('events').select('seq'))).length);
        await expect.poll(stored, { timeout: 20_000 }).toHaveLength(segments);
        await expect.poll(rows, { timeout: 20_000 }).toBe(segments === 1 ? 0 : TOTAL);
        expect(await replay()).toEqual(expected);
        await events.close();
        await store.close();
      } finally {
        await database.drop();
        await rm(folder, { recursive: true, force: true });
      }
    },
  );
});
