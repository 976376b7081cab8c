import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { applyFrame, readAgain } from './fleet.ts';
import { type Session, session } from './session.ts';

type Row = Record<string, unknown>;

const KEY = ['runs', 'tea_1'];
const run = (id: string, version: number, more: Row = {}): Row => ({
  ...{ id, team_id: 'tea_1', version },
  ...more,
});
const frame = (record: Row) => ({ id: '1', event: 'run', data: { record } }) as never;

let queries: QueryClient;
beforeEach(() => {
  queries = new QueryClient();
});

/** Starts a fetch whose response the test provides later. */
function startFetch() {
  const answer = Promise.withResolvers<Row[]>();
  const done = queries.fetchQuery({ queryKey: KEY, queryFn: () => answer.promise, staleTime: 0 });
  return { answer: answer.resolve, done };
}
const ids = () => queries.getQueryData<Row[]>(KEY)?.map(({ id, title }) => `${id}${title ?? ''}`);
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

test('a change updates existing lists, and an older one does not overwrite a newer one', () => {
  queries.setQueryData(KEY, [run('a', 1)]);
  applyFrame(queries, frame(run('b', 2)));
  applyFrame(queries, frame(run('a', 3, { title: '!' })));
  applyFrame(queries, frame(run('a', 2)));
  expect(ids()).toEqual(['b', 'a!']);
  expect(queries.getQueryData(['run', 'a'])).toMatchObject({ title: '!' });
});

test('a record that a list does not have is put at its place by age', () => {
  const created = (id: string, minute: number) =>
    run(id, 1, { created_at: `2026-01-02T03:0${minute}:00.000Z` });
  queries.setQueryData(KEY, [created('c', 3), created('b', 2)]);
  for (const record of [created('a', 1), created('d', 4)]) applyFrame(queries, frame(record));
  expect(ids()).toEqual(['d', 'c', 'b', 'a']);
});

test('a page keeps a record that is deleted, with an error, and does not ask for it again', async () => {
  let asked = 0;
  const options = {
    queryKey: ['run', 'a'],
    queryFn: async () => ({ ...run('a', 1), asked: ++asked }),
    staleTime: Number.POSITIVE_INFINITY,
  };
  const observer = new QueryObserver<Row>(queries, options);
  onTestFinished(observer.subscribe(() => {}));
  await settled();
  applyFrame(queries, frame({ id: 'a', team_id: 'tea_1', deleted: true }));
  // As a page does that renders.
  observer.setOptions({ ...options });
  await settled();
  expect(observer.getCurrentResult()).toMatchObject({ data: { asked: 1 }, error: { kind: 'not_found' } });
});

test('an answer that arrives after the deletion of its record does not undo it', async () => {
  const answers = [Promise.resolve(run('a', 1)), Promise.withResolvers<Row>()] as const;
  const fetches = [answers[0], answers[1].promise];
  const observer = new QueryObserver<Row>(queries, {
    queryKey: ['run', 'a'],
    queryFn: () => fetches.shift()!,
  });
  onTestFinished(observer.subscribe(() => {}));
  await settled();
  void observer.refetch();
  applyFrame(queries, frame({ id: 'a', team_id: 'tea_1', deleted: true }));
  answers[1].resolve(run('a', 1));
  await settled();
  expect(observer.getCurrentResult()).toMatchObject({ data: { id: 'a' }, error: { kind: 'not_found' } });
});

test('nodes that change during the first fetch of their list are read again', async () => {
  const first = Promise.withResolvers<string>();
  const answers = [first.promise, Promise.resolve('new')];
  const observer = new QueryObserver(queries, { queryKey: ['nodes'], queryFn: () => answers.shift()! });
  onTestFinished(observer.subscribe(() => {}));
  applyFrame(queries, { id: '1', event: 'node', data: { record: { id: 'gpu' } } } as never);
  first.resolve('old');
  await settled();
  expect(observer.getCurrentResult().data).toBe('new');
});

test('a change that arrives while a list is fetched is not lost', async () => {
  queries.setQueryData(KEY, [run('a', 1), run('c', 1)]);
  const { answer, done } = startFetch();
  applyFrame(queries, frame(run('b', 2)));
  applyFrame(queries, frame(run('a', 3, { title: '!' })));
  applyFrame(queries, frame({ id: 'c', team_id: 'tea_1', deleted: true }));
  expect(ids()).toEqual(['b', 'a!']);
  answer([run('a', 1), run('c', 1)]);
  await done;
  await settled();
  expect(ids()).toEqual(['b', 'a!']);
});

test('a change that arrives during the first fetch of a list is not lost', async () => {
  const { answer, done } = startFetch();
  applyFrame(queries, frame(run('b', 2)));
  expect(ids()).toBeUndefined();
  answer([run('a', 1)]);
  await done;
  await settled();
  expect(ids()).toEqual(['b', 'a']);
});

test('what changed during a fetch does not replace what changed right after it', async () => {
  const { answer, done } = startFetch();
  // Records of steps and reviews do not tell which one is newer.
  const frameOf = (title: string) => frame({ id: 'a', team_id: 'tea_1', title });
  applyFrame(queries, frameOf(' begins'));
  answer([{ id: 'a', title: '' }]);
  await done;
  expect(ids()).toEqual(['a begins']);
  applyFrame(queries, frameOf(' ends'));
  await settled();
  expect(ids()).toEqual(['a ends']);
});

