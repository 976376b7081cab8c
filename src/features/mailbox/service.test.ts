/** Mail between actors: rights, storage, and delivery exactly once. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import { ANA, BEN, SOON } from '../../testing/features-fixture.ts';
import { signIn, signOut } from '../../testing/sign-in.ts';
import { ACP_AGENT, addRun, changeRun, specWith } from '../../testing/team-runs.ts';
import type { Caller } from '../accounts/rules.ts';
import { findRun, type RunRow } from '../runs/queries/runs.ts';
import { putHumans } from '../teams/queries.ts';
import { limits } from './limits.ts';
import { countUnacknowledged } from './queries/mail.ts';
import type { Mail } from './rules/mail.ts';
import { type MailFixture, openMailFixture } from './testing.ts';

/** A user without a team. */
const EVE: Caller = {
  user_id: 'usr_e',
  username: 'eve',
  role: 'user',
  token_id: 'tok_e',
  grant: null,
  ip: null,
};
/** The creator of the team. */
const CAT: Caller = {
  user_id: 'usr_c',
  username: 'cat',
  role: 'user',
  token_id: 'tok_c',
  grant: null,
  ip: null,
};

let fixture: MailFixture;
let run: RunRow;
beforeEach(async () => {
  fixture = await openMailFixture();
  await addRun(fixture.store, EVE, specWith({ lead: null }));
  run = await addRun(
    fixture.store,
    CAT,
    specWith({ lead: null, helper: null, robot: ACP_AGENT, plain: ACP_AGENT }),
    [BEN, ANA],
  );
  await signIn(fixture.store, CAT, BEN);
});
afterEach(() => fixture.end());

const NEVER = new AbortController().signal;
const at = (member_id: string) => `${member_id}@${run.team_id}`;
const send = (from: string, to: string, more: { by?: Caller; payload?: object; key?: string } = {}) =>
  fixture.mailbox.send(
    more.by ?? CAT,
    {
      run_id: run.id,
      from_actor_id: from,
      to_actor_id: to,
      payload: { say: 'hello', ...more.payload },
    },
    more.key ?? null,
  );
const inbox = (actor_id: string, by = CAT, request = {}) =>
  fixture.mailbox.inbox(by, actor_id, { run_id: run.id, ...request }, NEVER);
const ids = (mail: Mail[]) => mail.map(({ id }) => id);
/** Mail of an agent, as its own calls send it. */
const post = (
  from: string,
  to: string,
  more: { run_attempt?: number; key?: string; payload?: object } = {},
) =>
  fixture.store.write(async (tx) =>
    fixture.mailbox.post(tx, {
      run: (await findRun(tx, run.id))!,
      from_actor_id: at(from),
      to_actor_id: at(to),
      payload: { say: 'hello', ...more.payload },
      idempotency_key: more.key ?? null,
      ...(more.run_attempt !== undefined && { run_attempt: more.run_attempt }),
    }),
  );
const take = (member_id: string) => fixture.mailbox.take({ to_actor_id: at(member_id), limit: 50 });
const currentRun = () => fixture.store.read(async (reader) => (await findRun(reader, run.id))!);

test('a message is pending, delivered when its owner lists it, and gone from the inbox when acknowledged', async () => {
  const sent = await send('lead', 'helper', { payload: { n: 1 } });
  const record = { id: sent.id, run_id: run.id, from_actor_id: at('lead'), to_actor_id: at('helper') };
  const none = { delivered_at: null, acknowledged_at: null };
  expect(sent).toEqual({
    ...{ ...record, status: 'pending', payload: { say: 'hello', n: 1 }, ...none },
    created_at: expect.any(String),
  });
  const [listed] = await inbox(at('helper'), BEN);
  expect(listed).toMatchObject({ ...record, status: 'delivered', delivered_at: expect.any(String) });
  expect(await inbox('helper')).toEqual([listed]);
  const acknowledged = await fixture.mailbox.ack(BEN, sent.id);
  expect(acknowledged).toMatchObject({ status: 'acknowledged', acknowledged_at: expect.any(String) });
  fixture.clock.advance(1000);
  expect(await fixture.mailbox.ack(CAT, sent.id)).toEqual(acknowledged);
  expect(await inbox('helper')).toEqual([]);
  expect(ids(await inbox('helper', CAT, { status: 'all' }))).toEqual([sent.id]);
});

