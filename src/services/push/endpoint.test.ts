import type { LookupAddress } from 'node:dns';
import { expect, test } from 'vitest';
import { AddressRefused, checkEndpoint, resolverOf } from './endpoint.ts';

const OWN = ['http://127.0.0.1:9000', 'https://push.lan:8443', 'https://169.254.169.254'];

function resolved(url: string, own: readonly string[]): Promise<string[]> {
  const resolve = resolverOf(new URL(url), own);
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
])('%s is taken as %s', (asked, taken) => {
  expect(checkEndpoint(asked, OWN)).toBe(taken);
});

test.each(['http://127.0.0.1:9001/x', 'http://push.lan:8443/x', 'https://169.254.169.254/x'])(
  '%s is not, though others like it are one’s own',
  (asked) => {
    expect(() => checkEndpoint(asked, OWN)).toThrow();
  },
);

test('what a name leads to is looked at when it is dialled: of the public internet, unless it is one’s own', async () => {
  await expect(resolved('https://localhost:1/x', [])).rejects.toThrow(AddressRefused);
  const own = await resolved('https://localhost:1/x', ['https://localhost:1']);
  expect(own.length).toBeGreaterThan(0);
  expect(() => resolverOf(new URL('https://10.0.0.1/x'), [])).toThrow(AddressRefused);
  expect(() => resolverOf(new URL('https://[::ffff:169.254.169.254]/x'), OWN)).toThrow(AddressRefused);
});
