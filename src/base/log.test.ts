import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { limits } from './limits.ts';
import { openLog, RateLimitedWarning } from './log.ts';

test('escapes control characters in text lines', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-log-'));
  const output = join(folder, 'svc.log');
  const { log } = openLog({ level: 'info', format: 'text', output });
  log.info({ name: 'a\x1b[2J\x9b2J\x9d0;x\x9c\x7f\r\nb' }, 'reported\x1b[2J\x9b2J\nas a line');
  const text = await readFile(output, 'utf8');
  await rm(folder, { recursive: true });
  expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  expect(text.split('\n')).toHaveLength(2);
  expect(text).toContain('reported\\u001b[2J\\u009b2J\\u000aas a line name="a\\u001b[2J\\u009b2J');
});

test('text for a terminal leaves out hashes, stacks, empty fields and repetitions', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-log-'));
  const lines = async (brief: boolean) => {
    const output = join(folder, String(brief));
    const { log } = openLog({ level: 'info', format: 'text', output, brief });
    log.info({ event: 'user_login', user_id: 'usr_1', details: {}, audit_hash: 'abc' }, 'user_login');
    const act = { ip: '::1', workdir: '/w', details: { reason: 'x' }, audit_id: 7, audit_hash: 'abc' };
    log.info({ event: 'agent_started', agent_id: 'agt_1', user_id: 'usr_1', ...act }, 'agent_started');
    log.warn({ event: 'login_failed', user_id: null, ...act }, 'login_failed');
    log.warn({ err: new Error('no answer'), attempt: 2 }, 'trying again');
    return (await readFile(output, 'utf8')).replace(/^\S+ /gm, '');
  };
  const brief = await lines(true);
  const full = await lines(false);
  await rm(folder, { recursive: true });
  expect(brief.split('\n')).toEqual([
    'info  user_login user_id="usr_1"',
    'info  agent_started agent_id="agt_1" user_id="usr_1"',
    'warn  login_failed ip="::1" workdir="/w" details={"reason":"x"}',
    'warn  trying again attempt=2 error="no answer"',
    '',
  ]);
  expect(full).toContain('info  user_login event="user_login" user_id="usr_1" audit_hash="abc"\n');
  expect(full).toContain('ip="::1" workdir="/w" details={"reason":"x"} audit_id=7 audit_hash="abc"\n');
  expect(full).toContain('"stack":');
});

test('a rate-limited warning logs each reason once per period, and counts the rest', () => {
  let now_ms = 0;
  const records: Array<Record<string, unknown>> = [];
  const log = pino({ base: null }, { write: (line: string) => void records.push(JSON.parse(line)) });
  const warning = new RateLimitedWarning(log, { now: () => now_ms } as Clock, 'rejected');
  for (const reason of ['no token', 'no token', 'bad certificate', 'no token']) warning.warn(reason, {});
  expect(records.map(({ reason, suppressed }) => [reason, suppressed])).toEqual([
    ['no token', undefined],
    ['bad certificate', 1],
  ]);

  for (let n = 0; n < 100; n++) warning.warn(`reason ${n}`, {});
  expect(records).toHaveLength(limits.refusal_log_reasons_max);

  now_ms = limits.refusal_log_ms;
  warning.warn('no token', {});
  expect(records.at(-1)).toMatchObject({
    reason: 'no token',
    suppressed: 100 - (limits.refusal_log_reasons_max - 2),
  });
});