test('a message acknowledged before it was listed counts as delivered then', async () => {
  const { id } = await send('lead', 'helper');
  const { delivered_at, acknowledged_at } = await fixture.mailbox.ack(CAT, id);
  expect(delivered_at).toBe(acknowledged_at);
});

test('the fleet feed announces whose mail has changed, to those who see the run', async () => {
  const announce = vi.spyOn(fixture.core.feed, 'announce');
  const audience = { owner_id: CAT.user_id, team_num: run.team_num, agent_id: null };
  const to = (to_actor_id: string) => ({ ...audience, record: { run_id: run.id, to_actor_id } });
  const follower = fixture.core.feed.follow(() => true, 'start', NEVER);
  await follower.next();
  const { id } = await send('lead', 'helper');
  await send('lead', 'helper');
  await send('lead', 'user:ben');
  await expect.poll(() => announce.mock.calls.flatMap(([, , items]) => items)).toHaveLength(2);
  expect(announce.mock.lastCall).toEqual([
    'mail',
    'mail',
    expect.arrayContaining([to(at('helper')), to('user:ben')]),
  ]);
  announce.mockClear();
  await fixture.mailbox.ack(CAT, id);
  await expect.poll(() => announce.mock.calls).toEqual([['mail', 'mail', [to(at('helper'))]]]);
  await follower.return(undefined);
});

test('naming a message to an agent acknowledges it if agents cannot call the plane', async () => {
  await fixture.close();
  fixture.actor_calls = false;
  await fixture.open();
  const { num } = await post('lead', 'robot');
  const name = (prompt_id: string) =>
    fixture.store.write(async (tx) => {
      const text = await fixture.mailbox.pendingMail(tx, run, at('robot'), prompt_id);
      await fixture.mailbox.promptSent(tx, run, at('robot'), prompt_id);
      return text;
    });
  expect(await name('prm_1')).toContain(`Message ${num} from ${at('lead')}`);
  const times = { delivered_at: expect.any(String), acknowledged_at: expect.any(String) };
  expect(await fixture.mailbox.get(CAT, num)).toMatchObject({ status: 'acknowledged', ...times });
  expect(await name('prm_2')).toBe(null);
  await fixture.advanceClock(limits.mail_unacknowledged_ms);
  expect((await currentRun()).attention).toBe(null);
});

test('mail that is unacknowledged when actor calls are turned off counts as acknowledged, and needs nobody', async () => {
  const { num } = await post('lead', 'robot');
  await fixture.store.write(async (tx) => {
    await fixture.mailbox.pendingMail(tx, run, at('robot'), 'prm_1');
    await fixture.mailbox.promptSent(tx, run, at('robot'), 'prm_1');
  });
  await fixture.close();
  fixture.actor_calls = false;
  await fixture.open();
  await fixture.advanceClock(limits.mail_unacknowledged_ms);
  await vi.waitFor(async () => {
    expect(await fixture.mailbox.get(CAT, num)).toMatchObject({ status: 'acknowledged' });
  }, SOON);
  expect((await currentRun()).attention).toBe(null);
});

test('inboxes are oldest first, of one run or all, and limited', async () => {
  const first = await send('lead', 'user:cat');
  const other = await addRun(fixture.store, CAT, specWith({ lead: null }));
  const elsewhere = { from_actor_id: 'lead', to_actor_id: 'user', payload: {} };
  const second = await fixture.mailbox.send(CAT, { run_id: other.id, ...elsewhere }, null);
  const third = await send('lead', 'user');
  expect(ids(await fixture.mailbox.inbox(CAT, 'user:cat', {}, NEVER))).toEqual([
    first.id,
    second.id,
    third.id,
  ]);
  expect(ids(await inbox('user'))).toEqual([first.id, third.id]);
  expect(ids(await fixture.mailbox.inbox(CAT, 'user:cat', { limit: 2 }, NEVER))).toEqual([
    first.id,
    second.id,
  ]);
});

