import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { Feed } from '../../events/feed.ts';
import { IdempotencyKeys } from '../../server/idempotency.ts';
import type { Store } from '../../store/store.ts';
import { addAgent } from '../../store/testing.ts';
import { outcome, TestClock } from '../../testing/accounts.ts';
import { FakeLinks } from '../../testing/nodes.ts';
import { openTestStore } from '../../testing/test-store.ts';
import type { Caller } from '../accounts/rules.ts';
import { Audit } from '../audit/service.ts';
import { findNode } from './queries.ts';
import type { HealthReport, NodeFolders, NodeRecord } from './rules.ts';
import { type RegisterNode, Registry } from './service.ts';

const FOLDERS = { worktree_root: '/data/worktrees', safe_paths: ['/data/worktrees'], repo_roots: ['/code'] };
const root: Caller = {
  user_id: 'usr_1',
  username: 'root',
  role: 'root',
  token_id: 'tok_1',
  grant: null,
  ip: '::1',
};
const box: RegisterNode = {
  id: 'box',
  name: 'The box',
  grpc_target: 'https://box.example:8081',
  tls_server_name: null,
  default_worktree_root: null,
};

let folder: string;
let store: Store;
let feed: Feed;
let clock: TestClock;
let links: FakeLinks;
let registry: Registry;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-nodes-'));
  store = await openTestStore(folder);
  clock = new TestClock();
  feed = new Feed({ store, clock });
  links = new FakeLinks();
  registry = open(links);
  await registry.open();
});
afterEach(async () => {
  feed.close();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

function open(with_links: FakeLinks | null, folders: NodeFolders | null = FOLDERS): Registry {
  const audit = new Audit({ store, clock, log: silentLog });
  return new Registry({
    store,
    clock,
    audit,
    feed,
    idempotency: openKeys(),
    links: with_links,
    folders: () => folders,
    forgetAgents: async () => [],
  });
}

function openKeys(): IdempotencyKeys {
  return new IdempotencyKeys({ store, clock, key: new Uint8Array(32) });
}

async function bind(node_id: string): Promise<void> {
  const num = await addAgent(store, `agt_${node_id}`);
  await store.write(async (tx) => {
    await tx.run(tx.sql.updateTable('agents').set({ node_id }).where('num', '=', num));
  });
}

function audited(): Promise<{ event: string; details: Record<string, unknown> }[]> {
  return store.read(async (reader) =>
    (await reader.all(reader.sql.selectFrom('audit').select(['event', 'details']).orderBy('id'))).map(
      ({ event, details }) => ({ event, details: JSON.parse(details) }),
    ),
  );
}

function published(): Promise<{ kind: string; owner_id: string; record: NodeRecord }[]> {
  return store.read(async (reader) =>
    (
      await reader.all(reader.sql.selectFrom('feed').select(['kind', 'owner_id', 'record']).orderBy('id'))
    ).map((entry) => ({ ...entry, record: JSON.parse(entry.record) })),
  );
}

describe('registering', () => {
  test('creates a record, opens a link, and is audited and published', async () => {
    const created = await registry.register(root, {
      ...box,
      tls_server_name: 'inner',
      default_worktree_root: '/w',
    });
    expect(created).toEqual({
      ...box,
      tls_server_name: 'inner',
      default_worktree_root: '/w',
      worktree_root_problem: null,
      unrecovered_sessions: 0,
      status: 'connecting',
      version: null,
      agents: 0,
      last_seen_at: null,
      created_at: '2027-01-15T08:00:00.000Z',
      updated_at: '2027-01-15T08:00:00.000Z',
    });
    expect(links.calls).toEqual(['open box']);
    expect(registry.find('box')?.grpc_target).toBe(box.grpc_target);
    expect(await audited()).toEqual([
      {
        event: 'node_registered',
        details: { node_id: 'box', name: 'The box', grpc_target: 'https://box.example:8081' },
      },
    ]);
    expect(await published()).toEqual([{ kind: 'node', owner_id: '', record: created }]);
  });

  test('gives a repeated request the first response, also if the plane ended while it waited for the node', async () => {
    const hash = new Uint8Array(32);
    await openKeys().begin(root, 'k', hash);
    const { promise: waits, resolve: markWaiting } = Promise.withResolvers<void>();
    const { promise: end, reject: stop } = Promise.withResolvers<void>();
    links.untilRootChecked = () => {
      markWaiting();
      return end;
    };
    const registering = outcome(registry.register(root, { ...box, default_worktree_root: '/w' }, 'k'));
    await waits;
    const body = await registry.get('box');
    stop(new Error('the plane ended'));
    expect(await registering).toBe('the plane ended');
    const stored = { status: 201, location: '/api/admin/agent-nodes/box', body };
    expect(await openKeys().begin(root, 'k', hash)).toEqual({ stored });
  });

  test('rejects a taken id or name, including the main node’s, and stores nothing', async () => {
    await registry.register(root, box);
    const taken = 'agent node id or name already exists';
    expect(await outcome(registry.register(root, { ...box, name: 'other' }))).toBe(taken);
    expect(await outcome(registry.register(root, { ...box, id: 'other' }))).toBe(taken);
    expect(await outcome(registry.register(root, { ...box, id: 'other', name: 'Main Node' }))).toBe(taken);
    expect(await outcome(registry.register(root, { ...box, id: 'main', name: 'x' }))).toBe(
      'agent node id is reserved',
    );
    expect(links.calls).toEqual(['open box']);
    expect((await registry.list({})).items.map(({ id }) => id)).toEqual(['box']);
  });

  test('rejects targets of another form, and forbidden addresses', async () => {
    const at = (grpc_target: string) => outcome(registry.register(root, { ...box, grpc_target }));
    for (const target of [
      'box:8081',
      'http://box:8081',
      'https://box',
      'https://box:8081/',
      'https://127.1:80',
    ])
      expect(await at(target)).toBe('grpc_target must be https://<host>:<port>');
    for (const host of ['169.254.169.254', '[::ffff:a9fe:a9fe]', '0.0.0.0', '224.0.0.1', '[fe80::1]'])
      expect(await at(`https://${host}:8081`)).toBe('grpc_target address is not allowed');
    expect(await at('https://10.0.0.1:8081')).toBe('ok');
  });

  test('succeeds for one of a hundred concurrent requests', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, i) => outcome(registry.register(root, { ...box, id: `box${i % 2}` }))),
    );
    expect(outcomes.filter((text) => text === 'ok')).toHaveLength(1);
    expect(new Set(outcomes)).toEqual(new Set(['ok', 'agent node id or name already exists']));
    expect(links.calls).toHaveLength(1);
  });
});

