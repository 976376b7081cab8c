import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { sql } from './0031_shared_worktree_bases.ts';

const BEFORE = migrations.indexOf(sql);

let db: DatabaseSync;

function insert(table: string, values: Record<string, string | number | null>): void {
  const columns = db
    .prepare(`SELECT name FROM pragma_table_info('${table}') WHERE "notnull" = 1 AND dflt_value IS NULL`)
    .all();
  const row = { ...Object.fromEntries(columns.map(({ name }): [string, 0] => [`${name}`, 0])), ...values };
  const names = Object.keys(row);
  db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
    ...Object.values(row),
  );
}

let attempts = 0;

/** An attempt of a member, and its agent unless that was deleted. */
function attempt(run_num: number | null, member_id: string, agent_id: string, base: string | null): void {
  const num = ++attempts;
  const place = { run_num, member_id };
  if (run_num !== null)
    insert('run_attempts', { num, ...place, agent_id, attempt: num, session_id: `s${num}` });
  if (base === null) return;
  insert('agents', { ...place, id: agent_id, worktree_mode: 'create_worktree', worktree_base: base });
}

test('an upgrade gives the agents of a member the base of the first of them', () => {
  db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'm.db', migrations.slice(0, BEFORE));
  db.exec('PRAGMA ignore_check_constraints = ON');
  attempt(1, 'dev', 'first', 'main');
  attempt(1, 'dev', 'second', 'late');
  attempt(1, 'qa', 'deleted', null);
  attempt(1, 'qa', 'after', 'late');
  attempt(null, 'dev', 'run-deleted', 'late');
  insert('run_attempts', { num: 99, run_num: 2, member_id: 'dev', agent_id: 'never-made', session_id: null });
  attempt(2, 'dev', 'only', 'main');
  insert('agents', { id: 'alone', member_id: null, worktree_mode: 'create_worktree', worktree_base: 'own' });
  insert('kept_worktrees', { num: 1, agent_id: 'a', member_id: 'dev', workdir: '/a', base: 'late' });
  insert('kept_worktrees', { num: 2, agent_id: 'b', member_id: null, workdir: '/b', base: 'own' });

  migrate(db, 'm.db');

  const agents = db.prepare('SELECT id, worktree_base AS base FROM agents').all();
  expect(Object.fromEntries(agents.map(({ id, base }) => [id, base]))).toEqual({
    first: 'main',
    second: 'main',
    after: null,
    'run-deleted': null,
    only: 'main',
    alone: 'own',
  });
  const kept = db.prepare('SELECT base FROM kept_worktrees ORDER BY num').all();
  expect(kept.map(({ base }) => base)).toEqual([null, 'own']);
  db.close();
});
