/** Tasks and their threads with the real program: runs of a task, and kills of the plane. */
import { expect, test } from 'vitest';
import type { Message } from '../src/features/tasks/rules/message.ts';
import { ROOT, type TestPlane } from '../src/testing/plane.ts';
import { sharedPlane } from '../src/testing/shared-plane.ts';

const share = sharedPlane();
let plane: TestPlane;

let teams = 0;
/** Creates a team of members without agents, and a task for it. */
async function makeTask(): Promise<{ team_id: string; task_id: string }> {
  const members = [{ member_id: 'lead' }, { member_id: 'dev' }];
  const body = { name: `shop-${++teams}`, spec: { members, leader_member_id: 'lead' } };
  const { id: team_id } = await plane.client.call('createTeam', { body });
  const task = await plane.client.call('createTask', { params: { team_id }, body: { title: 'Gift cards' } });
  return { team_id, task_id: task.id };
}

test('the status of a task follows its run, and its messages reach the run', async () => {
  plane = await share();
  const params = await makeTask();
  const { client } = plane;
  const task = async () => (await client.call('getTask', { params })).status;
  const message = await client.call('sendMessage', { params, body: { route: 'broadcast', text: 'begin' } });
  expect(message.run_id).toBeNull();
  const run = await client.call('startTaskRun', { params, body: { input: { branch: 'main' } } });
  expect(run).toMatchObject({ task_id: params.task_id, created_by_name: ROOT.username });
  expect(run.input).toMatchObject({
    branch: 'main',
    task: { id: params.task_id, title: 'Gift cards' },
    conversation: [{ id: message.id, payload: { text: 'begin' } }],
  });
  const again = client.call('startTaskRun', { params });
  await expect(again).rejects.toThrow('task has an active run');
  await expect.poll(task, { timeout: 20_000 }).toBe('in_progress');
  const waited = () => client.call('getMessage', { params: { ...params, message_id: String(message.id) } });
  await expect.poll(waited, { timeout: 20_000 }).toMatchObject({ run_id: run.id });
  const later = await client.call('sendMessage', { params, body: { route: 'to_leader', text: 'later' } });
  expect(later.run_id).toBe(run.id);
  await client.call('completeRun', { params: { ...params, run_id: run.id }, body: { output: 'done' } });
  await expect.poll(task, { timeout: 20_000 }).toBe('in_review');
  const second = await client.call('startTaskRun', { params, body: {} });
  const restart = () => client.call('restartRun', { params: { ...params, run_id: run.id } });
  await expect(restart()).rejects.toThrow('task has an active run');
  await client.call('cancelRun', { params: { ...params, run_id: second.id } });
  expect(await restart()).toMatchObject({ status: 'running' });
});

test('a task reports how many steps of its newest run are complete, and publishes each change', async () => {
  plane = await share();
  const { client } = plane;
  const steps = ['api', 'ui'].map((step_key) => ({ step_key, member_id: 'dev' }));
  const spec = { members: [{ member_id: 'dev' }], steps };
  const { id: team_id } = await client.call('createTeam', { body: { name: 'steps', spec } });
  const task = await client.call('createTask', { params: { team_id }, body: { title: 'Gift cards' } });
  expect(task.run_steps).toEqual({ completed: 0, total: 0 });
  const stop = new AbortController();
  const published: unknown[] = [];
  const following = (async () => {
    for await (const { event, data } of client.follow('followAll', { signal: stop.signal })) {
      if (event === 'task') published.push((data.record as typeof task).run_steps);
    }
  })();
  const params = { team_id, task_id: task.id };
  const run = await client.call('startTaskRun', { params });
  const ready = () => client.call('listSteps', { params: { team_id, run_id: run.id } });
  await expect.poll(ready, { timeout: 20_000 }).toMatchObject([{ status: 'ready' }, { status: 'ready' }]);
  const step = { team_id, run_id: run.id, step_key: 'api' };
  await client.call('completeStep', { params: step, body: { output: 'done' } });
  await expect
    .poll(() => client.call('listTasks', { params: { team_id } }), { timeout: 20_000 })
    .toMatchObject([{ run_id: run.id, run_steps: { completed: 1, total: 2 } }]);
  await expect.poll(() => published.at(-1), { timeout: 20_000 }).toEqual({ completed: 1, total: 2 });
  stop.abort();
  await following.catch(() => undefined);
});

test('a task whose run is deleted has no run, and its messages stay delivered', async () => {
  plane = await share();
  const params = await makeTask();
  const { client } = plane;
  const stop = new AbortController();
  const published: unknown[] = [];
  const following = (async () => {
    for await (const { event, data } of client.follow('followAll', { signal: stop.signal })) {
      const { id, run_id } = data.record as { id: string; run_id: string | null };
      if (event === 'task' && id === params.task_id) published.push(run_id);
    }
  })();
  const { id: run_id } = await client.call('startTaskRun', { params });
  const message = await client.call('sendMessage', { params, body: { route: 'broadcast', text: 'begin' } });
  expect(message).toMatchObject({ run_id, delivered: true });
  await client.call('cancelRun', { params: { ...params, run_id } });
  await expect.poll(() => published.at(-1), { timeout: 20_000 }).toBe(run_id);
  await client.call('deleteRun', { params: { ...params, run_id } });
  await expect.poll(() => published.at(-1), { timeout: 20_000 }).toBeNull();
  expect((await client.call('getTask', { params })).run_id).toBeNull();
  expect(await client.call('listMessages', { params })).toMatchObject([{ run_id: null, delivered: true }]);
  stop.abort();
  await following.catch(() => undefined);
});

test('sends a message with an idempotency key once and continues a stream, even if the plane is killed', async () => {
  plane = await share();
  const params = await makeTask();
  const stop = new AbortController();
  const received: string[] = [];
  const following = (async () => {
    const following = plane.client.follow(
      'followMessages',
      { params, signal: stop.signal },
      { backoff_ms: [50] },
    );
    for await (const { event, data } of following) {
      if (event === 'message') received.push((data.record as Message).text!);
    }
  })();
  const expected_texts = ['1', '2', '3', '4', '5', '6'];
  for (const text of expected_texts) {
    const sendAll = () =>
      plane.client.call('sendMessage', {
        params,
        body: { route: 'broadcast', text },
        idempotency_key: `said-${text}`,
      });
    // Killed before, during or after the response.
    const first = sendAll().catch(() => null);
    if (Number(text) % 2 === 0) await first;
    await plane.kill('SIGKILL');
    await first;
    await plane.start();
    const kept = await sendAll();
    expect(await sendAll()).toEqual(kept);
  }
  const { client } = plane;
  const messages = (await client.call('listMessages', { params })) as Message[];
  expect(messages.map(({ text }) => text)).toEqual(expected_texts);
  await expect.poll(() => received, { timeout: 20_000 }).toEqual(expected_texts);
  stop.abort();
  await following;
});
