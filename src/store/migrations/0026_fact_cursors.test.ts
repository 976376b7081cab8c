import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { SOON } from '../../testing/features-fixture.ts';
import { Facts } from '../../work/facts.ts';
import { migrate, migrations } from '../migrate.ts';
import { openSqlite } from '../sqlite.ts';
import { sql } from './0026_fact_cursors.ts';

/** The schema of the version with one cursor for all kinds. */
const BEFORE = migrations.indexOf(sql);

test('after an upgrade, consumers continue after the last fact that they have handled', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-cursors-'));
  const path = join(folder, 'svc.db');
  const db = new DatabaseSync(path);
  migrate(db, path, migrations.slice(0, BEFORE));
  db.exec(`INSERT INTO fact_cursors VALUES ('one', 1), ('two', 2)`);
  for (const ref of ['a', 'b', 'c']) {
    db.prepare(`INSERT INTO facts (ts, kind, ref, payload) VALUES (?, 'review_opened', ?, '{}')`).run(
      systemClock.now(),
      ref,
    );
  }
  db.close();

  const store = await openSqlite({ path, log: silentLog });
  const facts = new Facts({ store, clock: systemClock, log: silentLog });
  const seen: string[] = [];
  await facts.open({
    one: { review_opened: async (tx, { ref }) => tx.afterCommit(() => void seen.push(`one ${ref}`)) },
    two: { review_opened: async (tx, { ref }) => tx.afterCommit(() => void seen.push(`two ${ref}`)) },
  });
  await vi.waitFor(() => expect(seen.toSorted()).toEqual(['one b', 'one c', 'two c']), SOON);
  await facts.close();
  const kinds = await store.read((reader) =>
    reader.all(reader.sql.selectFrom('fact_cursors').select('kind')),
  );
  expect(kinds).toEqual([{ kind: 'review_opened' }, { kind: 'review_opened' }]);
  await store.close();
  await rm(folder, { recursive: true, force: true });
});
