/** The lifecycle of agents on a scripted node, in states that real processes leave too quickly. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import type { Store } from '../../store/store.ts';
import type { TestClock } from '../../testing/accounts.ts';
import { ANA, LivesRoom, SOON } from '../../testing/lives.ts';
import { ended, type ScriptedNode } from '../../testing/scripted-node.ts';

let room: LivesRoom;
let store: Store;
let clock: TestClock;
let node: ScriptedNode;

beforeEach(async () => {
  room = await LivesRoom.make();
  ({ store, clock, node } = room);
});
afterEach(() => room.end());

test('a preset supplies defaults, which the request can override', async () => {
  const open = { command: null, protocol: 'plain' as const };
  const codex = await room.create({ ...open, preset: 'codex', env: { MINE: '1' } });
  const argv = ['codex-acp'];
  expect(codex).toMatchObject({ preset: 'codex', argv, command: 'codex-acp', protocol: 'plain' });
  expect(codex.env_keys.sort()).toEqual(['MINE']);
  const changed = await room.agents.update(ANA, codex.id, { env: { OTHER: '1' } });
  expect(changed.env_keys.sort()).toEqual(['OTHER']);
  expect(await room.create({ command: null, preset: 'codex' })).toMatchObject({
    protocol: 'acp',
    stdin: true,
  });

  const own = { preset: 'codex', command: 'npx codex-acp', env: { INITIAL_AGENT_MODE: 'agent' } };
  const started = await room.create({ ...open, ...own, start: true });
  expect(started).toMatchObject({ preset: 'codex', argv: null, command: 'npx codex-acp' });
  const { launch } = node.views.get(started.session_id!)!;
  expect(launch).toMatchObject({ env: { INITIAL_AGENT_MODE: 'agent' } });
  expect(await room.create({ preset: 'plain', command: 'true' })).toMatchObject({
    protocol: 'plain',
    preset: 'plain',
  });
});

test('rejects an unknown preset, and a preset without the command that it requires', async () => {
  const unknown = room.create({ command: null, preset: 'chess' });
  await expect(unknown).rejects.toMatchObject({ kind: 'invalid', message: 'unknown preset: chess' });
  for (const preset of ['plain', 'acp']) {
    await expect(room.create({ command: ' ', preset })).rejects.toThrow('command is required');
  }
});

test('a repeated start does not end a running session whose folder has been removed', async () => {
  const agent = await room.create();
  // The node has the session, but the plane ends before it receives the response.
  const { start } = node;
  node.start = (launch) => {
    node.know(launch);
    return new Promise(() => {});
  };
  void room.agents.start(ANA, agent.id, null).catch(() => {});
  await vi.waitFor(() => expect(node.views.size).toBe(1), SOON);
  await room.close();
  node.start = start;
  node.folders.resolve = () => Promise.reject(problems.workdirMissing());
  await room.open();
  const [session_id] = [...node.views.keys()];
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toEqual([]);
  }, SOON);
  node.tell(session_id!, { kind: 'started', pid: 7, started_at_ms: 1 });
  expect(await room.until(agent.id, 'running')).toMatchObject({ session_id, reason: null });
});

test('a stop ends a session whose start has not reached the node', async () => {
  const agent = await room.create();
  const sent = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<never>();
  node.start = () => {
    sent.resolve();
    return answer.promise;
  };
  const starting = room.agents.start(ANA, agent.id, null).catch((error: Error) => error);
  await sent.promise;
  const stopping = room.agents.stop(ANA, agent.id, 0);
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
  const agent = await room.create();
  let refuse = (_error: Error) => {};
  node.folders.resolve = () =>
    new Promise((_resolve, reject) => {
      refuse = reject;
    });
  const starting = room.agents.start(ANA, agent.id, null);
  await vi.waitFor(async () => expect((await room.get(agent.id)).activity).toBe('starting'), SOON);
  const stopping = room.agents.stop(ANA, agent.id, 0);
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(2);
  }, SOON);
  refuse(problems.workdirMissing());
  await starting;
  expect((await stopping).status).toBe('cancelled');
});

test('a restart of an agent that is still starting waits for the end of its session', async () => {
  const agent = await room.create();
  const { start } = node;
  node.start = async (launch) => {
    node.know(launch);
    return node.views.get(launch.session_id)!;
  };
  const starting = room.agents.start(ANA, agent.id, null);
  await vi.waitFor(() => expect(node.views.size).toBe(1), SOON);
  node.start = start;
  node.stop = async (session_id) => {
    setTimeout(() => {
      node.tell(session_id, { kind: 'started', pid: 7, started_at_ms: 1 });
      node.tell(session_id, ended(null));
    }, 200);
    return { cleanup: 'swept', survivors: [] };
  };
  expect((await room.agents.restart(ANA, agent.id, 0, null)).status).toBe('running');
  await starting;
});

test('rejects queued input when the session ends', async () => {
  const agent = await room.create({ stdin: true, start: true });
  let go = () => {};
  const taken = new Promise<void>((done) => {
    go = done;
  });
  node.input = async (_id, offset, data) => {
    await taken;
    return offset + data.length;
  };
  const sent = [
    room.agents.input(ANA, agent.id, 'a', false, null),
    room.agents.input(ANA, agent.id, 'b', false, null),
  ];
  const words = sent.map((item) => item.then((after) => after.status).catch((error: Error) => error.message));
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(2);
  }, SOON);
  node.tell(agent.session_id!, ended(0));
  await room.until(agent.id, 'completed');
  go();
  expect(await Promise.all(words)).toEqual(['completed', 'agent is not running']);
});

test('restart and forced delete succeed if the agent ends in the meantime', async () => {
  const agent = await room.create({ start: true });
  const { stop } = node;
  const endFirst = async () => {
    const { session_id } = await room.get(agent.id);
    node.tell(session_id!, ended(0));
    await room.until(agent.id, 'completed');
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
  const restarted = await room.agents.restart(ANA, agent.id, 0, null);
  expect(restarted).toMatchObject({ status: 'running', session_count: 2 });
  before = endFirst;
  await room.agents.delete(ANA, agent.id, { force: true, delete_worktree: false });
  node.stop = stop;
  await expect(room.get(agent.id)).rejects.toThrow('agent not found');
});

test('an idempotency key can be reused after a day', async () => {
  const agent = await room.create({ name: 'old' }, 'key');
  expect((await room.create({ name: 'old' }, 'key')).id).toBe(agent.id);
  await room.agents.start(ANA, agent.id, 'start');
  expect((await room.agents.start(ANA, agent.id, 'start')).session_count).toBe(1);
  await room.agents.stop(ANA, agent.id, 0);

  clock.advance(limits.idempotency_keep_ms + 1);
  const fresh = await room.create({ name: 'new' }, 'key');
  expect(fresh).toMatchObject({ name: 'new' });
  expect(fresh.id).not.toBe(agent.id);
  expect(await room.agents.start(ANA, agent.id, 'start')).toMatchObject({
    status: 'running',
    session_count: 2,
  });
});

test('a start repeated with its key starts nothing, even after later sessions', async () => {
  const agent = await room.create();
  await room.agents.start(ANA, agent.id, 'key');
  await room.agents.stop(ANA, agent.id, 0);
  await room.agents.start(ANA, agent.id, null);
  await room.agents.stop(ANA, agent.id, 0);
  expect(await room.agents.start(ANA, agent.id, 'key')).toMatchObject({
    status: 'cancelled',
    session_count: 2,
  });
});

test('a repeated start waits for the first one', async () => {
  const agent = await room.create();
  node.start = async (launch) => {
    node.know(launch);
    setTimeout(() => node.tell(launch.session_id, { kind: 'started', pid: 7, started_at_ms: 1 }), 200);
    return node.views.get(launch.session_id)!;
  };
  const first = room.agents.start(ANA, agent.id, 'key');
  await vi.waitFor(() => expect(node.views.size).toBe(1), SOON);
  expect((await room.agents.start(ANA, agent.id, 'key')).status).toBe('running');
  expect((await first).status).toBe('running');
});

test('retries an automatic restart that the node rejected', async () => {
  const agent = await room.create({ restart_policy: 'on_failure', start: true });
  const { start } = node;
  let refused = 0;
  node.start = () => {
    refused += 1;
    return Promise.reject(problems.diskSpace());
  };
  node.tell(agent.session_id!, ended(1));
  await room.until(agent.id, 'failed');
  const due = async () =>
    (await store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll())))[0];
  const fire = async () => {
    await vi.waitFor(async () => expect(await due()).toBeDefined(), SOON);
    clock.advance((await due())!.due_at - clock.now());
    await store.write((tx) => {
      tx.run(tx.sql.updateTable('agents').set({ updated_at: clock.now() }).where('id', '=', agent.id));
    });
    // The scheduler sleeps by the real clock, so another timer wakes it.
    await room.close();
    await room.open();
  };
  await fire();
  await vi.waitFor(() => expect(refused).toBe(1), SOON);
  node.start = start;
  await fire();
  expect(await room.until(agent.id, 'running')).toMatchObject({ session_count: 2 });
});

test('the plane starts even if a session directory cannot be removed', async () => {
  const agent = await room.create({ start: true });
  const { forget } = node;
  node.forget = () => Promise.reject(new Error('EBUSY'));
  node.tell(agent.session_id!, ended(0));
  await room.until(agent.id, 'completed');
  const other = await room.create({ start: true });
  await room.close();
  await room.open();
  node.tell(other.session_id!, ended(0));
  expect((await room.until(other.id, 'completed')).exit_code).toBe(0);
  node.forget = forget;
});

test('an agent that was deleted while its node was unreachable is not recovered later', async () => {
  const agent = await room.create({ start: true });
  const { forget } = node;
  node.forget = () => Promise.reject(problems.nodeUnreachable());
  node.tell(agent.session_id!, ended(0));
  await room.until(agent.id, 'completed');
  await room.agents.delete(ANA, agent.id, { force: false, delete_worktree: false });
  await room.close();
  await room.open();
  expect((await room.agents.list(ANA, {}, {})).items).toEqual([]);
  node.forget = forget.bind(node);
  await room.close();
  await room.open();
  await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
  expect((await room.agents.list(ANA, {}, {})).items).toEqual([]);
});

test('deleting an agent cancels its automatic restart first', async () => {
  const agent = await room.create({
    restart_policy: 'on_failure',
    worktree_mode: 'create_worktree',
    start: true,
  });
  const timers = () => store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll()));
  node.tell(agent.session_id!, ended(1));
  await vi.waitFor(async () => expect(await timers()).toHaveLength(1), SOON);
  let owed: unknown[] = [];
  node.folders.removeWorktree = async () => {
    owed = await timers();
    return { removed: true, kept_because: null };
  };
  await room.agents.delete(ANA, agent.id, { force: false, delete_worktree: false });
  expect(owed).toEqual([]);
});

test('sends input with an idempotency key once, even if the service restarts', async () => {
  const agent = await room.create({ stdin: true, start: true });
  const request = new Uint8Array(32);
  const sent: string[] = [];
  const { input } = node;
  node.input = () => new Promise(() => {});
  expect(await room.idempotency.begin(ANA, 'key', request)).toHaveProperty('first');
  const first = room.agents.input(ANA, agent.id, 'once', false, 'key');
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(1);
  }, SOON);
  await room.close();
  expect((await first).status).toBe('running');
  node.input = async (id, offset, data) => {
    sent.push(`${offset} ${Buffer.from(data)}`);
    return input(id, offset, data);
  };
  await room.open();
  // The first response was lost, so the client repeats the request.
  const again = await room.idempotency.begin(ANA, 'key', request);
  expect(again).toMatchObject({ stored: { status: 200, body: { id: agent.id } } });
  await vi.waitFor(() => expect(sent).toEqual(['0 once']), SOON);
});

test('a stop succeeds if the session ends while the link breaks', async () => {
  const agent = await room.create({ start: true });
  node.stop = async (session_id) => {
    node.tell(session_id, ended(0));
    await room.until(agent.id, 'cancelled');
    // This is the error of a link that breaks at this moment.
    throw problems.nodeUnreachable();
  };
  expect((await room.agents.stop(ANA, agent.id, 0)).status).toBe('cancelled');
  await room.agents.start(ANA, agent.id, null);
  expect((await room.agents.restart(ANA, agent.id, 0, null)).status).toBe('running');
});
