/** Mail and triggers of agents, with the real rules and database. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { run as runCli } from '../../testing/cli.ts';
import { ANA } from '../../testing/features-fixture.ts';
import { ACP_AGENT, addRun, specWith } from '../../testing/team-runs.ts';
import type { ActorCaller } from '../actors/rules/actor.ts';
import { ActorTransactions } from '../actors/transactions.ts';
import { insertRun, type RunRow } from '../runs/queries/runs.ts';
import { mailMethods, triggerMethods } from './actor.ts';
import { mail_help } from './messages.ts';
import { type MailFixture, openMailFixture } from './testing.ts';

let fixture: MailFixture;
beforeEach(async () => {
  fixture = await openMailFixture();
});
afterEach(() => fixture.end());

/** The agent of the member `robot` in the run with this num. */
function robotIn(run_num: number, { team_id, team_num }: RunRow): ActorCaller {
  const member = { member_id: 'robot', team_num, team_id, run_num };
  const ids = { id: `ses_${run_num}`, agent_id: `agt_${run_num}`, node_id: 'main', owner_id: ANA.user_id };
  return { actor_id: `robot@${team_id}`, session: { ...ids, member }, ip: null };
}

test('an agent of the same name in another run can neither acknowledge mail nor cancel triggers', async () => {
  const { store } = fixture;
  const run = await addRun(store, ANA, specWith({ robot: ACP_AGENT }));
  const other_num = await store.write((tx) =>
    insertRun(tx, {
      ...{ id: 'run_other', team_num: run.team_num, number: 2, task_num: run.task_num },
      ...{ status: 'running', spec: run.spec, input: '{}', attempt: 1, mode: 'outside' },
      ...{ leader: 'unasked', rounds: 0, steps_seen: 0, version: 1 },
      ...{ created_by: ANA.user_id, created_at: 0 },
    }),
  );
  const transactions = new ActorTransactions(store);
  const { send, ack } = mailMethods(store, transactions, fixture.mailbox);
  const triggers = triggerMethods(store, transactions, fixture.triggers);
  const [own, other] = [robotIn(run.num, run), robotIn(other_num, run)];
  const { id: message_id } = await send(own, { to: 'robot', payload: {} });
  const { id: trigger_id } = await triggers['time-trigger-set'](own, { every_seconds: 60, payload: {} });

  await expect(ack(other, { message_id })).rejects.toThrow('message not found');
  await expect(triggers['time-trigger-cancel'](other, { trigger_id })).rejects.toThrow('trigger not found');
  expect(await ack(own, { message_id })).toMatchObject({ status: 'acknowledged' });
  expect(await triggers['time-trigger-cancel'](own, { trigger_id })).toMatchObject({ id: trigger_id });
});

test('the commands that an agent learns of with its first prompt exist', async () => {
  for (const usage of mail_help.commands) {
    const [, ...argv] = usage.split(' --')[0]!.split(' ');
    expect(await runCli([...argv, '--help'], { home: fixture.folder })).toMatchObject({ code: 0 });
  }
});
