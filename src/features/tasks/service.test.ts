/** Tasks: what people may create and change, and how a task's status follows its runs. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RunStatus } from '../runs/rules/run.ts';
import { followRun, type TaskStatus } from './rules/task.ts';
import { EVE, JON, MIA, ROOT, TasksFixture, TEAM } from './testing.ts';

let fixture: TasksFixture;
beforeEach(async () => {
  fixture = await TasksFixture.make();
});
afterEach(() => fixture.end());

const get = (id: string) => fixture.tasks.get(MIA, TEAM, id);
const soon = { timeout: 20_000 };

test('a new task is open, has a number and a thread, and is published and audited', async () => {
  const input = { title: 'Tidy up', description: 'All of it.', assignee_member_id: 'dev' };
  const task = await fixture.tasks.create(JON, TEAM, input, null);
  expect(task).toMatchObject({
    ...input,
    number: 1,
    key: 'TEA-1',
    team_id: TEAM,
    status: 'open',
    run_id: null,
    version: 1,
    created_by: JON.user_id,
  });
  expect(task.id).toMatch(/^task_/);
  expect(task.conversation_id).toMatch(/^conv_/);
  expect(await get(task.id)).toEqual(task);
  expect((await fixture.task()).number).toBe(2);
  expect((await fixture.tasks.create(MIA, 'team_2', input, null)).number).toBe(1);
  const entries = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('feed').selectAll().orderBy('id')),
  );
  expect(entries[0]).toMatchObject({ kind: 'task', owner_id: MIA.user_id, team_num: 1 });
  expect(JSON.parse(entries[0]!.record)).toEqual(task);
  expect((await fixture.audited('task_created'))[0]).toEqual({
    team_id: TEAM,
    task_id: task.id,
    title: 'Tidy up',
  });
});

test('an assignee is a member of the team', async () => {
  const task = await fixture.task();
  const message = 'assignee_member_id must reference a defined member';
  const input = { title: 'a', description: '', assignee_member_id: 'nobody' };
  await expect(fixture.tasks.create(MIA, TEAM, input, null)).rejects.toThrow(message);
  const assign = (assignee_member_id: string | null) =>
    fixture.tasks.update(MIA, TEAM, task.id, { assignee_member_id });
  await expect(assign('nobody')).rejects.toThrow(message);
  expect((await assign('ops')).assignee_member_id).toBe('ops');
  expect((await assign(null)).assignee_member_id).toBeNull();
});

test('a change increments the version, and one based on another version is rejected', async () => {
  const { id } = await fixture.task();
  const changed = await fixture.tasks.update(MIA, TEAM, id, { title: 'Tidier', version: 1 });
  expect(changed).toMatchObject({ title: 'Tidier', description: '', version: 2 });
  const late = fixture.tasks.update(JON, TEAM, id, { title: 'Never', version: 1 });
  await expect(late).rejects.toThrow('task changed concurrently; reload and retry');
  expect(await fixture.tasks.update(JON, TEAM, id, { status: 'completed' })).toMatchObject({
    title: 'Tidier',
    status: 'completed',
    version: 3,
  });
  expect((await fixture.audited('task_updated'))[1]).toEqual({
    team_id: TEAM,
    task_id: id,
    title: 'Tidier',
    changed: ['status'],
    status: 'completed',
  });
});

test('only one of concurrent changes of a version succeeds', async () => {
  const { id } = await fixture.task();
  const changes = ['a', 'b', 'c'].map((title) => fixture.tasks.update(MIA, TEAM, id, { title, version: 1 }));
  const settled = await Promise.allSettled(changes);
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect((await get(id)).version).toBe(2);
});

test('the creator of a team, its human members and root see its tasks; other users cannot see the team', async () => {
  const task = await fixture.task();
  for (const caller of [MIA, JON, ROOT]) {
    expect((await fixture.tasks.list(caller, TEAM, {}, {})).items).toEqual([task]);
    expect(await fixture.tasks.get(caller, TEAM, task.id)).toEqual(task);
  }
  for (const ask of [
    () => fixture.tasks.list(EVE, TEAM, {}, {}),
    () => fixture.tasks.get(EVE, TEAM, task.id),
    () => fixture.tasks.update(EVE, TEAM, task.id, { title: 'b' }),
    () => fixture.tasks.create(EVE, TEAM, { title: 'c', description: '', assignee_member_id: null }, null),
    () => fixture.tasks.startRun(EVE, TEAM, task.id, {}, null),
  ]) {
    await expect(ask()).rejects.toThrow('team not found');
  }
  for (const [team, id] of [
    [TEAM, 'task_none'],
    ['team_2', task.id],
  ] as const) {
    await expect(fixture.tasks.get(MIA, team, id)).rejects.toThrow('task not found');
  }
});

test('tasks are listed newest first, in pages, and by status and assignee', async () => {
  for (const title of ['a', 'b', 'c']) await fixture.task(title);
  const titles = async (filter: Parameters<typeof fixture.tasks.list>[2], request: object = {}) => {
    const { items, next_cursor } = await fixture.tasks.list(MIA, TEAM, filter, request);
    return { titles: items.map(({ title }) => title).join(''), next_cursor };
  };
  expect(await titles({})).toEqual({ titles: 'cba' });
  const { next_cursor, ...first } = await titles({}, { limit: 2 });
  expect(first).toEqual({ titles: 'cb' });
  expect(await titles({}, { limit: 2, cursor: next_cursor })).toEqual({ titles: 'a' });
  const [c] = (await fixture.tasks.list(MIA, TEAM, {}, {})).items;
  await fixture.tasks.update(MIA, TEAM, c!.id, { status: 'cancelled', assignee_member_id: 'dev' });
  expect((await titles({ status: 'cancelled' })).titles).toBe('c');
  expect((await titles({ status: 'open' })).titles).toBe('ba');
  expect((await titles({ assignee_member_id: 'dev' })).titles).toBe('c');
});

test('a creation with a key is stored with its response in one commit', async () => {
  const request = new Uint8Array(32);
  expect(await fixture.idempotency.begin(MIA, 'key', request)).toHaveProperty('first');
  const input = { title: 'Once', description: '', assignee_member_id: null };
  const task = await fixture.tasks.create(MIA, TEAM, input, 'key');
  const stored = await fixture.store.read((reader) =>
    reader.get(reader.sql.selectFrom('idempotency').selectAll().where('key', '=', 'key')),
  );
  expect(stored).toMatchObject({ status: 201, location: `/api/teams/${TEAM}/tasks/${task.id}` });
});

test.each<[task: TaskStatus, run: RunStatus, next: TaskStatus]>([
  ['open', 'running', 'in_progress'],
  ['completed', 'running', 'in_progress'],
  ['in_progress', 'input_required', 'in_progress'],
  ['in_progress', 'completed', 'in_review'],
  ['in_progress', 'failed', 'open'],
  ['in_progress', 'cancelled', 'open'],
  ['completed', 'completed', 'completed'],
  ['cancelled', 'completed', 'cancelled'],
  ['cancelled', 'failed', 'cancelled'],
])('a task with the status %s, whose run becomes %s, is then %s', (task, run, next) => {
  expect(followRun(task, run)).toBe(next);
});

test('a task’s status and newest run follow its runs, and each change is published', async () => {
  const { id } = await fixture.task();
  const run = await fixture.tasks.startRun(MIA, TEAM, id, {}, null);
  await expect.poll(() => get(id), soon).toMatchObject({ status: 'in_progress', run_id: run.id, version: 2 });
  await expect(fixture.tasks.startRun(JON, TEAM, id, {}, null)).rejects.toThrow('task has an active run');
  await fixture.runIs(run.id, 'failed');
  await expect.poll(() => get(id), soon).toMatchObject({ status: 'open', version: 3 });
  const second = await fixture.tasks.startRun(MIA, TEAM, id, {}, null);
  await fixture.runIs(second.id, 'completed');
  await expect.poll(() => get(id), soon).toMatchObject({ status: 'in_review', run_id: second.id });
  const entries = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('feed').select('record').where('kind', '=', 'task').orderBy('id')),
  );
  expect(entries.map(({ record }) => JSON.parse(record).status).slice(0, 4)).toEqual([
    'open',
    'in_progress',
    'open',
    'in_progress',
  ]);
});

test('a task is in review after a run that ended before its start was noticed', async () => {
  const { id } = await fixture.task();
  await fixture.closeFacts();
  const run = await fixture.tasks.startRun(MIA, TEAM, id, {}, null);
  await fixture.runIs(run.id, 'completed');
  await fixture.openFacts();
  await expect.poll(() => get(id), soon).toMatchObject({ status: 'in_review', run_id: run.id });
});

test('only one of two concurrent runs starts', async () => {
  const { id } = await fixture.task();
  const starts = [1, 2].map(() => fixture.tasks.startRun(MIA, TEAM, id, {}, null));
  const settled = await Promise.allSettled(starts);
  expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(fixture.started).toHaveLength(1);
});

test('a status that a person set during a run stays', async () => {
  const { id } = await fixture.task();
  const run = await fixture.run(id);
  await expect.poll(() => get(id), soon).toMatchObject({ status: 'in_progress' });
  await fixture.tasks.update(MIA, TEAM, id, { status: 'cancelled' });
  await fixture.runIs(run.id, 'completed');
  const other = await fixture.task('Another');
  await fixture.run(other.id);
  await expect.poll(() => get(other.id), soon).toMatchObject({ status: 'in_progress' });
  expect((await get(id)).status).toBe('cancelled');
});

test('the input of a run for a task contains the task and its messages, oldest first', async () => {
  const { id, conversation_id } = await fixture.task('Tidy up');
  const sent = [];
  for (const text of ['one', 'two']) {
    sent.push(await fixture.messages.send(MIA, TEAM, id, { route: 'broadcast', text }, null));
  }
  await fixture.tasks.startRun(MIA, TEAM, id, { branch: 'main' }, null);
  expect(fixture.started[0]).toEqual({
    branch: 'main',
    task: { id, number: 1, title: 'Tidy up', description: '', assignee_member_id: null, conversation_id },
    conversation: sent.map(({ id, from_actor_id, route, to_actor_id, payload, reply_to, created_at }) => ({
      id,
      from_actor_id,
      route,
      to_actor_id,
      payload,
      reply_to,
      created_at,
    })),
  });
});

test('keeps the input’s own keys, and includes only the end of a long thread', async () => {
  const { id } = await fixture.task();
  const text = 'x'.repeat(9_000);
  for (let n = 0; n < 6; n++) {
    await fixture.messages.send(MIA, TEAM, id, { route: 'broadcast', payload: { n, text } }, null);
  }
  await fixture.tasks.startRun(MIA, TEAM, id, { task: 7 }, null);
  const [input] = fixture.started;
  expect(input!.task).toBe(7);
  const conversation = input!.conversation as { payload: { n: number } }[];
  expect(conversation.map(({ payload }) => payload.n)).toEqual([3, 4, 5]);
});
