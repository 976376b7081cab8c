import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { readdir, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pino from 'pino';
import { expect, test } from 'vitest';
import { SECRET, TestClock, testFolder, testPlaneTrust } from '../../testing/trusted-node.ts';
import { coversHost, daysLeft, makeCsr, makeKey, svcUris } from './pki.ts';
import { TokenVerifier } from './tokens.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

const pems = ['ca.pem', 'ca-key.pem', 'cert.pem', 'key.pem'];
const readAll = (folder: string, files: string[]) =>
  Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));

test('the first start creates an authority, a certificate and a secret, unreadable for other users', async () => {
  const cert_dir = join(await testFolder(), 'not', 'there', 'yet');
  const plane = await testPlaneTrust({ cert_dir });
  expect((await readdir(cert_dir)).sort()).toEqual([...pems, 'auth_secret.txt', 'auth.json'].sort());
  expect((await stat(cert_dir)).mode & 0o777).toBe(0o700);
  for (const file of await readdir(cert_dir)) {
    expect((await stat(join(cert_dir, file))).mode & 0o777).toBe(0o600);
  }
  expect(plane.origin).toBe('own');
  const { cert, ca } = plane.identity()!;
  expect(svcUris(new X509Certificate(cert).raw)).toEqual(['svc:plane:pln_test']);
  expect(daysLeft(cert, Date.now())).toBeCloseTo(90, 1);
  expect(daysLeft(ca, Date.now())).toBeCloseTo(3650, 1);
  const [secret, rest] = await readAll(cert_dir, ['auth_secret.txt', 'auth.json']);
  const { shared_secret, ...claims } = plane.tokenSettings();
  expect([secret, JSON.parse(rest!)]).toEqual([`${shared_secret}\n`, claims]);
  expect(Buffer.from(shared_secret, 'base64url')).toHaveLength(32);
});

test('a secret in the earlier format is read, and rewritten once', async () => {
  const cert_dir = await testFolder();
  const secret_file = join(cert_dir, 'auth_secret.txt');
  await writeFile(secret_file, `{"shared_secret":"${SECRET}","issuer":"svc","audience":"svc-internal"}\n`);
  const plane = await testPlaneTrust({ cert_dir });
  expect(plane.tokenSettings().shared_secret).toBe(SECRET);
  expect(await readAll(cert_dir, ['auth_secret.txt', 'auth.json'])).toEqual([
    `${SECRET}\n`,
    '{"issuer":"svc","audience":"svc-internal"}\n',
  ]);
  expect((await stat(secret_file)).mode & 0o777).toBe(0o600);
  expect((await testPlaneTrust({ cert_dir })).tokenSettings()).toEqual(plane.tokenSettings());
});

test.each([SECRET, `${SECRET}\r\n`])('a hand-written secret is read as a line (%j)', async (text) => {
  const cert_dir = await testFolder();
  await writeFile(join(cert_dir, 'auth_secret.txt'), text);
  expect((await testPlaneTrust({ cert_dir })).tokenSettings().shared_secret).toBe(SECRET);
});

test('a later start changes nothing', async () => {
  const cert_dir = await testFolder();
  const first = await testPlaneTrust({ cert_dir });
  const before = await readAll(cert_dir, pems);
  const second = await testPlaneTrust({ cert_dir });
  expect(await readAll(cert_dir, pems)).toEqual(before);
  expect(second.tokenSettings()).toEqual(first.tokenSettings());
  const checker = new TokenVerifier({ settings: () => first.tokenSettings(), clock: new TestClock() });
  await checker.verify(await second.token());
});

test('an interrupted first start is completed by the next one, with the same keys', async () => {
  const cert_dir = await testFolder();
  await testPlaneTrust({ cert_dir });
  const [ca, ca_key, , key] = await readAll(cert_dir, pems);
  for (const missing of [['cert.pem'], ['cert.pem', 'ca.pem'], ['cert.pem', 'ca.pem', 'key.pem']]) {
    for (const file of missing) await unlink(join(cert_dir, file));
    const plane = await testPlaneTrust({ cert_dir });
    const now = await readAll(cert_dir, pems);
    expect(now[1]).toBe(ca_key);
    if (!missing.includes('key.pem')) expect(now[3]).toBe(key);
    const root = new X509Certificate(ca!);
    expect(new X509Certificate(plane.identity()!.cert).verify(root.publicKey)).toBe(true);
    expect(new X509Certificate(plane.identity()!.cert).checkIssued(root)).toBe(true);
  }
});

