/** Effects of migrations on existing rows. */
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from './migrate.ts';
import { sql as keptWorktrees } from './migrations/0018_kept_worktrees.ts';
import { sql as runNumbers } from './migrations/0019_run_numbers.ts';
import { sql as runTitles } from './migrations/0028_run_titles.ts';
import { sql as planes } from './migrations/0029_planes.ts';
import { sql as archivedAgents } from './migrations/0030_archived_agents.ts';
import { sql as recoveredAgents } from './migrations/0032_recovered_agents.ts';
import { insertRow, type Row } from './testing.ts';

test('an upgrade makes existing agents and members ask, and removes variables that presets had set', () => {
  const db = new DatabaseSync(':memory:');
  migrate(db, 'm.db', migrations.slice(0, 6));
  db.exec('PRAGMA foreign_keys = OFF');
  const agent = (id: string, preset: string | null, env: object) =>
    db
      .prepare(
        `INSERT INTO agents (id, name, owner_id, node_id, workdir, command, protocol, preset, worktree_mode, env, labels,
           restart_policy, stdin, on_exit, leftovers, status, session_count, restart_count, created_at, updated_at)
         VALUES (?, 'a', 'u', 'main', '/', 'true', 'acp', ?, 'use_existing', ?, '{}', 'never', 1, 'kill', '[]', 'created', 0,
           0, 0, 0)`,
      )
      .run(id, preset, JSON.stringify(env));
  agent('codex', 'codex', { INITIAL_AGENT_MODE: 'read-only', A: 'b' });
  agent('opencode', 'opencode', { OPENCODE_PERMISSION: '{"edit":"ask","bash":"ask"}' });
  agent('chosen', 'goose', { GOOSE_MODE: 'auto' });
  agent('own', null, { GOOSE_MODE: 'approve' });
  const members = [
    { member_id: 'b', agent: { preset: 'demo', env: { X: '1' } } },
    { member_id: 'a', agent: null },
  ];
  db.prepare(
    `INSERT INTO teams (id, name, description, spec, version, created_by, created_at, updated_at)
     VALUES ('t', 't', '', ?, 1, 'u', 0, 0)`,
  ).run(JSON.stringify({ spec_version: 1, members, steps: [] }));

  migrate(db, 'm.db');
  const rows = db.prepare('SELECT id, env, permission_mode, asks FROM agents ORDER BY num').all();
  expect(rows.map(({ permission_mode, asks }) => [permission_mode, asks])).toEqual(
    rows.map(() => ['ask', 'unknown']),
  );
  expect(rows.map(({ env }) => JSON.parse(String(env)))).toEqual([
    { A: 'b' },
    {},
    { GOOSE_MODE: 'auto' },
    { GOOSE_MODE: 'approve' },
  ]);
  const spec = JSON.parse(String(db.prepare('SELECT spec FROM teams').get()!.spec));
  expect(spec).toEqual({
    spec_version: 1,
    members: [
      { member_id: 'b', agent: { preset: 'demo', env: { X: '1' }, permission_mode: 'ask' } },
      { member_id: 'a', agent: null },
    ],
    steps: [],
  });
  db.close();
});

test('gives existing teams different keys from their names, the oldest team first', () => {
  const db = new DatabaseSync(':memory:');
  const before = migrations.findIndex((step) => step.includes('teams_by_key'));
  migrate(db, 'k.db', migrations.slice(0, before));
  const insert = db.prepare(
    `INSERT INTO teams (id, name, description, spec, version, created_by, created_at, updated_at)
     VALUES (?, ?, '', '{}', 1, 'u', 0, 0)`,
  );
  const names = [
    'demo',
    'Demo 2',
    'qa',
    'q.a.',
    '7',
    'チーム',
    'd-e-m',
    ...Array.from({ length: 40 }, (_, n) => `dem${n}`),
  ];
  for (const name of names) insert.run(name, name);
  migrate(db, 'k.db');
  const keys = db
    .prepare('SELECT key FROM teams ORDER BY num')
    .all()
    .map(({ key }) => String(key));
  expect(keys.slice(0, 7)).toEqual(['DEM', 'DEMB', 'QA', 'QAAAB', 'TSK', 'TSKB', 'DEMC']);
  expect(new Set(keys).size).toBe(names.length);
  expect(keys.every((key) => /^[A-Z]{2,5}$/.test(key))).toBe(true);
  db.close();
});

const additions: [name: string, sql: string, table: string, added: Row, new_tables: string[]][] = [
  ['kept worktrees', keptWorktrees, 'teams', {}, ['kept_worktrees']],
  ['numbers of deleted runs', runNumbers, 'teams', { deleted_run_number: 0 }, []],
  ['titles of runs', runTitles, 'runs', { title: null }, []],
  ['planes', planes, 'agents', {}, ['planes', 'trust_files']],
  ['archived agents', archivedAgents, 'agents', { archived_at: null }, []],
  ['recovered agents', recoveredAgents, 'agents', { recovered_from: null, recovered_sessions: 0 }, []],
];

test('agents that were recovered before are counted for their nodes', () => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'r.db', migrations.slice(0, migrations.indexOf(recoveredAgents)));
  db.exec('PRAGMA ignore_check_constraints = ON');
  const labels = '{"recovered":"true"}';
  insertRow(db, 'agents', { num: 1, id: 'of-node', node_id: 'web-1', labels });
  insertRow(db, 'agents', { num: 2, id: 'of-main', node_id: 'main', labels });
  insertRow(db, 'agents', { num: 3, id: 'created', node_id: 'web-1', labels: '{}' });
  migrate(db, 'r.db');
  const found = db.prepare('SELECT recovered_from FROM agents ORDER BY num').all();
  expect(found.map(({ recovered_from }) => recovered_from)).toEqual(['web-1', null, null]);
  db.close();
});

test.for(additions)('the step for %s keeps existing rows', ([, step, table, added, new_tables]) => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  const before = migrations.indexOf(step);
  migrate(db, 'm.db', migrations.slice(0, before));
  db.exec('PRAGMA ignore_check_constraints = ON');
  const kept = { num: 7, id: 'x' };
  insertRow(db, table, kept);
  const rows = () => db.prepare(`SELECT * FROM ${table}`).all();
  const [old] = rows();
  migrate(db, 'm.db', migrations.slice(0, before + 1));
  expect(rows()).toEqual([{ ...old, ...added }]);
  for (const one of new_tables) expect(db.prepare(`SELECT * FROM ${one}`).all()).toEqual([]);
  db.close();
});
