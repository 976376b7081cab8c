import type { LookupAddress } from 'node:dns';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AddressRefused, checkEndpoint, createResolver } from './endpoint.ts';

const OWN = ['http://127.0.0.1:9000', 'https://push.lan:8443', 'https://169.254.169.254'];

function resolved(url: string, own: readonly string[]): Promise<string[]> {
  const resolve = createResolver(new URL(url), own);
  return new Promise((done, refuse) => {
    resolve(new URL(url).hostname, { all: true }, (error, found) =>
      error ? refuse(error) : done((found as LookupAddress[]).map(({ address }) => address)),
    );
  });
}

test.each([
  ['https://push.example.org/a?b=c', 'https://push.example.org/a?b=c'],
  ['https://8.8.8.8/x', 'https://8.8.8.8/x'],
  ['https://PUSH.example.org:443/x', 'https://push.example.org/x'],
  ['http://127.0.0.1:9000/x', 'http://127.0.0.1:9000/x'],
  ['https://push.lan:8443/x', 'https://push.lan:8443/x'],
])('accepts %s as %s', (asked, taken) => {
  expect(checkEndpoint(asked, OWN)).toBe(taken);
});

test.each(['http://127.0.0.1:9001/x', 'http://push.lan:8443/x', 'https://169.254.169.254/x'])(
  'rejects %s, which only resembles a configured one',
  (asked) => {
    expect(() => checkEndpoint(asked, OWN)).toThrow();
  },
);

test.each([
  ...['::7f00:1', '::127.0.0.1', '::808:808', '::2', '0:1::1', '200::1', '4000::1', 'a000::1', '3fff::1'],
  ...[
    '100::1',
    '5f00::1',
    '64:ff9b:1::1',
    '64:ff9b::7f00:1',
    '::ffff:7f00:1',
    '::ffff:0:7f00:1',
    '2002:7f00:1::',
  ],
  ...['fc00::1', 'fec0::1', 'ff02::1', '2001:db8::1', '2001::1', '::1', '::'],
])('rejects https://[%s]/, which is not global unicast', (address) => {
  expect(() => checkEndpoint(`https://[${address}]/x`, [])).toThrow('endpoint address is not allowed');
  expect(() => createResolver(new URL(`https://[${address}]/x`), [])).toThrow(AddressRefused);
});

test('rejects any IPv6 address outside 2000::/3, unless it contains a public IPv4 address', () => {
  const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
  const sparse = groups.map((all) => all.map((group, at) => (group % 3 === 0 || at === 7 ? group : 0)));
  fc.assert(
    fc.property(fc.oneof(groups, sparse), (all) => {
      fc.pre(all[0]! >> 13 !== 0b001);
      const address = all.map((group) => group.toString(16)).join(':');
      const head = all.slice(0, 6).join();
      const holds_ipv4 =
        head === [0, 0, 0, 0, 0, 0xffff].join() || head === [0x64, 0xff9b, 0, 0, 0, 0].join();
      fc.pre(!holds_ipv4);
      expect(() => checkEndpoint(`https://[${address}]/x`, [])).toThrow();
    }),
  );
});

test('checks resolved addresses when connecting: public ones only, unless the service is configured', async () => {
  await expect(resolved('https://localhost:1/x', [])).rejects.toThrow(AddressRefused);
  const own = await resolved('https://localhost:1/x', ['https://localhost:1']);
  expect(own.length).toBeGreaterThan(0);
  expect(() => createResolver(new URL('https://10.0.0.1/x'), [])).toThrow(AddressRefused);
  expect(() => createResolver(new URL('https://[::ffff:169.254.169.254]/x'), OWN)).toThrow(AddressRefused);
});
