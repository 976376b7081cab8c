import { createHmac, generateKeyPairSync } from 'node:crypto';
import { type JWTHeaderParameters, SignJWT, UnsecuredJWT } from 'jose';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { SECRET, TestClock } from '../testing/trusted-node.ts';
import { mintToken, type TokenSettings, TokenVerifier } from './tokens.ts';

const settings: TokenSettings = { shared_secret: SECRET, issuer: 'svc', audience: 'svc-internal' };
const key = new TextEncoder().encode(SECRET);
const clock = new TestClock();
clock.now_ms = Date.UTC(2026, 10, 21, 12);
const at = clock.now_ms / 1000;

function verifier(on: TestClock = clock): TokenVerifier {
  return new TokenVerifier({ settings: () => settings, clock: on });
}

const HEADER = { alg: 'HS256', typ: 'svc-internal+jwt' };
const claims = {
  iss: 'svc',
  aud: 'svc-internal',
  sub: 'pln_test',
  iat: at,
  nbf: at,
  exp: at + 60,
  jti: 'one',
};

/** A token that is right but for what is changed; a claim that is undefined is left out. */
function token(
  changed: Record<string, unknown> = {},
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  return new SignJWT({ ...claims, ...changed })
    .setProtectedHeader({ alg: 'HS256', typ: 'svc-internal+jwt', ...header })
    .sign(key);
}

test('a minted token is accepted, once', async () => {
  const minted = await mintToken(settings, 'pln_test', clock);
  const door = verifier();
  await door.verify(minted);
  await expect(door.verify(minted)).rejects.toThrow('used before');
  await door.verify(await mintToken(settings, 'pln_test', clock));
});

test('a token made by hand is accepted, so that each refusal below is for what was changed', async () => {
  await verifier().verify(await token());
});

test.each<[string, () => Promise<string> | string]>([
  ['another secret', () => mintToken({ ...settings, shared_secret: `${SECRET}!` }, 'pln_test', clock)],
  ['another issuer', () => token({ iss: 'other' })],
  ['another audience', () => token({ aud: 'other' })],
  ['another type', () => token({}, { typ: 'JWT' })],
  ['no type', () => token({}, { typ: undefined as never })],
  ['expired', () => token({ iat: at - 100, nbf: at - 100, exp: at - 31 })],
  ['not yet valid', () => token({ nbf: at + 31 })],
  ['issued in the future', () => token({ iat: at + 31 })],
  ['too old for its long life', () => token({ iat: at - 91, nbf: at - 91, exp: at + 3600 })],
  ...['iss', 'aud', 'sub', 'iat', 'nbf', 'exp', 'jti'].map((claim): [string, () => Promise<string>] => [
    `no ${claim}`,
    () => token({ [claim]: undefined }),
  ]),
  ['an id that is no text', () => token({ jti: { $ne: 1 } as never })],
  ['an endless id', () => token({ jti: 'x'.repeat(65) })],
  ['HS512 with the secret', () => token({}, { alg: 'HS512' })],
  ['a header that must be understood', () => hmacAs({ ...HEADER, crit: ['new'], new: 1 }, SECRET)],
  ['alg none', () => new UnsecuredJWT(claims).encode()],
  ['alg none with the right type', () => forged({ alg: 'none', typ: 'svc-internal+jwt' }, '')],
  ['alg nOnE', () => forged({ alg: 'nOnE', typ: 'svc-internal+jwt' }, '')],
  ['no signature', async () => `${(await token()).split('.').slice(0, 2).join('.')}.`],
  ['other claims under the signature', async () => swapped(await token(), { ...claims, sub: 'pln_evil' })],
  ['RS256 with a key of the sender', signedByRsa],
  ['RS256 in the header, the secret as key', () => hmacAs({ alg: 'RS256', typ: 'svc-internal+jwt' }, SECRET)],
  ['nonsense', () => 'a.b.c'],
  ['nothing', () => ''],
  ['more than a token may have', () => 'x'.repeat(limits.link_token_chars_max + 1)],
])('refused: %s', async (_name, make) => {
  await expect(verifier().verify(await make())).rejects.toThrow();
});

