/** Notifications: devices and their owners, who is notified of what, the texts, and delivery. */
import { createECDH, randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { PushService, type TestDevice } from '../../testing/push-service.ts';
import { type ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { signIn, signOut } from '../../testing/sign-in.ts';
import { addTeam, joinTeam, specOf, type TeamRows } from '../../testing/team.ts';
import { addRun, addToRun, applyEvent, changeRun, plainMember, specWith } from '../../testing/team-runs.ts';
import type { Caller } from '../accounts/rules.ts';
import type { Review } from '../reviews/rules.ts';
import { updateRun } from '../runs/queries/runs.ts';
import type { StepCommand } from '../runs/rules/graph.ts';
import type { RunRequest } from '../runs/run-commands.ts';
import type { TeamSpec } from '../teams/rules/team.ts';
import { PushKeys } from './keys.ts';
import { limits } from './limits.ts';
import type { PushSubscriptionRecord } from './rules.ts';
import type { SubscriptionRequest } from './service.ts';

const EVE: Caller = { ...BEN, user_id: 'usr_e', username: 'eve', token_id: 'tok_e' };
const ZOE: Caller = { ...ANA, user_id: 'usr_z', username: 'zoe', token_id: 'tok_z' };

let service: PushService;
let fixture: FeaturesFixture;
beforeAll(async () => {
  service = await PushService.open();
});
afterAll(() => service.close());
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  fixture.push_origins = [service.origin];
  await fixture.advanceClock(0);
  await signIn(fixture.store, ANA, BEN, EVE, ZOE);
});
afterEach(async () => {
  await fixture.end();
  expect(service.faults).toEqual([]);
});

const everything = { kinds: ['review', 'agent_failed', 'run_ended'], with_commands: false, of_others: false };
const elicitation = (
  device: Pick<TestDevice, 'endpoint' | 'keys'>,
  more: Partial<SubscriptionRequest> = {},
) => ({ endpoint: device.endpoint, keys: device.keys, ...everything, ...more }) as SubscriptionRequest;

async function subscribe(
  caller: Caller,
  more: Partial<SubscriptionRequest> = {},
  device = service.device(),
): Promise<TestDevice & { id: string }> {
  device.public_key = await fixture.push.publicKey();
  const { id } = await fixture.push.subscribe(caller, elicitation(device, more), 'test');
  return Object.assign(device, { id });
}

async function devicesOf(caller: Caller): Promise<PushSubscriptionRecord[]> {
  return (await fixture.push.list(caller, {})).items;
}

/** All messages were delivered, or will not be. */
async function settled(): Promise<void> {
  await vi.waitFor(async () => {
    const left = await fixture.store.read(async (reader) => ({
      facts: await reader.all(reader.sql.selectFrom('facts').select('id')),
      intents: await reader.all(reader.sql.selectFrom('outbox').select('id').where('kind', '=', 'push')),
      due: await reader.all(
        reader.sql.selectFrom('timers').select('ref').where('due_at', '<=', fixture.clock.now()),
      ),
    }));
    expect(left).toEqual({ facts: [], intents: [], due: [] });
  }, SOON);
}

/** All facts so far have led to messages. */
async function settledFacts(): Promise<void> {
  await vi.waitFor(async () => {
    const facts = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('facts').select('id')),
    );
    expect(facts).toEqual([]);
  }, SOON);
}

async function ask(
  more: { title?: string; name?: string } = {},
): Promise<{ review: Review; acp: ScriptedAcp }> {
  const { id, acp } = await startAcp(fixture, { prompt: 'go', name: more.name ?? 'fix-checkout' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  return { review: await question(id, acp, more.title), acp };
}

async function question(agent_id: string, acp: ScriptedAcp, title = 'npm publish --otp=123456') {
  const toolCall = { toolCallId: 'c1', title, kind: 'execute', rawInput: { command: title } };
  const options = [{ optionId: 'once', name: 'Allow', kind: 'allow_once' }];
  const params = { sessionId: 'acp-1', toolCall, options };
  const before = (await fixture.reviews.list(ANA, { agent_id }, {})).items.length;
  acp.send({ kind: 'request', id: before + 1, method: 'session/request_permission', params });
  return vi.waitFor(async () => {
    const { items } = await fixture.reviews.list(ANA, { agent_id }, {});
    expect(items).toHaveLength(before + 1);
    return items[0]!;
  }, SOON);
}

const allow = (id: string, caller: Caller = ANA) =>
  fixture.reviews.respond(caller, id, { decision: 'allow' }, null);

async function team(more: Partial<TeamSpec> = {}): Promise<TeamRows> {
  return addTeam(fixture.store, 'x', specOf(['boss', 'hand'], more), {
    ...{ created_by: 'usr_a', human_ids: ['usr_b'] },
  });
}

/** A request of an agent in a team. */
async function memberAsks(rows: TeamRows, member_id = 'hand'): Promise<Review> {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await joinTeam(fixture.store, id, rows, member_id);
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  return question(id, acp);
}

async function leaveTeam({ team_num }: TeamRows, { user_id }: Caller): Promise<void> {
  await fixture.store.write((tx) =>
    tx.run(tx.sql.deleteFrom('team_humans').where('team_num', '=', team_num).where('user_id', '=', user_id)),
  );
}

async function fails(more: { name?: string } = {}): Promise<string> {
  const { id, session_id } = await fixture.create({ start: true, name: 'migrate', ...more });
  fixture.node.end(session_id!, 137);
  await fixture.until(id, 'failed');
  return id;
}

async function audited(event: string): Promise<unknown[]> {
  const rows = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('audit').select(['event', 'user_id', 'details']).orderBy('id')),
  );
  return rows
    .filter((row) => row.event === event)
    .map(({ user_id, details }) => ({ user_id, ...JSON.parse(details) }));
}

