import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { Store } from '../../store/store.ts';
import { outcome, TestClock } from '../../testing/accounts.ts';
import { openTestStore } from '../../testing/test-store.ts';
import type { Caller } from '../accounts/rules.ts';
import { Audit } from '../audit/service.ts';
import { Bootstrap } from './bootstrap.ts';
import { limits } from './limits.ts';

const root: Caller = {
  user_id: 'usr_1',
  username: 'root',
  role: 'root',
  token_id: 'tok_1',
  grant: null,
  ip: null,
};

let folder: string;
let store: Store;
let clock: TestClock;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-bootstrap-'));
  store = await openTestStore(folder);
  clock = new TestClock();
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

function open(configured: string | null = null, key = 7): Bootstrap {
  const audit = new Audit({ store, clock, log: silentLog });
  return new Bootstrap({ store, clock, audit, key: new Uint8Array(32).fill(key), configured });
}

async function tokens(bootstrap: Bootstrap, node_id: string): Promise<string[]> {
  return (await bootstrap.usable(node_id)).map(({ token }) => token);
}

test('a token stays the same until it is used, even after a restart', async () => {
  const bootstrap = open();
  expect(await bootstrap.usable('a')).toEqual([]);
  const [first, again] = await Promise.all([bootstrap.show(root), bootstrap.show(root)]);
  expect(first.token).toMatch(/^[\w-]{43}$/);
  expect(again).toEqual(first);
  expect(await open().show(root)).toEqual(first);
  expect(Date.parse(first.expires_at!)).toBe(clock.now() + 60 * 60_000);

  const [usable] = await bootstrap.usable('a');
  expect(usable!.token).toBe(first.token);
  expect(await bootstrap.spend(usable!.id, 'a')).toBe(true);
  expect((await bootstrap.show(root)).token).not.toBe(first.token);
});

test('one token lets one node join, which may try again until the hour is over', async () => {
  const bootstrap = open();
  const { token } = await bootstrap.show(root);
  const { id } = (await bootstrap.usable('a'))[0]!;
  expect(await bootstrap.spend(id, 'a')).toBe(true);
  const spent = await Promise.all(['b', 'a', 'c'].map((node_id) => bootstrap.spend(id, node_id)));
  expect(spent).toEqual([false, true, false]);
  expect(await tokens(bootstrap, 'a')).toEqual([token]);
  expect(await tokens(bootstrap, 'b')).toEqual([]);
  clock.advance(limits.bootstrap_token_ms);
  expect(await tokens(bootstrap, 'a')).toEqual([]);
  expect(await bootstrap.spend(id, 'a')).toBe(false);
});

test('shortly before its end a new one is shown, and the old one is still valid', async () => {
  const bootstrap = open();
  const old = await bootstrap.show(root);
  clock.advance(limits.bootstrap_token_ms - limits.bootstrap_token_spare_ms);
  const fresh = await bootstrap.show(root);
  expect(fresh.token).not.toBe(old.token);
  expect(await tokens(bootstrap, 'a')).toEqual([fresh.token, old.token]);
  clock.advance(limits.bootstrap_token_spare_ms);
  expect(await tokens(bootstrap, 'a')).toEqual([fresh.token]);
});

test('rotating revokes every earlier token, even a used one', async () => {
  const bootstrap = open();
  const { token } = await bootstrap.show(root);
  const { id } = (await bootstrap.usable('a'))[0]!;
  await bootstrap.spend(id, 'a');
  const fresh = await bootstrap.rotate(root);
  expect(fresh.token).not.toBe(token);
  expect(await tokens(bootstrap, 'a')).toEqual([fresh.token]);
  expect(await bootstrap.spend(id, 'a')).toBe(false);
});

test('the configured token is valid for any number of nodes and does not expire', async () => {
  const bootstrap = open('configured-token-1');
  expect(await bootstrap.show(root)).toMatchObject({ token: 'configured-token-1', expires_at: null });
  clock.advance(limits.bootstrap_token_ms * 100);
  expect(await tokens(bootstrap, 'a')).toEqual(['configured-token-1']);
  expect([await bootstrap.spend(null, 'a'), await bootstrap.spend(null, 'b')]).toEqual([true, true]);
  expect(await outcome(bootstrap.rotate(root))).toBe('bootstrap token is set in the configuration');
  expect(await open().spend(null, 'a')).toBe(false);
});

test('the database alone reveals no token, and showing one is audited without it', async () => {
  const { token } = await open().show(root);
  expect((await open(null, 8).show(root)).token).not.toBe(token);
  await open().rotate(root);
  const all = await store.read(async (reader) =>
    JSON.stringify([
      await reader.all(reader.sql.selectFrom('audit').selectAll()),
      await reader.all(reader.sql.selectFrom('bootstrap_tokens').selectAll()),
    ]),
  );
  expect(all).toContain('bootstrap_token_shown');
  expect(all).toContain('bootstrap_token_rotated');
  expect(all).not.toContain(token);
});

test('expired tokens are deleted from the database', async () => {
  const bootstrap = open();
  for (let i = 0; i < 5; i++) {
    await bootstrap.show(root);
    clock.advance(limits.bootstrap_token_ms);
  }
  const rows = await store.read((reader) =>
    reader.all(reader.sql.selectFrom('bootstrap_tokens').select('id')),
  );
  expect(rows).toHaveLength(1);
});

test('the TOML is a valid configuration, whatever characters the token contains', async () => {
  const odd = 'quote " backslash \\ end';
  const { toml } = await open(odd).show(root);
  expect(parse(toml)).toEqual({
    server: { role: 'node', node_id: 'CHANGE-ME' },
    worktree: { default_root: '~/svc-worktrees' },
    internal_grpc: { enabled: true, listen: '0.0.0.0:8081', bootstrap: { token: odd } },
  });
});
