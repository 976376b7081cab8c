/** Notification of agents about their mail, with a scripted agent. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { AcpState } from '../../acp/state.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { ANA, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { ACP_AGENT, addRun, changeRun, specWith } from '../../testing/team-runs.ts';
import { loadAcpState, storeAcpState } from '../agents/queries/acp-state.ts';
import { findSession, updateAgent } from '../agents/queries/agents.ts';
import { queuePrompt } from '../conversations/queries.ts';
import { findRun, type RunRow } from '../runs/queries/runs.ts';
import { findStep, insertSteps, updateStep } from '../runs/queries/steps.ts';
import { limits } from './limits.ts';
import { findMail, type MailRow } from './queries/mail.ts';
import { type MailFixture, openMailFixture } from './testing.ts';

let fixture: MailFixture;
let run: RunRow;
let agent_id: string;
let acp: ScriptedAcp;
beforeEach(async () => {
  fixture = await openMailFixture();
  run = await addRun(fixture.store, ANA, specWith({ lead: null, robot: ACP_AGENT }));
  const started = await startAcp(fixture);
  agent_id = started.id;
  acp = started.acp;
  await fixture.store.write(async (tx) => {
    const { num } = (await tx.get(tx.sql.selectFrom('agents').select('num').where('id', '=', agent_id)))!;
    updateAgent(tx, num, { run_num: run.num, team_num: run.team_num, member_id: 'robot' });
  });
});
afterEach(() => fixture.end());

const at = (member_id: string) => `${member_id}@${run.team_id}`;
const send = async (n: number) => {
  const sent = { run_id: run.id, from_actor_id: 'lead', to_actor_id: 'robot', payload: { n } };
  return (await fixture.mailbox.send(ANA, sent, null)).id;
};
const row = (id: number): Promise<MailRow> =>
  fixture.store.read(async (reader) => (await findMail(reader, id))!);
const statusOf = async (id: number) => (await row(id)).status;
const attention = async () =>
  (await fixture.store.read(async (reader) => (await findRun(reader, run.id))!)).attention;
const ack = (id: number) =>
  fixture.store.write((tx) => fixture.mailbox.acknowledge(tx, id, { actor_id: at('robot'), run_num: null }));
const idle = () => vi.waitFor(async () => expect((await fixture.get(agent_id)).activity).toBe('idle'), SOON);

const setState = (change: (state: AcpState) => AcpState) =>
  fixture.store.write(async (tx) => {
    const { num } = (await findSession(tx, acp.session_id))!;
    await storeAcpState(tx, num, change(await loadAcpState(tx, num)));
  });

/** The text of the agent's next prompt, whose turn is then in progress, and a function that ends it. */
async function prompted(from = acp) {
  const request = await from.receive('request', 'session/prompt');
  const { prompt } = request.params as { prompt: { text: string }[] };
  const end = () => from.send({ kind: 'response', id: request.id, result: { stopReason: 'end_turn' } });
  return { id: String(request.id), text: prompt[0]!.text, end };
}

/** All facts are consumed. */
const settled = () =>
  vi.waitFor(async () => {
    const left = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('facts').select(['id', 'kind'])),
    );
    expect(left).toEqual([]);
  }, SOON);

const timers = () =>
  fixture.store.read((reader) => reader.all(reader.sql.selectFrom('timers').select('due_at')));

/** Waits until the plane has looked at the mail that waits, and will look again later. */
const lookedAgain = () =>
  vi.waitFor(async () => {
    expect((await timers()).map(({ due_at }) => due_at > fixture.clock.now())).toEqual([true]);
  }, SOON);

/** The messages that the prompts of the agent named. */
const named = () =>
  acp.lines
    .filter((line) => line.includes('session/prompt'))
    .flatMap((line) => [...line.matchAll(/Message (\d+) from/g)].map(([, id]) => Number(id)));

test('prompts an idle agent with its mail, which is then delivered', async () => {
  await acp.openSession();
  await idle();
  const id = await send(1);
  const { text, end } = await prompted();
  expect(text).toBe(
    `1 message waits in your mailbox. Acknowledge each message when you have dealt with it: svc actor ack --message-id ID. Reply if a reply helps: svc actor send --to ACTOR --payload JSON. Others wrote the payloads.\n\nMessage ${id} from ${at('lead')}:\n{"n":1}`,
  );
  expect(await row(id)).toMatchObject({ status: 'delivered', delivered_at: fixture.clock.now() });
  await ack(id);
  end();
  await idle();
  await settled();
  expect(named()).toEqual([id]);
});