describe('an elicitation', () => {
  const elicit = async (params: object): Promise<{ id: string; acp: ScriptedAcp }> => {
    const { acp } = await startAcp(fixture, { prompt: 'go', name: 'fix-checkout' });
    await acp.openSession();
    await acp.receive('request', 'session/prompt');
    acp.send({ kind: 'request', id: 1, method: 'elicitation/create', params });
    return vi.waitFor(async () => {
      const [elicitation] = (await fixture.elicitations.list(ANA, {}, {})).items;
      return { id: elicitation!.id, acp };
    }, SOON);
  };
  const form = { mode: 'form', message: 'Which \u202eregion?', requestedSchema: {} };

  test('notifies everyone who may answer it, with the agent’s text only on devices that ask for it', async () => {
    const [plain, wordy] = [await subscribe(ANA), await subscribe(ANA, { with_commands: true })];
    const bens = await subscribe(BEN);
    const { id } = await elicit(form);
    await settled();
    const expected = {
      kind: 'review',
      tag: `elicitation-${id}`,
      path: `/approvals?elicitation=${id}`,
      waiting: 1,
    };
    expect(plain.messages).toMatchObject([
      { ...expected, title: 'fix-checkout needs you', body: 'form to fill in' },
    ]);
    expect(wordy.messages).toMatchObject([{ ...expected, body: 'form to fill in: Which ⟦U+202E⟧region?' }]);
    expect(bens.messages).toEqual([]);
  });

  test('is replaced once it is answered or withdrawn', async () => {
    const device = await subscribe(ANA);
    const { id } = await elicit({ mode: 'url', url: 'https://example.org/', message: '' });
    await settled();
    await fixture.elicitations.respond(ZOE, id, { action: 'decline' }, null);
    await settled();
    expect(device.messages).toMatchObject([
      { kind: 'review', body: 'link to open', waiting: 1 },
      { kind: 'closed', tag: `elicitation-${id}`, body: 'Answered by zoe', waiting: 0 },
    ]);
  });
});

