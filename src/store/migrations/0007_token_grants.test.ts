import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { sql } from './0007_token_grants.ts';

/** Creates a database of the version before this step with these rows, and runs the step. */
function upgraded(rows: string): DatabaseSync {
  const db = new DatabaseSync(':memory:');
  const before = migrations.indexOf(sql);
  expect(migrate(db, 'x.db', migrations.slice(0, before))).toBe(before);
  db.exec(rows);
  expect(migrate(db, 'x.db', migrations.slice(0, before + 1))).toBe(1);
  return db;
}

test('existing API tokens keep everything that their user’s role allows; sign-ins need no scopes', () => {
  const db = upgraded(`
    INSERT INTO users (id, username, role, password_hash, created_at, updated_at)
      VALUES ('usr_r', 'ana', 'root', '', 0, 0), ('usr_u', 'ben', 'user', '', 0, 0);
    INSERT INTO tokens (id, user_id, kind, hash, name, created_at, last_used_at)
      VALUES ('root_api', 'usr_r', 'api', x'01', 'ci', 0, 0), ('user_api', 'usr_u', 'api', x'02', 'ci', 0, 0),
        ('root_session', 'usr_r', 'session', x'03', NULL, 0, 0);
  `);
  const tokens = db.prepare('SELECT id, scopes, agent_ids, team_ids FROM tokens ORDER BY id').all();
  const unlimited = { agent_ids: null, team_ids: null };
  expect(tokens.map((row) => ({ ...row }))).toEqual([
    { id: 'root_api', scopes: '["read","operate","manage","admin","metrics"]', ...unlimited },
    { id: 'root_session', scopes: null, ...unlimited },
    { id: 'user_api', scopes: '["read","operate","manage"]', ...unlimited },
  ]);
  db.close();
});

test('an upgrade adds the agent id to existing entries of the fleet feed', () => {
  const entry = (kind: string, record: object) => `(0, '${kind}', 'usr_r', '${JSON.stringify(record)}')`;
  const entries = [
    entry('agent', { id: 'agt_1' }),
    entry('review', { id: 'rev_1', agent_id: 'agt_2' }),
    entry('task', { id: 'task_1' }),
  ];
  const db = upgraded(`INSERT INTO feed (ts, kind, owner_id, record) VALUES ${entries.join(', ')}`);
  const rows = db.prepare('SELECT agent_id FROM feed ORDER BY id').all();
  expect(rows.map(({ agent_id }) => agent_id)).toEqual(['agt_1', 'agt_2', null]);
  db.close();
});
