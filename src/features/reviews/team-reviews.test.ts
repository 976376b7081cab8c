/** Permission reviews in a team: routing, and who may answer. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { problems } from '../../core/problem.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { type ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { addTeam, addUser, joinTeam, specOf, type TeamRows } from '../../testing/team.ts';
import { ACP_AGENT } from '../../testing/team-runs.ts';
import type { Caller } from '../accounts/rules.ts';
import type { TeamSpec } from '../teams/rules/team.ts';
import type { Review } from './rules.ts';
import type { MemberAnswerer } from './service.ts';

const EVE: Caller = { ...BEN, user_id: 'usr_e', username: 'eve' };

let fixture: FeaturesFixture;
let rows: TeamRows;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  await addUser(fixture.store, { id: 'usr_a', username: 'ana', role: 'root' });
  await addUser(fixture.store, { id: 'usr_b', username: 'ben' });
  await addUser(fixture.store, { id: 'usr_e', username: 'eve' });
});
afterEach(() => fixture.end());

async function team(more: Partial<TeamSpec> = {}): Promise<void> {
  const owners = { created_by: 'usr_a', human_ids: ['usr_b'] };
  rows = await addTeam(fixture.store, 'x', specOf(['boss', 'hand', 'help'], more), owners);
}

/** A request of the member's agent, which is routed to the leader or to people. */
async function request(
  member_id: string,
  route: Review['route'] = 'human',
): Promise<{ review: Review; acp: ScriptedAcp; agent_id: string }> {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await joinTeam(fixture.store, id, rows, member_id);
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  acp.requestPermission(1);
  const review = await vi.waitFor(async () => {
    const { items } = await fixture.reviews.list(ANA, { agent_id: id }, {});
    expect(items).toMatchObject([{ route }]);
    return items[0]!;
  }, SOON);
  return { review, acp, agent_id: id };
}

const member = (member_id: string): MemberAnswerer => ({
  ...{ actor_id: `${member_id}@team_x`, member_id, ip: null, ...rows },
});
const get = (id: string) => fixture.reviews.get(ANA, id);
const allow = { decision: 'allow' } as const;
const NO_WORKER = 'worker-originated permission review cannot route to worker';

async function audited(event: string): Promise<unknown[]> {
  const found = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('audit').select(['event', 'details']).orderBy('id')),
  );
  return found.filter((row) => row.event === event).map(({ details }) => JSON.parse(String(details)));
}

test('a member’s review names team, run and member, and is for people unless the run says otherwise', async () => {
  await team();
  const { review } = await request('hand');
  expect(review).toMatchObject({
    ...{ team_id: 'team_x', run_id: 'run_x', origin_actor_id: 'hand@team_x' },
    ...{ route: 'human', routed_to: null },
  });
  expect(fixture.notices).toEqual([]);
  expect(await fixture.reviews.listFor(member('boss'))).toEqual([]);
});

test('the team’s human members see and answer it; other users do not see it', async () => {
  await team();
  const { review } = await request('hand');
  const pending = { status: 'pending' } as const;
  expect((await fixture.reviews.list(BEN, pending, {})).items).toHaveLength(1);
  expect((await fixture.reviews.list(BEN, pending, { limit: 1 })).items).toHaveLength(1);
  expect((await fixture.reviews.list(EVE, {}, {})).items).toEqual([]);
  const eves = fixture.reviews.respond(EVE, review.id, allow, null);
  await expect(eves).rejects.toThrow('permission review not found');
  expect(await fixture.reviews.respond(BEN, review.id, allow, null)).toMatchObject({ answered_by: 'ben' });
});