describe('a device', () => {
  test('belongs to its user: other users, even root, cannot see, test or remove it', async () => {
    const bens = await subscribe(BEN);
    expect(await devicesOf(BEN)).toMatchObject([
      { id: bens.id, fingerprint: bens.fingerprint, status: 'active', user_agent: 'test', current: true },
    ]);
    expect(JSON.stringify(await devicesOf(BEN))).not.toContain(new URL(bens.endpoint).pathname);
    for (const other of [EVE, ANA]) {
      expect(await devicesOf(other)).toEqual([]);
      await expect(fixture.push.test(other, bens.id)).rejects.toThrow('push subscription not found');
      await expect(fixture.push.unsubscribe(other, bens.id)).rejects.toThrow('push subscription not found');
      expect(await fixture.push.test(other, undefined)).toEqual([]);
    }
    await fixture.push.unsubscribe(BEN, bens.id);
    expect(await devicesOf(BEN)).toEqual([]);
    expect(bens.messages).toEqual([]);
  });

  test.each([
    ['no url', 'endpoint must be an https URL'],
    ['http://push.example.org/x', 'endpoint must be an https URL'],
    ['ftp://push.example.org/x', 'endpoint must be an https URL'],
    ['https://user:word@push.example.org/x', 'endpoint must be an https URL'],
    ['https://push.example.org/x#y', 'endpoint must be an https URL'],
    [`https://push.example.org/${'x'.repeat(2_048)}`, 'endpoint must be an https URL'],
    ['http://127.0.0.1:1/x', 'endpoint must be an https URL'],
    ['https://127.0.0.1/x', 'endpoint address is not allowed'],
    ['https://2130706433/x', 'endpoint address is not allowed'],
    ['https://localhost/x', 'endpoint address is not allowed'],
    ['https://[::1]/x', 'endpoint address is not allowed'],
    ['https://10.0.0.1/x', 'endpoint address is not allowed'],
    ['https://192.168.1.1/x', 'endpoint address is not allowed'],
    ['https://[fd00::1]/x', 'endpoint address is not allowed'],
    ['https://169.254.169.254/x', 'endpoint address is not allowed'],
    ['https://[::ffff:169.254.169.254]/x', 'endpoint address is not allowed'],
    ['https://224.0.0.1/x', 'endpoint address is not allowed'],
    ['https://0.0.0.0/x', 'endpoint address is not allowed'],
  ])('is refused at %s: %s', async (endpoint, message) => {
    const { keys } = service.device();
    await expect(fixture.push.subscribe(ANA, elicitation({ endpoint, keys }), null)).rejects.toThrow(message);
  });

  test('is rejected if nothing can be encrypted for its keys', async () => {
    const { endpoint, keys } = service.device();
    const [x04, zeros] = [Buffer.from([4]), Buffer.alloc(64)];
    const wrong = [
      { ...keys, auth: randomBytes(15).toString('base64url') },
      { ...keys, p256dh: randomBytes(65).toString('base64url') },
      { ...keys, p256dh: Buffer.concat([x04, zeros]).toString('base64url') },
      { ...keys, p256dh: createECDH('prime256v1').generateKeys('base64url', 'compressed') },
      { p256dh: '', auth: '' },
    ];
    for (const each of wrong) {
      const created = fixture.push.subscribe(ANA, elicitation({ endpoint, keys: each }), null);
      await expect(created).rejects.toThrow('keys must be a P-256 public key and a 16-byte secret');
    }
  });

  test('stays the same when it subscribes again, with its new settings and sign-in', async () => {
    const device = await subscribe(BEN);
    const later = { ...BEN, token_id: 'tok_later' };
    await signIn(fixture.store, later);
    const again = await fixture.push.subscribe(later, elicitation(device, { kinds: ['run_ended'] }), 'newer');
    expect(again).toMatchObject({ id: device.id, kinds: ['run_ended'], user_agent: 'newer', current: true });
    expect(await devicesOf(BEN)).toMatchObject([{ id: device.id, current: false }]);
  });

  test('is refused to a token that was revoked after the request had begun', async () => {
    const device = await subscribe(BEN);
    await signOut(fixture.store, BEN);
    await expect(subscribe(BEN)).rejects.toThrow('invalid token');
    await expect(subscribe(BEN, {}, device)).rejects.toThrow('invalid token');
    expect(await devicesOf(BEN)).toHaveLength(1);
  });

  test('moves to another user who signs in on it; knowing its endpoint is not enough', async () => {
    const device = await subscribe(BEN);
    const { keys } = service.device();
    const stolen = fixture.push.subscribe(EVE, elicitation({ endpoint: device.endpoint, keys }), null);
    await expect(stolen).rejects.toThrow('push subscription belongs to another user');
    await subscribe(EVE, {}, device);
    expect(await devicesOf(BEN)).toEqual([]);
    expect(await devicesOf(EVE)).toHaveLength(1);
  });

  test('is one of at most twenty', async () => {
    for (let n = 0; n < limits.push_subscriptions_per_user; n++) await subscribe(BEN);
    await expect(subscribe(BEN)).rejects.toThrow('too many push subscriptions');
    await subscribe(EVE);
  });

  test('is deleted with its user', async () => {
    await subscribe(BEN);
    await fixture.store.write((tx) => tx.run(tx.sql.deleteFrom('users').where('id', '=', 'usr_b')));
    expect(await devicesOf(BEN)).toEqual([]);
  });

  test('gets a test at once, and the response of its push service is returned', async () => {
    const good = await subscribe(BEN);
    const away = await subscribe(BEN);
    away.answers.push({ status: 503 });
    const results = await fixture.push.test(BEN, undefined);
    expect(results.toSorted((a, b) => Number(b.ok) - Number(a.ok))).toEqual([
      { subscription_id: good.id, ok: true, error: null },
      { subscription_id: away.id, ok: false, error: 'push service answered 503' },
    ]);
    expect(await good.untilMessages(1)).toMatchObject({ kind: 'test', path: '/settings/notifications' });
    expect(await devicesOf(BEN)).toMatchObject([
      { id: away.id, failures: 1, last_error: 'push service answered 503', last_success_at: null },
      { id: good.id, failures: 0, last_error: null, last_success_at: expect.any(String) },
    ]);
  });
});

