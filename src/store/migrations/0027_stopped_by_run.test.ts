import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { sql } from './0027_stopped_by_run.ts';

const BEFORE = migrations.indexOf(sql);

test('an upgrade finds the sessions that the end of a run stopped', () => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'm.db', migrations.slice(0, BEFORE));
  db.exec('PRAGMA ignore_check_constraints = ON');
  const insert = (table: string, values: Record<string, string | number>) => {
    const columns = db
      .prepare(`SELECT name FROM pragma_table_info('${table}') WHERE "notnull" = 1 AND dflt_value IS NULL`)
      .all();
    const row = { ...Object.fromEntries(columns.map(({ name }): [string, 0] => [`${name}`, 0])), ...values };
    const names = Object.keys(row);
    db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
      ...Object.values(row),
    );
  };
  insert('runs', { num: 1, id: 'run_1', number: 1, status: 'completed', ended_at: 50 });
  insert('runs', { num: 2, id: 'run_2', number: 2, status: 'running' });
  const agent = (num: number, status: string, run_num: number, ended_at: number) => {
    const worktree_mode = 'use_existing';
    insert('agents', { num, id: `agt_${num}`, status, run_num, session_id: `ses_${num}`, worktree_mode });
    insert('sessions', { num, id: `ses_${num}`, agent_num: num, number: 1, state: 'ended', ended_at });
  };
  agent(1, 'cancelled', 1, 50);
  agent(2, 'cancelled', 1, 40);
  agent(3, 'completed', 1, 60);
  agent(4, 'cancelled', 2, 60);

  migrate(db, 'm.db');

  const rows = db.prepare('SELECT stopped_by_run FROM sessions ORDER BY num').all();
  expect(rows.map((row) => row.stopped_by_run)).toEqual(['completed', null, null, null]);
  db.close();
});