describe('changing', () => {
  test('updates given fields, null clears, and the link is notified', async () => {
    await registry.register(root, { ...box, tls_server_name: 'inner', default_worktree_root: '/w' });
    clock.advance(1000);
    const after = await registry.update(root, 'box', { name: 'Box', tls_server_name: null });
    expect(after).toMatchObject({ name: 'Box', tls_server_name: null, default_worktree_root: '/w' });
    expect(after.updated_at).not.toBe(after.created_at);
    expect(links.rows.get('box')).toMatchObject({ name: 'Box', tls_server_name: null });
    expect(registry.find('box')?.name).toBe('Box');
    expect((await audited()).at(-1)).toEqual({
      event: 'node_updated',
      details: { node_id: 'box', changed: { name: 'Box', tls_server_name: null } },
    });
  });

  test('is not audited and opens no connection if nothing differs', async () => {
    const created = await registry.register(root, box);
    clock.advance(1000);
    expect(await registry.update(root, 'box', { name: box.name })).toEqual(created);
    expect(links.calls).toEqual(['open box']);
    expect(await audited()).toHaveLength(1);
  });

  test('rejects a taken name, a bad target, an unknown node', async () => {
    await registry.register(root, box);
    await registry.register(root, { ...box, id: 'two', name: 'Two' });
    const update = (changes: object, id = 'two') => outcome(registry.update(root, id, changes));
    expect(await update({ name: 'The box' })).toBe('agent node id or name already exists');
    expect(await update({ name: 'Main Node' })).toBe('agent node id or name already exists');
    expect(await update({ grpc_target: 'https://x' })).toBe('grpc_target must be https://<host>:<port>');
    expect(await update({ name: 'x' }, 'three')).toBe('agent node not found');
    expect(await update({ name: 'Two' })).toBe('ok');
  });
});