describe('a review', () => {
  test('notifies only those who may answer it, without the command, with a link to it', async () => {
    const rows = await team();
    const [anas, bens, eves, zoes] = [
      await subscribe(ANA),
      await subscribe(BEN),
      await subscribe(EVE),
      await subscribe(ZOE),
    ];
    const review = await memberAsks(rows);
    const expected = {
      kind: 'review',
      tag: `review-${review.id}`,
      title: 'a needs you',
      body: 'execute',
      path: `/approvals?review=${review.id}`,
      waiting: 1,
    };
    expect(await anas.untilMessages(1)).toEqual(expected);
    expect(await bens.untilMessages(1)).toEqual(expected);
    expect(anas.heads[0]).toMatchObject({ urgency: 'high', ttl: expect.any(Number) });
    await settled();
    for (const other of [eves, zoes]) expect(other.request_count).toBe(0);
  });

  test('notifies root about other users’ agents only on devices that ask for that, and never another user', async () => {
    const zoes = await subscribe(ZOE, { of_others: true });
    const eves = await subscribe(EVE, { of_others: true });
    expect(await devicesOf(EVE)).toMatchObject([{ of_others: false }]);
    // Not even if the row says so: the policy decides.
    await fixture.store.write((tx) => tx.run(tx.sql.updateTable('push_subscriptions').set({ of_others: 1 })));
    await ask();
    expect(await zoes.untilMessages(1)).toMatchObject({ title: 'fix-checkout needs you' });
    await settled();
    expect(eves.request_count).toBe(0);
  });

  test('contains the command only on a device that asked for it, on one line without hidden characters', async () => {
    const quiet = await subscribe(ANA);
    const open = await subscribe(ANA, { with_commands: true });
    await ask({ title: 'npm publish\n--otp=123456\u202e\u0007' });
    expect(await open.untilMessages(1)).toMatchObject({
      body: 'execute: npm publish ⏎ --otp=123456⟦U+202E⟧⟦U+0007⟧',
    });
    expect(JSON.stringify(await quiet.untilMessages(1))).not.toMatch(/npm|otp/);
  });

  test('does not notify a device that wants other kinds', async () => {
    const device = await subscribe(ANA, { kinds: ['agent_failed'] });
    await ask();
    await settled();
    expect(device.request_count).toBe(0);
    await fails();
    expect(await device.untilMessages(1)).toMatchObject({ kind: 'agent_failed' });
  });

  test('replaces its notification with the same tag and topic when it is answered elsewhere', async () => {
    const device = await subscribe(ANA);
    const { review } = await ask();
    await device.untilMessages(1);
    await allow(review.id, ZOE);
    expect(await device.untilMessages(2)).toEqual({
      ...device.messages[0]!,
      ...{ kind: 'closed', body: 'Answered by zoe', waiting: 0 },
    });
    expect(device.heads[1]!.topic).toBe(device.heads[0]!.topic);
  });

  test('is replaced without details for people who have left the team', async () => {
    const rows = await team();
    const [anas, bens] = [await subscribe(ANA), await subscribe(BEN)];
    const review = await memberAsks(rows);
    await Promise.all([anas.untilMessages(1), bens.untilMessages(1)]);
    await settled();
    await leaveTeam(rows, BEN);
    await allow(review.id, ZOE);
    expect(await anas.untilMessages(2)).toMatchObject({ title: 'a needs you', body: 'Answered by zoe' });
    expect(await bens.untilMessages(2)).toEqual({
      ...{ kind: 'closed', tag: `review-${review.id}`, waiting: 0 },
      ...{ title: 'svc', body: 'No longer needed', path: '/' },
    });
  });

  test('replaces its notification when it is no longer needed because its agent is deleted', async () => {
    const device = await subscribe(ANA);
    const { review } = await ask();
    await device.untilMessages(1);
    await fixture.agents.delete(ANA, review.agent_id, { force: true, delete_worktree: false });
    expect(await device.untilMessages(2)).toMatchObject({ kind: 'closed', body: 'No longer needed' });
  });

  test('is never sent to a device if it is answered before', async () => {
    const device = await subscribe(ANA);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    device.answers.push({ status: 201, after: held });
    const first = await ask({ name: 'one' });
    await device.untilRequests(1);
    const second = await ask({ name: 'two' });
    await allow(second.review.id);
    await settledFacts();
    release();
    await device.untilMessages(1);
    await settled();
    expect(device.messages).toMatchObject([{ tag: `review-${first.review.id}` }]);
  });

  test('is replaced on a device if it is answered before it is sent there again', async () => {
    const rows = await team({ review_route: 'leader' });
    const bens = await subscribe(BEN);
    const review = await memberAsks(rows);
    await fixture.reviews.route(ANA, review.id, 'user:ben');
    await bens.untilMessages(1);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    bens.answers.push({ status: 201, after: held });
    const { id: other_id } = await memberAsks(rows);
    await fixture.reviews.route(ANA, other_id, 'user:ben');
    await bens.untilRequests(2);
    for (const to of ['boss', 'user:ben']) {
      await fixture.reviews.route(ANA, review.id, to);
      await settledFacts();
    }
    await allow(review.id);
    await settledFacts();
    release();
    await bens.untilMessages(3);
    await settled();
    const tag = `review-${review.id}`;
    expect(bens.messages.filter((message) => message.tag === tag)).toMatchObject([
      { kind: 'review' },
      { kind: 'closed' },
    ]);
  });

  test('is sent and then replaced if it is answered during delivery', async () => {
    const device = await subscribe(ANA);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    device.answers.push({ status: 201, after: held });
    const { review } = await ask();
    await device.untilRequests(1);
    await allow(review.id);
    release();
    await device.untilMessages(2);
    expect(device.messages).toMatchObject([{ kind: 'review' }, { kind: 'closed', body: 'Answered by ana' }]);
  });

  test('is sent to people if the leader to which it was routed does not answer in time', async () => {
    const rows = await team({ review_route: 'leader' });
    const device = await subscribe(BEN);
    const review = await memberAsks(rows);
    await settled();
    expect(device.request_count).toBe(0);
    await fixture.advanceClock(fixture.routing.leader_timeout_ms());
    expect(await device.untilMessages(1)).toMatchObject({
      kind: 'review',
      path: `/approvals?review=${review.id}`,
    });
  });

  test('notifies the person to whom it is routed', async () => {
    const rows = await team({ review_route: 'leader' });
    const [anas, bens] = [await subscribe(ANA), await subscribe(BEN)];
    const review = await memberAsks(rows);
    await fixture.reviews.route(ANA, review.id, 'user:ben');
    expect(await bens.untilMessages(1)).toMatchObject({ kind: 'review' });
    await settled();
    expect(anas.request_count).toBe(0);
  });
});

