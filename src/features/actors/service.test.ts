import pino from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import { mintToken, type TokenSettings } from '../../link/trust/tokens.ts';
import { addAgent, addSession } from '../../store/testing.ts';
import { AccountsFixture } from '../../testing/accounts.ts';
import { updateSession } from '../agents/queries/agents.ts';
import type { ActorMethods } from '../feature.ts';
import { Actors } from './service.ts';
import { SessionTokens } from './session-tokens.ts';

const settings: TokenSettings = {
  shared_secret: 'a shared secret of more than 32 bytes',
  issuer: 'svc',
  audience: 'svc-internal',
};
/** No test in this file calls a method. */
const methods = {} as ActorMethods;
const session_tokens = new SessionTokens(new Uint8Array(32).fill(7));

let fixture: AccountsFixture;
let session_num: number;
let reasons: string[];
let actors: Actors;

beforeEach(async () => {
  fixture = await AccountsFixture.open();
  session_num = await addSession(fixture.store, await addAgent(fixture.store, 'agt_a'), 'ses_a');
  reasons = [];
  const write = (line: string) => {
    reasons.push(JSON.parse(line).reason);
    // Rejections are spaced in time, so that each one is logged.
    fixture.clock.advance(limits.refusal_log_ms);
  };
  const { store, clock } = fixture;
  actors = new Actors({
    store,
    clock,
    log: pino({}, { write }),
    session_tokens,
    settings: () => settings,
  });
  actors.open(methods);
});
afterEach(() => fixture.close());

const ask = (token: string, params: unknown = {}, node_id = 'main') =>
  actors.call({ method: 'whoami', params, token, node_id });
const minted = (actor_id: string, claims: { session_id?: string } = {}) =>
  mintToken(settings, actor_id, fixture.clock, { kind: 'actor', claims });

const no_team = { team_id: null, run_id: null, role: null };
const of_session = { agent_id: 'agt_a', session_id: 'ses_a', node_id: 'main', user_id: 'usr_1' };
const no_session = { agent_id: null, session_id: null, node_id: null, user_id: null };
const nobody = { actor_id: null, ...no_session, ...no_team };
const unauthorized = { kind: 'unauthenticated', code: 'unauthorized', message: 'unauthorized' };

test('a session’s token identifies its session, agent, node and owner', async () => {
  expect(await ask(session_tokens.of('ses_a'))).toEqual({ actor_id: null, ...of_session, ...no_team });
});

test('a session’s token cannot act as another actor', async () => {
  await expect(ask(session_tokens.of('ses_a'), { actor_id: 'user:root' })).rejects.toMatchObject({
    kind: 'forbidden',
    message: 'not allowed to act as user:root',
  });
});

test('a session’s token ends with the session', async () => {
  await fixture.store.write((tx) => updateSession(tx, session_num, { state: 'ended' }));
  await expect(ask(session_tokens.of('ses_a'))).rejects.toMatchObject(unauthorized);
  await expect(ask(session_tokens.of('ses_b'))).rejects.toMatchObject(unauthorized);
  expect(reasons).toEqual(['session ses_a is over', 'session ses_b is over']);
});

test('a session’s token is valid only from its own node', async () => {
  await expect(ask(session_tokens.of('ses_a'), {}, 'n1')).rejects.toMatchObject(unauthorized);
  expect(reasons).toEqual(['session ses_a is on node main']);
});

test('rejects a token that was made with another key, or invented', async () => {
  const other = new SessionTokens(new Uint8Array(32).fill(8)).of('ses_a');
  const good = session_tokens.of('ses_a');
  for (const token of [other, good.slice(0, -1), `${good}A`, good.replace('ses_a', 'ses_b'), 'ses_a.', '']) {
    await expect(ask(token)).rejects.toMatchObject(unauthorized);
    expect(reasons.at(-1)).toBe('the token is not one of this plane');
  }
});

test('does not parse a token that is too long', async () => {
  await expect(ask('.'.repeat(limits.link_token_chars_max + 1), {}, 'n1')).rejects.toMatchObject(
    unauthorized,
  );
  expect(reasons).toEqual(['the token is not one of this plane']);
});