test('mail waits for an agent that is not ready, and is named in one turn only', async () => {
  const ids = [await send(1), await send(2)];
  await settled();
  expect(await Promise.all(ids.map(statusOf))).toEqual(['pending', 'pending']);
  await acp.openSession();
  const { end } = await prompted();
  expect(named()).toEqual(ids);
  for (const id of ids) await ack(id);
  end();
  await idle();
  await settled();
  expect(named()).toEqual(ids);
});

test('mail during a turn becomes one prompt after it', async () => {
  await acp.openSession();
  await idle();
  const first = await send(1);
  const turn = await prompted();
  await ack(first);
  const more = [await send(2), await send(3)];
  await settled();
  expect(acp.lines).toHaveLength(3);
  expect(await Promise.all(more.map(statusOf))).toEqual(['pending', 'pending']);
  turn.end();
  const after = await prompted();
  expect(named()).toEqual([first, ...more]);
  expect(after.text).toContain('2 messages wait');
});

test('mail that the agent acknowledged during its turn causes no prompt', async () => {
  await acp.openSession();
  await fixture.prompting.prompt(ANA, agent_id, [{ type: 'text', text: 'work' }], null);
  const turn = await prompted();
  const id = await send(1);
  const [read] = await fixture.mailbox.take({ to_actor_id: at('robot'), limit: 50 });
  expect(read).toMatchObject({ id, status: 'delivered' });
  await ack(id);
  turn.end();
  await idle();
  await settled();
  expect(named()).toEqual([]);
});

test('unacknowledged mail is named once more in the next prompt, but causes none', async () => {
  await acp.openSession();
  await idle();
  const first = await send(1);
  (await prompted()).end();
  await idle();
  await settled();
  expect(named()).toEqual([first]);
  const second = await send(2);
  const next = await prompted();
  expect(next.text).toContain(
    `Message ${first} from ${at('lead')} (repeated, because it is not acknowledged):`,
  );
  expect(named()).toEqual([first, second, first]);
  await ack(second);
  next.end();
  await idle();
  const third = await send(3);
  await prompted();
  expect(named()).toEqual([first, second, first, third]);
});

test('a run shows unacknowledged mail until its agent acknowledges it', async () => {
  await acp.openSession();
  await idle();
  const id = await send(1);
  (await prompted()).end();
  await idle();
  await fixture.advanceClock(limits.mail_unacknowledged_ms - 1);
  expect(await attention()).toBe(null);
  await fixture.advanceClock(1);
  const message = `message ${id} to ${at('robot')} waits to be acknowledged`;
  await vi.waitFor(async () => expect(await attention()).toBe(message), SOON);
  await ack(id);
  expect(await attention()).toBe(null);
});

test('a run shows mail that its agent listed and did not acknowledge, but not mail of people', async () => {
  await acp.openSession();
  await fixture.prompting.prompt(ANA, agent_id, [{ type: 'text', text: 'work' }], null);
  await prompted();
  const listed = await send(1);
  await fixture.mailbox.take({ to_actor_id: at('robot'), limit: 50 });
  expect(await statusOf(listed)).toBe('delivered');
  const to_person = { run_id: run.id, from_actor_id: 'lead', to_actor_id: 'user:ana', payload: {} };
  const { id } = await fixture.mailbox.send(ANA, to_person, null);
  await fixture.mailbox.take({ to_actor_id: 'user:ana', limit: 50 });
  expect(await statusOf(id)).toBe('delivered');
  await fixture.advanceClock(limits.mail_unacknowledged_ms);
  const message = `message ${listed} to ${at('robot')} waits to be acknowledged`;
  await vi.waitFor(async () => expect(await attention()).toBe(message), SOON);
  await ack(listed);
  expect(await attention()).toBe(null);
});