const STEPS = ['waiting-steps'];
const waiting = (step_key: string, waiting_since: string | null = 'then') => ({
  run_id: 'run_1',
  step_key,
  waiting_since,
});
const step = (record: Row) => ({ id: '1', event: 'step', data: { record } }) as never;

/** The answers of the service, in order; returns what was listed last. */
async function followSteps(...answers: Row[][]) {
  const observer = new QueryObserver<Row[]>(queries, {
    queryKey: STEPS,
    queryFn: async () => answers.shift() ?? [],
    staleTime: Number.POSITIVE_INFINITY,
  });
  onTestFinished(observer.subscribe(() => {}));
  await settled();
  return () => observer.getCurrentResult().data?.map(({ step_key }) => step_key);
}

test('the list of waiting steps is read again for a new wait, and a step that was answered leaves it at once', async () => {
  const listed = await followSteps([waiting('a')], [waiting('a'), waiting('b')], [waiting('b')]);
  applyFrame(queries, step(waiting('a')));
  // Steps that do not wait are not in the list, so nothing is read.
  applyFrame(queries, step(waiting('c', null)));
  await settled();
  expect(listed()).toEqual(['a']);
  applyFrame(queries, step(waiting('b')));
  await settled();
  expect(listed()).toEqual(['a', 'b']);
  applyFrame(queries, step(waiting('a', null)));
  expect(queries.getQueryData<Row[]>(STEPS)!.map(({ step_key }) => step_key)).toEqual(['b']);
});

test('an answer that arrives while the list of waiting steps is fetched is not lost', async () => {
  const first = Promise.withResolvers<Row[]>();
  const answers = [first.promise, Promise.resolve([])];
  const observer = new QueryObserver<Row[]>(queries, { queryKey: STEPS, queryFn: () => answers.shift()! });
  onTestFinished(observer.subscribe(() => {}));
  applyFrame(queries, step(waiting('a', null)));
  first.resolve([waiting('a')]);
  await expect.poll(() => observer.getCurrentResult().data).toEqual([]);
});

test('a run that starts again reads the list of its waiting steps again', async () => {
  const listed = await followSteps([waiting('a')], []);
  applyFrame(queries, frame({ id: 'run_2', team_id: 'tea_1' }));
  await settled();
  expect(listed()).toEqual(['a']);
  applyFrame(queries, frame({ id: 'run_1', team_id: 'tea_1' }));
  await settled();
  expect(listed()).toEqual([]);
});

test('a query is read again if its first answer was on its way when changes may have been missed', async () => {
  const first = Promise.withResolvers<Row[]>();
  const answers = [first.promise, Promise.resolve([run('a', 2)])];
  const observer = new QueryObserver<Row[]>(queries, {
    queryKey: KEY,
    queryFn: () => answers.shift()!,
    staleTime: Number.POSITIVE_INFINITY,
  });
  onTestFinished(observer.subscribe(() => {}));
  readAgain(queries);
  first.resolve([]);
  await expect.poll(() => observer.getCurrentResult().data).toHaveLength(1);
  expect(answers).toEqual([]);
});

test('a query with an answer is read again once', async () => {
  const answers = [[run('a', 1)], [run('a', 2)], [run('a', 3)]];
  const observer = new QueryObserver<Row[]>(queries, {
    queryKey: KEY,
    queryFn: async () => answers.shift()!,
    staleTime: Number.POSITIVE_INFINITY,
  });
  onTestFinished(observer.subscribe(() => {}));
  await settled();
  readAgain(queries);
  await settled();
  expect(answers).toHaveLength(1);
});

test('agents that write to their logs are shown as active', () => {
  const row = (id: string, activity: string) => ({ id, activity, last_event_at: '2026-01-01T00:00:00.000Z' });
  queries.setQueryData(['agents'], [row('a', 'quiet'), row('b', 'working')]);
  const agents = [{ id: 'a', last_event_at: '2026-01-01T00:01:00.000Z' }];
  applyFrame(queries, { id: '1', event: 'activity', data: { type: 'activity', agents } } as never);
  expect(queries.getQueryData(['agents'])).toEqual([
    { ...agents[0], activity: 'working' },
    row('b', 'working'),
  ]);
});

test('mail to the user is read again when it has changed, after a read in progress', async () => {
  vi.spyOn(session, 'get').mockReturnValue({ user: { username: 'ana' } } as Session);
  onTestFinished(() => void vi.restoreAllMocks());
  let reads = 0;
  const observer = new QueryObserver(queries, { queryKey: ['inbox'], queryFn: async () => ++reads });
  onTestFinished(observer.subscribe(() => {}));
  const change = (to_actor_id: string) =>
    applyFrame(queries, {
      ...{ id: '1', event: 'mail' },
      data: { type: 'mail', mail: [{ run_id: 'run_1', to_actor_id }] },
    } as never);
  change('user:ana');
  await settled();
  expect(reads).toBe(2);
  change('user:ben');
  await settled();
  expect(reads).toBe(2);
});