test('with review_route leader, a worker’s review goes to the leader, who is notified and answers', async () => {
  await team({ review_route: 'leader' });
  const { review, acp, agent_id } = await request('hand', 'leader');
  expect(review).toMatchObject({ route: 'leader', routed_to: 'boss@team_x' });
  expect(fixture.notices).toEqual([
    {
      ...{ run_num: rows.run_num, from_actor_id: 'hand@team_x', to_actor_id: 'boss@team_x' },
      payload: { permission_review: review.id, title: 'Edit' },
    },
  ]);
  expect((await fixture.reviews.listFor(member('boss'))).map(({ id }) => id)).toEqual([review.id]);
  const answered = await fixture.reviews.respondAs(member('boss'), review.id, allow);
  expect(answered).toMatchObject({ status: 'answered', answered_by: 'boss@team_x', option_id: 'once' });
  expect(await acp.receive('response')).toMatchObject({ id: 1, result: { outcome: { optionId: 'once' } } });
  expect(await audited('permission_reviewed')).toMatchObject([{ actor_id: 'boss@team_x' }]);
  expect(await fixture.reviews.listFor(member('boss'))).toEqual([]);
  await fixture.expectSameState(agent_id);
});

test('a review goes to people at once, and only to them, if the leader is an agent and agents cannot call the plane', async () => {
  await fixture.close();
  fixture.actor_calls = false;
  await fixture.open();
  const { members } = specOf(['boss', 'hand']);
  members[0]!.agent = ACP_AGENT;
  await team({ review_route: 'leader', members });
  const { review } = await request('hand');
  expect(review).toMatchObject({ origin_actor_id: 'hand@team_x', routed_to: null });
  const to_leader = fixture.reviews.route(ANA, review.id, 'leader');
  await expect(to_leader).rejects.toMatchObject({ code: 'leader_cannot_answer' });
  expect(await get(review.id)).toMatchObject({ route: 'human', routed_to: null });
  expect(fixture.notices).toEqual([]);
});

test('a review whose leader cannot be notified because the mailbox is full waits for it, and then goes to people', async () => {
  await team({ review_route: 'leader' });
  fixture.notice_refusal = problems.tooMuchMail();
  const { review } = await request('hand', 'leader');
  expect(review).toMatchObject({ status: 'pending', route: 'leader', routed_to: 'boss@team_x' });
  await fixture.advanceClock(60_000);
  await vi.waitFor(async () => expect((await get(review.id)).route).toBe('human'), SOON);
});

test('a worker, or a leader of another team or run, can neither see nor answer a worker’s review', async () => {
  await team({ review_route: 'leader' });
  const { review } = await request('hand', 'leader');
  for (const id of ['hand', 'help']) {
    await expect(fixture.reviews.respondAs(member(id), review.id, allow)).rejects.toThrow(NO_WORKER);
    expect(await fixture.reviews.listFor(member(id))).toEqual([]);
  }
  const stranger = { ...member('boss'), team_num: rows.team_num + 1 };
  const in_another_run = { ...member('boss'), run_num: rows.run_num + 1 };
  for (const other of [stranger, in_another_run]) {
    const outsider_call = fixture.reviews.respondAs(other, review.id, allow);
    await expect(outsider_call).rejects.toThrow('permission review not found');
    expect(await fixture.reviews.listFor(other)).toEqual([]);
  }
  expect((await get(review.id)).status).toBe('pending');
});

test('a leader’s own review is for people, and no member of the team decides on it', async () => {
  await team({ review_route: 'leader' });
  const { review } = await request('boss');
  expect(review).toMatchObject({ route: 'human', routed_to: null, origin_actor_id: 'boss@team_x' });
  for (const id of ['boss', 'hand']) {
    await expect(fixture.reviews.respondAs(member(id), review.id, allow)).rejects.toThrow('not allowed');
  }
  const to_itself = fixture.reviews.route(ANA, review.id, 'leader');
  await expect(to_itself).rejects.toThrow('a leader cannot answer its own permission review');
});

test('a review whose leader does not answer in time goes to people, visibly', async () => {
  await team({ review_route: 'leader' });
  const { review } = await request('hand', 'leader');
  await fixture.advanceClock(59_000);
  expect((await get(review.id)).route).toBe('leader');
  // Routing it to the leader again does not extend the time.
  await fixture.reviews.route(BEN, review.id, 'boss');
  await fixture.advanceClock(1_000);
  await vi.waitFor(async () => {
    expect(await get(review.id)).toMatchObject({ route: 'human', routed_to: null, status: 'pending' });
  }, SOON);
  expect(await audited('permission_routed')).toEqual([
    { review_id: review.id, from_actor_id: 'boss@team_x', to_actor_id: null, why: 'no answer in time' },
  ]);
  const late = fixture.reviews.respondAs(member('boss'), review.id, allow);
  await expect(late).rejects.toThrow('not allowed');
  await fixture.reviews.respond(BEN, review.id, allow, null);
});

