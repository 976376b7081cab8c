import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { insertRow, type Row } from '../testing.ts';
import { sql } from './0017_waiting.ts';

/** The schema of the version that did not record since when something waits. */
const BEFORE = migrations.indexOf(sql);

test('an upgrade records since when steps wait for an answer, and agents for a sign-in', () => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'm.db', migrations.slice(0, BEFORE));
  db.exec('PRAGMA ignore_check_constraints = ON');
  const insert = (table: string, values: Row) => insertRow(db, table, values);
  const step = (step_key: string, status: string, started_at: number | null) =>
    insert('run_steps', { run_num: 1, step_key, kind: 'plain', depends_on: '[]', status, started_at });
  insert('runs', { num: 1, id: 'run_1', created_at: 10 });
  step('asked', 'input_required', 20);
  step('no event', 'input_required', 30);
  step('not started', 'input_required', null);
  step('works', 'running', 20);
  for (const [ts, step_key] of [
    [40, 'asked'],
    [50, 'asked'],
    [60, 'works'],
  ] as const) {
    insert('run_events', { run_num: 1, ts, type: 'step', data: JSON.stringify({ step_key }) });
  }
  const agent = (id: string, status: string, phase: string, num: number) => {
    insert('agents', {
      ...{ id, num, status, worktree_mode: 'use_existing', protocol: 'acp', session_id: `ses_${num}` },
      updated_at: 70,
    });
    insert('sessions', { num, id: `ses_${num}`, agent_num: num, state: 'running' });
    insert('acp_states', { session_num: num, state: JSON.stringify({ phase }) });
  };
  agent('agt_waits', 'running', 'auth_required', 1);
  agent('agt_ended', 'failed', 'auth_required', 2);
  agent('agt_works', 'running', 'ready', 3);

  migrate(db, 'm.db');

  const all = (query: string) =>
    db
      .prepare(query)
      .all()
      .map((row) => Object.values(row));
  expect(all('SELECT step_key, waiting_since FROM run_steps ORDER BY num')).toEqual([
    ['asked', 50],
    ['no event', 30],
    ['not started', 10],
    ['works', null],
  ]);
  expect(all('SELECT id, sign_in_since FROM agents ORDER BY num')).toEqual([
    ['agt_waits', 70],
    ['agt_ended', null],
    ['agt_works', null],
  ]);
  db.close();
});