test('people act as themselves and as members without an agent; root as anyone', async () => {
  const expectRejection = (call: Promise<unknown>, message: string) => expect(call).rejects.toThrow(message);
  for (const by of [BEN, CAT]) {
    await send(`user:${by.username}`, 'lead', { by });
    await send('helper', at('lead'), { by });
    await expectRejection(send('robot', 'lead', { by }), `not allowed to act as ${at('robot')}`);
    await expectRejection(inbox('robot', by), `not allowed to act as ${at('robot')}`);
    await expectRejection(inbox('user:ana', by), 'not allowed to act as user:ana');
  }
  await expectRejection(
    fixture.mailbox.inbox(CAT, 'user:nobody', {}, NEVER),
    'not allowed to act as user:nobody',
  );
  await send('robot', 'lead', { by: ANA });
  await send('user:ben', 'robot', { by: ANA });
  expect(await inbox('robot', ANA)).toHaveLength(1);
  await expectRejection(fixture.mailbox.inbox(ANA, 'user:nobody', {}, NEVER), 'unknown actor: user:nobody');
});

test('reading by root of another’s inbox does not deliver', async () => {
  await send('lead', 'robot');
  await send('lead', 'user:ben');
  expect(await inbox('robot', ANA)).toMatchObject([{ status: 'pending' }]);
  expect(await inbox('user:ben', ANA)).toMatchObject([{ status: 'pending' }]);
  expect(await inbox('user:ben', BEN)).toMatchObject([{ status: 'delivered' }]);
});

test('other users see neither runs nor actors nor messages', async () => {
  const { id } = await send('lead', 'helper');
  const expectRejection = (call: Promise<unknown>, message: string) => expect(call).rejects.toThrow(message);
  await expectRejection(send('lead', 'helper', { by: EVE }), 'run not found');
  await expectRejection(inbox('lead', EVE), 'run not found');
  await expectRejection(fixture.mailbox.inbox(EVE, at('lead'), {}, NEVER), `unknown actor: ${at('lead')}`);
  await expectRejection(
    fixture.mailbox.inbox(EVE, 'lead@team_none', {}, NEVER),
    'unknown actor: lead@team_none',
  );
  await expectRejection(fixture.mailbox.ofRun(EVE, run.id, {}), 'run not found');
  for (const mail_num of [id, 999, Number.NaN]) {
    await expectRejection(fixture.mailbox.ack(EVE, mail_num), 'message not found');
    await expectRejection(fixture.mailbox.get(EVE, mail_num), 'message not found');
  }
  const own = await send('helper', 'user:cat');
  await expectRejection(fixture.mailbox.ack(BEN, own.id), 'message not found');
  await expectRejection(send('lead', 'nobody'), 'unknown actor: nobody');
  await expectRejection(send('lead', 'user:eve'), 'unknown actor: user:eve');
});

test('a person who left the team reads none of its mail', async () => {
  await send('lead', 'user:ben');
  expect(await fixture.mailbox.inbox(BEN, 'user:ben', {}, NEVER)).toHaveLength(1);
  await fixture.store.write((tx) => putHumans(tx, run.team_num, []));
  expect(await fixture.mailbox.inbox(BEN, 'user:ben', { status: 'all' }, NEVER)).toEqual([]);
});

test('an actor acknowledges only its own mail, and an agent only that of its run', async () => {
  const { num } = await post('robot', 'plain');
  const ack = (member_id: string, run_num: number | null = null) =>
    fixture.store.write((tx) => fixture.mailbox.acknowledge(tx, num, { actor_id: at(member_id), run_num }));
  await expect(ack('robot')).rejects.toThrow('message not found');
  await expect(ack('plain', run.num + 1)).rejects.toThrow('message not found');
  expect(await ack('plain')).toMatchObject({ status: 'acknowledged' });
});

test('ten sends of an agent with one key are one message, even concurrently and after its acknowledgement', async () => {
  const ten = await Promise.all(Array.from({ length: 10 }, () => post('robot', 'helper', { key: 'k' })));
  const { num } = ten[0]!;
  expect(new Set(ten.map((row) => row.num)).size).toBe(1);
  await fixture.mailbox.ack(CAT, num);
  expect(await post('robot', 'helper', { key: 'k' })).toMatchObject({ num, status: 'acknowledged' });
  expect(await inbox('helper', CAT, { status: 'all' })).toHaveLength(1);
  const reused = 'idempotency key reused with a different request';
  await expect(post('robot', 'helper', { key: 'k', payload: { n: 2 } })).rejects.toThrow(reused);
  await expect(post('robot', 'plain', { key: 'k' })).rejects.toThrow(reused);
  // Keys are scoped to their sender.
  expect((await post('plain', 'helper', { key: 'k' })).num).not.toBe(num);
});

