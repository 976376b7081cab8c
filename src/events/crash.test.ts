import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { openSqlite } from '../store/sqlite.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { openEventLog } from './log.ts';
import { parseFrames } from './testing.ts';

const TOTAL = 600;

test.each([
  ['seal_written:kill', 0],
  ['seal_recorded:kill', 1],
  // The kill happens while the rows that the segment replaces are being deleted.
  ['committed:kill@3', 1],
] as const)(
  'after a kill at %s every event exists once, in a segment or as a row',
  async (failpoint, segments) => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-seal-'));
    try {
      const path = join(folder, 'svc.db');
      let store = await openSqlite({ path, log: silentLog });
      await addSession(store, await addAgent(store, 'agt_1'), 'ses_1');
      await store.ingest(
        batch(
          'agt_1',
          'ses_1',
          0,
          Array.from({ length: TOTAL }, (_, i) => `line ${i}\n`),
        ),
      );
      await store.close();

      const script = fileURLToPath(new URL('./crash-child.ts', import.meta.url));
      const child = spawn(process.execPath, [script, folder], {
        stdio: 'inherit',
        env: { ...process.env, SVC_FAILPOINT: failpoint },
      });
      await once(child, 'close');
      expect(child.signalCode).toBe('SIGKILL');

      store = await openSqlite({ path, log: silentLog });
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
      const expected = Array.from({ length: TOTAL }, (_, i) => `line ${i}\n`);
      expect(await replay()).toEqual(expected);
      events.start();
      const files = async () =>
        (await readdir(join(folder, 'log'), { recursive: true })).filter((name) => name.includes('.seg'));
      const rows = () =>
        store.read(async (r) => (await r.all(r.sql.selectFrom('events').select('seq'))).length);
      await expect.poll(files, { timeout: 20_000 }).toHaveLength(segments);
      await expect.poll(rows, { timeout: 20_000 }).toBe(segments === 1 ? 0 : TOTAL);
      expect(await replay()).toEqual(expected);
      await events.close();
      await store.close();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
