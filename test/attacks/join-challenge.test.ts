/** Before the root user exists, a local program asks for the join link and uses it. */
import { spawnSync } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ROOT, TestPlane } from '../../src/testing/plane.ts';

/** The uid of `nobody` on Linux. */
const STRANGER = 65_534;

let plane: TestPlane;
beforeEach(async () => {
  plane = await TestPlane.prepare();
  await plane.start();
});
afterEach(() => plane.close());

const file = () => join(plane.data_dir, 'join.json');
const challenge = async () => JSON.parse(await readFile(file(), 'utf8'));

async function sendRequest(path: string, body?: unknown): Promise<{ status: number; text: string }> {
  const response = await fetch(plane.url + path, {
    method: 'POST',
    ...(body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  return { status: response.status, text: await response.text() };
}

test('a stranger on loopback cannot create the root user', async () => {
  const { status, text } = await sendRequest('/api/admin/join-challenge');
  const { token, pin, expires_at } = await challenge();
  const { token: join_token = '', pin: given_pin = '' } = JSON.parse(text);
  const joined = await sendRequest('/api/join', {
    ...ROOT,
    username: 'mallory',
    token: join_token,
    pin: given_pin,
  });
  expect(joined).toEqual({ status: 401, text: JSON.stringify({ error: 'invalid join token' }) });
  expect([status, JSON.parse(text)]).toEqual([202, { file: file(), expires_at }]);
  expect(text).not.toContain(token);
  expect(text).not.toContain(pin);
  expect((await stat(file())).mode & 0o777).toBe(0o600);
});

test.runIf(process.getuid?.() === 0)('another user of the machine cannot read the file', async () => {
  const { status, stdout } = spawnSync('cat', [file()], { uid: STRANGER, gid: STRANGER, encoding: 'utf8' });
  expect([status, stdout]).toEqual([1, '']);
});

test('requests from a stranger neither replace nor use up the operator’s link', async () => {
  const before = await challenge();
  for (let i = 0; i < 50; i++) {
    await sendRequest('/api/admin/join-challenge');
    await sendRequest('/api/join', { ...ROOT, token: `guess-${i}`, pin: '00000000' });
  }
  expect(await challenge()).toEqual(before);
  const { status } = await sendRequest('/api/join', { ...ROOT, token: before.token, pin: before.pin });
  expect(status).toBe(201);
});

test('svc join-link shows the link of the file to the user of the service', async () => {
  const { code, stdout } = await plane.cli(['join-link', '--json']);
  expect([code, JSON.parse(stdout)]).toEqual([0, await challenge()]);
});