describe('a failed agent', () => {
  test('is reported to its owner, with the exit status', async () => {
    const [anas, bens] = [await subscribe(ANA), await subscribe(BEN)];
    const id = await fails();
    expect(await anas.untilMessages(1)).toEqual({
      ...{ kind: 'agent_failed', tag: `agent-${id}`, title: 'migrate failed', body: 'exit code 137' },
      ...{ path: `/agents/${id}`, waiting: 0 },
    });
    await settled();
    expect(bens.request_count).toBe(0);
  });

  test('is not reported again if it fails again soon, but it is later', async () => {
    const device = await subscribe(ANA);
    const id = await fails();
    await device.untilMessages(1);
    await settled();
    const again = async () => {
      const { session_id } = await fixture.agents.start(ANA, id, null);
      fixture.node.end(session_id!, 1);
      await fixture.until(id, 'failed');
      await settled();
    };
    await again();
    expect(device.request_count).toBe(1);
    await fixture.advanceClock(limits.push_again_ms);
    await again();
    expect(await device.untilMessages(2)).toMatchObject({ body: 'exit code 1' });
  });

  test('is reported again after the clock was set back', async () => {
    const device = await subscribe(ANA);
    const ahead_ms = 10 * limits.push_again_ms;
    await fixture.advanceClock(ahead_ms);
    const id = await fails();
    await device.untilMessages(1);
    await settled();
    await fixture.advanceClock(-ahead_ms);
    const { session_id } = await fixture.agents.start(ANA, id, null);
    fixture.node.end(session_id!, 1);
    expect(await device.untilMessages(2)).toMatchObject({ body: 'exit code 1' });
  });

  test('of a run is reported only by the run, and a success is not reported', async () => {
    const rows = await team();
    const device = await subscribe(ANA);
    const { id, session_id } = await fixture.create({ start: true });
    await joinTeam(fixture.store, id, rows, 'hand');
    fixture.node.end(session_id!, 3);
    await fixture.until(id, 'failed');
    const good = await fixture.create({ start: true });
    fixture.node.end(good.session_id!, 0);
    await fixture.until(good.id, 'completed');
    await settled();
    expect(device.request_count).toBe(0);
  });
});

describe('a question of a step', () => {
  const ask = async (reason = 'Which \u202etitle?', humans = [BEN]) => {
    const run = await addRun(fixture.store, ANA, specWith({ lead: null }), humans);
    await fixture.store.write(async (tx) => {
      const commands = fixture.runs.runs.commands;
      const none = { prompt: '', input: null, timeout_seconds: null, max_attempts: 1 };
      const step = { step_key: 'a/b', member_id: 'lead', depends_on: [], when: 'on_success' } as const;
      const by = { user_id: null, ip: null, actor_id: `lead@${run.team_id}` };
      await commands.addStep(tx, run, { ...none, ...step, depends_on: [] }, by);
      await commands.commandStep(tx, run, 'a/b', { kind: 'requireStepInput', reason }, by);
    });
    return { run_id: run.id, team_id: run.team_id };
  };
  const answer = (of: { run_id: string; team_id: string }, caller = BEN) =>
    fixture.runs.runs.commandStep(caller, { ...of, step_key: 'a/b' }, { kind: 'completeStep' }, null);

  test('notifies the people of the team, with its text only on devices that ask for it', async () => {
    const [plain, wordy] = [await subscribe(ANA), await subscribe(ANA, { with_commands: true })];
    const [bens, eves] = [await subscribe(BEN), await subscribe(EVE, { of_others: true })];
    const other_kinds = await subscribe(ANA, { kinds: ['run_ended'] });
    const { run_id, team_id } = await ask();
    const expected = {
      kind: 'review',
      tag: `question-${run_id}/a/b`,
      title: `${team_id} needs you`,
      body: 'question from lead',
      path: `/approvals?question=${run_id}%2Fa%2Fb`,
      waiting: 1,
    };
    expect(await plain.untilMessages(1)).toEqual(expected);
    expect(await bens.untilMessages(1)).toEqual(expected);
    expect(await wordy.untilMessages(1)).toMatchObject({ body: 'question from lead: Which ⟦U+202E⟧title?' });
    await settled();
    for (const device of [eves, other_kinds]) expect(device.request_count).toBe(0);
  });

  test('is replaced once it is answered, or its run is cancelled', async () => {
    const device = await subscribe(ANA);
    const [first, second] = [await ask(), await ask()];
    await device.untilMessages(2);
    await answer(first);
    expect(await device.untilMessages(3)).toMatchObject({
      ...{ kind: 'closed', tag: `question-${first.run_id}/a/b`, body: 'Answered by ben', waiting: 1 },
    });
    await fixture.runs.runs.commandRun(ANA, second, { kind: 'cancelRun' }, null);
    await settled();
    expect(device.messages).toContainEqual(
      expect.objectContaining({ kind: 'closed', body: 'No longer needed', waiting: 0 }),
    );
  });

  test('is never sent if it is answered before', async () => {
    const device = await subscribe(ANA, { kinds: ['review'] });
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    device.answers.push({ status: 201, after: held });
    const first = await ask();
    await device.untilRequests(1);
    await answer(await ask());
    await settledFacts();
    release();
    await settled();
    expect(device.messages).toMatchObject([{ tag: `question-${first.run_id}/a/b` }]);
  });
});