test('the response to a send of a person is stored with the message, for a day', async () => {
  const request = new Uint8Array(32);
  await fixture.idempotency.begin(CAT, 'k', request);
  const mail = await send('lead', 'helper', { key: 'k' });
  await fixture.close();
  await fixture.open();
  const stored = { status: 201, location: `/api/actor/mailbox/${mail.id}`, body: mail };
  expect(await fixture.idempotency.begin(CAT, 'k', request)).toEqual({ stored });
  fixture.clock.advance(sharedLimits.idempotency_keep_ms);
  expect(await fixture.idempotency.begin(CAT, 'k', request)).toHaveProperty('first');
  expect((await send('lead', 'helper', { key: 'k' })).id).not.toBe(mail.id);
});

test('payloads and the mail of a run are limited', async () => {
  const payload = { text: 'x'.repeat(limits.mail_payload_bytes_max) };
  await expect(send('lead', 'helper', { payload })).rejects.toThrow('payload is too large');
  await fixture.store.write(async (tx) => {
    const template = { team_num: run.team_num, run_num: run.num, run_attempt: 1, payload: '{}', hops: 0 };
    const row = {
      ...template,
      from_actor_id: 'a',
      to_actor_id: 'b',
      status: 'pending',
      reminded: 0,
    } as const;
    for (let n = 0; n < limits.mails_per_run_max; n++) {
      await tx.run(tx.sql.insertInto('mail').values({ ...row, created_at: 0 }));
    }
  });
  await expect(send('lead', 'helper')).rejects.toThrow('too many mailbox messages in the run');
});

test('mail to a run that is over becomes a dead letter with the reason', async () => {
  await changeRun(fixture.store, fixture.facts, run, { status: 'completed' });
  const sent = await send('lead', 'helper');
  expect(sent).toMatchObject({ status: 'dead_letter', reason: 'run is completed' });
  expect(await inbox('helper')).toEqual([]);
  const { items } = await fixture.mailbox.ofRun(CAT, run.id, {});
  expect(items).toMatchObject([{ id: sent.id, status: 'dead_letter' }]);
  expect(items[0]).not.toHaveProperty('payload');
  expect(await fixture.mailbox.ack(CAT, sent.id)).toEqual(sent);
});

test('a restart of the run makes dead letters of unacknowledged and late mail', async () => {
  const [read, waits, done] = [
    await send('lead', 'helper'),
    await send('lead', 'user'),
    await send('user', 'lead'),
  ];
  await inbox('helper');
  await fixture.mailbox.ack(CAT, done.id);
  run = await changeRun(fixture.store, fixture.facts, run, { attempt: 2 });
  // At once, before the fact is processed.
  expect(await inbox('helper')).toEqual([]);
  const now = await send('lead', 'helper');
  await vi.waitFor(async () => {
    for (const { id } of [read, waits]) {
      expect(await fixture.mailbox.get(CAT, id)).toMatchObject({
        status: 'dead_letter',
        reason: 'attempt 1 of the run is over',
      });
    }
  }, SOON);
  expect(await fixture.mailbox.get(CAT, done.id)).toMatchObject({ status: 'acknowledged' });
  expect(ids(await inbox('helper'))).toEqual([now.id]);
  expect(await post('robot', 'helper', { run_attempt: 1 })).toMatchObject({
    status: 'dead_letter',
    reason: 'attempt 1 of the run is over',
  });
});

test('the hop limit stops agents that keep answering each other, and reports it', async () => {
  let last = await post('robot', 'plain');
  for (let n = 1; last.status !== 'dead_letter'; n++) {
    expect(n).toBeLessThanOrEqual(limits.mail_hops_max + 1);
    const [from, to] = n % 2 === 1 ? ['plain', 'robot'] : ['robot', 'plain'];
    fixture.clock.advance(10);
    for (const { id } of await take(from!)) {
      await fixture.store.write((tx) =>
        fixture.mailbox.acknowledge(tx, id, { actor_id: at(from!), run_num: null }),
      );
    }
    last = await post(from!, to!);
  }
  expect(last).toMatchObject({ hops: limits.mail_hops_max + 1, reason: 'hop budget spent' });
  expect((await currentRun()).attention).toMatch(/^message \d+ from .* was not delivered: hop budget spent$/);
  // Sending to itself, or to others, does not avoid the limit.
  expect(await post('plain', 'plain')).toMatchObject({ status: 'dead_letter' });
  expect(await post('plain', 'helper')).toMatchObject({ status: 'dead_letter' });
  // A message from a person starts a new chain.
  fixture.clock.advance(10);
  await send('user', 'plain');
  await take('plain');
  expect(await post('plain', 'robot')).toMatchObject({ status: 'pending', hops: 1 });
});

