import { expect, test } from 'vitest';
import { TokenForge } from '../testing/forged-tokens.ts';
import { SECRET, TestClock } from '../testing/trusted-node.ts';
import { mintToken, type TokenSettings, TokenVerifier } from './tokens.ts';

const settings: TokenSettings = { shared_secret: SECRET, issuer: 'svc', audience: 'svc-internal' };
const clock = new TestClock();
clock.now_ms = Date.UTC(2026, 10, 21, 12);
const at = clock.now_ms / 1000;

function verifier(on: TestClock = clock): TokenVerifier {
  return new TokenVerifier({ settings: () => settings, clock: on });
}

const forge = new TokenForge(settings, at);

test('a minted token is accepted, once', async () => {
  const minted = await mintToken(settings, 'pln_test', clock);
  const door = verifier();
  await door.verify(minted);
  await expect(door.verify(minted)).rejects.toThrow('used before');
  await door.verify(await mintToken(settings, 'pln_test', clock));
});

test('a token made by hand is accepted, so that each refusal below is for what was changed', async () => {
  await verifier().verify(await forge.token());
});

test.each(forge.all())('refused: %s', async (_name, make) => {
  await expect(verifier().verify(await make())).rejects.toThrow();
});

test.each([
  { kid: '../../../../dev/null' },
  { jku: 'https://evil.example/keys' },
  { jwk: { kty: 'oct', k: 'bWluZQ' } },
])('the key never comes from the header: %o', async (header) => {
  await expect(verifier().verify(forge.hmac(header, 'mine'))).rejects.toThrow('signature');
  await expect(verifier().verify(forge.hmac(header, ''))).rejects.toThrow('signature');
  await verifier().verify(forge.hmac(header));
});

test('clocks may differ by the leeway, and by no more', async () => {
  const [late, early] = [new TestClock(), new TestClock()];
  late.now_ms = clock.now_ms + 89_000;
  early.now_ms = clock.now_ms - 30_000;
  await verifier(late).verify(await forge.token());
  await verifier(early).verify(await forge.token());
  late.now_ms += 2000;
  early.now_ms -= 2000;
  await expect(verifier(late).verify(await forge.token())).rejects.toThrow();
  await expect(verifier(early).verify(await forge.token())).rejects.toThrow();
});

test('a token is not accepted a second time at any moment of its life and leeway', async () => {
  const on = new TestClock();
  on.now_ms = clock.now_ms - 30_000;
  const door = verifier(on);
  const early = await forge.token();
  await door.verify(early);
  for (let second = 0; second <= 120; second++) {
    await expect(door.verify(early)).rejects.toThrow(/used before|timestamp/);
    on.now_ms += 1000;
  }
  await expect(door.verify(early)).rejects.toThrow('timestamp');
});

test('without a secret nothing is accepted', async () => {
  const door = new TokenVerifier({ settings: () => null, clock });
  await expect(door.verify(await forge.token())).rejects.toThrow('no shared secret');
});

test('a changed secret holds from the next call on', async () => {
  let now = settings;
  const door = new TokenVerifier({ settings: () => now, clock });
  const old = await mintToken(now, 'pln_test', clock);
  now = { ...settings, shared_secret: `${SECRET} of tomorrow` };
  await expect(door.verify(old)).rejects.toThrow('signature');
  await door.verify(await mintToken(now, 'pln_test', clock));
});

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
