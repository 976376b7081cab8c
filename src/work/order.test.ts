/** Facts, timers and intents on PostgreSQL, where writes overlap. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import type { Store, Tx } from '../store/store.ts';
import { addAgent, addSession } from '../store/testing.ts';
import { SOON } from '../testing/features-fixture.ts';
import { holdWrite } from '../testing/held-write.ts';
import { postgresTest as test } from '../testing/postgres.ts';
import { stores, type TestStore } from '../testing/stores.ts';
import { type Fact, Facts } from './facts.ts';
import { type Intent, type IntentHandlers, Outbox } from './outbox.ts';
import { type TimerHandlers, Timers } from './timers.ts';

let opened: TestStore;
let store: Store;
const common = () => ({ store, clock: systemClock, log: silentLog });

beforeEach(async () => {
  opened = await stores[1].open();
  store = opened.store;
});
afterEach(() => opened.remove());

async function openFacts(): Promise<{
  facts: Facts;
  handled: string[];
  record(ref: string): (tx: Tx) => Promise<void>;
}> {
  const facts = new Facts(common());
  const handled: string[] = [];
  const note =
    (name: string) =>
    async (tx: Tx, { ref }: Fact) =>
      tx.afterCommit(() => void handled.push(`${name} ${ref}`));
  await facts.open({ a: { session_refused: note('a') }, b: { session_refused: note('b') } });
  const payload = { agent_id: 'agt_1', session_id: 'ses_1', error: '' };
  return { facts, handled, record: (ref) => (tx) => facts.record(tx, 'session_refused', ref, payload) };
}

const countFacts = async () =>
  (await store.read((reader) => reader.all(reader.sql.selectFrom('facts').select('id')))).length;

test('consumers handle a fact that is committed after one with a higher number', async () => {
  const { facts, handled, record } = await openFacts();
  const held = await holdWrite(store, record('low'));
  const looks = vi.spyOn(store, 'settledNumbers');
  await store.write(record('high'));
  // Each time, the consumers have handled what the time before allowed.
  const looked = looks.mock.calls.length;
  while (looks.mock.calls.length < looked + 3) await sleep(5);
  expect(handled).toEqual([]);
  await held.commit();
  await vi.waitFor(() => expect(handled).toEqual(['a low', 'b low', 'a high', 'b high']), SOON);
  await vi.waitFor(async () => expect(await countFacts()).toBe(0), SOON);
  await facts.close();
});

test('consumers continue when a write with a lower number is rolled back', async () => {
  const { facts, handled, record } = await openFacts();
  const held = await holdWrite(store, record('low'));
  await store.write(record('high'));
  await held.rollBack();
  await vi.waitFor(() => expect(handled).toEqual(['a high', 'b high']), SOON);
  await facts.close();
});

test('a timer fires on time although another one was set by a write that was committed first', async () => {
  const timers = new Timers(common());
  const fired: string[] = [];
  const trigger: TimerHandlers['trigger'] = async (tx, { ref }) => tx.afterCommit(() => void fired.push(ref));
  timers.open({ trigger });
  const held = await holdWrite(store, (tx) => timers.set(tx, 'trigger', 'first', 0, {}));
  await store.write((tx) => timers.set(tx, 'trigger', 'second', 1, {}));
  await vi.waitFor(() => expect(fired).toEqual(['second']), SOON);
  await held.commit();
  await vi.waitFor(() => expect(fired).toEqual(['second', 'first']), SOON);
  await timers.close();
});

async function openOutbox() {
  const outbox = new Outbox(common());
  const done: number[] = [];
  const carryOut = async ({ id }: Intent) => void done.push(id);
  const kinds = [
    'start',
    'stop',
    'forget',
    'discard',
    'pursue',
    'prepare',
    'collect',
    'collect_message',
    'collect_failure',
    'push',
    'forget_owner',
    'discard_worktree',
  ];
  const handlers = Object.fromEntries(kinds.map((kind) => [kind, carryOut])) as unknown as IntentHandlers;
  await outbox.open({ ...handlers, input: async (intent) => carryOut(intent).then(() => 0) });
  return { outbox, done };
}

test('intents for a session keep their order, because writes that enqueue them change the session', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  const { outbox, done } = await openOutbox();
  const input = (data: string) => async (tx: Tx) => {
    const session = tx.sql.selectFrom('sessions').select('stdin_bytes').where('id', '=', 'ses_1');
    const { stdin_bytes: offset } = (await tx.get(session))!;
    await tx.run(
      tx.sql
        .updateTable('sessions')
        .set({ stdin_bytes: offset + 1 })
        .where('id', '=', 'ses_1'),
    );
    return outbox.enqueue(tx, 'main', 'ses_1', 'input', { offset, data, eof: false });
  };
  const held = await holdWrite(store, input('a'));
  const others = Promise.all(['b', 'c', 'd'].map((data) => store.write(input(data))));
  await held.commit();
  const ids = await others;
  await vi.waitFor(() => expect(done).toHaveLength(4), SOON);
  expect(done).toEqual(done.toSorted((a, b) => a - b));
  expect(done.slice(1)).toEqual(ids.toSorted((a, b) => a - b));
  outbox.close();
});

test('a withdrawal leaves an intent alone that it did not see', async () => {
  const { outbox, done } = await openOutbox();
  const withdrawal = await holdWrite(store, (tx) => outbox.withdraw(tx, 'ses_1', ['stop']));
  const id = await store.write((tx) => outbox.enqueue(tx, 'main', 'ses_1', 'stop', { grace_ms: 0 }));
  await withdrawal.commit();
  await vi.waitFor(() => expect(done).toEqual([id]), SOON);
  outbox.close();
});