test('the hop limit never stops a conversation between a person and an agent', async () => {
  for (let n = 0; n <= limits.mail_hops_max; n++) {
    fixture.clock.advance(10);
    await send('user', 'robot');
    await take('robot');
    expect(await post('robot', 'lead')).toMatchObject({ status: 'pending', hops: 1 });
  }
});

test('a new step starts a new chain', async () => {
  await fixture.store.write(async (tx) => {
    const letter = { run, from_actor_id: at('plain'), to_actor_id: at('robot'), payload: {}, hops: 20 };
    await fixture.mailbox.post(tx, letter);
  });
  await take('robot');
  expect(await post('robot', 'plain')).toMatchObject({ hops: 21 });
  fixture.clock.advance(10);
  await fixture.store.write(async (tx) => {
    const row = { run_num: run.num, step_key: 'a', attempt: 1, run_attempt: 1, member_id: 'robot' };
    await tx.run(
      tx.sql
        .insertInto('run_attempts')
        .values({ ...row, agent_id: 'agt_x', over: 0, created_at: fixture.clock.now() }),
    );
  });
  expect(await post('robot', 'plain')).toMatchObject({ hops: 0 });
});

test('run events describe each change of a message, without its payload', async () => {
  const { id } = await send('lead', 'helper');
  await inbox('helper');
  await fixture.mailbox.ack(CAT, id);
  const events = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('run_events').select(['type', 'data']).orderBy('id')),
  );
  const records = events.map(({ data }) => JSON.parse(data) as Mail);
  expect(events.map(({ type }) => type)).toEqual(['mail', 'mail', 'mail']);
  expect(records.map(({ status }) => status)).toEqual(['pending', 'delivered', 'acknowledged']);
  expect(records.some((record) => 'payload' in record)).toBe(false);
});

test('a waiting caller gets a message on commit, at once if it exists, and nothing at the end', async () => {
  const waiting = inbox('helper', CAT, { wait: 60 });
  const { id } = await send('lead', 'helper');
  expect(ids(await waiting)).toEqual([id]);
  const next = await send('lead', 'helper');
  expect(ids(await inbox('helper', CAT, { wait: 60 }))).toEqual([id, next.id]);
  // Nothing new: returns unacknowledged mail after the wait.
  expect(ids(await inbox('helper', CAT, { wait: 0 }))).toEqual([id, next.id]);
  const aborted = AbortSignal.abort();
  expect(await fixture.mailbox.inbox(CAT, 'user:cat', { wait: 60 }, aborted)).toEqual([]);
});

test('a waiting caller whose token is revoked, or who leaves the team, gets nothing and takes nothing', async () => {
  const revoked = expect(inbox('helper', CAT, { wait: 60 })).rejects.toThrow('invalid token');
  const left = expect(inbox('helper', BEN, { wait: 60 })).rejects.toThrow('run not found');
  await signOut(fixture.store, CAT);
  await fixture.store.write((tx) => putHumans(tx, run.team_num, [ANA.user_id]));
  const { num } = await post('lead', 'helper');
  await revoked;
  await left;
  expect(await fixture.mailbox.get(ANA, num)).toMatchObject({ status: 'pending' });
});

test('counts unacknowledged messages per actor', async () => {
  const first = await send('lead', 'helper');
  await send('lead', 'helper');
  await send('lead', 'user');
  await inbox('helper');
  await fixture.mailbox.ack(CAT, first.id);
  const counts = await fixture.store.read((reader) => countUnacknowledged(reader, run));
  expect(Object.fromEntries(counts)).toEqual({ [at('helper')]: 1, 'user:cat': 1 });
});
