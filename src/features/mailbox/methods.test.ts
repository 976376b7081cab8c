/** Methods of actors about mail and triggers, as they call them. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ActorsFixture, openActorsFixture } from '../../testing/actors-fixture.ts';
import { ActorTransactions } from '../actors/transactions.ts';
import { insertAssignment } from '../runs/queries/assignments.ts';
import { mailMethods, triggerMethods } from './actor.ts';
import { findMail } from './queries/mail.ts';
import type { Trigger } from './rules/trigger.ts';
import { Mailbox } from './service.ts';
import { Triggers } from './triggers.ts';

let opened: ActorsFixture;
let as: ActorsFixture['as'];
let holder: ActorsFixture['withSharedSecret'];

beforeEach(async () => {
  opened = await openActorsFixture({} as never, ({ fixture, facts, timers, publisher }) => {
    const { store, clock, audit, idempotency } = fixture;
    const deps = { store, clock, timers, audit, idempotency };
    const mailbox = new Mailbox({
      ...deps,
      facts,
      publisher,
      announcer: { add: () => {} },
      actor_calls: true,
    });
    const triggers = new Triggers(deps, mailbox);
    const transactions = new ActorTransactions(store);
    return {
      ...mailMethods(store, transactions, mailbox),
      ...triggerMethods(store, transactions, triggers),
    };
  });
  ({ as, withSharedSecret: holder } = opened);
});
afterEach(() => opened.close());

test('mail goes from the caller to its receiver, who alone can acknowledge it', async () => {
  const sent = await as('hand', 'send', { to: 'leader', payload: { a: 1 } });
  expect(sent).toMatchObject({ from_actor_id: 'hand@team_x', to_actor_id: 'boss@team_x', payload: { a: 1 } });
  const to_user = await as('hand', 'send', { to: 'user', payload: {} });
  expect(to_user).toMatchObject({ to_actor_id: 'user:ana' });
  await expect(as('hand', 'send', { to: 'nobody', payload: {} })).rejects.toThrow('unknown actor: nobody');
  await expect(as('hand', 'send', { to: 'user:eve', payload: {} })).rejects.toThrow(
    'unknown actor: user:eve',
  );
  const wrong = as('hand', 'send', { to: 'boss', payload: [] });
  await expect(wrong).rejects.toThrow('payload must be an object');
  await expect(as('hand', 'ack', { message_id: 1 })).rejects.toThrow('message not found');
  expect(await as('boss', 'inbox')).toMatchObject({ messages: [{ id: 1 }] });
  await as('boss', 'ack', { message_id: 1 });
  expect(await as('boss', 'inbox')).toEqual({ messages: [] });
  expect(await as('boss', 'inbox', { status: 'all' })).toMatchObject({ messages: [{ id: 1 }] });
});

test('a send with a key is sent once', async () => {
  const send = () => as('hand', 'send', { to: 'boss', payload: {}, idempotency_key: 'k' });
  expect(await send()).toEqual(await send());
  expect((await as('boss', 'inbox')) as object).toMatchObject({ messages: [{ payload: {} }] });
});

test('a restarted run sends again with a key that it has used before', async () => {
  const send = () => as('hand', 'send', { to: 'boss', payload: {}, idempotency_key: 'k' });
  const before = (await send()) as { id: number };
  const { store } = opened.fixture;
  await store.write((tx) => tx.run(tx.sql.updateTable('runs').set({ attempt: 2 })));
  const again = (await send()) as { id: number };
  expect(again.id).not.toBe(before.id);
  expect(await send()).toEqual(again);
});

test('receive waits for mail', async () => {
  const received = as('boss', 'receive');
  await as('hand', 'send', { to: 'boss', payload: {} });
  expect(await received).toMatchObject({ messages: [{ id: 1 }] });
});

test('a holder of the shared secret sends as the actor that it names, and reads no mail without naming one', async () => {
  const sent = await holder('send', { actor_id: 'help@team_x', to: 'boss', payload: {} });
  expect(sent).toMatchObject({ from_actor_id: 'help@team_x', run_id: 'run_x' });
  await expect(holder('inbox')).rejects.toThrow('actor_id is required');
});

test('the audit log has an operator’s mail, once, and everyone’s triggers, but not the mail of agents', async () => {
  await as('hand', 'send', { to: 'boss', payload: {} });
  const sent = { actor_id: 'user:ben', run_id: 'run_x', to: 'boss', payload: {}, idempotency_key: 'k' };
  for (let tries = 0; tries < 2; tries++) await holder('send', sent);
  const every_minute = { every_seconds: 60, payload: {} };
  const { id: trigger_id } = (await as('hand', 'time-trigger-set', every_minute)) as Trigger;
  await holder('time-trigger-cancel', { actor_id: 'hand@team_x', trigger_id });
  const { items } = await opened.fixture.audit.list({}, {});
  const run = { run_id: 'run_x', team_id: 'team_x', number: 1 };
  const by_operator = { authenticated_by: 'internal_grpc' };
  expect(items.map(({ event, user_id, details }) => ({ event, user_id, ...details })).toReversed()).toEqual([
    {
      ...{ event: 'mail_sent', user_id: 'usr_2', message_id: 2, ...run },
      ...{ from_actor_id: 'user:ben', to_actor_id: 'boss@team_x', ...by_operator },
    },
    { event: 'trigger_created', user_id: null, trigger_id, ...run, actor_id: 'hand@team_x' },
    { event: 'trigger_deleted', user_id: null, trigger_id, ...run, actor_id: 'hand@team_x', ...by_operator },
  ]);
});

test('triggers belong to the caller', async () => {
  const trigger = (await as('hand', 'time-trigger-set', { every_seconds: 60, payload: {} })) as Trigger;
  expect(trigger).toMatchObject({ actor_id: 'hand@team_x', every_seconds: 60 });
  const { id: trigger_id } = trigger;
  expect(await as('boss', 'time-trigger-list')).toEqual({ triggers: [] });
  await expect(as('boss', 'time-trigger-cancel', { trigger_id })).rejects.toThrow('not found');
  await as('hand', 'time-trigger-cancel', { trigger_id });
  expect(await as('hand', 'time-trigger-list')).toEqual({ triggers: [] });
});

test('an agent of an earlier attempt of the run sets no triggers and takes no mail', async () => {
  await as('hand', 'send', { to: 'boss', payload: {} });
  const common = { run_num: 1, member_id: 'x', agent_id: 'agt_x', created_at: 0 };
  const work = { kind: 'round', round: 1 } as const;
  await opened.fixture.store.write((tx) =>
    insertAssignment(tx, { ...common, run_attempt: 0, work, session_id: 'ses_boss' }),
  );
  const set = as('boss', 'time-trigger-set', { every_seconds: 60, payload: {} });
  await expect(set).rejects.toThrow('attempt 0 of the run is over');
  for (const [method, params] of [['inbox'], ['receive'], ['ack', { message_id: 1 }]] as const)
    await expect(as('boss', method, params), method).rejects.toThrow('attempt 0 of the run is over');
  const mail = opened.fixture.store.read((reader) => findMail(reader, 1));
  expect(await mail).toMatchObject({ status: 'pending' });
});
