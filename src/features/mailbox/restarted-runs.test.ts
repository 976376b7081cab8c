/** The mail of a run that was restarted, which agents of the attempt before must not receive. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp } from '../../testing/scripted-acp.ts';
import { ACP_AGENT, applyEvent, beginRun, plainMember, runOf, stepsOfRun } from '../../testing/team-runs.ts';
import { findMail } from './queries/mail.ts';
import { type MailFixture, openMailFixture } from './testing.ts';

let fixture: MailFixture;
beforeEach(async () => {
  fixture = await openMailFixture();
});
afterEach(() => fixture.end());

const completePlan = (run_id: string) =>
  applyEvent(fixture, run_id, {
    kind: 'step_command',
    step_key: 'plan',
    command: { kind: 'completeStep' },
    by_own_member: false,
  });

const untilStep = (run_id: string, key: string, status: string) =>
  vi.waitFor(async () => expect((await stepsOfRun(fixture, run_id))[key]!.status).toBe(status), SOON);

/** The connection to the agent of the next session. */
async function nextAcp(known: readonly string[] = []): Promise<ScriptedAcp> {
  const session_id = await vi.waitFor(() => {
    const found = [...fixture.node.launches.keys()].find((id) => !known.includes(id));
    expect(found).toBeDefined();
    return found!;
  }, SOON);
  const acp = new ScriptedAcp(fixture, session_id);
  await acp.openSession();
  return acp;
}

async function prompted(acp: ScriptedAcp): Promise<{ id: string; text: string }> {
  const { id, params } = await acp.receive('request', 'session/prompt');
  return { id: id as string, text: (params as { prompt: { text: string }[] }).prompt[0]!.text };
}

test('an idle agent is stopped by a restart that launches nothing, and its successor gets the mail', async () => {
  const boss = { ...plainMember('boss', ''), agent: null };
  const ann = { ...plainMember('ann', ''), agent: ACP_AGENT };
  const run_id = await beginRun(fixture, {
    members: [boss, ann],
    steps: [
      { step_key: 'plan', member_id: 'boss' },
      { step_key: 'work', member_id: 'ann', depends_on: ['plan'] },
      { step_key: 'check', member_id: 'boss', depends_on: ['work'] },
    ],
  });
  await completePlan(run_id);
  const first = await nextAcp();
  const { id } = await prompted(first);
  first.send({ kind: 'response', id, result: { stopReason: 'end_turn' } });
  await untilStep(run_id, 'check', 'ready');
  const agent_id = (await stepsOfRun(fixture, run_id)).work!.agent_id!;

  await applyEvent(fixture, run_id, { kind: 'run_command', command: { kind: 'restartRun' } });
  const mail = { run_id, from_actor_id: 'boss', to_actor_id: 'ann', payload: { n: 1 } };
  const sent = await fixture.mailbox.send(ANA, mail, null);
  await fixture.until(agent_id, 'cancelled');
  expect((await runOf(fixture, run_id)).status).toBe('running');

  await completePlan(run_id);
  const second = await nextAcp([first.session_id]);
  expect((await prompted(second)).text).toContain(`Message ${sent.id} from`);
  expect(first.lines.filter((line) => line.includes('session/prompt'))).toHaveLength(1);
  expect(await fixture.store.read((reader) => findMail(reader, sent.id))).toMatchObject({ run_attempt: 2 });
});