test('the plane’s certificate is renewed with the same key when a third of its lifetime is left', async () => {
  const cert_dir = await testFolder();
  const clock = new TestClock();
  const plane = await testPlaneTrust({ cert_dir, clock });
  const first = plane.identity()!;
  clock.now_ms += 55 * DAY_MS;
  await plane.refresh();
  expect(plane.identity()).toEqual(first);
  clock.now_ms += 7 * DAY_MS;
  await plane.refresh();
  const renewed = plane.identity()!;
  expect(renewed.cert).not.toBe(first.cert);
  expect({ ...renewed, cert: '' }).toEqual({ ...first, cert: '' });
  expect(daysLeft(renewed.cert, clock.now())).toBeCloseTo(90, 1);
  expect(await readFile(join(cert_dir, 'cert.pem'), 'utf8')).toBe(renewed.cert);
});

test('replaces a certificate of another plane in the folder', async () => {
  const cert_dir = await testFolder();
  await testPlaneTrust({ cert_dir, plane_id: 'pln_old' });
  const plane = await testPlaneTrust({ cert_dir });
  expect(svcUris(new X509Certificate(plane.identity()!.cert).raw)).toEqual(['svc:plane:pln_test']);
});

test('ca.pem, cert.pem and key.pem without ca-key.pem belong to the operator and stay unchanged', async () => {
  const cert_dir = await testFolder();
  await testPlaneTrust({ cert_dir });
  await unlink(join(cert_dir, 'ca-key.pem'));
  const files = ['ca.pem', 'cert.pem', 'key.pem'];
  const before = await readAll(cert_dir, files);
  const clock = new TestClock();
  clock.now_ms += 89 * DAY_MS;
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const plane = await testPlaneTrust({ cert_dir, clock, plane_id: 'pln_other', log });
  expect(lines.join()).toContain('cert.pem expires soon');
  await plane.refresh();
  expect(plane.origin).toBe('operator');
  expect(await readAll(cert_dir, files)).toEqual(before);
});

test('rejects files that do not match at the start, and overwrites nothing', async () => {
  const cert_dir = await testFolder();
  await testPlaneTrust({ cert_dir });
  const [ca, ca_key, cert, key] = await readAll(cert_dir, pems);
  const strange = await makeKey();
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rsa = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  const cases: [Record<string, string>, string][] = [
    [{ 'ca.pem': ca!, 'cert.pem': cert! }, 'or be empty'],
    [{ 'cert.pem': cert!, 'key.pem': key! }, 'or be empty'],
    [{ 'ca.pem': ca! }, 'or be empty'],
    [{ 'ca.pem': ca!, 'cert.pem': cert!, 'key.pem': strange }, 'key.pem is not the key of cert.pem'],
    [{ 'ca.pem': 'x', 'cert.pem': cert!, 'key.pem': key! }, 'ca.pem cannot be read'],
    [{ 'ca.pem': ca!, 'ca-key.pem': strange }, 'ca-key.pem is not the key of ca.pem'],
    [{ 'ca.pem': ca!, 'ca-key.pem': ca_key!, 'cert.pem': cert!, 'key.pem': 'x' }, 'key.pem cannot be read'],
    [{ 'ca.pem': ca!, 'ca-key.pem': rsa }, 'ca-key.pem is not an ECDSA P-256 key'],
    [{ 'ca.pem': 'x', 'ca-key.pem': ca_key! }, 'ca.pem cannot be read'],
    [{ 'ca.pem': ca!, 'ca-key.pem': 'x' }, 'ca-key.pem cannot be read'],
    [{ 'auth_secret.txt': '' }, 'auth_secret.txt must have at least 32 bytes'],
    [{ 'auth_secret.txt': `${SECRET}\n${SECRET}\n` }, 'auth_secret.txt must hold one line'],
    [{ 'auth_secret.txt': '{"shared_secret": ' }, 'auth_secret.txt is damaged'],
    [{ 'auth_secret.txt': SECRET, 'auth.json': '[' }, 'auth.json is damaged'],
    [{ 'auth_secret.txt': '{"shared_secret": "short"}' }, 'auth_secret.txt must have at least 32 bytes'],
  ];
  for (const [files, words] of cases) {
    const folder = await testFolder();
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
    const opening = testPlaneTrust({
      cert_dir: folder,
      shared_secret: 'auth_secret.txt' in files ? null : SECRET,
    });
    await expect(opening, words).rejects.toThrow(words);
    expect(await readAll(folder, Object.keys(files))).toEqual(Object.values(files));
  }
});

