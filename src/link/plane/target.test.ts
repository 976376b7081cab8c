import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FORBIDDEN_ADDRESSES } from '../../testing/bad-requests.ts';
import { isAllowedAddress, parseTarget, resolveTarget } from './target.ts';

describe('a target', () => {
  test('is https, a host and a port', () => {
    expect(parseTarget('https://node-1.example.org:8443')).toEqual({
      host: 'node-1.example.org',
      port: 8443,
    });
    expect(parseTarget('https://BUILD_box:1')).toEqual({ host: 'build_box', port: 1 });
    expect(parseTarget('https://10.0.0.7:65535')).toEqual({ host: '10.0.0.7', port: 65535 });
    expect(parseTarget('https://[FD00::7]:8081')).toEqual({ host: 'fd00::7', port: 8081 });
    expect(parseTarget('https://xn--mller-kva.example:8081')).toEqual({
      host: 'xn--mller-kva.example',
      port: 8081,
    });
  });

  test.each([
    '',
    'node:8081',
    'http://node:8081',
    'HTTPS://node:8081',
    'https://node',
    'https://node:',
    'https://node:0',
    'https://node:08081',
    'https://node:65536',
    'https://node:123456',
    'https://node:8081/',
    'https://node:8081/path',
    'https://node:8081?q',
    'https://node:8081#f',
    'https://user@node:8081',
    'https://user:secret@node:8081',
    'https://node@169.254.169.254:80',
    'https://node.:8081',
    'https://.node:8081',
    'https://a..b:8081',
    'https://-a:8081',
    'https://a-:8081',
    'https://müller.example:8081',
    'https://node\u3002example:8081',
    'https://①②⑦.0.0.1:8081',
    'https://%6eode:8081',
    'https://no de:8081',
    ' https://node:8081',
    'https://node:8081\n',
    'https://node\\@evil:8081',
    'https://2130706433:8081',
    'https://0x7f.1:8081',
    'https://0x7f000001:8081',
    'https://127.1:8081',
    'https://0177.0.0.1:8081',
    'https://127.0.0.01:8081',
    'https://1.2.3.4.5:8081',
    'https://256.0.0.1:8081',
    'https://a.0x10:8081',
    'https://::1:8081',
    'https://[::1]',
    'https://[::g]:8081',
    'https://[fe80::1%25eth0]:8081',
    'https://[127.0.0.1]:8081',
    `https://${'a'.repeat(64)}:8081`,
    `https://${'a.'.repeat(127)}aa:8081`,
  ])('is not %j', (text) => {
    expect(parseTarget(text)).toBe(null);
  });
});

test('every accepted target is read the same way by the URL standard', () => {
  const parts = fc.constantFrom(
    'a',
    '1',
    '0x7f',
    '127.0.0.1',
    '.',
    '-',
    '_',
    ':',
    '[',
    ']',
    '::1',
    '@',
    '/',
    '%',
    'ä',
  );
  const hosts = fc.oneof(
    fc.array(parts, { minLength: 1, maxLength: 6 }).map((all) => all.join('')),
    fc.ipV4(),
    fc.domain(),
  );
  const ports = fc.oneof(fc.integer({ min: 0, max: 70_000 }).map(String), fc.constantFrom('', '080', '1e3'));
  let taken = 0;
  fc.assert(
    fc.property(hosts, ports, (host, port) => {
      const text = `https://${host}:${port}`;
      const target = parseTarget(text);
      if (target === null) return;
      taken++;
      const url = new URL(text);
      const read = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 443) };
      expect(read).toEqual(target);
      expect([url.username, url.password, url.pathname, url.search, url.hash]).toEqual(['', '', '/', '', '']);
    }),
    { numRuns: 3_000 },
  );
  expect(taken).toBeGreaterThan(100);
});

describe('an address', () => {
  test.each([
    '8.8.8.8',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '127.0.0.1',
    '100.64.0.1',
    '::1',
    'fd00::1',
    '2606:4700::1111',
    '::ffff:10.0.0.1',
    '::ffff:127.0.0.1',
    '64:ff9b::8.8.8.8',
  ])('may be %s', (address) => {
    expect(isAllowedAddress(address)).toBe(true);
  });

  test.each([...FORBIDDEN_ADDRESSES, 'fe80::1%eth0', '::1%lo', 'localhost', ''])('is never %s', (address) => {
    expect(isAllowedAddress(address)).toBe(false);
  });
});

describe('resolving', () => {
  test('returns the allowed addresses', async () => {
    expect(await resolveTarget('127.0.0.1')).toEqual(['127.0.0.1']);
    expect(await resolveTarget('fd00::1')).toEqual(['fd00::1']);
    for (const address of await resolveTarget('localhost')) expect(isAllowedAddress(address)).toBe(true);
  });

  test('rejects other addresses, and reports when there are none', async () => {
    await expect(resolveTarget('169.254.169.254')).rejects.toThrow('grpc_target address is not allowed');
    await expect(resolveTarget('::ffff:a9fe:a9fe')).rejects.toThrow('grpc_target address is not allowed');
    await expect(resolveTarget('does-not-exist.invalid')).rejects.toThrow('failed to connect to remote node');
  });
});
