import { expect, it } from 'vitest';
import { hindrance, type Place } from './place.ts';

const at = (url: string, known = true) => {
  const { origin, hostname } = new URL(url);
  return { origin, hostname, known };
};
const local: Place = { rp_id: 'localhost', origin: 'http://localhost:8080', reason: null };
const named: Place = { rp_id: 'svc.example', origin: 'https://svc.example', reason: null };

it('is none on the page that passkeys are for', () => {
  expect(hindrance(local, at('http://localhost:8080'))).toBe(null);
  expect(hindrance(named, at('https://svc.example'))).toBe(null);
});

it('of an address of this machine, and of another name, is where to go instead', () => {
  for (const url of ['http://127.0.0.1:8080', 'http://[::1]:8080'])
    expect(hindrance(local, at(url))?.origin).toBe(local.origin);
  for (const url of ['http://localhost:8080', 'https://10.0.0.5'])
    expect(hindrance(named, at(url))?.origin).toBe(named.origin);
});

it('of an address in the network is what to set, not the name that works on another machine', () => {
  const found = hindrance(local, at('http://192.168.1.5:8080', false));
  expect(found?.words).toContain('web.rp_origin');
  expect(found).not.toHaveProperty('origin');
});

it('is what the service says, or that the browser has none', () => {
  const none: Place = { rp_id: null, origin: null, reason: 'passkeys need https' };
  expect(hindrance(none, at('http://svc.example'))?.words).toContain('passkeys need https');
  expect(hindrance(named, at('https://svc.example', false))?.words).toBe('This browser has no passkeys.');
});
