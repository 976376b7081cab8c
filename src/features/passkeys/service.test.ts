import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Problem } from '../../core/problem.ts';
import { type AccountsFixture, outcome, PASSWORD } from '../../testing/accounts.ts';
import { Authenticator, type Forgery } from '../../testing/authenticator.ts';
import { limits as accountsLimits } from '../accounts/limits.ts';
import type { Caller } from '../accounts/rules.ts';
import { limits as tokensLimits } from '../tokens/limits.ts';
import { limits } from './limits.ts';
import type { LoginResponse, Passkeys } from './service.ts';
import { openPasskeysFixture, type PasskeysFixture } from './testing.ts';

const ORIGIN = 'https://svc.example';
const client = { ip: '10.0.0.1', user_agent: 'test' };
const REFUSED = 'passkey was not accepted';
const DAY_MS = 86_400_000;

let fixture: AccountsFixture;
let passkeys: Passkeys;
let where: PasskeysFixture['where'];
let root: { caller: Caller; token: string };
beforeEach(async () => {
  ({ fixture, passkeys, where } = await openPasskeysFixture());
  root = await fixture.joinRoot();
});
afterEach(() => fixture.close());

async function newUser(username: string): Promise<{ caller: Caller; token: string }> {
  await fixture.accounts.create(root.caller, { username, password: PASSWORD, role: 'user' });
  return fixture.login(username);
}

const start = (caller = root.caller, current_password?: string) =>
  passkeys.startRegistration(caller, { current_password });
const finish = (caller: Caller, response: Parameters<typeof passkeys.finishRegistration>[1]['response']) =>
  passkeys.finishRegistration(caller, { name: 'Key', response });
async function add(device = new Authenticator(ORIGIN), caller = root.caller) {
  return { device, passkey: await finish(caller, device.register(await start(caller))) };
}

/** Performs a complete login; `change` may modify the response before it is sent. */
async function login(
  device: Authenticator,
  forged: Forgery = {},
  change: (response: LoginResponse) => LoginResponse = (response) => response,
) {
  const { login_id, options } = await passkeys.startLogin(client, undefined);
  return passkeys.finishLogin(login_id, change(device.login(options, forged)), client);
}

const own = (caller = root.caller) => passkeys.list(caller.user_id);
const lastAudits = async (n: number) => {
  const { items } = await fixture.audit.list({}, { limit: n });
  return items
    .map(({ event, level, user_id, ip, details }) => ({ event, level, user_id, ip, details }))
    .toReversed();
};