describe('a run that is waiting, but not at any step', () => {
  /** A run whose leader is in its last round. */
  const begin = async () => {
    const { agent } = plainMember('lead', 'sleep 600', { workdir: fixture.folder });
    const run = await addRun(fixture.store, ANA, specWith({ lead: agent, dev: null }), [BEN]);
    const last_round = { mode: 'leader', leader: 'asking', rounds: 20 } as const;
    await fixture.store.write((tx) => updateRun(tx, run.num, last_round));
    return { run_id: run.id, team_id: run.team_id };
  };
  const lose = (run_id: string) =>
    applyEvent(fixture, run_id, { kind: 'round_unknown', round: 20, reason: 'outcome unknown' });
  const commandStep = (run_id: string, command: StepCommand) =>
    applyEvent(fixture, run_id, { kind: 'step_command', step_key: 'a', command });
  const commandRun = (run: { run_id: string; team_id: string }, request: RunRequest, caller = BEN) =>
    fixture.runs.runs.commandRun(caller, run, request, null);

  test('notifies those who may continue it, once, with a link to it', async () => {
    const [plain, wordy] = [await subscribe(ANA), await subscribe(ANA, { with_commands: true })];
    const [bens, eves] = [await subscribe(BEN), await subscribe(EVE, { of_others: true })];
    const { run_id, team_id } = await begin();
    await addToRun(fixture, run_id, { step_key: 'a', member_id: 'dev' });
    await commandStep(run_id, { kind: 'completeStep' });
    await applyEvent(fixture, run_id, { kind: 'round_ended', round: 20 });
    const expected = {
      kind: 'review',
      tag: `run_wait-${run_id}`,
      title: `${team_id} needs you`,
      body: 'run 1 waits',
      path: `/teams/${team_id}/runs/${run_id}`,
      waiting: 1,
    };
    expect(await plain.untilMessages(1)).toEqual(expected);
    expect(await bens.untilMessages(1)).toEqual(expected);
    const body = 'run 1 waits: the leader has used its 20 rounds';
    expect(await wordy.untilMessages(1)).toEqual({ ...expected, body });
    await settled();
    expect([plain, bens, eves].map(({ request_count }) => request_count)).toEqual([1, 1, 0]);
    const { items } = await fixture.runs.runs.waitingRuns(BEN, {});
    expect(items.map((item) => item.run_id)).toEqual([run_id]);
  });

  test('notifies only once none of its steps waits', async () => {
    const device = await subscribe(BEN, { kinds: ['review'] });
    const { run_id } = await begin();
    await addToRun(fixture, run_id, { step_key: 'a', member_id: 'dev' });
    await commandStep(run_id, { kind: 'requireStepInput', reason: 'Which?' });
    await lose(run_id);
    await device.untilMessages(1);
    await settled();
    const question = `question-${run_id}/a`;
    expect(device.messages.map(({ tag }) => tag)).toEqual([question]);
    await commandStep(run_id, { kind: 'failStep', error_text: 'no' });
    await device.untilMessages(3);
    await settled();
    const kinds = device.messages.map(({ kind, tag, waiting }) => [kind, tag, waiting]);
    expect(kinds.slice(1).sort()).toEqual([
      ['closed', question, 1],
      ['review', `run_wait-${run_id}`, 1],
    ]);
  });

  test('is replaced once someone continues or ends it, and names who did', async () => {
    const device = await subscribe(ANA, { kinds: ['review'] });
    const [first, second, third] = [await begin(), await begin(), await begin()];
    for (const { run_id } of [first, second, third]) await lose(run_id);
    await device.untilMessages(3);
    await commandRun(first, { kind: 'failRun', error_text: 'no' });
    expect(await device.untilMessages(4)).toMatchObject({
      ...{ kind: 'closed', tag: `run_wait-${first.run_id}`, body: 'Answered by ben', waiting: 2 },
    });
    await commandRun(second, { kind: 'cancelRun' });
    expect(await device.untilMessages(5)).toMatchObject({
      ...{ kind: 'closed', tag: `run_wait-${second.run_id}`, body: 'No longer needed', waiting: 1 },
    });
    await commandRun(third, { kind: 'resumeRun' }, ANA);
    expect(await device.untilMessages(6)).toMatchObject({
      ...{ kind: 'closed', tag: `run_wait-${third.run_id}`, body: 'Answered by ana', waiting: 0 },
    });
  });
});

describe('a sign-in', () => {
  const require = async () => {
    const { id, acp } = await startAcp(fixture, { name: 'fix-checkout' });
    await joinTeam(fixture.store, id, await team(), 'hand');
    await acp.initialize({ authMethods: [{ id: 'key', name: 'API key' }] });
    await acp.respond('session/new', { error: { code: -32000, message: 'Authentication required' } });
    return { id, acp };
  };

  test('notifies those who may sign in, once, and is replaced when it is done', async () => {
    const [anas, bens] = [await subscribe(ANA), await subscribe(BEN)];
    const zoes = await subscribe(ZOE, { of_others: true });
    const { id, acp } = await require();
    await zoes.untilMessages(1);
    expect(await anas.untilMessages(1)).toEqual({
      kind: 'review',
      tag: `sign_in-${id}`,
      title: 'fix-checkout needs you',
      body: 'sign-in',
      path: `/approvals?sign_in=${id}`,
      waiting: 1,
    });
    const refused = fixture.prompting.authenticate(ANA, id, 'key');
    await acp.respond('authenticate', { error: { code: -32603, message: 'wrong key' } });
    await expect(refused).rejects.toThrow('wrong key');
    await settled();
    expect(anas.request_count).toBe(1);
    const taken = fixture.prompting.authenticate(ANA, id, 'key');
    await acp.respond('authenticate', { result: {} });
    await taken;
    expect(await anas.untilMessages(2)).toMatchObject({
      ...{ kind: 'closed', body: 'No longer needed', waiting: 0 },
    });
    // A human member of the team may answer its reviews, but not sign in for it.
    expect(bens.request_count).toBe(0);
  });

  test('is no longer needed when its agent ends', async () => {
    const device = await subscribe(ANA);
    const { id } = await require();
    await device.untilMessages(1);
    await fixture.agents.delete(ANA, id, { force: true, delete_worktree: false });
    expect(await device.untilMessages(2)).toMatchObject({ kind: 'closed', body: 'No longer needed' });
  });
});

