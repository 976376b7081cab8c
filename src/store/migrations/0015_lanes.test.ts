import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { sql } from './0015_lanes.ts';

/** The schema of the version whose outbox had a column for sessions. */
const BEFORE = migrations.indexOf(sql);

test('an upgrade keeps pending intents, steps, segments, settings and bootstrap tokens', () => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'm.db', migrations.slice(0, BEFORE));
  db.exec(`
    INSERT INTO outbox (node_id, session_id, kind, payload, created_at, attempts, next_at)
      VALUES ('main', 'ses_1', 'start', '{}', 5, 0, 0), ('main', 'psub_1', 'push', '{"message_num":2}', 6, 0, 0);
    INSERT INTO settings (key, value, updated_at, updated_by) VALUES ('retention.days', '3', 7, 'usr_1');
    INSERT INTO segments (agent_num, first_seq, last_seq, first_ts, last_ts, path, bytes, blocks)
      VALUES (1, 1, 9, 10, 20, '1/a.seg', 30, x'5b5d');
    INSERT INTO bootstrap_tokens (id, created_at, expires_at, spent_at, spent_by) VALUES ('b', 1, 2, 1, 'node-a');
    INSERT INTO run_steps (run_num, step_key, member_id, kind, depends_on, "when", prompt, max_attempts, added, status,
        waits_for, spoiled, attempt, tries, launched)
      VALUES (1, 'build', 'a', 'plain', '[]', 'all_success', '', 1, 0, 'pending', 0, 1, 0, 0, 0);
  `);

  migrate(db, 'm.db');

  const all = (query: string) =>
    db
      .prepare(query)
      .all()
      .map((row) => ({ ...row }));
  expect(all('SELECT * FROM outbox ORDER BY id')).toEqual([
    { id: 1, node_id: 'main', lane: 'ses_1', kind: 'start', payload: '{}', created_at: 5 },
    { id: 2, node_id: 'main', lane: 'psub_1', kind: 'push', payload: '{"message_num":2}', created_at: 6 },
  ]);
  expect(all('SELECT * FROM settings')).toEqual([{ key: 'retention.days', value: '3' }]);
  expect(all('SELECT first_seq, last_ts, path, swept FROM segments')).toEqual([
    { first_seq: 1, last_ts: 20, path: '1/a.seg', swept: 0 },
  ]);
  expect(all('SELECT * FROM bootstrap_tokens')).toEqual([
    { id: 'b', created_at: 1, expires_at: 2, spent_by: 'node-a' },
  ]);
  expect(all('SELECT step_key, upstream_failed FROM run_steps')).toEqual([
    { step_key: 'build', upstream_failed: 1 },
  ]);
  const plan = all("EXPLAIN QUERY PLAN SELECT id FROM outbox WHERE lane = 'ses_1' ORDER BY id");
  expect(JSON.stringify(plan)).toContain('outbox_lane');
  db.close();
});
