import { expect, it } from 'vitest';
import { type ConfigKey, type ConfigValues, configKeys } from '../../core/config.ts';
import { resolveRelyingParty } from './relying-party.ts';

const resolve = (set: Partial<ConfigValues>, url = 'http://127.0.0.1:8080') =>
  resolveRelyingParty(
    { get: <K extends ConfigKey>(key: K) => (set[key] ?? configKeys[key].default) as ConfigValues[K] },
    url,
  );
const of = (...args: Parameters<typeof resolve>) => {
  const { party, reason } = resolve(...args);
  return party ? [party.id, party.origin] : reason;
};

it('defaults to localhost, with the scheme and the port of the listener', () => {
  expect(of({})).toEqual(['localhost', 'http://localhost:8080']);
  expect(of({ 'server.listen': '[::1]:9000' }, 'http://[::1]:9000')).toEqual([
    'localhost',
    'http://localhost:9000',
  ]);
  expect(of({ 'server.listen': '0.0.0.0:443' }, 'https://127.0.0.1:443')).toEqual([
    'localhost',
    'https://localhost',
  ]);
  expect(resolve({ 'web.rp_name': 'Our agents' }).party?.name).toBe('Our agents');
});

it('is web.rp_origin, for its host or a parent domain', () => {
  const rp_origin = 'https://svc.example.com';
  expect(of({ 'web.rp_origin': rp_origin })).toEqual(['svc.example.com', rp_origin]);
  expect(of({ 'web.rp_origin': rp_origin, 'web.rp_id': 'Example.com' })).toEqual(['example.com', rp_origin]);
  expect(of({ 'web.rp_origin': 'https://svc.example.com:8443' })).toEqual([
    'svc.example.com',
    'https://svc.example.com:8443',
  ]);
});

it.each([
  [{ 'web.rp_origin': 'https://10.0.0.5' }, 'passkeys need a host name: web.rp_origin has an IP address'],
  [{ 'web.rp_origin': 'https://[fd00::5]' }, 'passkeys need a host name: web.rp_origin has an IP address'],
  [{ 'web.rp_origin': 'http://svc.example.com' }, 'passkeys need https: web.rp_origin has http'],
  [{ 'server.listen': '10.0.0.5:8080' }, 'passkeys need a host name and https: web.rp_origin is not set'],
  [{ 'web.rp_id': 'svc.example.com' }, 'web.rp_id needs web.rp_origin'],
  [
    { 'web.rp_origin': 'https://svc.example.com', 'web.rp_id': 'ample.com' },
    'web.rp_id must be the host of web.rp_origin, or a parent domain',
  ],
  [
    { 'web.rp_origin': 'https://example.com', 'web.rp_id': 'svc.example.com' },
    'web.rp_id must be the host of web.rp_origin, or a parent domain',
  ],
] as [Partial<ConfigValues>, string][])('does not exist for %o: %s', (set, reason) => {
  expect(of(set)).toBe(reason);
});
