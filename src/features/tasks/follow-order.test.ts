/** Streams of run events and of task messages on PostgreSQL, where a row may be committed before one with a lower number. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { parseFrames } from '../../events/testing.ts';
import type { Store, Tx } from '../../store/store.ts';
import { holdWrite } from '../../testing/held-write.ts';
import { postgresTest as test } from '../../testing/postgres.ts';
import { stores, type TestStore } from '../../testing/stores.ts';
import { insertRunEvents } from '../runs/queries/events.ts';
import { RunEvents } from '../runs/run-events.ts';
import { Messages, type MessagesOptions } from './messages.ts';
import { insertMessage } from './queries/messages.ts';

let opened: TestStore;
let store: Store;

beforeEach(async () => {
  opened = await stores[1].open();
  store = opened.store;
  await store.write(async (tx) => {
    const times = { created_at: 0, updated_at: 0 };
    const made = { version: 1, created_by: 'usr_1' };
    const team = { id: 'team_1', name: 'a', key: 'a', description: '', spec: '{}', spec_editors: '[]' };
    await tx.run(tx.sql.insertInto('teams').values({ num: 1, ...team, ...made, ...times }));
    const task = {
      id: 'task_1',
      team_num: 1,
      number: 1,
      title: '',
      description: '',
      status: 'open',
    } as const;
    await tx.run(
      tx.sql.insertInto('tasks').values({ num: 1, ...task, conversation_id: 'conv_1', ...made, ...times }),
    );
    const run = { id: 'run_1', team_num: 1, task_num: 1, number: 1, status: 'running' } as const;
    const input = { mode: 'steps', leader: 'unasked', input: '{}' } as const;
    const rest = { ...input, attempt: 1, rounds: 0, steps_seen: 0, created_at: 0 };
    await tx.run(tx.sql.insertInto('runs').values({ num: 1, ...run, ...made, ...rest }));
    await tx.run(tx.sql.insertInto('run_specs').values({ run_num: 1, spec: '{}' }));
  });
});
afterEach(() => opened.remove());

const addEvent = (name: string) => (tx: Tx) => insertRunEvents(tx, 1, 0, 'run', [JSON.stringify({ name })]);
const addMessage = (name: string) => async (tx: Tx) => {
  await insertMessage(tx, {
    ...{ team_num: 1, task_num: 1, run_num: null, from_actor_id: '', route: 'broadcast', to_actor_id: null },
    ...{ payload: JSON.stringify({ text: name }), text: name, reply_to: null, thread: null, created_at: 0 },
  });
};

const heartbeat_ms = 60_000;
const followRun = (signal: AbortSignal) =>
  new RunEvents({ store, clock: systemClock, heartbeat_ms }).follow('run_1', 'start', signal);
const followTask = (signal: AbortSignal) =>
  new Messages({ store, clock: systemClock, heartbeat_ms } as MessagesOptions).follow(1, 'start', signal);

const streams = [
  { name: 'run events', add: addEvent, follow: followRun, field: 'name' },
  { name: 'task messages', add: addMessage, follow: followTask, field: 'text' },
] as const;

for (const { name, add, follow, field } of streams) {
  /** Resolves to what a follower received up to `last`, while nobody wakes it. */
  const read = async (last: string, received: string[]) => {
    const stop = new AbortController();
    let text = '';
    for await (const bytes of follow(stop.signal)) {
      text += bytes.toString();
      const names = parseFrames(text).map(({ data }) => (data.record as Record<string, string>)[field]!);
      received.splice(0, Infinity, ...names);
      if (names.includes(last)) stop.abort();
    }
  };

  test(`a follower of ${name} waits for lower numbers that an open write may commit`, async () => {
    await store.write(add('a'));
    const held = await holdWrite(store, add('b'));
    await store.write(add('c'));
    const received: string[] = [];
    const reading = read('c', received);
    while (received.length === 0) await sleep(5);
    await sleep(50);
    expect(received).toEqual(['a']);
    await held.commit();
    await reading;
    expect(received).toEqual(['a', 'b', 'c']);
  });

  test(`a follower of ${name} continues when that write is rolled back`, async () => {
    const held = await holdWrite(store, add('b'));
    await store.write(add('c'));
    const received: string[] = [];
    const reading = read('c', received);
    await held.rollBack();
    await reading;
    expect(received).toEqual(['c']);
  });
}