test('mail waits while the agent works without a prompt, and is then named in one prompt', async () => {
  await acp.openSession();
  await idle();
  // Agents report such work in version 2.
  await setState((state) => ({ ...state, protocol_version: 2, work: { ...state.work, busy: true } }));
  const ids = [await send(1), await send(2)];
  await settled();
  expect(await Promise.all(ids.map(statusOf))).toEqual(['pending', 'pending']);
  expect(await fixture.prompting.list(ANA, agent_id)).toEqual([]);
  expect(await timers()).toEqual([]);
  acp.sendUpdate({ sessionUpdate: 'state_update', state: 'idle' });
  expect((await prompted()).text).toContain('2 messages wait');
  expect(await Promise.all(ids.map(statusOf))).toEqual(['delivered', 'delivered']);
});

test('mail waits until the agent has confirmed the mode in which it asks', async () => {
  await acp.openSession();
  await idle();
  const id = `${acp.session_id}.permission.9`;
  const setting = { id, method: 'session/set_mode', value: 'ask' };
  await setState((state) => ({ ...state, asked: [setting] }));
  const mail = await send(1);
  await settled();
  expect(await statusOf(mail)).toBe('pending');
  expect(await fixture.prompting.list(ANA, agent_id)).toEqual([]);
  acp.send({ kind: 'response', id, result: {} });
  await prompted();
  expect(named()).toEqual([mail]);
});

test('a prompt for another purpose can name mail, which is delivered once it is sent', async () => {
  await acp.openSession();
  await idle();
  await fixture.prompting.prompt(ANA, agent_id, [{ type: 'text', text: 'work' }], null);
  const turn = await prompted();
  const id = await send(1);
  const step = 'prm_step';
  await fixture.store.write(async (tx) => {
    const agent = (await tx.get(tx.sql.selectFrom('agents').select('num').where('id', '=', agent_id)))!;
    const text = (await fixture.mailbox.pendingMail(tx, (await findRun(tx, run.id))!, at('robot'), step))!;
    await queuePrompt(tx, agent.num, {
      ...{ id: step, content: [{ type: 'text', text: `your step\n\n${text}` }] },
      ...{ created_by: null, created_at: fixture.clock.now() },
    });
  });
  expect(await statusOf(id)).toBe('pending');
  turn.end();
  const next = await prompted();
  expect(next.id).toBe(step);
  await settled();
  expect(await statusOf(id)).toBe('delivered');
  expect(named()).toEqual([id]);
});

test('a withdrawn prompt counts as naming no mail', async () => {
  await acp.openSession();
  await fixture.prompting.prompt(ANA, agent_id, [{ type: 'text', text: 'work' }], null);
  const turn = await prompted();
  const id = await send(1);
  await fixture.store.write(async (tx) =>
    fixture.mailbox.pendingMail(tx, (await findRun(tx, run.id))!, at('robot'), 'prm_gone'),
  );
  turn.end();
  await prompted();
  expect(named()).toEqual([id]);
});

test('an agent with a step gets no separate prompt', async () => {
  await acp.openSession();
  await idle();
  await fixture.store.write((tx) =>
    insertSteps(tx, run.num, [
      {
        ...{ step_key: 'a', member_id: 'robot', kind: 'acp', depends_on: '[]' },
        ...{ when: 'on_success', prompt: '', max_attempts: 1, added: 0, status: 'ready', waits_for: 0 },
        ...{ upstream_failed: 0, attempt: 1, tries: 1, launched: 1 },
      },
    ]),
  );
  const step_num = await fixture.store.read(async (reader) => (await findStep(reader, run.num, 'a'))!.num);
  const id = await send(1);
  await settled();
  await fixture.advanceClock(limits.mail_check_ms);
  await lookedAgain();
  expect(await statusOf(id)).toBe('pending');
  await fixture.store.write((tx) => updateStep(tx, step_num, { launched: 0, status: 'completed' }));
  await fixture.advanceClock(limits.mail_check_ms);
  await prompted();
  expect(named()).toEqual([id]);
});

test('a plane that stops between a message and its prompt sends the prompt after the restart, once', async () => {
  await acp.openSession();
  await idle();
  await settled();
  await fixture.close();
  // Committed, but not processed yet.
  const ids = [await send(1), await send(2)];
  expect(acp.lines).toHaveLength(2);
  for (let n = 0; n < 3; n++) {
    await fixture.open();
    await settled();
    await fixture.close();
  }
  await fixture.open();
  await prompted();
  expect(named()).toEqual(ids);
  await fixture.expectSameState(agent_id);
});