test('a holder of the shared secret acts as the actor of the token, or of the call', async () => {
  const { caller } = await fixture.joinRoot();
  const root = { ...nobody, actor_id: 'user:root', user_id: caller.user_id, role: 'human' };
  expect(await ask(await minted(''))).toEqual(nobody);
  expect(await ask(await minted('user:root'))).toEqual(root);
  expect(await ask(await minted(''), { actor_id: 'user:root' })).toEqual(root);
  for (const actor_id of ['user:eve', 'worker@team_a', 'user:'])
    await expect(ask(await minted(actor_id))).rejects.toMatchObject({
      kind: 'invalid',
      message: `unknown actor: ${actor_id}`,
    });
});

test('a holder of the shared secret may call from a live session', async () => {
  const claims = { session_id: 'ses_a' };
  expect(await ask(await minted('', claims), {}, 'n1')).toEqual({
    actor_id: null,
    ...of_session,
    ...no_team,
  });
  await fixture.store.write((tx) => updateSession(tx, session_num, { state: 'ended' }));
  await expect(ask(await minted('', claims))).rejects.toMatchObject(unauthorized);
  // The sessions of a deleted agent are no longer known.
  const deleted = { session_id: 'ses_deleted' };
  await expect(ask(await minted('user:root', deleted))).rejects.toMatchObject(unauthorized);
  expect(reasons).toEqual(['session ses_a is over', 'session ses_deleted is over']);
});

test('a token made from the secret is valid once, and a plane’s token is not accepted', async () => {
  const token = await minted('');
  await ask(token);
  await expect(ask(token)).rejects.toMatchObject(unauthorized);
  await expect(ask(await mintToken(settings, 'pln_a', fixture.clock))).rejects.toMatchObject(unauthorized);
  const another = { ...settings, shared_secret: `${settings.shared_secret}!` };
  const forged = await mintToken(another, '', fixture.clock, { kind: 'actor' });
  await expect(ask(forged)).rejects.toMatchObject(unauthorized);
  expect(reasons).toEqual([
    expect.stringMatching(/used before/),
    expect.stringMatching(/typ/),
    expect.stringMatching(/signature/),
  ]);
});

test('reveals no commands without a token; unknown ones are reported by name', async () => {
  const call = (method: string, params: unknown, token = session_tokens.of('ses_a')) =>
    actors.call({ method, params, token, node_id: 'main' });
  await expect(call('no-such', {}, 'x')).rejects.toMatchObject(unauthorized);
  for (const method of ['no-such', 'toString', '__proto__'])
    await expect(call(method, {})).rejects.toMatchObject({ kind: 'not_found', code: 'unknown_method' });
  const expectRejection = (params: unknown) => expect(call('whoami', params)).rejects;
  await expectRejection([]).toThrow('params must be an object');
  await expectRejection(null).toThrow('params must be an object');
  await expectRejection({ actor_id: 7 }).toThrow('actor_id must be a string');
  await expectRejection({ actor_id: '' }).toThrow('actor_id must not be empty');
  await expectRejection({ actor_id: 'x'.repeat(257) }).toThrow('actor_id must be at most 256 characters');
});

test('rejected callers cannot fill the log', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const { store, clock } = fixture;
  const listener = new Actors({ store, clock, log, session_tokens, settings: () => settings });
  listener.open(methods);
  for (let i = 0; i < 20; i++)
    await expect(listener.call({ method: '', params: {}, token: `${i}`, node_id: 'main' })).rejects.toThrow();
  expect(lines).toHaveLength(1);
});

test('a database error is not a rejection', async () => {
  const store = { read: () => Promise.reject(new Error('disk I/O error')) } as never;
  const { clock } = fixture;
  const listener = new Actors({
    store,
    clock,
    log: pino({}, { write: () => {} }),
    session_tokens,
    settings: () => settings,
  });
  listener.open(methods);
  const call = { method: 'whoami', params: {}, token: session_tokens.of('ses_a'), node_id: 'main' };
  await expect(listener.call(call)).rejects.toThrow('disk I/O error');
});
