import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { insertRow, type Row } from '../testing.ts';
import { sql } from './0027_stopped_by_run.ts';

const BEFORE = migrations.indexOf(sql);

test('an upgrade finds the sessions that the end of a run stopped', () => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'm.db', migrations.slice(0, BEFORE));
  db.exec('PRAGMA ignore_check_constraints = ON');
  const insert = (table: string, values: Row) => insertRow(db, table, values);
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