test('with a full mailbox, a review still goes to people in time', async () => {
  await team({ review_route: 'leader' });
  fixture.routing.notify = async () => {
    throw problems.tooMuchMail();
  };
  const { review, acp } = await request('hand', 'leader');
  expect(review).toMatchObject({ route: 'leader', status: 'pending' });
  await fixture.advanceClock(60_000);
  await vi.waitFor(async () => expect((await get(review.id)).route).toBe('human'), SOON);
  await fixture.reviews.respond(BEN, review.id, allow, null);
  expect(await acp.receive('response')).toMatchObject({ id: 1 });
});

test('a person routes a worker’s review to the leader or a person, never to a worker', async () => {
  await team();
  const { review } = await request('hand');
  const route = (to: string, caller = BEN) => fixture.reviews.route(caller, review.id, to);
  for (const to of ['help', 'hand@team_x']) await expect(route(to)).rejects.toThrow(NO_WORKER);
  await expect(route('nobody')).rejects.toThrow('unknown actor: nobody');
  await expect(route('user:eve')).rejects.toThrow('not allowed');
  await expect(route('leader', EVE)).rejects.toThrow('permission review not found');
  expect(await route('leader')).toMatchObject({ route: 'leader', routed_to: 'boss@team_x' });
  expect(fixture.notices).toHaveLength(1);
  expect(await route('user')).toMatchObject({ route: 'human', routed_to: 'user:ana' });
  await fixture.advanceClock(60_000);
  expect((await get(review.id)).routed_to).toBe('user:ana');
  expect(await audited('permission_routed')).toEqual([
    { review_id: review.id, to_actor_id: 'boss@team_x' },
    { review_id: review.id, to_actor_id: 'user:ana' },
  ]);
});

test('exactly one of concurrent answers by leader and people counts, and the others get its author', async () => {
  await team({ review_route: 'leader' });
  const { review, acp } = await request('hand', 'leader');
  const answers = [
    fixture.reviews.respondAs(member('boss'), review.id, allow),
    fixture.reviews.respond(BEN, review.id, { decision: 'deny' }, null),
    fixture.reviews.respond(ANA, review.id, { outcome: 'cancelled' }, null),
  ];
  const settled = await Promise.allSettled(answers);
  const lost = settled.flatMap((item) => (item.status === 'rejected' ? [String(item.reason.message)] : []));
  const { answered_by } = await get(review.id);
  expect(lost).toHaveLength(2);
  for (const outcome of lost) expect(outcome).toMatch(new RegExp(`by ${answered_by}$`));
  await acp.receive('response');
  expect(acp.lines).toHaveLength(4);
});

test('a list without a page has older pending ones, and the newest of the rest', async () => {
  await team();
  const { review, agent_id } = await request('hand');
  const agent = await fixture.get(agent_id);
  await fixture.store.write(async (tx) => {
    const { agent_num, session_num } = (await tx.get(
      tx.sql.selectFrom('reviews').select(['agent_num', 'session_num']),
    ))!;
    for (let n = 0; n < 250; n++) {
      const row = { id: `rev_${n}`, agent_num, session_num, request_id: '1', tool_call: '{}', options: '[]' };
      await tx.run(
        tx.sql.insertInto('reviews').values({ ...row, status: 'cancelled', route: 'human', created_at: 0 }),
      );
    }
  });
  expect(agent.pending_reviews).toBe(1);
  const { items } = await fixture.reviews.list(ANA, {}, {});
  expect(items).toHaveLength(201);
  expect([items[0]!.id, items[200]!.id]).toEqual(['rev_249', review.id]);
  expect((await fixture.reviews.list(ANA, { status: 'cancelled' }, {})).items).toHaveLength(200);
  expect((await fixture.reviews.list(ANA, { status: 'pending' }, {})).items).toHaveLength(1);
});
