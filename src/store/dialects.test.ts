/** SQL that differs between databases selects the same rows in each of them. */
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { stores, type TestStore } from '../testing/stores.ts';
import { messageContains } from './dialects.ts';
import { searchPhrases } from './fts.ts';

const texts = [
  'the garden is tidy',
  'a tidy garden',
  'Café au lait',
  'see src/store/fts.ts, or https://example.com/a-b',
];

describe.each(stores)('$kind', ({ open, it }) => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await open();
    await opened.store.write(async (tx) => {
      const made = { version: 1, created_by: 'usr_1', created_at: 0, updated_at: 0, description: '' };
      const team = { ...made, id: 'tem_1', name: 'garden', key: 'garden', spec: '{}' };
      const inserted_team = tx.sql.insertInto('teams').values(team).returning('num');
      const team_num = (await tx.get(inserted_team))!.num;
      const task = { ...made, id: 'tsk_1', team_num, number: 1, title: '', conversation_id: 'cnv_1' };
      const inserted_task = tx.sql
        .insertInto('tasks')
        .values({ ...task, status: 'open' })
        .returning('num');
      const task_num = (await tx.get(inserted_task))!.num;
      for (const text of texts) {
        const numbers = { team_num, task_num, created_at: 0 };
        const rest = { from_actor_id: 'act_1', route: 'broadcast', payload: '{}', text } as const;
        await tx.run(tx.sql.insertInto('messages').values({ ...numbers, ...rest }));
      }
    });
  });
  afterAll(() => opened?.remove());

  it.for([
    ['garden', [0, 1]],
    ['TIDY garden', [0, 1]],
    ['"tidy garden"', [1]],
    ['"garden tidy"', []],
    ['gard', []],
    ['cafe', [2]],
    ['CAFÉ', [2]],
    ['fts', [3]],
    ['src/store', [3]],
    ['store/src', []],
    ['example.com', [3]],
    ['a-b', [3]],
    ['garden OR shed', []],
    ["'; DROP TABLE messages; --", []],
    ['a & !b | (', [3]],
  ] as const)('the messages that contain %j', async ([text, expected]) => {
    const found = await opened.store.read((reader) =>
      reader.all(
        reader.sql
          .selectFrom('messages')
          .select('text')
          .where(messageContains(reader, searchPhrases(text), 0))
          .orderBy('num'),
      ),
    );
    expect(found.map((row) => texts.indexOf(row.text))).toEqual(expected);
  });
});