describe('a passkey', () => {
  it.each(['ES256', 'EdDSA', 'RS256'] as const)(
    'can be added and signs in with the key type %s',
    async (algorithm) => {
      const { device, passkey } = await add(new Authenticator(ORIGIN, algorithm));
      expect(await own()).toEqual([{ ...passkey, name: 'Key', last_used_at: null }]);
      fixture.clock.advance(60_000);
      const signedIn = await login(device);
      expect(signedIn).toEqual({
        token: expect.stringMatching(/^svc_/),
        expires_in: 43_200,
        user: { id: root.caller.user_id, username: 'root', role: 'root', created_at: expect.any(String) },
      });
      const caller = await fixture.tokens.authenticate(signedIn.token, '10.0.0.1');
      expect(caller.user_id).toBe(root.caller.user_id);
      const used_ms = Date.parse((await own())[0]!.last_used_at!) - Date.parse(passkey.created_at);
      expect(used_ms).toBe(60_000);
      expect(await lastAudits(2)).toEqual([
        {
          event: 'passkey_registered',
          level: 'info',
          user_id: root.caller.user_id,
          ip: '127.0.0.1',
          details: { passkey_id: passkey.id, name: 'Key' },
        },
        {
          event: 'user_login',
          level: 'info',
          user_id: root.caller.user_id,
          ip: '10.0.0.1',
          details: { token_id: caller.token_id, passkey_id: passkey.id },
        },
      ]);
    },
  );

  it('is requested with 32 random bytes, user verification and discoverable credentials', async () => {
    const { passkey, device } = await add();
    const options = await start();
    expect(options).toMatchObject({
      rp: { id: 'svc.example', name: 'svc' },
      pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: 'public-key', alg })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      excludeCredentials: [{ id: device.id, type: 'public-key', transports: ['internal'] }],
      attestation: 'none',
    });
    const { options: asked } = await passkeys.startLogin(client, undefined);
    expect(asked).toMatchObject({ rpId: 'svc.example', userVerification: 'required' });
    const challenges = [options.challenge, (await start()).challenge, asked.challenge];
    expect(new Set(challenges).size).toBe(3);
    for (const challenge of challenges) expect(Buffer.from(challenge, 'base64url')).toHaveLength(32);
    expect(passkey.id).toMatch(/^pky_/);
  });

  it('can be renamed and removed only by its user, not by root', async () => {
    const ada = await newUser('ada');
    const { passkey } = await add(new Authenticator(ORIGIN), ada.caller);
    const rename = (caller: Caller) => outcome(passkeys.rename(caller, passkey.id, 'Phone'));
    const remove = (caller: Caller) => outcome(passkeys.remove(caller, passkey.id, undefined));
    expect([await rename(root.caller), await remove(root.caller)]).toEqual([
      'passkey not found',
      'passkey not found',
    ]);
    expect(await rename(ada.caller)).toBe('ok');
    expect(await own(ada.caller)).toEqual([{ ...passkey, name: 'Phone' }]);
    expect(await remove(ada.caller)).toBe('ok');
    expect(await remove(ada.caller)).toBe('passkey not found');
    expect(await own(ada.caller)).toEqual([]);
    expect((await lastAudits(2)).map(({ event, user_id, details }) => [event, user_id, details])).toEqual([
      ['passkey_renamed', ada.caller.user_id, { passkey_id: passkey.id, name: { from: 'Key', to: 'Phone' } }],
      ['passkey_removed', ada.caller.user_id, { passkey_id: passkey.id, name: 'Phone' }],
    ]);
  });

  it('can be removed even if it is the last one: the password still works', async () => {
    const { device, passkey } = await add();
    await passkeys.remove(root.caller, passkey.id, undefined);
    expect(await outcome(login(device))).toBe(REFUSED);
    expect(await outcome(fixture.login('root'))).toBe('ok');
  });

  it('is deleted with its user', async () => {
    const ada = await newUser('ada');
    const { device } = await add(new Authenticator(ORIGIN), ada.caller);
    await fixture.accounts.delete(root.caller, ada.caller.user_id);
    expect(await outcome(login(device))).toBe(REFUSED);
    expect(await own(ada.caller)).toEqual([]);
  });

  it('is limited to fifty per user', async () => {
    for (let i = 1; i < limits.passkeys_per_user; i++) await add();
    const phone = await fixture.login('root');
    const late = new Authenticator(ORIGIN).register(await start(phone.caller));
    await add();
    expect(await outcome(start())).toBe('too many passkeys');
    expect(await outcome(finish(phone.caller, late))).toBe('too many passkeys');
  });
});

