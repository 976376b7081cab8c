/** The lifecycle of agents on a scripted node, in states that real processes leave too quickly. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { limits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import type { Store } from '../../store/store.ts';
import type { TestClock } from '../../testing/accounts.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { openFakeHttp, requesterOf } from '../../testing/http.ts';
import { ended, type ScriptedNode } from '../../testing/scripted-node.ts';
import { agentHandlers } from './http/agents.ts';

let fixture: FeaturesFixture;
let store: Store;
let clock: TestClock;
let node: ScriptedNode;

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  ({ store, clock, node } = fixture);
});
afterEach(() => fixture.end());

test('a preset supplies defaults, which the request can override', async () => {
  const open = { command: null, protocol: 'plain' as const };
  const codex = await fixture.create({ ...open, preset: 'codex', env: { MINE: '1' } });
  const argv = ['codex-acp'];
  expect(codex).toMatchObject({ preset: 'codex', argv, command: 'codex-acp', protocol: 'plain' });
  expect(codex.env_keys.sort()).toEqual(['MINE']);
  const changed = await fixture.agents.update(ANA, codex.id, { env: { OTHER: '1' } });
  expect(changed.env_keys.sort()).toEqual(['OTHER']);
  expect(await fixture.create({ command: null, preset: 'codex' })).toMatchObject({
    protocol: 'acp',
    stdin: true,
  });

  const own = { preset: 'codex', command: 'npx codex-acp', env: { INITIAL_AGENT_MODE: 'agent' } };
  const started = await fixture.create({ ...open, ...own, start: true });
  expect(started).toMatchObject({ preset: 'codex', argv: null, command: 'npx codex-acp' });
  const { launch } = node.views.get(started.session_id!)!;
  expect(launch).toMatchObject({ env: { INITIAL_AGENT_MODE: 'agent' } });
  expect(await fixture.create({ preset: 'plain', command: 'true' })).toMatchObject({
    protocol: 'plain',
    preset: 'plain',
  });
});

test('rejects an unknown preset, and a preset without the command that it requires', async () => {
  const unknown = fixture.create({ command: null, preset: 'chess' });
  await expect(unknown).rejects.toMatchObject({ kind: 'invalid', message: 'unknown preset: chess' });
  for (const preset of ['plain', 'acp']) {
    await expect(fixture.create({ command: ' ', preset })).rejects.toThrow('command is required');
  }
});

test('a repeated start does not end a running session whose folder has been removed', async () => {
  const agent = await fixture.create();
  // The node has the session, but the plane ends before it receives the response.
  const { start } = node;
  node.start = (launch) => {
    node.addSession(launch);
    return new Promise(() => {});
  };
  void fixture.agents.start(ANA, agent.id, null).catch(() => {});
  await vi.waitFor(() => expect(node.views.size).toBe(1), SOON);
  await fixture.close();
  node.start = start;
  node.folders.resolve = () => Promise.reject(problems.workdirMissing());
  await fixture.open();
  const [session_id] = [...node.views.keys()];
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toEqual([]);
  }, SOON);
  node.sendFact(session_id!, { kind: 'started', pid: 7, started_at_ms: 1 });
  expect(await fixture.until(agent.id, 'running')).toMatchObject({ session_id, reason: null });
});

test('a running session that its node no longer has is lost, even if the intent to start it remained', async () => {
  const { id, session_id } = await fixture.create({ start: true });
  await fixture.close();
  // The plane was killed after the commit of the start, and before it deleted the intent.
  const intent = { node_id: 'main', lane: session_id!, kind: 'start', payload: '{}', created_at: 1 };
  await store.write((tx) => tx.run(tx.sql.insertInto('outbox').values(intent)));
  node.views.clear();
  await fixture.open();
  expect(await fixture.until(id, 'failed')).toMatchObject({ reason: 'session_lost' });
});

test('a session that runs on although its end is recorded is ended by the next snapshot', async () => {
  const { id, session_id } = await fixture.create({ start: true });
  node.stop = () => Promise.reject(problems.sessionNotFound());
  expect((await fixture.agents.stop(ANA, id, 0)).status).toBe('cancelled');
  expect(node.views.get(session_id!)).toMatchObject({ phase: 'running' });
  Reflect.deleteProperty(node, 'stop');
  await node.sendSnapshot(node.link!);
  await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
  expect(await fixture.get(id)).toMatchObject({ status: 'cancelled', session_count: 1 });
});

test('a stop ends a session whose start has not reached the node', async () => {
  const agent = await fixture.create();
  const sent = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<never>();
  node.start = () => {
    sent.resolve();
    return answer.promise;
  };
  const starting = fixture.agents.start(ANA, agent.id, null).catch((error: Error) => error);
  await sent.promise;
  const stopping = fixture.agents.stop(ANA, agent.id, 0);
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(2);
  }, SOON);
  answer.reject(problems.nodeUnreachable());
  // The stop came later, so the start is not kept.
  const failed = { message: 'failed to connect to remote node', pending: undefined };
  expect(await starting).toMatchObject(failed);
  const stopped = await stopping;
  expect(stopped).toMatchObject({ status: 'cancelled', pending: null });
});

test('a stop is answered if the start before it is rejected', async () => {
  const agent = await fixture.create();
  let refuse = (_error: Error) => {};
  node.folders.resolve = () =>
    new Promise((_resolve, reject) => {
      refuse = reject;
    });
  const starting = fixture.agents.start(ANA, agent.id, null);
  await vi.waitFor(async () => expect((await fixture.get(agent.id)).activity).toBe('starting'), SOON);
  const stopping = fixture.agents.stop(ANA, agent.id, 0);
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(2);
  }, SOON);
  refuse(problems.workdirMissing());
  await starting;
  expect((await stopping).status).toBe('cancelled');
});

test('a restart of an agent that is still starting waits for the end of its session', async () => {
  const agent = await fixture.create();
  const { start } = node;
  node.start = async (launch) => {
    node.addSession(launch);
    return node.views.get(launch.session_id)!;
  };
  const starting = fixture.agents.start(ANA, agent.id, null);
  await vi.waitFor(() => expect(node.views.size).toBe(1), SOON);
  node.start = start;
  node.stop = async (session_id) => {
    setTimeout(() => {
      node.sendFact(session_id, { kind: 'started', pid: 7, started_at_ms: 1 });
      node.sendFact(session_id, ended(null));
    }, 200);
    return { cleanup: 'swept', survivors: [] };
  };
  expect((await fixture.agents.restart(ANA, agent.id, 0, null)).status).toBe('running');
  await starting;
});

test('rejects queued input when the session ends', async () => {
  const agent = await fixture.create({ stdin: true, start: true });
  let go = () => {};
  const taken = new Promise<void>((done) => {
    go = done;
  });
  node.input = async (_id, offset, data) => {
    await taken;
    return offset + data.length;
  };
  const outcomes: Promise<string>[] = [];
  for (const text of ['a', 'b']) {
    const sent = fixture.agents.input(ANA, agent.id, text, false, null);
    outcomes.push(sent.then((after) => after.status).catch((error: Error) => error.message));
    await vi.waitFor(async () => {
      const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
      expect(intents).toHaveLength(outcomes.length);
    }, SOON);
  }
  node.sendFact(agent.session_id!, ended(0));
  await fixture.until(agent.id, 'completed');
  go();
  expect(await Promise.all(outcomes)).toEqual(['completed', 'agent is not running']);
});

test('restart and forced delete succeed if the agent ends in the meantime', async () => {
  const agent = await fixture.create({ start: true });
  const { stop } = node;
  const endFirst = async () => {
    const { session_id } = await fixture.get(agent.id);
    node.sendFact(session_id!, ended(0));
    await fixture.until(agent.id, 'completed');
  };
  // The end is committed after the request found the agent running, but before its stop is decided.
  const write = store.write.bind(store);
  let before: (() => Promise<void>) | null = endFirst;
  store.write = async (fn) => {
    const first = before;
    before = null;
    await first?.();
    return write(fn);
  };
  node.stop = () => Promise.reject(problems.sessionNotFound());
  const restarted = await fixture.agents.restart(ANA, agent.id, 0, null);
  expect(restarted).toMatchObject({ status: 'running', session_count: 2 });
  before = endFirst;
  await fixture.agents.delete(ANA, agent.id, { force: true, delete_worktree: false });
  node.stop = stop;
  await expect(fixture.get(agent.id)).rejects.toThrow('agent not found');
});

test('an idempotency key can be reused after a day', async () => {
  const agent = await fixture.create({ name: 'old' }, 'key');
  expect((await fixture.create({ name: 'old' }, 'key')).id).toBe(agent.id);
  await fixture.agents.start(ANA, agent.id, 'start');
  expect((await fixture.agents.start(ANA, agent.id, 'start')).session_count).toBe(1);
  await fixture.agents.stop(ANA, agent.id, 0);

  clock.advance(limits.idempotency_keep_ms + 1);
  const fresh = await fixture.create({ name: 'new' }, 'key');
  expect(fresh).toMatchObject({ name: 'new' });
  expect(fresh.id).not.toBe(agent.id);
  expect(await fixture.agents.start(ANA, agent.id, 'start')).toMatchObject({
    status: 'running',
    session_count: 2,
  });
});

test('a key belongs to the request that created an agent, even if the start failed', async () => {
  const server = await openFakeHttp(
    agentHandlers(fixture.agents, {} as never, {} as never, () => null),
    { authenticate: () => ANA, idempotency: fixture.idempotency },
  );
  onTestFinished(() => server.drain());
  const { id: other_id } = await fixture.create();
  const request = requesterOf(() => ({ url: server.url, token: 'any' }));
  const body = { name: 'new', command: 'true', workdir: fixture.folder, start: true };
  const create = (changes: object = {}) =>
    request('POST', '/api/agents', { ...body, ...changes }, { key: 'key' });
  // A request that creates nothing leaves its key free.
  expect((await create({ workdir: '' })).status).toBe(400);

  const { reach } = node;
  node.reach = async () => {
    const created = await fixture.agents.list(ANA, { name: 'new' }, {});
    if (created.items.length > 0) throw problems.nodeUnreachable();
  };
  expect((await create()).status).toBe(502);
  node.reach = reach;
  for (const changes of [{ command: 'false' }, { env: { A: '1' } }, { start: false }]) {
    const reused = { error: 'idempotency key reused with a different request' };
    expect(await create(changes)).toMatchObject({ status: 409, body: reused });
  }
  const { status, body: agent } = await create();
  expect([status, agent.command, agent.status, agent.session_count]).toEqual([201, 'true', 'running', 1]);
  const { items } = await fixture.agents.list(ANA, {}, {});
  expect(items.map(({ id }) => id)).toEqual([agent.id, other_id]);
});

test('a start repeated with its key starts nothing, even after later sessions', async () => {
  const agent = await fixture.create();
  await fixture.agents.start(ANA, agent.id, 'key');
  await fixture.agents.stop(ANA, agent.id, 0);
  await fixture.agents.start(ANA, agent.id, null);
  await fixture.agents.stop(ANA, agent.id, 0);
  expect(await fixture.agents.start(ANA, agent.id, 'key')).toMatchObject({
    status: 'cancelled',
    session_count: 2,
  });
});

test('a repeated start waits for the first one', async () => {
  const agent = await fixture.create();
  node.start = async (launch) => {
    node.addSession(launch);
    setTimeout(() => node.sendFact(launch.session_id, { kind: 'started', pid: 7, started_at_ms: 1 }), 200);
    return node.views.get(launch.session_id)!;
  };
  const first = fixture.agents.start(ANA, agent.id, 'key');
  await vi.waitFor(() => expect(node.views.size).toBe(1), SOON);
  expect((await fixture.agents.start(ANA, agent.id, 'key')).status).toBe('running');
  expect((await first).status).toBe('running');
});

test('retries an automatic restart that the node rejected', async () => {
  const agent = await fixture.create({ restart_policy: 'on_failure', start: true });
  const { start } = node;
  let refused = 0;
  node.start = () => {
    refused += 1;
    return Promise.reject(problems.diskSpace());
  };
  node.sendFact(agent.session_id!, ended(1));
  await fixture.until(agent.id, 'failed');
  const due = async () =>
    (await store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll())))[0];
  const fire = async () => {
    await vi.waitFor(async () => expect(await due()).toBeDefined(), SOON);
    clock.advance((await due())!.due_at - clock.now());
    await store.write(async (tx) => {
      await tx.run(tx.sql.updateTable('agents').set({ updated_at: clock.now() }).where('id', '=', agent.id));
    });
    // The scheduler sleeps by the real clock, so another timer wakes it.
    await fixture.close();
    await fixture.open();
  };
  await fire();
  await vi.waitFor(() => expect(refused).toBe(1), SOON);
  node.start = start;
  await fire();
  expect(await fixture.until(agent.id, 'running')).toMatchObject({ session_count: 2 });
});

test('a stop during a start that the node rejects also cancels the restart', async () => {
  const { id, session_id } = await fixture.create({ restart_policy: 'on_failure', start: true });
  node.sendFact(session_id!, ended(1));
  await vi.waitFor(async () => expect((await fixture.get(id)).restart_at).not.toBeNull(), SOON);
  let refuse: ((error: Error) => void) | null = null;
  node.start = () =>
    new Promise((_resolve, reject) => {
      refuse = reject;
    });
  const starting = fixture.agents.start(ANA, id, null);
  const refused = expect(starting).rejects.toThrow(problems.diskSpace().message);
  await vi.waitFor(() => expect(refuse).not.toBeNull(), SOON);
  const stopping = fixture.agents.stop(ANA, id, 0);
  await vi.waitFor(async () => {
    const stops = store.read((reader) =>
      reader.all(reader.sql.selectFrom('outbox').selectAll().where('kind', '=', 'stop')),
    );
    expect(await stops).toHaveLength(1);
  }, SOON);
  refuse!(problems.diskSpace());
  await refused;
  expect(await stopping).toMatchObject({ status: 'failed', restart_at: null });
});

test('the plane starts even if a session directory cannot be removed', async () => {
  const agent = await fixture.create({ start: true });
  const { forget } = node;
  node.forget = () => Promise.reject(new Error('EBUSY'));
  node.sendFact(agent.session_id!, ended(0));
  await fixture.until(agent.id, 'completed');
  const other = await fixture.create({ start: true });
  await fixture.close();
  await fixture.open();
  node.sendFact(other.session_id!, ended(0));
  expect((await fixture.until(other.id, 'completed')).exit_code).toBe(0);
  node.forget = forget;
});

test('an agent that was deleted while its node was unreachable is not recovered later', async () => {
  const agent = await fixture.create({ start: true });
  const { forget } = node;
  node.forget = () => Promise.reject(problems.nodeUnreachable());
  node.sendFact(agent.session_id!, ended(0));
  await fixture.until(agent.id, 'completed');
  await fixture.agents.delete(ANA, agent.id, { force: false, delete_worktree: false });
  await fixture.close();
  await fixture.open();
  expect((await fixture.agents.list(ANA, {}, {})).items).toEqual([]);
  node.forget = forget.bind(node);
  await fixture.close();
  await fixture.open();
  await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
  expect((await fixture.agents.list(ANA, {}, {})).items).toEqual([]);
});

test('deleting an agent cancels its automatic restart first', async () => {
  const agent = await fixture.create({
    restart_policy: 'on_failure',
    worktree_mode: 'create_worktree',
    start: true,
  });
  const timers = () => store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll()));
  node.sendFact(agent.session_id!, ended(1));
  await vi.waitFor(async () => expect(await timers()).toHaveLength(1), SOON);
  let owed: unknown[] = [];
  node.folders.removeWorktree = async () => {
    owed = await timers();
    return { removed: true, kept_because: null };
  };
  await fixture.agents.delete(ANA, agent.id, { force: false, delete_worktree: false });
  expect(owed).toEqual([]);
});

test('sends input with an idempotency key once, even if the service restarts', async () => {
  const agent = await fixture.create({ stdin: true, start: true });
  const request = new Uint8Array(32);
  const sent: string[] = [];
  const { input } = node;
  node.input = () => new Promise(() => {});
  expect(await fixture.idempotency.begin(ANA, 'key', request)).toHaveProperty('first');
  const first = fixture.agents.input(ANA, agent.id, 'once', false, 'key');
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(1);
  }, SOON);
  await fixture.close();
  expect((await first).status).toBe('running');
  node.input = async (id, offset, data) => {
    sent.push(`${offset} ${Buffer.from(data)}`);
    return input(id, offset, data);
  };
  await fixture.open();
  // The first response was lost, so the client repeats the request.
  const again = await fixture.idempotency.begin(ANA, 'key', request);
  expect(again).toMatchObject({ stored: { status: 200, body: { id: agent.id } } });
  await vi.waitFor(() => expect(sent).toEqual(['0 once']), SOON);
});

test('a stop succeeds if the session ends while the link breaks', async () => {
  const agent = await fixture.create({ start: true });
  node.stop = async (session_id) => {
    node.sendFact(session_id, ended(0));
    await fixture.until(agent.id, 'cancelled');
    // This is the error of a link that breaks at this moment.
    throw problems.nodeUnreachable();
  };
  expect((await fixture.agents.stop(ANA, agent.id, 0)).status).toBe('cancelled');
  await fixture.agents.start(ANA, agent.id, null);
  expect((await fixture.agents.restart(ANA, agent.id, 0, null)).status).toBe('running');
});

test('a deletion names the processes that the last session left running', async () => {
  const { id, session_id } = await fixture.create({ on_exit: 'keep', start: true });
  const leftovers = [{ pid: 4711, command: 'serve --key secret' }];
  node.sendFact(session_id!, ended(0, 0, leftovers));
  await fixture.until(id, 'completed');
  const options = { force: false, delete_worktree: false };
  expect(await fixture.agents.previewDeletion(ANA, id, options)).toEqual({ leftovers });
  expect(await fixture.agents.delete(ANA, id, options)).toMatchObject({ leftovers });
  // The audit log cannot be changed, so it has no command lines.
  const record = await store.read((reader) =>
    reader.get(reader.sql.selectFrom('audit').select('details').where('event', '=', 'agent_deleted')),
  );
  expect(JSON.parse(record!.details)).toMatchObject({ leftovers: [4711] });
});
