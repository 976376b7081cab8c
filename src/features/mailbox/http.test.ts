/** Mailboxes as clients see them; the listener validates responses against the contract. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpServer } from '../../server/server.ts';
import { openFakeHttp, ROOT_TOKEN, requesterWithToken, USER_TOKEN } from '../../testing/http.ts';
import { signIn } from '../../testing/sign-in.ts';
import { ACP_AGENT, addRun, specWith } from '../../testing/team-runs.ts';
import type { Caller } from '../accounts/rules.ts';
import type { RunRow } from '../runs/queries/runs.ts';
import { mailHandlers } from './http.ts';
import { limits } from './limits.ts';
import type { Mail } from './rules/mail.ts';
import type { Trigger } from './rules/trigger.ts';
import { type MailFixture, openMailFixture } from './testing.ts';

const ADA: Caller = {
  user_id: 'usr_ada',
  username: 'ada',
  role: 'user',
  token_id: 'tok_ada',
  grant: null,
  ip: null,
};

let fixture: MailFixture;
let run: RunRow;
let server: HttpServer;
const request = requesterWithToken(() => server, USER_TOKEN);
beforeEach(async () => {
  fixture = await openMailFixture();
  run = await addRun(fixture.store, ADA, specWith({ lead: null, robot: ACP_AGENT }));
  await signIn(fixture.store, ADA);
  server = await openFakeHttp(mailHandlers(fixture.mailbox, fixture.triggers));
});
afterEach(async () => {
  await server.drain();
  await fixture.end();
});

const letter = (more: object = {}) => ({
  ...{ run_id: run.id, from_actor_id: 'lead', to_actor_id: 'user:ada', payload: { n: 1 } },
  ...more,
});
const send = (more: object = {}, options = {}) =>
  request('POST', '/api/actor/mailbox/send', letter(more), options);
const refused = (status: number, error: string) => ({ status, body: { error } });

test('a message goes from one actor to another, and leaves the inbox', async () => {
  const sent = await send();
  expect(sent).toMatchObject({ status: 201, body: { id: expect.any(Number), status: 'pending' } });
  expect(sent.location).toBe(`/api/actor/mailbox/${sent.body.id}`);
  expect((await request('GET', sent.location!)).body).toEqual(sent.body);
  const inbox = `/api/actor/user:ada/mailbox?run_id=${run.id}`;
  const listed = await request('GET', `${inbox}&limit=1`);
  expect(listed).toMatchObject({
    status: 200,
    body: [{ ...sent.body, status: 'delivered' } as Mail].map(({ delivered_at: _, ...rest }) => rest),
  });
  const acknowledged = await request('POST', `${sent.location}/ack`);
  expect(acknowledged).toMatchObject({ status: 200, body: { status: 'acknowledged' } });
  expect(await request('POST', `${sent.location}/ack`)).toEqual(acknowledged);
  expect((await request('GET', inbox)).body).toEqual([]);
  expect((await request('GET', `${inbox}&status=all`)).body).toEqual([acknowledged.body]);
  const all = await request('GET', `/api/teams/runs/${run.id}/mail?limit=5`);
  expect(all).toMatchObject({ status: 200, body: { items: [{ id: sent.body.id }] } });
});

test('reports an invalid message with the messages of the contract', async () => {
  for (const payload of [null, [], 'x', 7]) {
    expect(await send({ payload })).toMatchObject(refused(400, 'payload must be an object'));
  }
  expect(await send({ run_id: 'run_none' })).toMatchObject(refused(404, 'run not found'));
  expect(await send({ to_actor_id: 'who' })).toMatchObject(refused(400, 'unknown actor: who'));
  const robot = `robot@${run.team_id}`;
  expect(await send({ from_actor_id: 'robot' })).toMatchObject(
    refused(403, `not allowed to act as ${robot}`),
  );
  expect(await send({ from_actor_id: 'robot' }, { token: ROOT_TOKEN })).toMatchObject({ status: 201 });
  const payload = { text: 'x'.repeat(limits.mail_payload_bytes_max) };
  expect(await send({ payload })).toMatchObject(refused(413, 'payload is too large'));
  for (const id of ['x', '-1', '0', '9'.repeat(16), '1.5']) {
    expect(await request('POST', `/api/actor/mailbox/${id}/ack`)).toMatchObject(
      refused(404, 'message not found'),
    );
  }
  const wrong = `/api/actor/user:ada/mailbox?limit=0`;
  expect(await request('GET', wrong)).toMatchObject(refused(400, 'limit must be an integer from 1 to 200'));
});

test('a repeated request with its key is one message; a different one is rejected', async () => {
  const first = await send({}, { key: 'k' });
  expect(await send({}, { key: 'k' })).toEqual(first);
  expect(await send({ payload: { n: 2 } }, { key: 'k' })).toMatchObject(
    refused(409, 'idempotency key reused with a different request'),
  );
});

test('a request waits for mail, and ends when the service stops', async () => {
  const inbox = `/api/actor/lead@${run.team_id}/mailbox?wait=60`;
  const waiting = request('GET', inbox);
  const { body } = await send({ from_actor_id: 'user:ada', to_actor_id: 'lead' });
  expect(await waiting).toMatchObject({ status: 200, body: [{ id: body.id }] });
  expect(await request('GET', `${inbox}1`)).toMatchObject(
    refused(400, 'wait must be an integer from 0 to 60'),
  );
});

test('sets, lists and deletes triggers', async () => {
  const triggers = `/api/actor/lead@${run.team_id}/triggers`;
  const body = { run_id: run.id, payload: { go: 1 } };
  const set = (more: object) => request('POST', triggers, { ...body, ...more });
  const daily = await set({ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' });
  expect(daily).toMatchObject({
    status: 201,
    body: { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', fired: 0 },
  });
  const once = await set({ at: '2099-01-01T09:00:00+02:00' });
  expect(once.body).toMatchObject({ at: '2099-01-01T07:00:00.000Z', next_at: '2099-01-01T07:00:00.000Z' });
  const listed = await request('GET', triggers);
  expect((listed.body as Trigger[]).map(({ id }) => id)).toEqual([once.body.id, daily.body.id]);
  const own = await request('POST', '/api/actor/user:ada/triggers', { ...body, every_seconds: 60 });
  const of_run = `/api/teams/runs/${run.id}/triggers`;
  expect((await request('GET', of_run)).body).toEqual([own.body, once.body, daily.body]);
  const first = (await request('GET', `${of_run}?limit=2`)).body;
  expect(first).toMatchObject({ items: [own.body, once.body], next_cursor: expect.any(String) });
  expect((await request('GET', `${of_run}?limit=2&cursor=${first.next_cursor}`)).body).toEqual({
    items: [daily.body],
  });
  expect(await request('GET', '/api/teams/runs/run_none/triggers')).toMatchObject(
    refused(404, 'run not found'),
  );
  expect(await request('DELETE', `${triggers}/${daily.body.id}`)).toMatchObject({ status: 204 });
  expect(await request('DELETE', `${triggers}/${daily.body.id}`)).toMatchObject(
    refused(404, 'trigger not found'),
  );
  const wrongs: [object, string][] = [
    [{}, 'at must be one of at, every_seconds and cron'],
    [{ every_seconds: 60, cron: '* * * * *' }, 'at must be one of at, every_seconds and cron'],
    [{ at: 'soon' }, 'at must be an RFC 3339 time'],
    [{ at: '2001-01-01T00:00:00Z' }, 'at must be in the future'],
    [{ every_seconds: 9 }, 'every_seconds must be at least 10'],
    [{ cron: 'soon' }, 'cron must be a pattern of five fields'],
    [{ cron: '* * * * *', timezone: 'Mars' }, 'timezone must be an IANA time zone'],
    [{ every_seconds: 60, timezone: 'Europe/Berlin' }, 'timezone needs cron'],
    [{ every_seconds: 60, payload: [] }, 'payload must be an object'],
  ];
  for (const [more, error] of wrongs) expect(await set(more)).toMatchObject(refused(400, error));
});