test('replaces a certificate of a replaced authority', async () => {
  const [cert_dir, other_dir] = [await testFolder(), await testFolder()];
  await testPlaneTrust({ cert_dir });
  const other = await testPlaneTrust({ cert_dir: other_dir });
  for (const file of ['ca.pem', 'ca-key.pem']) {
    await writeFile(join(cert_dir, file), await readFile(join(other_dir, file)));
  }
  const { ca, cert } = (await testPlaneTrust({ cert_dir })).identity()!;
  expect(ca).toBe(other.identity()!.ca);
  expect(new X509Certificate(cert).verify(new X509Certificate(ca).publicKey)).toBe(true);
});

test('uses a configured secret without writing it, and rejects one that is too short', async () => {
  const cert_dir = await testFolder();
  const plane = await testPlaneTrust({ cert_dir, shared_secret: SECRET });
  expect(plane.tokenSettings().shared_secret).toBe(SECRET);
  expect(await readdir(cert_dir)).not.toContain('auth_secret.txt');
  await expect(testPlaneTrust({ shared_secret: 'x'.repeat(31) })).rejects.toThrow('at least 32 bytes');
});

test.each([null, SECRET])('keeps working when files disappear (%s)', async (shared_secret) => {
  const cert_dir = await testFolder();
  const plane = await testPlaneTrust({ cert_dir, shared_secret });
  const before = plane.identity();
  const secret = plane.tokenSettings();
  for (const file of await readdir(cert_dir)) await rm(join(cert_dir, file));
  await plane.refresh();
  expect(plane.identity()).toEqual(before);
  expect(plane.tokenSettings()).toEqual(secret);
  expect(await readdir(cert_dir)).toEqual([]);
});

test('in mode disabled there are tokens, but no certificates', async () => {
  const cert_dir = await testFolder();
  const plane = await testPlaneTrust({ cert_dir, mode: 'disabled' });
  expect(plane.identity()).toBe(null);
  expect(await readdir(cert_dir)).toEqual(['auth.json', 'auth_secret.txt']);
  const checker = new TokenVerifier({ settings: () => plane.tokenSettings(), clock: new TestClock() });
  await checker.verify(await plane.token());
});

test('the plane’s certificate covers loopback and its listener, and is reissued when that changes', async () => {
  const cert_dir = await testFolder();
  const names = ['localhost', '127.0.0.1', '::1', '10.0.0.7'];
  const first = (await testPlaneTrust({ cert_dir, names: ['10.0.0.7'] })).identity()!;
  const leaf = new X509Certificate(first.cert);
  expect(names.filter((name) => !coversHost(leaf, name))).toEqual([]);
  expect((await testPlaneTrust({ cert_dir, names: ['10.0.0.7'] })).identity()).toEqual(first);
  const second = (await testPlaneTrust({ cert_dir, names: ['plane.example'] })).identity()!;
  expect(coversHost(new X509Certificate(second.cert), 'plane.example')).toBe(true);
  expect({ ...second, cert: '' }).toEqual({ ...first, cert: '' });
});

test('a node’s certificate covers loopback too, for its agents', async () => {
  const plane = await testPlaneTrust();
  const csr = await makeCsr(await makeKey(), 'node');
  const leaf = new X509Certificate(await plane.issue(csr, 'web-1', ['web-1.example']));
  for (const name of ['web-1.example', 'localhost', '127.0.0.1', '::1'])
    expect(coversHost(leaf, name)).toBe(true);
});

test('calls the listener once a changed certificate is available', async () => {
  const clock = new TestClock();
  const plane = await testPlaneTrust({ clock });
  const announced: string[] = [];
  plane.onChange(() => announced.push(plane.identity()!.cert));
  await plane.refresh();
  clock.now_ms += 62 * DAY_MS;
  await plane.refresh();
  expect(announced).toEqual([plane.identity()!.cert]);
});

test('a secret that changes while the files are read is applied by the next check', async () => {
  const cert_dir = await testFolder();
  const secretOf = (letter: string) => letter.repeat(43);
  const put = (letter: string) => writeFileSync(join(cert_dir, 'auth_secret.txt'), secretOf(letter));
  let onNow = () => {};
  // The plane asks for the time before and after it reads the files.
  class Clock extends TestClock {
    override now() {
      onNow();
      return super.now();
    }
  }
  const plane = await testPlaneTrust({ cert_dir, clock: new Clock() });
  put('a');
  const letters = [...'bcdefgh'];
  let last = 'a';
  onNow = () => {
    last = letters.shift()!;
    put(last);
  };
  await plane.refresh();
  onNow = () => {};
  await plane.refresh();
  expect(plane.tokenSettings().shared_secret).toBe(secretOf(last));
});
