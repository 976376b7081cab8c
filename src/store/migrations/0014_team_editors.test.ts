import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { sql } from './0014_team_editors.ts';

/** The schema of the version that did not record who changed a definition. */
const BEFORE = migrations.indexOf(sql);

test('an upgrade lists everyone who could have edited a definition, and keeps the team of its agents', () => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'm.db', migrations.slice(0, BEFORE));
  const team = db.prepare(
    "INSERT INTO teams (id, name, description, spec, version, created_by, created_at, updated_at) VALUES (?, ?, '', '{}', 1, ?, 0, 0)",
  );
  team.run('team_1', 'shared', 'usr_ana');
  team.run('team_2', 'alone', 'usr_ben');
  const human = db.prepare('INSERT INTO team_humans (team_num, user_id) VALUES (1, ?)');
  for (const user_id of ['usr_ana', 'usr_ben']) human.run(user_id);
  db.exec('PRAGMA ignore_check_constraints = ON');
  const columns = db
    .prepare('SELECT name, type, "notnull" AS needed, dflt_value FROM pragma_table_info(\'agents\')')
    .all();
  const needed = columns
    .filter((one) => one.needed === 1 && one.dflt_value === null)
    .map((one) => `${one.name}`);
  const names = [...new Set(['id', ...needed, 'team_num', 'member_id'])];
  const agent = (values: Record<string, string | number | null>) => {
    const row = names.map((name) => (name in values ? values[name]! : name === 'num' ? null : 0));
    db.prepare(`INSERT INTO agents (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
      ...row,
    );
  };
  agent({ id: 'agt_team', team_num: 1, member_id: 'm' });
  agent({
    id: 'agt_orphan',
    team_num: null,
    member_id: 'm',
    worktree_mode: 'use_existing',
    protocol: 'plain',
  });
  agent({ id: 'agt_own', team_num: null, member_id: null });

  migrate(db, 'm.db');

  const all = (query: string) =>
    db
      .prepare(query)
      .all()
      .map((row) => Object.values(row));
  expect(all('SELECT id, spec_editors FROM teams ORDER BY num')).toEqual([
    ['team_1', '["usr_ana","usr_ben"]'],
    ['team_2', '["usr_ben"]'],
  ]);
  expect(all('SELECT id, state_team FROM agents ORDER BY id')).toEqual([
    ['agt_orphan', 'team_deleted'],
    ['agt_own', null],
    ['agt_team', 'team_1'],
  ]);
  db.close();
});
