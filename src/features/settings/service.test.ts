import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { Config, ConfigEntry, ConfigKey, ConfigValues } from '../../core/config.ts';
import { configKeys } from '../../core/config.ts';
import type { Store } from '../../store/store.ts';
import { signIn, signOut } from '../../testing/sign-in.ts';
import { openTestStore } from '../../testing/test-store.ts';
import type { Caller } from '../accounts/rules.ts';
import { type LiveSettings, openSettings } from './service.ts';

const root: Caller = {
  user_id: 'usr_r',
  username: 'r',
  role: 'root',
  token_id: 'tok_r',
  grant: null,
  ip: '127.0.0.1',
};

let dir: string;
let store: Store;
let audited: unknown[];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'svc-settings-'));
  store = await openTestStore(dir);
  await signIn(store, root);
  audited = [];
});
afterEach(async () => {
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

function configWith(entries: Partial<Record<ConfigKey, ConfigEntry>>): Config {
  const entry = <K extends ConfigKey>(key: K) =>
    (entries[key] ?? { value: configKeys[key].default, origin: 'default', source: null }) as ConfigEntry<
      ConfigValues[K]
    >;
  return { entry, get: (key) => entry(key).value, file: null, warnings: [] };
}

function open(entries: Partial<Record<ConfigKey, ConfigEntry>> = {}): Promise<LiveSettings> {
  return openSettings({
    config: configWith(entries),
    store,
    audit: { record: async (tx, entry) => tx.afterCommit(() => void audited.push(entry)) },
    log: silentLog,
  });
}

test('a live change overrides file and default, notifies listeners, is audited, and survives a restart', async () => {
  const settings = await open({ 'retention.days': { value: 7, origin: 'file', source: 'c.toml:1' } });
  const notified: number[] = [];
  const stop = settings.onChange('retention.days', (days) => notified.push(days));
  expect(settings.get('retention.days')).toBe(7);
  const list = await settings.change(root, { 'retention.days': 3 });
  expect(list.find(({ key }) => key === 'retention.days')).toMatchObject({
    value: 3,
    origin: 'live',
    source: null,
    live: true,
  });
  expect(notified).toEqual([3]);
  expect(audited).toEqual([
    {
      event: 'config_changed',
      user_id: 'usr_r',
      ip: '127.0.0.1',
      details: { key: 'retention.days', from: 7, to: 3 },
    },
  ]);
  const again = await open();
  expect(again.get('retention.days')).toBe(3);
  expect(again.origin('retention.days')).toBe('live');

  stop();
  await settings.change(root, { 'retention.days': null });
  expect(settings.get('retention.days')).toBe(7);
  expect(settings.origin('retention.days')).toBe('file');
  expect(notified).toEqual([3]);
  expect((await open()).get('retention.days')).toBe(30);
});

test('a value from a flag or the environment cannot be changed, and overrides a stored one', async () => {
  await (await open()).change(root, { 'auth.min_password_length': 20 });
  const settings = await open({
    'auth.min_password_length': { value: 14, origin: 'env', source: 'SVC_AUTH_MIN_PASSWORD_LENGTH' },
  });
  expect(settings.get('auth.min_password_length')).toBe(14);
  await expect(settings.change(root, { 'auth.min_password_length': 16 })).rejects.toMatchObject({
    kind: 'conflict',
    message: 'auth.min_password_length is fixed by SVC_AUTH_MIN_PASSWORD_LENGTH',
  });
});

test.each([
  [{ 'server.listen': '127.0.0.1:1' }, 'server.listen cannot be changed while the service runs'],
  [{ nope: 1 }, 'nope is not a known setting'],
  [{ 'retention.days': '3' }, 'retention.days must be an integer from 1 to 36500'],
  [{ safe_paths: ['relative'] }, 'safe_paths[0] must be an absolute path'],
  [{ 'auth.require_special_chars': 'yes' }, 'auth.require_special_chars must be true or false'],
])('rejects %j', async (changes, message) => {
  const settings = await open();
  await expect(settings.change(root, changes)).rejects.toMatchObject({ kind: 'invalid', message });
});

test('applies all changes or none', async () => {
  const settings = await open();
  await expect(
    settings.change(root, { 'retention.days': 3, 'retention.bytes_per_agent': 0 }),
  ).rejects.toThrow('retention.bytes_per_agent must be');
  expect(settings.get('retention.days')).toBe(30);
  expect(audited).toEqual([]);
});

test('stores paths normalized, so that they can be compared', async () => {
  const settings = await open();
  const written = ['/work//inner/', '/work/./x/../y', '/..', '/'];
  await settings.change(root, { safe_paths: written, 'worktree.default_root': '/trees/' });
  expect(settings.get('safe_paths')).toEqual(['/work/inner', '/work/y', '/', '/']);
  expect(settings.get('worktree.default_root')).toBe('/trees');
});

test('allows folders one after another, each once', async () => {
  const settings = await open();
  const before = settings.get('safe_paths');
  const [first, second] = await Promise.all([
    settings.allowFolder(root, 'safe_paths', '/work/a/'),
    settings.allowFolder({ ...root, user_id: 'usr_2' }, 'safe_paths', '/work/b'),
  ]);
  expect([first, second]).toEqual([
    [...before, '/work/a'],
    [...before, '/work/a', '/work/b'],
  ]);
  expect(await settings.allowFolder(root, 'safe_paths', '/work/a')).toEqual(second);
  expect(audited).toHaveLength(2);
  await expect(settings.allowFolder(root, 'safe_paths', 'work')).rejects.toMatchObject({
    message: 'safe_paths[0] must be an absolute path',
  });
  expect((await open()).get('safe_paths')).toEqual(second);
});

test('rejects changes of a caller whose token was revoked after the request had begun', async () => {
  const settings = await open();
  await settings.change(root, { 'retention.days': 3 });
  await signOut(store, root);
  await expect(settings.change(root, { 'retention.days': 4 })).rejects.toThrow('invalid token');
  await expect(settings.allowFolder(root, 'safe_paths', '/work/a')).rejects.toThrow('invalid token');
  expect(settings.get('retention.days')).toBe(3);
  expect(audited).toHaveLength(1);
});

test('masks secrets in the list', async () => {
  const settings = await open({
    'internal_grpc.auth.shared_secret': { value: 'hush', origin: 'file', source: 'c.toml:1' },
  });
  expect(JSON.stringify(settings.list())).not.toContain('hush');
  const found = settings.list().find(({ key }) => key === 'internal_grpc.auth.shared_secret');
  expect(found).toMatchObject({ value: '********', live: false });
});

test('ignores a stored value that is no longer valid', async () => {
  await store.write((tx) =>
    tx.run(tx.sql.insertInto('settings').values({ key: 'retention.days', value: '-1' })),
  );
  expect((await open()).get('retention.days')).toBe(30);
});
