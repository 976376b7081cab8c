import { expect, it } from 'vitest';
import { networkPrefix } from './network.ts';

it.each([
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::'],
  ['2001:db8:1:2::1', '2001:db8:1:2::'],
  ['fe80::1%eth0', 'fe80::'],
  ['127.0.0.1', 'loopback'],
  ['127.254.3.9', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['::ffff:7f01:203', 'loopback'],
  ['::1', 'loopback'],
  ['garbage', 'unknown'],
  [null, 'unknown'],
])('counts %s as %s', (ip, network) => {
  expect(networkPrefix(ip)).toBe(network);
});
