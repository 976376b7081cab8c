import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { Folders, Node, NodeHealth, RepositoriesRequest } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import { Feed } from '../../events/feed.ts';
import type { HttpServer } from '../../server/server.ts';
import type { Store } from '../../store/store.ts';
import { addAgent } from '../../store/testing.ts';
import { TestClock } from '../../testing/accounts.ts';
import { openFakeHttp, ROOT_TOKEN, requesterWithToken, USER_TOKEN } from '../../testing/http.ts';
import { FakeLinks } from '../../testing/nodes.ts';
import { openTestStore } from '../../testing/test-store.ts';
import { Audit } from '../audit/service.ts';
import { Bootstrap } from './bootstrap.ts';
import { nodeHandlers } from './http.ts';
import { Measurements } from './measurements.ts';
import { Repositories } from './repositories.ts';
import type { HealthReport, NodeFolders, RepositoryList } from './rules.ts';
import { Registry } from './service.ts';

const FOLDERS = { worktree_root: '/data/worktrees', safe_paths: ['/data/worktrees'], repo_roots: ['/code'] };
const NODES = '/api/admin/agent-nodes';
const box = { id: 'box', name: 'The box', grpc_target: 'https://box:8081' };

let folder: string;
let store: Store;
let feed: Feed;
let links: FakeLinks;
let parts: Omit<Parameters<typeof nodeHandlers>[0], 'links'>;
let server: HttpServer;
/** The answer of the node to a search for repositories. */
let search: Folders['repositories'];
/** The disks of the nodes that answer. */
let disks: Record<string, NodeHealth['disk']>;
let main_folders: NodeFolders | null;
const request = requesterWithToken(() => server, ROOT_TOKEN);
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-http-nodes-'));
  store = await openTestStore(folder);
  const clock = new TestClock();
  feed = new Feed({ store, clock });
  links = new FakeLinks();
  const audit = new Audit({ store, clock, log: silentLog });
  const registry = new Registry({
    store,
    clock,
    audit,
    feed,
    idempotency: { storeWith: async () => {} },
    links,
    folders: () => FOLDERS,
    forgetAgents: async () => [],
  });
  const key = new Uint8Array(32);
  const bootstrap = new Bootstrap({ store, clock, audit, key, configured: null });
  const nodes = {
    main_folders: () => main_folders,
    choose: (id = 'main') => id,
    get: (id: string) => {
      if (id !== 'box' && !(id in disks)) throw problems.nodeNotFound();
      return {
        folders: { repositories: (asked) => search(asked) } as Folders,
        reach: async () => {
          if (!(id in disks)) throw problems.nodeUnreachable();
        },
        health: async () => ({ disk: disks[id]! }) as NodeHealth,
      } as Node;
    },
  };
  disks = {};
  main_folders = FOLDERS;
  const measurements = new Measurements({ store, nodes, links, log: silentLog });
  const repositories = new Repositories({ store, nodes });
  parts = { registry, bootstrap, repositories, measurements };
  server = await openFakeHttp(nodeHandlers({ ...parts, links: true }));
});
afterEach(async () => {
  await server.drain();
  feed.close();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

describe('measurements of nodes', () => {
  const measure = async () => (await request('GET', '/api/admin/node-measurements')).body;
  const disk = { path: '/data', free_bytes: 3, total_bytes: 9, starts_allowed: true };

  test('has the main node first, with its disk and without latencies', async () => {
    disks = { main: disk };
    expect(await measure()).toEqual([{ node_id: 'main', latencies_ms: [], disk }]);
  });

  test('has the heartbeats of the link, and the disk that the node reports', async () => {
    disks = { main: disk, box: { ...disk, free_bytes: 1 } };
    await request('POST', NODES, box);
    links.round_trips.set('box', [1.234, 20]);
    expect(await measure()).toEqual([
      { node_id: 'main', latencies_ms: [], disk },
      { node_id: 'box', latencies_ms: [1.2, 20], disk: disks.box },
    ]);
  });

  test('have no main node if no agents run there', async () => {
    main_folders = null;
    disks = { main: disk };
    expect(await measure()).toEqual([]);
  });

  test('has no disk of a node that does not answer, or does not report it', async () => {
    disks = { main: { path: '', free_bytes: 0, total_bytes: 0, starts_allowed: false } };
    await request('POST', NODES, box);
    expect(await measure()).toEqual([
      { node_id: 'main', latencies_ms: [], disk: null },
      { node_id: 'box', latencies_ms: [], disk: null },
    ]);
  });
});

test('registers, reads, updates and deletes a node', async () => {
  const created = await request('POST', NODES, box);
  expect(created).toMatchObject({
    status: 201,
    location: `${NODES}/box`,
    body: { ...box, tls_server_name: null },
  });
  expect(await request('GET', `${NODES}/box`)).toMatchObject({ status: 200, body: created.body });
  expect((await request('GET', NODES)).body).toEqual([created.body]);
  expect((await request('GET', `${NODES}?limit=1`)).body).toEqual({ items: [created.body] });
  const put = { id: 'other', name: 'Box', tls_server_name: 'inner', default_worktree_root: '/w' };
  expect((await request('PUT', `${NODES}/box`, put)).body).toMatchObject({ ...put, id: 'box' });
  const cleared = await request('PUT', `${NODES}/box`, {
    tls_server_name: null,
    default_worktree_root: null,
  });
  expect(cleared.body).toMatchObject({ name: 'Box', tls_server_name: null, default_worktree_root: null });
  expect(await request('PUT', `${NODES}/box`, { name: 'Box' })).toMatchObject({
    status: 200,
    body: cleared.body,
  });
  expect(await request('DELETE', `${NODES}/box`)).toMatchObject({ status: 204, body: null });
  expect(await request('DELETE', `${NODES}/box`)).toMatchObject({ status: 404 });
});

test('reports invalid input with the messages of the contract', async () => {
  const refused = async (status: number, error: string, asked: ReturnType<typeof request>) =>
    expect(await asked).toMatchObject({ status, body: { error } });
  const post = (fields: object) => request('POST', NODES, { ...box, ...fields });
  const form = 'grpc_target must be https://<host>:<port>';
  await refused(400, 'id is required', post({ id: undefined }));
  const id_rule = 'id must be 1 to 64 characters from A-Z, a-z, 0-9, ".", "_" and "-", but not "." or ".."';
  for (const id of ['a b', '.', '..']) await refused(400, id_rule, post({ id }));
  await refused(400, 'agent node id is reserved', post({ id: 'main' }));
  await refused(400, 'name is required', post({ name: '' }));
  await refused(400, 'grpc_target is required', post({ grpc_target: undefined }));
  await refused(400, form, post({ grpc_target: 'http://box:8081' }));
  await refused(400, form, post({ grpc_target: '' }));
  await refused(
    400,
    'grpc_target address is not allowed',
    post({ grpc_target: 'https://169.254.169.254:80' }),
  );
  await refused(400, 'tls_server_name must be a host name', post({ tls_server_name: 'a b' }));
  await refused(400, 'default_worktree_root must be an absolute path', post({ default_worktree_root: 'w' }));
  expect((await post({})).status).toBe(201);
  await refused(409, 'agent node id or name already exists', post({}));
  await refused(409, 'agent node id or name already exists', post({ id: 'two' }));
  expect((await post({ id: 'two', name: 'Two' })).status).toBe(201);
  await refused(
    409,
    'agent node id or name already exists',
    request('PUT', `${NODES}/two`, { name: box.name }),
  );
  await refused(400, form, request('PUT', `${NODES}/two`, { grpc_target: 'box' }));
  for (const [method, path, body] of [
    ['GET', ''],
    ['PUT', '', { name: 'None' }],
    ['DELETE', ''],
    ['GET', '/health'],
  ] as const) {
    await refused(404, 'agent node not found', request(method, `${NODES}/none${path}`, body));
  }
  await refused(400, 'nothing to change', request('PUT', `${NODES}/box`, { id: 'box' }));
  await refused(400, 'unknown field "unknown"', post({ unknown: 1 }));
  const num = await addAgent(store, 'agt_1');
  await store.write(async (tx) => {
    await tx.run(tx.sql.updateTable('agents').set({ node_id: 'box' }).where('num', '=', num));
  });
  await refused(409, 'agent node has active agents', request('DELETE', `${NODES}/box`));
});

test('requires root, except for the list without addresses', async () => {
  await request('POST', NODES, box);
  const user = { token: USER_TOKEN };
  for (const [method, path] of [
    ['GET', NODES],
    ['POST', NODES],
    ['GET', `${NODES}/box`],
    ['PUT', `${NODES}/box`],
    ['DELETE', `${NODES}/box`],
    ['GET', `${NODES}/box/health`],
    ['GET', '/api/admin/bootstrap-token'],
    ['POST', '/api/admin/bootstrap-token/rotate'],
  ] as const) {
    const answer = await request(method, path, undefined, user);
    expect([method, path, answer.status, answer.body]).toEqual([
      method,
      path,
      401,
      { error: 'root required' },
    ]);
  }
  const { body } = await request('GET', '/api/nodes', undefined, user);
  expect(body).toEqual([
    {
      id: 'main',
      name: 'Main Node',
      status: 'connected',
      has_default_root: true,
      folders: FOLDERS,
      actor_calls: true,
    },
    {
      id: 'box',
      name: 'The box',
      status: 'connecting',
      has_default_root: false,
      folders: null,
      actor_calls: true,
    },
  ]);
});

test('returns the same response for a repeated registration with its key', async () => {
  const created = await request('POST', NODES, box, { key: 'k' });
  expect(await request('POST', NODES, box, { key: 'k' })).toEqual(created);
  expect(await request('POST', NODES, { ...box, name: 'x' }, { key: 'k' })).toMatchObject({ status: 409 });
});

test('returns the health report unchanged, failing or not', async () => {
  await request('POST', NODES, box);
  const report: HealthReport = {
    node_id: 'box',
    status: 'unreachable',
    latency_ms: null,
    version: null,
    uptime_seconds: null,
    agents: null,
    clock_skew_ms: -3_600_000,
    disk: null,
    checks: [{ name: 'dns', ok: false, ms: 0.4, error: 'failed to connect to remote node', hint: 'look' }],
  };
  links.report = async () => report;
  expect(await request('GET', `${NODES}/box/health`)).toMatchObject({ status: 200, body: report });
});

test('shows the bootstrap token, keeps it, and rotates it', async () => {
  const first = await request('GET', '/api/admin/bootstrap-token');
  expect(first.status).toBe(200);
  expect(first.body.toml).toContain(`token = "${first.body.token}"`);
  expect((await request('GET', '/api/admin/bootstrap-token')).body).toEqual(first.body);
  const rotated = await request('POST', '/api/admin/bootstrap-token/rotate');
  expect(rotated.status).toBe(200);
  expect(rotated.body.token).not.toBe(first.body.token);
});

test('warns with a bootstrap token if no node can join', async () => {
  const warnings = async ({ url }: HttpServer) => {
    const headers = { authorization: `Bearer ${ROOT_TOKEN}` };
    const path = `${url}/api/admin/bootstrap-token`;
    const answers = [
      await fetch(path, { headers }),
      await fetch(`${path}/rotate`, { headers, method: 'POST' }),
    ];
    return answers.map((answer) => answer.headers.get('x-warning'));
  };
  expect(await warnings(server)).toEqual([null, null]);
  const unlinked = await openFakeHttp(nodeHandlers({ ...parts, links: false }));
  try {
    expect(await warnings(unlinked)).toEqual(Array(2).fill(expect.stringContaining('internal_grpc.enabled')));
  } finally {
    await unlinked.drain();
  }
});

describe('the repositories of a node', () => {
  const found = (path: string) => ({ path, branch: 'main', dirty: false });
  const used = (id: string, owner_id: string, fields: Record<string, unknown>) =>
    store.write(async (tx) => {
      const values = { owner_id, node_id: 'box', workdir: '/elsewhere', ...fields };
      await tx.run(tx.sql.updateTable('agents').set(values).where('id', '=', id));
    });
  let asked: RepositoriesRequest[];

  beforeEach(async () => {
    asked = [];
    search = async (query) => {
      asked.push(query);
      const repositories = ['/code/b', '/code/a', '/code/deep/c', '/code/d'].map(found);
      return { roots: ['/code'], repositories, truncated: true };
    };
    for (const id of ['agt_1', 'agt_2', 'agt_3', 'agt_4']) await addAgent(store, id);
    await used('agt_1', 'usr_ada', { workdir: '/code/b/', created_at: 5_000 });
    await used('agt_2', 'usr_ada', { worktree_repo: '/code/deep/c', created_at: 1_000, started_at: 9_000 });
    await used('agt_3', 'usr_bob', { worktree_repo: '/code/a', created_at: 20_000 });
    // Its folder is a new one, not a repository.
    await used('agt_4', 'usr_ada', {
      workdir: '/code/d',
      worktree_mode: 'create_worktree',
      created_at: 8_000,
    });
  });

  const list = async (token: string) => {
    const { status, body } = await request('GET', '/api/nodes/box/repositories', undefined, { token });
    expect(status).toBe(200);
    return body as RepositoryList;
  };

  test('are those that the caller used last, then the others by name', async () => {
    const { repositories, ...rest } = await list(USER_TOKEN);
    expect(rest).toEqual({ roots: ['/code'], truncated: true });
    expect(repositories).toEqual([
      { ...found('/code/deep/c'), name: 'c', last_used_at: '1970-01-01T00:00:09.000Z' },
      { ...found('/code/b'), name: 'b', last_used_at: '1970-01-01T00:00:05.000Z' },
      { ...found('/code/a'), name: 'a', last_used_at: null },
      { ...found('/code/d'), name: 'd', last_used_at: null },
    ]);
    expect(asked).toEqual([{ first: ['/code/deep/c', '/code/b'], path: null, owner: 'usr_ada' }]);
  });

  test('count the agents of every user for root', async () => {
    expect((await list(ROOT_TOKEN)).repositories.map(({ name }) => name)).toEqual(['a', 'c', 'b', 'd']);
  });

  test('are not known for a node that does not exist or does not answer', async () => {
    expect(await request('GET', '/api/nodes/none/repositories')).toMatchObject({ status: 404 });
    search = async () => {
      throw problems.nodeTooOld();
    };
    expect(await request('GET', '/api/nodes/box/repositories')).toMatchObject({
      status: 502,
      body: { error: 'the node does not support this call; upgrade svc on it' },
    });
  });
});
