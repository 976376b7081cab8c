import { expect, it } from 'vitest';
import { type Place, unavailableReason } from './availability.ts';

const at = (url: string, supported = true) => {
  const { origin, hostname } = new URL(url);
  return { origin, hostname, supported };
};
const local: Place = { rp_id: 'localhost', origin: 'http://localhost:8080', reason: null };
const named: Place = { rp_id: 'svc.example', origin: 'https://svc.example', reason: null };

it('returns null at the origin of the passkeys', () => {
  expect(unavailableReason(local, at('http://localhost:8080'))).toBe(null);
  expect(unavailableReason(named, at('https://svc.example'))).toBe(null);
});

it('returns the right origin for a loopback address and for another host name', () => {
  for (const url of ['http://127.0.0.1:8080', 'http://[::1]:8080'])
    expect(unavailableReason(local, at(url))?.origin).toBe(local.origin);
  for (const url of ['http://localhost:8080', 'https://10.0.0.5'])
    expect(unavailableReason(named, at(url))?.origin).toBe(named.origin);
});

it('mentions the setting for a network address, and returns no origin', () => {
  const found = unavailableReason(local, at('http://192.168.1.5:8080', false));
  expect(found?.text).toContain('web.rp_origin');
  expect(found).not.toHaveProperty('origin');
});

it('returns the reason of the service, or that the browser does not support passkeys', () => {
  const none: Place = { rp_id: null, origin: null, reason: 'passkeys need https' };
  expect(unavailableReason(none, at('http://svc.example'))?.text).toContain('passkeys need https');
  expect(unavailableReason(named, at('https://svc.example', false))?.text).toBe(
    'This browser does not support passkeys.',
  );
});
