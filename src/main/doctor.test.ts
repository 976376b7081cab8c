import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ConfigKey } from '../core/config.ts';
import { makeKey, makeSelfSigned } from '../link/trust/pki.ts';
import { openFakeHttp } from '../testing/http.ts';
import { TestAuthority } from '../testing/planes.ts';
import { loadConfig } from './config.ts';
import { doctor } from './doctor.ts';
import { lockDataDir } from './lock.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'svc-doctor-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function load(values: Partial<Record<ConfigKey, string>>) {
  const flags = new Map(Object.entries(values).map(([key, text]) => [key as ConfigKey, { text, flag: 'f' }]));
  return () => loadConfig({ env: {}, cwd: dir, home: dir, system_file: join(dir, 'none'), flags });
}

/** Hides other software on the machine that runs the test. */
const env = { PATH: '/usr/bin:/bin' };

async function failing(values: Partial<Record<ConfigKey, string>>): Promise<string[]> {
  const checks = await doctor(load({ 'server.listen': '127.0.0.1:0', data_dir: 'data', ...values }), env);
  // Disk, git and kernel limits depend on the machine.
  const ours = new Set([
    'configuration',
    'data directory',
    'listener',
    'internal listener',
    'cluster listener',
    'safe path',
    'certificates',
    'shared secret',
    'bootstrap token',
  ]);
  return checks
    .filter(({ ok, name }) => !ok && ours.has(name))
    .map(({ name, detail }) => `${name}: ${detail}`);
}

test('passes on a machine that only lacks the data directory', async () => {
  expect(await failing({})).toEqual([]);
});

test('lists installed presets, without failing for missing ones', async () => {
  const checks = await doctor(load({ 'server.listen': '127.0.0.1:0', data_dir: 'data' }), env);
  const presets = checks.filter(({ name }) => name.startsWith('preset'));
  expect(presets[0]).toMatchObject({
    name: 'preset demo',
    detail: expect.stringMatching(/^\S+ at \/.*\/svc$/),
  });
  expect(presets.filter(({ ok }) => !ok)).toEqual([]);
  const nobody = await doctor(load({ data_dir: 'data', 'agents.run_as': 'no-such-user' }), env);
  expect(nobody.filter(({ name }) => name.startsWith('preset'))).toEqual([]);
});

test('checks nothing that only agents need on a plane that runs none itself', async () => {
  const values = {
    'server.local_node': 'false',
    'internal_grpc.enabled': 'true',
    'internal_grpc.listen': '127.0.0.1:0',
    'agents.sandbox': 'bwrap',
    'agents.run_as': 'no-such-user',
    safe_paths: join(dir, 'missing'),
  };
  expect(await failing(values)).toEqual([]);
  const checks = await doctor(load({ 'server.listen': '127.0.0.1:0', data_dir: 'data', ...values }), env);
  const names = checks.map(({ name }) => name);
  for (const name of ['git', 'agents.sandbox', 'agents.run_as', 'safe path', 'inotify', 'presets'])
    expect(names).not.toContain(name);
});

test('reports one failure for an unreadable configuration', async () => {
  expect(await failing({ 'retention.days': 'x' })).toEqual([
    'configuration: retention.days must be an integer from 1 to 36500 (f)',
  ]);
});

test('reports everything that would stop the plane from starting or working', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  try {
    const listen = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    mkdirSync(join(dir, 'data'), { mode: 0o755 });
    const who = process.platform === 'linux' ? `, used by pid ${process.pid} (node)` : '';
    const values = { 'server.listen': listen, safe_paths: 'missing', 'server.tls.cert': 'c' };
    expect(await failing(values)).toEqual([
      'configuration: server.tls.key is missing: server.tls needs both cert and key',
      `data directory: ${join(dir, 'data')} is open to other users`,
      `listener: ${listen}: EADDRINUSE${who}`,
      `safe path: ${join(dir, 'missing')} does not exist`,
    ]);
  } finally {
    other.close();
  }
});

