import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrate, migrations } from '../migrate.ts';
import { sql } from './0010_team_env.ts';

/** The schema version that stored values in records of runs. */
const BEFORE = migrations.indexOf(sql);

test('an upgrade removes the values of variables from stored records of runs and nothing else', () => {
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(db, 'm.db', migrations.slice(0, BEFORE));
  const agent = (env: object) => ({ command: 'make', env, workdir: null });
  const record = (env: object) => ({
    id: 'run_1',
    spec: {
      members: [
        { member_id: 'a', agent: agent(env) },
        { member_id: 'b', agent: null },
        { member_id: 'c', agent: agent({ C: 'secret-3' }) },
      ],
      steps: [{ step_key: 'x', input: { n: 1.5, text: 'é "env":{"' } }],
    },
    input: { big: 12345678901234567890n },
  });
  const written = (value: object) =>
    JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? `#${one}#` : one)).replace(
      /"#(\d+)#"/g,
      '$1',
    );
  const old = written(record({ KEY: 'secret-1', 'quo"te': 'secret-2' }));
  const untouched = ['{"id":"step_1","env":{"A":"kept"}}', written({ id: 'run_2', spec: { members: [] } })];
  const event = db.prepare('INSERT INTO run_events (run_num, ts, type, data) VALUES (1, 0, ?, ?)');
  const entry = db.prepare("INSERT INTO feed (ts, kind, owner_id, record) VALUES (0, ?, 'usr_1', ?)");
  for (const insert of [event, entry]) {
    insert.run('run', old);
    insert.run('step', untouched[0]!);
    insert.run('run', untouched[1]!);
  }

  migrate(db, 'm.db');

  const expected = old
    .replace(
      '"env":{"KEY":"secret-1","quo\\"te":"secret-2"},"workdir":null',
      '"workdir":null,"env_keys":["KEY","quo\\"te"]',
    )
    .replace('"env":{"C":"secret-3"},"workdir":null', '"workdir":null,"env_keys":["C"]');
  for (const query of [
    'SELECT data AS text FROM run_events ORDER BY id',
    'SELECT record AS text FROM feed ORDER BY id',
  ]) {
    const texts = db
      .prepare(query)
      .all()
      .map(({ text }) => text);
    expect(texts).toEqual([expected, ...untouched]);
  }
  db.close();
});