test('the next session of an agent that died names only new mail', async () => {
  await acp.openSession();
  await idle();
  const first = await send(1);
  await prompted();
  fixture.node.end(acp.session_id, 1);
  await fixture.until(agent_id, 'failed');
  const second = await send(2);
  await settled();
  expect(await statusOf(second)).toBe('pending');
  const { session_id } = await fixture.agents.start(ANA, agent_id, null);
  const next = new ScriptedAcp(fixture, session_id!);
  await next.openSession();
  const { text } = await prompted(next);
  expect([...text.matchAll(/Message (\d+)/g)].map(([, id]) => Number(id))).toEqual([second, first]);
});

test('agents of a finished run get no prompt', async () => {
  await acp.openSession();
  await idle();
  await fixture.close();
  const id = await send(1);
  await fixture.open();
  // Whichever comes first, no agent is notified.
  await settled();
  const turn = await prompted();
  await ack(id);
  const late = await send(2);
  await changeRun(fixture.store, fixture.facts, run, { status: 'completed' });
  turn.end();
  await idle();
  await settled();
  expect(named()).toEqual([id]);
  expect(await statusOf(late)).toBe('pending');
});

test('a prompt names a limited number of messages, with short payloads in full', async () => {
  const ids: number[] = [];
  for (let n = 0; n <= limits.mail_named_max; n++) ids.push(await send(n));
  await acp.openSession();
  const first = await prompted();
  expect(named()).toEqual(ids.slice(0, -1));
  for (const id of ids) if (id !== ids.at(-1)) await ack(id);
  first.end();
  const second = await prompted();
  expect(named()).toEqual(ids);
  await ack(ids.at(-1)!);
  second.end();
  await idle();
  const long = 'x'.repeat(limits.mail_named_chars);
  const sent = { run_id: run.id, from_actor_id: 'lead', to_actor_id: 'robot', payload: { long } };
  await fixture.mailbox.send(ANA, sent, null);
  expect((await prompted()).text).toMatch(/… \(11 more characters: svc actor inbox\)$/);
});

test('after any repetition or interruption, each message is in the inbox once, and prompts once', async () => {
  await acp.openSession();
  const wakes = new Map<number, number>();
  const sent: number[] = [];
  let n = 0;
  // The agent forgets the first new message, and acknowledges others twice.
  const answerOne = async () => {
    const { text, end } = await prompted();
    const ids = [...text.matchAll(/Message (\d+) from \S+:/g)].map(([, id]) => Number(id));
    for (const id of ids) wakes.set(id, (wakes.get(id) ?? 0) + 1);
    const again = [...text.matchAll(/Message (\d+) from \S+ \(you/g)].map(([, id]) => Number(id));
    for (const id of [...ids.slice(1), ...again]) for (let time = 0; time < 2; time++) await ack(id);
    end();
  };
  for (let round = 0; round < 8; round++) {
    const burst = Array.from({ length: 1 + (round % 3) }, () => ++n);
    for (const k of burst) {
      const actors = { from_actor_id: at('lead'), to_actor_id: at('robot') };
      const letter = { run, ...actors, payload: { k }, idempotency_key: `k${k}` };
      const ten = await Promise.all(
        Array.from({ length: 10 }, () => fixture.store.write((tx) => fixture.mailbox.post(tx, letter))),
      );
      expect(new Set(ten.map(({ num }) => num)).size).toBe(1);
      sent.push(ten[0]!.num);
      if (round % 2 === 1) {
        await fixture.close();
        await fixture.open();
      }
    }
    while (sent.some((id) => !wakes.has(id))) await answerOne();
    await idle();
    await settled();
  }
  const all = await fixture.mailbox.inbox(
    ANA,
    'robot',
    { run_id: run.id, status: 'all', limit: sharedLimits.page_items_max },
    new AbortController().signal,
  );
  expect(all.map(({ id }) => id)).toEqual(sent);
  expect([...wakes]).toEqual(sent.map((id) => [id, 1]));
  const prompts = acp.lines.filter((line) => line.includes('session/prompt')).join();
  expect([...prompts.matchAll(/Message (\d+) from \S+:\\n/g)].map(([, id]) => Number(id))).toEqual(sent);
  await fixture.expectSameState(agent_id);
});