test('finds a plane ready whose certificate is for a name', async () => {
  const { cert, key } = await (await TestAuthority.create()).plane('svc.example.com');
  const plane = await openFakeHttp({}, { tls: { cert, key } });
  mkdirSync(join(dir, 'data'), { mode: 0o700 });
  const lock = lockDataDir(join(dir, 'data'), 'now');
  const planeCheck = async () => {
    const checks = await doctor(load({ data_dir: 'data' }), env);
    return checks.find(({ name }) => name === 'plane');
  };
  try {
    lock.certified(cert);
    lock.listening(plane.url);
    expect(await planeCheck()).toMatchObject({ ok: true, detail: expect.stringContaining(plane.url) });
    lock.certified((await (await TestAuthority.create()).plane('other')).cert);
    expect(await planeCheck()).toMatchObject({ ok: false });
  } finally {
    lock.release();
    await plane.drain();
  }
});

const node: Partial<Record<ConfigKey, string>> = {
  'server.role': 'node',
  'server.node_id': 'far',
  'internal_grpc.enabled': 'true',
  'internal_grpc.listen': '127.0.0.1:0',
  'internal_grpc.bootstrap.token': 'a token that is long enough',
};

test('checks only the listeners that the role opens', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  try {
    const listen = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    expect(await failing({ ...node, 'server.listen': listen })).toEqual([]);
    const who = process.platform === 'linux' ? `, used by pid ${process.pid} (node)` : '';
    const taken = [`internal listener: ${listen}: EADDRINUSE${who}`];
    expect(await failing({ ...node, 'internal_grpc.listen': listen })).toEqual(taken);
    expect(await failing({ 'internal_grpc.listen': listen })).toEqual([]);
    expect(await failing({ 'internal_grpc.enabled': 'true', 'internal_grpc.listen': listen })).toEqual(taken);
    const member = {
      'server.local_node': 'false',
      'internal_grpc.enabled': 'true',
      'internal_grpc.listen': listen,
      'database.url': 'postgres://127.0.0.1:1/svc?sslmode=disable',
    };
    expect(await failing({ ...member, 'cluster.listen': '127.0.0.1:0' })).toEqual([]);
    expect(await failing({ ...member, 'cluster.listen': listen })).toEqual([
      `cluster listener: ${listen}: EADDRINUSE${who}`,
    ]);
  } finally {
    other.close();
  }
});

test('reports what prevents a node from being linked', async () => {
  expect(await failing({ ...node, 'internal_grpc.bootstrap.token': '' })).toEqual([
    'certificates: none, and no bootstrap token to get one with',
  ]);
  expect(
    await failing({
      ...node,
      'internal_grpc.bootstrap.token': 'short',
      'internal_grpc.auth.shared_secret': 'short too',
    }),
  ).toEqual([
    'shared secret: internal_grpc.auth.shared_secret must have at least 32 bytes',
    'bootstrap token: internal_grpc.bootstrap.token must have at least 16 characters',
  ]);
});

test('reports certificates that have expired or do not match', async () => {
  const cert_dir = join(dir, 'certs');
  mkdirSync(cert_dir);
  const write = (file: string, text: string) => writeFileSync(join(cert_dir, file), text);
  const values = { ...node, 'internal_grpc.security.cert_dir': cert_dir };
  const day_ms = 24 * 60 * 60 * 1000;
  const key = await makeKey();
  write('key.pem', key);
  write('cert.pem', await makeSelfSigned(key, 'far', Date.now()));
  expect(await failing(values)).toEqual([]);
  write('cert.pem', await makeSelfSigned(key, 'far', Date.now() - 11 * 365 * day_ms));
  expect(await failing(values)).toEqual([`certificates: ${cert_dir}: cert.pem has expired`]);
  write('key.pem', await makeKey());
  expect(await failing(values)).toEqual([`certificates: ${cert_dir}: key.pem is not the key of cert.pem`]);
});
