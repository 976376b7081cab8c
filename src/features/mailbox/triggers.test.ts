/** Triggers across restarts of the plane, and until the end of the run. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { deleteUser } from '../../store/users.ts';
import { ANA, BEN, SOON } from '../../testing/features-fixture.ts';
import { ACP_AGENT, addRun, changeRun, specWith } from '../../testing/team-runs.ts';
import type { Caller } from '../accounts/rules.ts';
import { findRun, type RunRow } from '../runs/queries/runs.ts';
import { putHumans } from '../teams/queries.ts';
import { limits } from './limits.ts';
import { type MailFixture, openMailFixture } from './testing.ts';

let fixture: MailFixture;
let run: RunRow;
beforeEach(async () => {
  fixture = await openMailFixture();
  run = await addRun(fixture.store, BEN, specWith({ lead: null, robot: ACP_AGENT }), [ANA]);
});
afterEach(() => fixture.end());

const NO_TIME = { at: null, every_seconds: null, cron: null, timezone: null };
const set = async (more: object, actor_id = 'lead', key: string | null = null) => {
  const input = { run_id: run.id, ...NO_TIME, payload: { wake: true }, ...more };
  return (await fixture.triggers.set(BEN, actor_id, input, key, () => '/api')).body;
};
const mail = async (actor_id = 'lead') =>
  await fixture.mailbox.inbox(ANA, actor_id, { run_id: run.id, status: 'all' }, new AbortController().signal);
const list = async (actor_id = 'lead') =>
  (await fixture.triggers.list(BEN, actor_id, { run_id: run.id })).items;
const expectMail = (count: number) => vi.waitFor(async () => expect(await mail()).toHaveLength(count), SOON);

test('a trigger sends its actor mail from itself, once, and is deleted', async () => {
  const at = fixture.clock.now() + 1_000;
  const trigger = await set({ at });
  expect(trigger).toMatchObject({
    actor_id: `lead@${run.team_id}`,
    fired: 0,
    last_at: null,
    created_by: 'usr_b',
  });
  expect(trigger.next_at).toBe(trigger.at);
  await fixture.advanceClock(999);
  expect(await mail()).toEqual([]);
  await fixture.advanceClock(1);
  await expectMail(1);
  const actor_id = `lead@${run.team_id}`;
  expect(await mail()).toMatchObject([
    { from_actor_id: actor_id, to_actor_id: actor_id, payload: { wake: true } },
  ]);
  expect(await list()).toEqual([]);
});

test('a trigger with a key is set once, even if its answer was lost', async () => {
  const request = new Uint8Array(32);
  await fixture.idempotency.begin(BEN, 'key', request);
  const trigger = await set({ every_seconds: 60 }, 'lead', 'key');
  await fixture.close();
  await fixture.open();
  const stored = { status: 201, location: '/api', body: trigger };
  expect(await fixture.idempotency.begin(BEN, 'key', request)).toEqual({ stored });
});

test('a trigger that was missed while the service was down fires once, and continues from now', async () => {
  await set({ every_seconds: 60 });
  await fixture.advanceClock(10 * 60_000 + 1);
  await expectMail(1);
  await fixture.close();
  await fixture.open();
  expect(await mail()).toHaveLength(1);
  expect(await list()).toMatchObject([
    { fired: 1, next_at: new Date(fixture.clock.now() + 59_999).toISOString() },
  ]);
  await fixture.advanceClock(59_999);
  await expectMail(2);
});

test('does not fire twice after the clock was set back', async () => {
  await set({ every_seconds: 60 });
  await fixture.advanceClock(60_000);
  await expectMail(1);
  await fixture.advanceClock(-60_000);
  await fixture.advanceClock(60_000);
  await fixture.advanceClock(59_999);
  expect(await mail()).toHaveLength(1);
  await fixture.advanceClock(1);
  await expectMail(2);
});

test('triggers end with the run, and with their attempt', async () => {
  await set({ every_seconds: 60 });
  run = await changeRun(fixture.store, fixture.facts, run, { attempt: 2 });
  await vi.waitFor(async () => expect(await list()).toEqual([]), SOON);
  await set({ every_seconds: 60 });
  await changeRun(fixture.store, fixture.facts, run, { status: 'cancelled' });
  await vi.waitFor(async () => expect(await list()).toEqual([]), SOON);
  await expect(set({ every_seconds: 60 })).rejects.toThrow('run is over');
  await fixture.advanceClock(60_000);
  expect(await mail()).toEqual([]);
  const timers = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('timers').select('ref').where('kind', '=', 'trigger')),
  );
  expect(timers).toEqual([]);
});

test('only its owner can delete a trigger', async () => {
  const { id } = await set({ every_seconds: 60 });
  const wrong = fixture.triggers.remove(BEN, 'user:ben', id);
  await expect(wrong).rejects.toThrow('trigger not found');
  await expect(set({ every_seconds: 60 }, 'robot')).rejects.toThrow('not allowed to act as robot@');
  await fixture.triggers.remove(BEN, 'lead', id);
  await expect(fixture.triggers.remove(BEN, `lead@${run.team_id}`, id)).rejects.toThrow('trigger not found');
  await fixture.advanceClock(60_000);
  expect(await mail()).toEqual([]);
});

describe('a trigger of a person who has left the team', () => {
  const CAT: Caller = { ...BEN, user_id: 'usr_c', username: 'cat', token_id: 'tok_c' };
  const EVE: Caller = { ...BEN, user_id: 'usr_e', username: 'eve', token_id: 'tok_e' };
  let id: string;
  beforeEach(async () => {
    run = await addRun(fixture.store, BEN, specWith({ lead: null }), [CAT, EVE]);
    const input = { run_id: run.id, ...NO_TIME, every_seconds: 10, payload: {} };
    id = (await fixture.triggers.set(CAT, 'user:cat', input, null, () => '/api')).body.id;
    await fixture.store.write((tx) => putHumans(tx, run.team_num, [EVE.user_id]));
  });

  const ofRun = async () => (await fixture.triggers.ofRun(BEN, run.id, {})).items;

  test('can be deleted by root, and by nobody else', async () => {
    await expect(fixture.triggers.remove(CAT, 'user:cat', id)).rejects.toThrow('run not found');
    await expect(fixture.triggers.remove(EVE, 'user:cat', id)).rejects.toThrow('not allowed to act as');
    await expect(fixture.triggers.remove(ANA, 'user:eve', id)).rejects.toThrow('trigger not found');
    await fixture.store.write((tx) => deleteUser(tx, CAT.user_id));
    await fixture.triggers.remove(ANA, 'user:cat', id);
    expect(await ofRun()).toEqual([]);
  });

  test('ends with a notice instead of sending mail', async () => {
    await fixture.advanceClock(10_000);
    await vi.waitFor(async () => expect(await ofRun()).toEqual([]), SOON);
    expect((await fixture.mailbox.ofRun(BEN, run.id, {})).items).toEqual([]);
    const { attention } = await fixture.store.read(async (reader) => (await findRun(reader, run.id))!);
    expect(attention).toBe(`trigger ${id} of user:cat ended: unknown actor: user:cat`);
  });
});

test('limits the triggers of a run, and the size of their payloads', async () => {
  const payload = { text: 'x'.repeat(limits.mail_payload_bytes_max) };
  await expect(set({ every_seconds: 60, payload })).rejects.toThrow('payload is too large');
  for (let n = 0; n < limits.triggers_per_run_max; n++) await set({ every_seconds: 60 });
  await expect(set({ every_seconds: 60 })).rejects.toThrow('too many triggers in the run');
  const { items, next_cursor } = await fixture.triggers.list(BEN, 'lead', { run_id: run.id, limit: 60 });
  expect(items).toHaveLength(60);
  const rest = await fixture.triggers.list(BEN, 'lead', { run_id: run.id, limit: 60, cursor: next_cursor! });
  expect(new Set([...items, ...rest.items].map(({ id }) => id)).size).toBe(limits.triggers_per_run_max);
});

test('limits the payloads of the triggers of a run together', async () => {
  const large = { text: 'x'.repeat(limits.mail_payload_bytes_max - 100) };
  const count = Math.floor(limits.triggers_per_run_bytes_max / limits.mail_payload_bytes_max);
  for (let n = 0; n < count; n++) await set({ every_seconds: 60, payload: large });
  await expect(set({ every_seconds: 60, payload: large })).rejects.toThrow('too many triggers in the run');
  await set({ every_seconds: 60 });
});

test('a trigger ends visibly if the run’s mailbox is full', async () => {
  const trigger = await set({ every_seconds: 60 });
  await fixture.store.write(async (tx) => {
    const row = {
      team_num: run.team_num,
      run_num: run.num,
      run_attempt: 1,
      payload: '{}',
      hops: 0,
      created_at: 0,
    };
    const actors = { from_actor_id: 'a', to_actor_id: 'b', status: 'acknowledged', reminded: 0 } as const;
    for (let n = 0; n < limits.mails_per_run_max; n++) {
      await tx.run(tx.sql.insertInto('mail').values({ ...row, ...actors }));
    }
  });
  await fixture.advanceClock(60_000);
  await vi.waitFor(async () => expect(await list()).toEqual([]), SOON);
  const { attention } = await fixture.store.read(async (reader) => (await findRun(reader, run.id))!);
  expect(attention).toBe(
    `trigger ${trigger.id} of lead@${run.team_id} ended: too many mailbox messages in the run`,
  );
});

test('a trigger ends visibly if the system no longer knows its time zone', async () => {
  const trigger = await set({ cron: '* * * * *', timezone: 'Europe/Berlin' });
  await fixture.store.write((tx) => tx.run(tx.sql.updateTable('triggers').set({ timezone: 'Europe/Bonn' })));
  await fixture.advanceClock(60_000);
  await vi.waitFor(async () => expect(await list()).toEqual([]), SOON);
  const { attention } = await fixture.store.read(async (reader) => (await findRun(reader, run.id))!);
  expect(attention).toBe(
    `trigger ${trigger.id} of lead@${run.team_id} ended: timezone must be an IANA time zone`,
  );
  expect(await mail()).toEqual([]);
});

test('an agent that wakes itself with a trigger continues its chain', async () => {
  const actor_id = `robot@${run.team_id}`;
  await fixture.store.write(async (tx) => {
    const letter = { run, from_actor_id: `lead@${run.team_id}`, to_actor_id: actor_id, payload: {}, hops: 7 };
    await fixture.mailbox.post(tx, letter);
  });
  await fixture.mailbox.take({ to_actor_id: actor_id, limit: 50 });
  await fixture.store.write(async (tx) => {
    const at = fixture.clock.now() + 1_000;
    await fixture.triggers.add(
      tx,
      (await findRun(tx, run.id))!,
      actor_id,
      { ...NO_TIME, at, payload: {} },
      { user_id: null, ip: null, actor_id },
    );
  });
  await fixture.advanceClock(1_000);
  await vi.waitFor(async () => expect(await mail('robot')).toHaveLength(2), SOON);
  await fixture.mailbox.take({ to_actor_id: actor_id, limit: 50 });
  const hops = await fixture.store.read(async (reader) =>
    fixture.mailbox.hopsOf(reader, (await findRun(reader, run.id))!, actor_id),
  );
  expect(hops).toBe(9);
});
