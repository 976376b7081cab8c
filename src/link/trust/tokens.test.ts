import { expect, test } from 'vitest';
import { TokenForge } from '../../testing/forged-tokens.ts';
import { SECRET, TestClock } from '../../testing/trusted-node.ts';
import { mintToken, type TokenSettings, TokenVerifier } from './tokens.ts';

const settings: TokenSettings = { shared_secret: SECRET, issuer: 'svc', audience: 'svc-internal' };
const clock = new TestClock();
clock.now_ms = Date.UTC(2026, 10, 21, 12);
const at = clock.now_ms / 1000;

function verifier(on: TestClock = clock): TokenVerifier {
  return new TokenVerifier({ settings: () => settings, clock: on });
}

const forge = new TokenForge(settings, at);

test('accepts a new token, once', async () => {
  const minted = await mintToken(settings, 'pln_test', clock);
  const checker = verifier();
  await checker.verify(minted);
  await expect(checker.verify(minted)).rejects.toThrow('used before');
  await checker.verify(await mintToken(settings, 'pln_test', clock));
});

test('accepts a handmade token, so each rejection below is due to the change', async () => {
  await verifier().verify(await forge.token());
});

test.each(forge.all())('rejects a token: %s', async (_name, make) => {
  await expect(verifier().verify(await make())).rejects.toThrow();
});

test.each([
  { kid: '../../../../dev/null' },
  { jku: 'https://evil.example/keys' },
  { jwk: { kty: 'oct', k: 'bWluZQ' } },
])('never takes the key from the header: %o', async (header) => {
  await expect(verifier().verify(forge.hmac(header, 'mine'))).rejects.toThrow('signature');
  await expect(verifier().verify(forge.hmac(header, ''))).rejects.toThrow('signature');
  await verifier().verify(forge.hmac(header));
});

test('allows clocks to differ by the leeway, and no more', async () => {
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

test('rejects a second use at any time of its validity and leeway', async () => {
  const on = new TestClock();
  on.now_ms = clock.now_ms - 30_000;
  const checker = verifier(on);
  const early = await forge.token();
  await checker.verify(early);
  for (let second = 0; second <= 120; second++) {
    await expect(checker.verify(early)).rejects.toThrow(/used before|timestamp/);
    on.now_ms += 1000;
  }
  await expect(checker.verify(early)).rejects.toThrow('timestamp');
});

test('accepts nothing without a secret', async () => {
  const checker = new TokenVerifier({ settings: () => null, clock });
  await expect(checker.verify(await forge.token())).rejects.toThrow('no shared secret');
});

test('uses a changed secret from the next call on', async () => {
  let now = settings;
  const checker = new TokenVerifier({ settings: () => now, clock });
  const old = await mintToken(now, 'pln_test', clock);
  now = { ...settings, shared_secret: `${SECRET} of tomorrow` };
  await expect(checker.verify(old)).rejects.toThrow('signature');
  await checker.verify(await mintToken(now, 'pln_test', clock));
});

test('does not accept a plane’s token as an actor’s, or the reverse', async () => {
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