describe('deleting', () => {
  test('closes the link and is published; the id is free again', async () => {
    await registry.register(root, box);
    await registry.delete(root, 'box');
    expect(links.calls).toEqual(['open box', 'close box']);
    expect(await outcome(registry.get('box'))).toBe('agent node not found');
    expect(registry.find('box')).toBe(null);
    expect((await published()).at(-1)?.record).toMatchObject({ id: 'box', deleted: true });
    expect((await audited()).map(({ event }) => event)).toEqual(['node_registered', 'node_deleted']);
    await registry.register(root, box);
    expect(await outcome(registry.delete(root, 'other'))).toBe('agent node not found');
  });

  test('is rejected while any agent is bound to the node', async () => {
    await registry.register(root, box);
    await bind('box');
    expect(await outcome(registry.delete(root, 'box'))).toBe('agent node has active agents');
    expect(links.calls).toEqual(['open box']);
    expect((await registry.get('box')).agents).toBe(1);
    expect((await registry.list({})).items[0]?.agents).toBe(1);
  });

  test('does not decrease the epoch of a node that is registered again', async () => {
    await registry.register(root, box);
    expect([await registry.nextEpoch('box'), await registry.nextEpoch('box')]).toEqual([1, 2]);
    await registry.delete(root, 'box');
    await registry.register(root, { ...box, id: 'young', name: 'y' });
    await registry.delete(root, 'young');
    await registry.register(root, box);
    expect(await registry.nextEpoch('box')).toBe(3);
    expect(await outcome(registry.nextEpoch('none'))).toBe('agent node not found');
  });
});

describe('link states', () => {
  test('appear in the record, survive a restart, and are published', async () => {
    await registry.register(root, box);
    const seen = { status: 'connected', version: '1.2.3', last_seen_at_ms: clock.now() } as const;
    links.states.set('box', seen);
    await registry.publishLinkState('box');
    const record = await registry.get('box');
    expect(record).toMatchObject({
      status: 'connected',
      version: '1.2.3',
      last_seen_at: '2027-01-15T08:00:00.000Z',
    });
    expect((await published()).at(-1)?.record).toEqual(record);

    const fresh = new FakeLinks();
    const again = open(fresh);
    await again.open();
    expect(fresh.calls).toEqual(['open box']);
    expect(await again.get('box')).toEqual({ ...record, status: 'connecting' });
  });

  test('store when linked nodes were last seen with one statement, without publishing it', async () => {
    await registry.register(root, box);
    await registry.register(root, { ...box, id: 'two', name: 'Two' });
    const before = await published();
    await registry.storeLastSeen(
      new Map([
        ['box', 1_000],
        ['two', 2_000],
        ['none', 3_000],
      ]),
    );
    await registry.storeLastSeen(
      new Map([
        ['box', 999],
        ['two', 3_000],
      ]),
    );
    const again = open(new FakeLinks());
    await again.open();
    expect(
      [registry, again].map((one) => ['box', 'two', 'none'].map((id) => one.find(id)?.last_seen_at)),
    ).toEqual(Array(2).fill([1_000, 3_000, undefined]));
    expect(await published()).toEqual(before);
  });

  test('keep the latest time at which a node was seen, in whatever order the times are stored', async () => {
    await registry.register(root, box);
    const seenAt = (at_ms: number) => registry.storeLastSeen(new Map([['box', at_ms]]));
    await Promise.all([seenAt(2_000), seenAt(1_000)]);
    const again = open(new FakeLinks());
    await again.open();
    expect([registry, again].map((one) => one.find('box')?.last_seen_at)).toEqual([2_000, 2_000]);
  });

  test('are ignored if the node was deleted', async () => {
    await registry.publishLinkState('none');
    await registry.recordJoin('none');
    await registry.recordRejection('none', 'x');
    expect(await audited()).toEqual([]);
  });

  test('record a join, and audit repeated rejections once', async () => {
    await registry.register(root, box);
    await registry.recordRejection('box', 'wrong disk');
    await registry.recordRejection('box', 'wrong disk');
    await registry.recordRejection('box', 'other');
    await registry.recordJoin('box', { token_id: 'x' });
    await registry.recordRejection('box', 'other');
    const events = (await audited()).map(({ event, details }) => [event, details.reason]);
    expect(events.slice(1)).toEqual([
      ['node_refused', 'wrong disk'],
      ['node_refused', 'other'],
      ['node_joined', undefined],
      ['node_refused', 'other'],
    ]);
    const row = await store.read((reader) => findNode(reader, 'box'));
    expect(row?.joined_at).toBe(clock.now());
  });

  test('bind the node to its first disk, until it is replaced', async () => {
    await registry.register(root, box);
    expect(await registry.claimDisk('box', 'a')).toBe('a');
    expect(await registry.claimDisk('box', 'b')).toBe('a');
    await registry.recordNewDisk('box', 'b');
    expect(await registry.claimDisk('box', 'a')).toBe('b');
    expect((await audited()).at(-1)).toEqual({
      event: 'node_replaced',
      details: { node_id: 'box', disk_id: 'b', before: 'a' },
    });
    await registry.update(root, 'box', { accept_disk: true });
    expect(await registry.claimDisk('box', 'c')).toBe('c');
  });
});