describe('a registration', () => {
  /** Attempts a registration, and checks whether anything was stored. */
  async function tried(forged: Forgery, device = new Authenticator(ORIGIN)): Promise<string> {
    const said = await outcome(finish(root.caller, device.register(await start(), forged)));
    expect(await own()).toHaveLength(said === 'ok' ? 1 : 0);
    return said;
  }

  it('is rejected if any part is invalid, and nothing is stored', async () => {
    const wrong: [string, Forgery][] = [
      ['another origin', { origin: 'https://svc.example.evil' }],
      ['the same name without https', { origin: 'http://svc.example' }],
      ['another port', { origin: 'https://svc.example:8443' }],
      ['another relying party', { rp_id: 'evil.example' }],
      ['the type of a login', { type: 'webauthn.get' }],
      ['another challenge', { challenge: Buffer.alloc(32, 1).toString('base64url') }],
      ['nobody there', { flags: 0b100 }],
      ['no user verification', { flags: 0b001 }],
      ['embedded in a page of another origin', { client: { crossOrigin: true } }],
      ['another top-level origin', { client: { topOrigin: 'https://evil.example' } }],
    ];
    for (const [what, forged] of wrong)
      expect([what, await tried(forged)]).toEqual([what, 'passkey is not valid']);
    expect(await tried({})).toBe('ok');
  });

  it('is rejected if its algorithm was not requested', async () => {
    expect(await tried({}, new Authenticator(ORIGIN, 'ES512'))).toBe('passkey is not valid');
  });

  it('is rejected if its data is malformed', async () => {
    const response = new Authenticator(ORIGIN).register(await start());
    const worse = { ...response, response: { ...response.response, attestationObject: 'AAAA' } };
    expect(await outcome(finish(root.caller, worse))).toBe('passkey is not valid');
    await start();
    const other = { ...response, response: { ...response.response, clientDataJSON: '!' } };
    expect(await outcome(finish(root.caller, other))).toBe('passkey is not valid');
    await start();
    expect(await outcome(finish(root.caller, { ...response, type: 'password' }))).toBe(
      'passkey is not valid',
    );
    expect(await own()).toEqual([]);
  });

  const OVER = 'passkey registration has ended; start again';

  it('can be attempted only once, whatever the result', async () => {
    const device = new Authenticator(ORIGIN);
    const options = await start();
    expect(await outcome(finish(root.caller, device.register(options, { flags: 0 })))).toBe(
      'passkey is not valid',
    );
    expect(await outcome(finish(root.caller, device.register(options)))).toBe(OVER);
    const again = await start();
    expect(await outcome(finish(root.caller, device.register(again)))).toBe('ok');
    expect(await outcome(finish(root.caller, device.register(again)))).toBe(OVER);
    expect(await own()).toHaveLength(1);
  });

  it('expires after five minutes, and when another one starts', async () => {
    const device = new Authenticator(ORIGIN);
    const options = await start();
    fixture.clock.advance(limits.passkey_challenge_ms);
    expect(await outcome(finish(root.caller, device.register(options)))).toBe(OVER);
    const first = await start(root.caller, PASSWORD);
    await start();
    expect(await outcome(finish(root.caller, device.register(first)))).toBe('passkey is not valid');
    expect(await own()).toEqual([]);
  });

  it('belongs to the sign-in that started it', async () => {
    const phone = await fixture.login('root');
    const ada = await newUser('ada');
    const response = new Authenticator(ORIGIN).register(await start());
    expect(await outcome(finish(phone.caller, response))).toBe(OVER);
    expect(await outcome(finish(ada.caller, response))).toBe(OVER);
    await start(ada.caller);
    expect(await outcome(finish(ada.caller, response))).toBe('passkey is not valid');
    expect([await own(), await own(ada.caller)]).toEqual([[], []]);
  });

  it('ends with its sign-in, even if that ends during the check', async () => {
    const phone = await fixture.login('root');
    const device = new Authenticator(ORIGIN);
    const options = await start(phone.caller);
    const write = fixture.store.write.bind(fixture.store);
    let writes = 0;
    fixture.store.write = async (act) => {
      writes += 1;
      if (writes === 2) {
        fixture.store.write = write;
        await fixture.accounts.changePassword(root.caller, PASSWORD, 'another good one');
      }
      return write(act);
    };
    const response = device.register(options);
    expect(await outcome(finish(phone.caller, response))).toBe('invalid token');
    expect(await outcome(finish(phone.caller, response))).toBe('invalid token');
    expect(await own()).toEqual([]);
  });

  it('is rejected if the passkey already exists', async () => {
    const { device } = await add();
    const ada = await newUser('ada');
    for (const { caller } of [root, ada])
      expect(await outcome(finish(caller, device.register(await start(caller))))).toBe(
        'passkey is not valid',
      );
    expect(await own(ada.caller)).toEqual([]);
  });

  it('returns the same passkey if it is repeated with the same id, but not with another credential', async () => {
    const response = new Authenticator(ORIGIN).register(await start());
    const again = () => passkeys.finishRegistration(root.caller, { id: 'pky_key', name: 'Key', response });
    const created = await again();
    expect([created.id, await again()]).toEqual(['pky_key', created]);
    const other = new Authenticator(ORIGIN).register(await start());
    const fresh = { id: 'pky_key', name: 'Key', response: other };
    expect((await passkeys.finishRegistration(root.caller, fresh)).id).not.toBe('pky_key');
  });
});

