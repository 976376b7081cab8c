import { expect, test } from 'vitest';
import type { Logger } from '../../base/log.ts';
import { Problem } from '../../core/problem.ts';
import { Server } from './server.ts';

/** A server whose log lines are collected. */
function observed(url = 'postgres://a,b:6000/db') {
  const lines: [string, object, string][] = [];
  const line = (level: string) => (fields: object, message: string) => lines.push([level, fields, message]);
  const log = { error: line('error'), warn: line('warn'), info: line('info') } as unknown as Logger;
  return { server: new Server({ url, log }), lines };
}

const refused = () =>
  Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
const rejected = (code: string) => Object.assign(new Error('rejected'), { code });

test('logs one line when an outage begins, and one with its duration when it ends', () => {
  const { server, lines } = observed();
  server.answered();
  expect(server.up).toBe(true);
  for (let i = 0; i < 3; i++) expect(server.failed(refused())).toBe(true);
  expect(server.up).toBe(false);
  server.answered();
  server.answered();
  expect(server.up).toBe(true);
  expect(lines).toEqual([
    ['warn', { reason: 'connect ECONNREFUSED 127.0.0.1:5432' }, 'PostgreSQL does not answer'],
    ['info', { outage_ms: expect.any(Number) }, 'PostgreSQL answers again'],
  ]);
});

test.each([
  ['a rejected password', rejected('28P01'), true],
  ['too many connections', rejected('53300'), true],
  ['a lost claim', new Problem('unavailable', 'claim_lost', 'lost'), true],
  ['a shutdown', rejected('57P01'), false],
  ['a start', rejected('57P03'), false],
  ['a standby', rejected('55000'), false],
  ['no answer in time', new Error('timeout expired'), false],
])('after %s, knows whether the server answers', (_, error, up) => {
  const { server } = observed();
  expect(server.failed(error)).toBe(!up);
  expect(server.up).toBe(up);
});

test('continues with the next host after a failure, once for each host', () => {
  const { server } = observed();
  const [a, b] = server.hosts;
  expect(server.host).toBe(a);
  for (let i = 0; i < 3; i++) server.failed(refused(), a);
  expect(server.host).toBe(b);
  expect(server.hosts).toEqual([b, a]);
  server.failed(rejected('53300'), b);
  expect(server.host).toBe(b);
  server.failed(refused(), b);
  expect(server.host).toBe(a);
  server.found(b!);
  expect(server.host).toBe(b);
});

test('logs a full disk once, although each write fails', () => {
  const { server, lines } = observed();
  for (let i = 0; i < 3; i++) server.isFull(rejected('53100'));
  expect(lines).toEqual([
    ['error', { reason: 'rejected' }, 'PostgreSQL has no disk space left: make room on its machine'],
  ]);
  expect(server.up).toBe(true);
});
