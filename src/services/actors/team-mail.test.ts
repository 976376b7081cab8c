/** Mail and triggers that agents hold, by the real rules, on a real database. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ANA, LivesRoom } from '../../testing/lives.ts';
import { addRun, SPEAKS, specWith } from '../../testing/team-runs.ts';
import { actorMailbox, actorTriggers } from './team-mail.ts';

let room: LivesRoom;
beforeEach(async () => {
  room = await LivesRoom.make();
});
afterEach(() => room.end());

test('what an agent has in its run, another run’s agent of the same name neither acknowledges nor cancels', async () => {
  const run = await addRun(room.store, ANA, specWith({ robot: SPEAKS }));
  const actor_id = `robot@${run.team_id}`;
  const own = { actor_id, run_num: run.num };
  const other = { actor_id, run_num: run.num + 1 };
  const mailbox = actorMailbox(room.mailbox);
  const triggers = actorTriggers(room.triggers);
  const { store } = room;
  const letter = { run, from_actor_id: 'user:ana', to_actor_id: actor_id, payload: {} };
  const { id: message_id } = await store.write((tx) =>
    mailbox.send(tx, { ...letter, session_id: null, idempotency_key: null }),
  );
  const set = { run, actor_id, payload: {}, every_seconds: 60 };
  const { id: trigger_id } = await store.write((tx) => triggers.set(tx, set));

  const acked = (who: typeof own) => store.write((tx) => mailbox.ack(tx, { ...who, message_id }));
  const cancelled = (who: typeof own) => store.write((tx) => triggers.cancel(tx, { ...who, trigger_id }));
  await expect(acked(other)).rejects.toThrow('message not found');
  await expect(cancelled(other)).rejects.toThrow('trigger not found');
  expect(await acked(own)).toMatchObject({ status: 'acknowledged' });
  expect(await cancelled(own)).toMatchObject({ id: trigger_id });
});