describe('adding and removing', () => {
  it('require that the password was verified within the last ten minutes, or the password', async () => {
    const { passkey } = await add();
    const remove = (password?: string) => outcome(passkeys.remove(root.caller, passkey.id, password));
    fixture.clock.advance(tokensLimits.password_recent_ms);
    const needed = 'current password is required';
    expect([await outcome(start()), await remove()]).toEqual([needed, needed]);
    const wrong = 'invalid username or password';
    expect([await outcome(start(root.caller, 'no')), await remove('no')]).toEqual([wrong, wrong]);
    expect(await own()).toHaveLength(1);
    expect(await outcome(start(root.caller, PASSWORD))).toBe('ok');
    fixture.clock.advance(tokensLimits.password_recent_ms - 1);
    expect(await remove()).toBe('ok');
  });

  it('are rejected for a sign-in by passkey that has not verified the password', async () => {
    const { device, passkey } = await add();
    const { token } = await login(device);
    const caller = await fixture.tokens.authenticate(token, null);
    const remove = (password?: string) => outcome(passkeys.remove(caller, passkey.id, password));
    const needed = 'current password is required';
    expect([await outcome(start(caller)), await remove()]).toEqual([needed, needed]);
    expect(await remove(PASSWORD)).toBe('ok');
    expect(await outcome(start(caller))).toBe('ok');
  });

  it('are rejected for API tokens', async () => {
    const { passkey } = await add();
    const { token } = await fixture.tokens.createApi(root.caller, { name: 'ci', expires_at: null });
    const caller = await fixture.tokens.authenticate(token, null);
    const response = new Authenticator(ORIGIN).register(await start());
    for (const act of [
      () => start(caller, PASSWORD),
      () => finish(caller, response),
      () => passkeys.remove(caller, passkey.id, PASSWORD),
    ])
      expect(await outcome(act())).toBe('not allowed');
    expect(await own()).toHaveLength(1);
  });

  it('count a wrong password as a failed sign-in', async () => {
    for (let i = 0; i < accountsLimits.login_failures_max; i++) await outcome(start(root.caller, 'wrong'));
    expect(await outcome(start(root.caller, PASSWORD))).toBe('too many attempts; try again later');
    expect(await outcome(fixture.login('root'))).toBe('too many attempts; try again later');
  });
});