test('the end of a run notifies its team, whoever started it', async () => {
  const run = await addRun(fixture.store, ANA, specWith({ lead: null }), [BEN]);
  const [anas, bens, eves] = [await subscribe(ANA), await subscribe(BEN), await subscribe(EVE)];
  await changeRun(fixture.store, fixture.facts, run, { status: 'input_required' });
  await settled();
  expect(anas.request_count).toBe(0);
  await changeRun(fixture.store, fixture.facts, run, { status: 'completed' });
  const expected = {
    ...{ kind: 'run_ended', tag: `run-${run.id}`, title: `${run.team_id}: run 1 completed` },
    path: `/teams/${run.team_id}/runs/${run.id}`,
  };
  expect(await anas.untilMessages(1)).toMatchObject(expected);
  expect(await bens.untilMessages(1)).toMatchObject(expected);
  await settled();
  expect(eves.request_count).toBe(0);
});

describe('delivery', () => {
  test.each([404, 410])('removes a device that its push service does not know (%i)', async (status) => {
    const [gone, here] = [await subscribe(ANA), await subscribe(ANA)];
    gone.answers.push({ status });
    await fails();
    await here.untilMessages(1);
    await settled();
    expect(await devicesOf(ANA)).toMatchObject([{ id: here.id }]);
    expect(await audited('push_unsubscribed')).toEqual([
      {
        ...{ user_id: null, subscription_id: gone.id, subject_id: 'usr_a' },
        why: `push service answered ${status}`,
      },
    ]);
  });

  test.each([
    [503, {}, limits.push_backoff_ms],
    [429, { 'retry-after': '120' }, 120_000],
    [500, { 'retry-after': 'soon' }, limits.push_backoff_ms],
  ])(
    'after the response %i %j waits %i ms with all newer messages, and then continues',
    async (status, headers, wait_ms) => {
      const device = await subscribe(ANA);
      device.answers.push({ status, headers });
      await fails({ name: 'one' });
      await settled();
      await fails({ name: 'two' });
      await settled();
      expect(device.request_count).toBe(1);
      expect(await devicesOf(ANA)).toMatchObject([
        { status: 'active', failures: 1, last_error: `push service answered ${status}` },
      ]);
      await fixture.advanceClock(wait_ms - 1);
      await settled();
      expect(device.request_count).toBe(1);
      await fixture.advanceClock(1);
      await device.untilMessages(2);
      expect(device.messages.map(({ title }) => title)).toEqual(['one failed', 'two failed']);
      expect(await devicesOf(ANA)).toMatchObject([{ failures: 0, last_error: null }]);
    },
  );

  test('waits no longer than the longest pause after the clock was set back', async () => {
    const device = await subscribe(ANA);
    device.answers.push({ status: 503 });
    const ahead_ms = 365 * limits.push_message_ms;
    await fixture.advanceClock(ahead_ms);
    await fails({ name: 'one' });
    await settled();
    await fixture.advanceClock(-ahead_ms);
    await fixture.push.sweep();
    await fixture.advanceClock(limits.push_backoff_ms_max);
    expect(await device.untilMessages(1)).toMatchObject({ title: 'one failed' });
  });

  test('sends no details to people who left the team during a pause', async () => {
    const rows = await team();
    const [anas, bens] = [await subscribe(ANA), await subscribe(BEN)];
    for (const device of [anas, bens]) device.answers.push({ status: 503 });
    const review = await memberAsks(rows);
    await settled();
    await memberAsks(rows);
    await settled();
    await leaveTeam(rows, BEN);
    await fixture.advanceClock(limits.push_backoff_ms);
    await anas.untilMessages(2);
    await settled();
    // The push service may have delivered the first one, although it answered with an error.
    expect(bens.messages).toEqual([
      {
        ...{ kind: 'closed', tag: `review-${review.id}`, waiting: 0 },
        ...{ title: 'svc', body: 'No longer needed', path: '/' },
      },
    ]);
  });

  test('does not repeat a message whose response could not be recorded', async () => {
    const device = await subscribe(ANA);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    device.answers.push({ status: 201, after: held });
    await fails();
    await device.untilRequests(1);
    await settledFacts();
    vi.spyOn(fixture.store, 'write').mockRejectedValueOnce(new Error('could not serialize access'));
    release();
    await settled();
    expect(device.request_count).toBe(1);
  });

  test('gives up after a day', async () => {
    const device = await subscribe(ANA);
    device.answers.push({ status: 503 });
    await fails();
    await settled();
    await fixture.advanceClock(limits.push_message_ms);
    await settled();
    expect(device.request_count).toBe(1);
  });

  test('repeats a message that cannot be built, which says nothing about the device', async () => {
    const device = await subscribe(ANA);
    const current = vi.spyOn(PushKeys.prototype, 'current');
    current.mockResolvedValueOnce({ publicKey: await fixture.push.publicKey(), privateKey: 'x' });
    await fails();
    await device.untilMessages(1);
    await settled();
    expect(await devicesOf(ANA)).toMatchObject([{ status: 'active', failures: 0, last_error: null }]);
    expect(current).toHaveBeenCalledTimes(3);
    current.mockRestore();
  });

  test('expires a device if it keeps failing, until the device subscribes again', async () => {
    const device = await subscribe(ANA);
    for (let n = 0; n < limits.push_failures_max; n++) {
      device.answers.push({ status: 403 });
      await fixture.push.test(ANA, device.id);
    }
    const last_error = 'push service answered 403';
    expect(await devicesOf(ANA)).toMatchObject([{ status: 'expired', last_error }]);
    await fails();
    await settled();
    expect(device.request_count).toBe(limits.push_failures_max);
    await subscribe(ANA, {}, device);
    await fails();
    await device.untilMessages(1);
    expect(await devicesOf(ANA)).toMatchObject([{ id: device.id, status: 'active', failures: 0 }]);
  });

  test('does not follow a redirect', async () => {
    const [device, other] = [await subscribe(ANA), service.device()];
    device.answers.push({ status: 307, headers: { location: other.endpoint } });
    await fails();
    await settled();
    expect([device.request_count, other.request_count]).toEqual([1, 0]);
    expect(await devicesOf(ANA)).toMatchObject([{ last_error: 'push service answered 307' }]);
  });

  test('is repeated once if the service ends during it, and never after it was accepted', async () => {
    const device = await subscribe(ANA);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    device.answers.push({ status: 503, after: held });
    await fails();
    await device.untilRequests(1);
    await fixture.close();
    release();
    await fixture.open();
    await device.untilMessages(1);
    await settled();
    await fixture.advanceClock(0);
    await settled();
    expect(device.request_count).toBe(2);
    expect(await devicesOf(ANA)).toMatchObject([{ failures: 0 }]);
  });

  test('does not happen for a device that was removed or has signed out', async () => {
    const device = await subscribe(ANA);
    device.answers.push({ status: 503 });
    await fails();
    await settled();
    await fixture.push.unsubscribe(ANA, device.id);
    await fixture.advanceClock(limits.push_backoff_ms);
    await settled();
    expect(device.request_count).toBe(1);
  });
});