test.each<[string, Record<string, unknown>]>([
  ['a path as kid', { kid: '../../../../dev/null' }],
  ['an injection as kid', { kid: "x' UNION SELECT 'key" }],
  ['a key of the sender', { jwk: { kty: 'oct', k: Buffer.from('mine').toString('base64url') } }],
  ['the address of a key', { jku: 'https://evil.example/keys' }],
  ['a certificate of the sender', { x5u: 'https://evil.example/cert' }],
])('the key never comes from the header: %s', async (_name, header) => {
  const theirs = 'a secret of the sender with 32 bytes';
  const own = { alg: 'HS256', typ: 'svc-internal+jwt', ...header };
  await expect(verifier().verify(hmacAs(own, theirs))).rejects.toThrow('signature');
  await expect(verifier().verify(hmacAs(own, ''))).rejects.toThrow('signature');
  await verifier().verify(hmacAs(own, SECRET));
});

test('clocks may differ by the leeway, and by no more', async () => {
  const [late, early] = [new TestClock(), new TestClock()];
  late.now_ms = clock.now_ms + 89_000;
  early.now_ms = clock.now_ms - 30_000;
  await verifier(late).verify(await token());
  await verifier(early).verify(await token());
  late.now_ms += 2000;
  early.now_ms -= 2000;
  await expect(verifier(late).verify(await token())).rejects.toThrow();
  await expect(verifier(early).verify(await token())).rejects.toThrow();
});

test('a token is not accepted a second time at any moment of its life and leeway', async () => {
  const on = new TestClock();
  on.now_ms = clock.now_ms - 30_000;
  const door = verifier(on);
  const early = await token();
  await door.verify(early);
  for (let second = 0; second <= 120; second++) {
    await expect(door.verify(early)).rejects.toThrow(/used before|timestamp/);
    on.now_ms += 1000;
  }
  await expect(door.verify(early)).rejects.toThrow('timestamp');
});

test('without a secret nothing is accepted', async () => {
  const door = new TokenVerifier({ settings: () => null, clock });
  await expect(door.verify(await token())).rejects.toThrow('no shared secret');
});

test('a changed secret holds from the next call on', async () => {
  let now = settings;
  const door = new TokenVerifier({ settings: () => now, clock });
  const old = await mintToken(now, 'pln_test', clock);
  now = { ...settings, shared_secret: `${SECRET} of tomorrow` };
  await expect(door.verify(old)).rejects.toThrow('signature');
  await door.verify(await mintToken(now, 'pln_test', clock));
});

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function forged(header: object, signature: string): string {
  return `${encoded(header)}.${encoded(claims)}.${signature}`;
}

function hmacAs(header: object, secret: string): string {
  const signed = `${encoded(header)}.${encoded(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

function swapped(good: string, other: object): string {
  const [header, , signature] = good.split('.');
  return `${header}.${encoded(other)}.${signature}`;
}

function signedByRsa(): Promise<string> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', typ: 'svc-internal+jwt' }).sign(privateKey);
}

test('a plane’s token is none of an actor’s, and the other way round', async () => {
  const actors = new TokenVerifier({ settings: () => settings, clock, kind: 'actor' });
  const options = { kind: 'actor', claims: { session_id: 'ses_a' } } as const;
  const mint = () => mintToken(settings, 'user:ana', clock, options);
  expect(await actors.verify(await mint())).toMatchObject({
    sub: 'user:ana',
    session_id: 'ses_a',
    iss: 'svc',
  });
  await expect(verifier().verify(await mint())).rejects.toThrow('"typ"');
  await expect(actors.verify(await mintToken(settings, 'pln_test', clock))).rejects.toThrow('"typ"');
});