describe('a login', () => {
  it('is rejected if any part is invalid, and leaves the passkey unchanged', async () => {
    const wrong: [string, Forgery][] = [
      ['another origin', { origin: 'https://svc.example.evil' }],
      ['the same name without https', { origin: 'http://svc.example' }],
      ['another relying party', { rp_id: 'evil.example' }],
      ['the type of a registration', { type: 'webauthn.create' }],
      ['another challenge', { challenge: Buffer.alloc(32, 1).toString('base64url') }],
      ['nobody there', { flags: 0b100 }],
      ['no user verification', { flags: 0b001 }],
      ['another key', { other_key: true }],
      ['another user', { user_handle: Buffer.from('usr_somebody').toString('base64url') }],
      ['no user', { user_handle: null }],
      ['embedded in a page of another origin', { client: { crossOrigin: true } }],
    ];
    const { device, passkey } = await add();
    const sign_ins = async () => (await fixture.tokens.listSignIns(root.caller, {})).items.length;
    const before = await sign_ins();
    for (const [what, forged] of wrong) {
      expect([what, await outcome(login(device, forged))]).toEqual([what, REFUSED]);
      expect(await lastAudits(1)).toEqual([
        {
          event: 'user_login_failed',
          level: 'warn',
          user_id: root.caller.user_id,
          ip: '10.0.0.1',
          details: { passkey_id: passkey.id, reason: expect.stringMatching(/^passkey: ./) },
        },
      ]);
    }
    expect([await own(), await sign_ins()]).toEqual([[passkey], before]);
    expect(await outcome(login(device))).toBe('ok');
  });

  it('is rejected if its data is malformed or modified', async () => {
    const { device } = await add();
    const bad: ((of: LoginResponse['response']) => Partial<LoginResponse['response']>)[] = [
      () => ({ signature: 'AAAA' }),
      () => ({ authenticatorData: 'AAAA' }),
      () => ({ clientDataJSON: '!' }),
      ({ authenticatorData }) => {
        const data = Buffer.from(authenticatorData, 'base64url');
        data.writeUInt32BE(1000, 33);
        return { authenticatorData: data.toString('base64url') };
      },
    ];
    for (const forge of bad) {
      const change = (sent: LoginResponse) => ({
        ...sent,
        response: { ...sent.response, ...forge(sent.response) },
      });
      expect(await outcome(login(device, {}, change))).toBe(REFUSED);
      expect((await lastAudits(1))[0]!.event).toBe('user_login_failed');
    }
  });

  it('has the same error for all failures', async () => {
    const { device } = await add();
    const stranger = new Authenticator(ORIGIN);
    const { options } = await passkeys.startLogin(client, undefined);
    const refusals: Promise<unknown>[] = [
      login(stranger),
      login(device, { origin: 'https://evil.example' }),
      login(device, { other_key: true }),
      login(device, {}, (response) => ({ ...response, type: 'password' })),
      login(device, {}, (response) => ({ ...response, id: 'none', rawId: 'none' })),
      login(device, {}, (response) => ({ ...response, id: stranger.id, rawId: stranger.id })),
      passkeys.finishLogin('pkl_none', device.login(options), client),
    ];
    const said = await Promise.all(
      refusals.map((refusal) =>
        refusal.then(String, ({ kind, code, message }: Problem) => [kind, code, message]),
      ),
    );
    expect(new Set(said.map((words) => JSON.stringify(words)))).toEqual(
      new Set([JSON.stringify(['unauthenticated', 'invalid_passkey', REFUSED])]),
    );
  });

  it('accepts only one attempt to finish it, whatever the result', async () => {
    const { device } = await add();
    const { login_id, options } = await passkeys.startLogin(client, undefined);
    const response = device.login(options);
    expect(await outcome(passkeys.finishLogin(login_id, response, client))).toBe('ok');
    expect(await outcome(passkeys.finishLogin(login_id, response, client))).toBe(REFUSED);
    const other = await passkeys.startLogin(client, undefined);
    const forged = device.login(other.options, { flags: 0 });
    expect(await outcome(passkeys.finishLogin(other.login_id, forged, client))).toBe(REFUSED);
    const right = device.login(other.options);
    expect(await outcome(passkeys.finishLogin(other.login_id, right, client))).toBe(REFUSED);
  });

  it('succeeds once of two concurrent attempts with one challenge', async () => {
    const { device } = await add();
    const { login_id, options } = await passkeys.startLogin(client, undefined);
    const response = device.login(options);
    const both = [client, { ...client, ip: '10.0.0.2' }].map((from) =>
      outcome(passkeys.finishLogin(login_id, response, from)),
    );
    expect((await Promise.all(both)).toSorted()).toEqual(['ok', REFUSED]);
  });

  it('expires after five minutes, and its challenge is not valid for another login', async () => {
    const { device } = await add();
    const { login_id, options } = await passkeys.startLogin(client, undefined);
    const other = await passkeys.startLogin(client, undefined);
    const crossed = passkeys.finishLogin(other.login_id, device.login(options), client);
    expect(await outcome(crossed)).toBe(REFUSED);
    fixture.clock.advance(limits.passkey_challenge_ms);
    const late = passkeys.finishLogin(login_id, device.login(options), client);
    expect(await outcome(late)).toBe(REFUSED);
  });

  it('is rejected if its challenge is that of a registration', async () => {
    const device = new Authenticator(ORIGIN);
    const { challenge } = await start();
    await add(device);
    const { login_id } = await passkeys.startLogin(client, undefined);
    const response = device.login({ challenge, rpId: 'svc.example' });
    expect(await outcome(passkeys.finishLogin(login_id, response, client))).toBe(REFUSED);
  });

  it('is rejected and audited if its counter did not increase, unless the authenticator never counts', async () => {
    const { device, passkey } = await add();
    expect(await outcome(login(device))).toBe('ok');
    expect(await outcome(login(device))).toBe('ok');
    device.counter = 7;
    expect(await outcome(login(device))).toBe('ok');
    for (const counter of [7, 6, 0]) {
      expect(await outcome(login(device, { counter }))).toBe(REFUSED);
      expect(await lastAudits(2)).toEqual([
        {
          event: 'passkey_counter_regressed',
          level: 'warn',
          user_id: root.caller.user_id,
          ip: '10.0.0.1',
          details: { passkey_id: passkey.id, counter: { before: 7, now: counter } },
        },
        expect.objectContaining({ event: 'user_login_failed' }),
      ]);
    }
    // Without the key, an attempt says nothing about the counter.
    await outcome(login(device, { counter: 3, other_key: true }));
    expect((await lastAudits(1))[0]!.details.reason).toBe('passkey: wrong signature');
    expect(await outcome(login(device, { counter: 8 }))).toBe('ok');
  });

  it('is delayed for an address that failed twenty times in a minute, unless the passkey is known', async () => {
    const { device } = await add();
    const unknown = new Authenticator(ORIGIN);
    for (let i = 0; i < accountsLimits.login_failures_per_ip; i++) await outcome(login(unknown));
    expect((await lastAudits(1))[0]!.event).toBe('user_login_throttled');
    expect(await outcome(login(unknown))).toBe('too many attempts; try again later');
    // Nobody is locked out.
    expect(await outcome(login(device))).toBe('ok');
    expect(await outcome(fixture.login('root', PASSWORD, '10.0.0.3'))).toBe('ok');
  });

  it('works with a passkey while the password is blocked by guesses', async () => {
    const { device } = await add();
    for (let i = 0; i < accountsLimits.login_failures_max; i++)
      await outcome(fixture.accounts.login('root', 'wrong', client));
    expect(await outcome(fixture.accounts.login('root', PASSWORD, client))).toBe(
      'too many attempts; try again later',
    );
    expect(await outcome(login(device))).toBe('ok');
  });

  it('is deleted if it is never finished, and an address can open a limited number', async () => {
    const count = () =>
      fixture.store.read(
        async (reader) =>
          (await reader.all(reader.sql.selectFrom('passkey_logins').select('network'))).length,
      );
    await fixture.store.write(async (tx) => {
      for (let num = 1; num <= limits.passkey_logins_per_network; num++)
        await tx.run(
          tx.sql.insertInto('passkey_logins').values({
            id: `pkl_${num}`,
            challenge: Buffer.alloc(32),
            network: '10.0.0.1',
            expires_at: fixture.clock.now() + 1,
          }),
        );
    });
    const other = await passkeys.startLogin({ ...client, ip: '10.0.0.9' }, undefined);
    await passkeys.startLogin(client, undefined);
    expect(await count()).toBe(limits.passkey_logins_per_network + 1);
    const { device } = await add();
    const response = device.login(other.options);
    expect(await outcome(passkeys.finishLogin(other.login_id, response, client))).toBe('ok');
    await start();
    fixture.clock.advance(DAY_MS);
    expect(await passkeys.sweep()).toBe(limits.passkey_logins_per_network + 1);
    expect(await count()).toBe(0);
  });
});

describe('without a relying party', () => {
  it('starting fails with the reason, and no login can be finished', async () => {
    const { device } = await add();
    const open = await passkeys.startLogin(client, undefined);
    where.relying_party = { party: null, reason: 'passkeys need https' };
    expect(await outcome(start())).toBe('passkeys need https');
    expect(await outcome(passkeys.startLogin(client, undefined))).toBe('passkeys need https');
    const response = device.login(open.options);
    expect(await outcome(passkeys.finishLogin(open.login_id, response, client))).toBe(REFUSED);
  });

  it('a page of another origin gets the right one in the error', async () => {
    const only = 'passkeys work at https://svc.example only';
    expect(await outcome(passkeys.startLogin(client, 'http://127.0.0.1:8080'))).toBe(only);
    const from = { origin: 'http://127.0.0.1:8080' };
    expect(await outcome(passkeys.startRegistration(root.caller, from))).toBe(only);
    expect(await outcome(passkeys.startLogin(client, ORIGIN))).toBe('ok');
  });
});