describe('the keys', () => {
  test('survive restarts, and are stored encrypted', async () => {
    const before = await fixture.push.publicKey();
    await fixture.advanceClock(0);
    expect(await fixture.push.publicKey()).toBe(before);
    const keys = new PushKeys({ ...fixture, key: new Uint8Array(32).fill(9) });
    const { privateKey } = await keys.current();
    const rows = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('push_keys').selectAll()),
    );
    expect(rows).toHaveLength(1);
    const sealed = Buffer.from(rows[0]!.sealed);
    expect(sealed.includes(Buffer.from(privateKey, 'base64url'))).toBe(false);
    expect(sealed.includes(Buffer.from(privateKey))).toBe(false);
  });

  test('are replaced if the key that encrypted them is lost', async () => {
    const device = await subscribe(ANA);
    const elsewhere = new PushKeys({ ...fixture, key: new Uint8Array(32).fill(1) });
    const { publicKey } = await elsewhere.current();
    expect(publicKey).not.toBe(device.public_key);
    expect(await devicesOf(ANA)).toMatchObject([{ status: 'expired' }]);
  });

  test('a device stays expired if a message that was sent before the rotation is accepted after it', async () => {
    const device = await subscribe(ANA);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    device.answers.push({ status: 201, after: held });
    const tested = fixture.push.test(ANA, device.id);
    await device.untilRequests(1);
    await fixture.push.rotate(ANA);
    release();
    expect(await tested).toMatchObject([{ ok: true }]);
    expect(await devicesOf(ANA)).toMatchObject([
      { status: 'expired', last_error: expect.stringContaining('open svc on this device') },
    ]);
  });

  test('are rotated by root only; then devices get nothing until they subscribe for the new ones', async () => {
    const device = await subscribe(ANA);
    await expect(fixture.push.rotate(BEN)).rejects.toThrow('root required');
    const public_key = await fixture.push.rotate(ANA);
    expect(public_key).not.toBe(device.public_key);
    expect(await fixture.push.publicKey()).toBe(public_key);
    expect(await devicesOf(ANA)).toMatchObject([
      { status: 'expired', last_error: 'the keys of the service have changed: open svc on this device' },
    ]);
    await fails();
    await settled();
    expect(await fixture.push.test(ANA, device.id)).toMatchObject([{ ok: false }]);
    expect(device.request_count).toBe(0);
    const old = { public_key: device.public_key! };
    await expect(fixture.push.subscribe(ANA, elicitation(service.device(), old), null)).rejects.toThrow(
      'push keys have changed; subscribe again',
    );
    const fresh = await subscribe(ANA, { public_key, replaces: device.endpoint });
    await fails();
    await fresh.untilMessages(1);
    expect(await devicesOf(ANA)).toMatchObject([{ id: fresh.id, status: 'active' }]);
    expect(await audited('push_keys_rotated')).toEqual([{ user_id: 'usr_a', devices: 1 }]);
  });
});