describe('lists', () => {
  test('are newest first, in complete pages', async () => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await registry.register(root, { ...box, id, name: id });
      if (id !== 'b') clock.advance(10);
    }
    const all = (await registry.list({})).items.map(({ id }) => id);
    expect(all).toEqual(['e', 'd', 'c', 'b', 'a']);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { items, next_cursor } = await registry.list({ limit: 2, cursor });
      seen.push(...items.map(({ id }) => id));
      cursor = next_cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(all);
    expect(() => registry.list({ cursor: 'x' })).toThrow('invalid cursor');
  });

  test('for all users start with the main node and hide addresses', async () => {
    await registry.register(root, { ...box, default_worktree_root: '/w' });
    await registry.register(root, { ...box, id: 'two', name: 'Two' });
    await registry.register(root, { ...box, id: 'three', name: 'Three' });
    links.states.set('two', { status: 'suspect', has_default_root: true });
    const { items } = await registry.summaries({});
    expect(items[0]).toEqual({
      id: 'main',
      name: 'Main Node',
      status: 'connected',
      has_default_root: true,
      folders: FOLDERS,
      actor_calls: true,
    });
    expect(items.slice(1)).toEqual(
      expect.arrayContaining([
        {
          id: 'box',
          name: 'The box',
          status: 'connecting',
          has_default_root: true,
          folders: null,
          actor_calls: true,
        },
        {
          id: 'two',
          name: 'Two',
          status: 'suspect',
          has_default_root: true,
          folders: null,
          actor_calls: true,
        },
        {
          id: 'three',
          name: 'Three',
          status: 'connecting',
          has_default_root: false,
          folders: null,
          actor_calls: true,
        },
      ]),
    );
    const first = await registry.summaries({ limit: 3 });
    const rest = await registry.summaries({ limit: 3, cursor: first.next_cursor });
    expect([...first.items, ...rest.items]).toEqual(items);
    expect(rest.next_cursor).toBe(undefined);
  });

  test('for all users continue at the next node if the last one of a page was deleted', async () => {
    for (const id of ['a', 'b', 'c']) {
      await registry.register(root, { ...box, id, name: id });
      clock.advance(10);
    }
    const first = await registry.summaries({ limit: 1 });
    const second = await registry.summaries({ limit: 2, cursor: first.next_cursor });
    await registry.delete(root, 'b');
    const third = await registry.summaries({ limit: 2, cursor: second.next_cursor });
    const ids = [first, second, third].map(({ items }) => items.map(({ id }) => id));
    expect(ids).toEqual([['main'], ['c', 'b'], ['a']]);
  });
});

test('lists for all users say that agents cannot call the plane while the internal listener is disabled', async () => {
  const { items } = await open(null).summaries({});
  expect(items).toMatchObject([{ id: 'main', actor_calls: false }]);
});

test('lists for all users have no main node if no agents run there', async () => {
  const remote_only = open(links, null);
  expect(await remote_only.summaries({})).toEqual({ items: [] });
  await remote_only.register(root, box);
  expect((await remote_only.summaries({})).items.map(({ id }) => id)).toEqual(['box']);
  expect(remote_only.ids()).toEqual(['box']);
});

describe('the connection test', () => {
  const report = { node_id: 'box', status: 'ok' } as HealthReport;

  test('runs once for concurrent callers', async () => {
    await registry.register(root, box);
    let probes = 0;
    links.report = async () => {
      probes++;
      return report;
    };
    expect(await Promise.all([registry.health('box'), registry.health('box')])).toEqual([report, report]);
    expect(probes).toBe(1);
    await registry.health('box');
    expect(probes).toBe(2);
    expect(await outcome(registry.health('none'))).toBe('agent node not found');
  });
});

test('without the internal listener, nodes are listed and updated, but not connected', async () => {
  await registry.register(root, box);
  const alone = open(null);
  await alone.open();
  const unavailable = 'internal grpc client not available';
  expect(await outcome(alone.register(root, { ...box, id: 'two', name: 'Two' }))).toBe(unavailable);
  expect(await outcome(alone.health('box'))).toBe(unavailable);
  expect((await alone.list({})).items).toMatchObject([{ id: 'box', status: 'unreachable' }]);
  expect((await alone.update(root, 'box', { name: 'Box' })).name).toBe('Box');
  await alone.delete(root, 'box');
});
