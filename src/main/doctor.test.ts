import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ConfigKey } from '../contract/config.ts';
import { loadConfig } from './config.ts';
import { doctor } from './doctor.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'svc-doctor-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function load(values: Partial<Record<ConfigKey, string>>) {
  const flags = new Map(Object.entries(values).map(([key, text]) => [key as ConfigKey, { text, flag: 'f' }]));
  return () => loadConfig({ env: {}, cwd: dir, home: dir, system_file: join(dir, 'none'), flags });
}

async function failing(values: Partial<Record<ConfigKey, string>>): Promise<string[]> {
  const checks = await doctor(load({ 'server.listen': '127.0.0.1:0', data_dir: 'data', ...values }));
  // Disk, git and the kernel's limits are the machine's own.
  const ours = new Set(['configuration', 'data directory', 'listener', 'safe path']);
  return checks
    .filter(({ ok, name }) => !ok && ours.has(name))
    .map(({ name, detail }) => `${name}: ${detail}`);
}

test('a machine that only lacks the data directory is sound', async () => {
  expect(await failing({})).toEqual([]);
});

test('a configuration that cannot be read is one failure', async () => {
  expect(await failing({ 'retention.days': 'x' })).toEqual([
    'configuration: retention.days must be an integer from 1 to 36500 (f)',
  ]);
});

test('what would keep the plane from starting, or from working, is told', async () => {
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
      `safe path: ${join(dir, 'missing')}: ENOENT`,
    ]);
  } finally {
    other.close();
  }
});
