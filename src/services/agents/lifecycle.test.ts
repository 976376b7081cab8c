/** Lives of agents on a node that does what a test tells it: the moments that real processes are too quick for. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../base/limits.ts';
import { silentLog } from '../../base/log.ts';
import type { Agent } from '../../domain/agent.ts';
import type { Folders, Node, NodeSink, SessionFact, SessionView } from '../../domain/node.ts';
import { problems } from '../../domain/problem.ts';
import type { Launch } from '../../domain/session.ts';
import type { Caller } from '../../domain/user.ts';
import { Feed } from '../../events/feed.ts';
import { type EventLog, openEventLog } from '../../events/log.ts';
import { Facts } from '../../flow/facts.ts';
import { Outbox } from '../../flow/outbox.ts';
import { Ingest } from '../../ingest/ingest.ts';
import { openSqlite } from '../../store/sqlite.ts';
import type { Store } from '../../store/store.ts';
import { TestClock } from '../../testing/accounts.ts';
import { Timers } from '../../timers/timers.ts';
import { Conversations } from '../acp/conversations.ts';
import { Prompting } from '../acp/prompting.ts';
import { Audit } from '../audit.ts';
import { IdempotencyKeys } from '../idempotency.ts';
import { nodeSink } from './adoption.ts';
import { Agents, type CreateAgent } from './agents.ts';
import { AgentsContext } from './context.ts';
import { Lifecycle } from './lifecycle.ts';
import { restartFacts, restartTimers } from './restarts.ts';
import { Settlement } from './settle.ts';

type Body = SessionFact['body'];

/** Knows a session from its start on, and tells of it only what a test says. */
class ScriptedNode implements Node {
  readonly id = 'main';
  readonly views = new Map<string, SessionView>();
  folders = {
    resolve: async (workdir: string) => workdir,
    createWorktree: async ({ workdir }) => ({ workdir: workdir!, repo: null, branch: null, base: null }),
  } as Folders;
  #sink: NodeSink | null = null;

  async attach(sink: NodeSink): Promise<void> {
    this.#sink = sink;
    await sink.snapshot([...this.views.values()]);
  }

  async detach(): Promise<void> {
    this.#sink = null;
  }

  /** Makes the next fact of a session. */
  tell(session_id: string, body: Body): void {
    const view = this.views.get(session_id)!;
    const fact = { session_id, number: view.facts.length + 1, at_ms: 0, body };
    view.facts.push(fact);
    if (body.kind === 'started') view.phase = 'running';
    if (body.kind === 'ended') [view.phase, view.end] = ['ended', body.end];
    this.#sink?.fact(fact);
  }

  async start(launch: Launch): Promise<SessionView> {
    const known = this.views.get(launch.session_id);
    if (known) return known;
    await this.folders.resolve(launch.workdir);
    this.know(launch);
    this.tell(launch.session_id, { kind: 'started', pid: 7, started_at_ms: 1 });
    return this.views.get(launch.session_id)!;
  }

  know(launch: Launch): void {
    const view = { session_id: launch.session_id, launch: { ...launch, env_keys: [] }, phase: 'starting' };
    const nothing = { pid: null, started_at_ms: null, end: null, stdin_bytes: 0, facts: [] };
    this.views.set(launch.session_id, { ...view, ...nothing } as SessionView);
  }

  async stop(session_id: string) {
    if (!this.views.has(session_id)) throw problems.sessionNotFound();
    this.tell(session_id, ended(null));
    return { cleanup: 'swept' as const, survivors: [] };
  }

  input = async (_id: string, offset: number, data: Uint8Array) => offset + data.length;

  async read(session_id: string): Promise<Uint8Array> {
    if (!this.views.has(session_id)) throw problems.sessionNotFound();
    return new Uint8Array();
  }

  committed(): void {}

  async forget(session_id: string): Promise<void> {
    if (this.views.get(session_id)?.phase !== 'ended') throw problems.agentRunning();
    this.views.delete(session_id);
  }

  health = async () => ({ version: '', uptime_seconds: 0, sessions_live: 0, disk: {} as never });
  probe = async () => [];
}

function ended(exit_code: number | null): Body {
  const exit = {
    exit_code,
    exit_signal: null,
    reason: exit_code ? ('exit_code' as const) : null,
    message: null,
  };
  const sizes = { stdout: 0, stderr: 0 };
  return { kind: 'ended', end: { exit, sizes, cleanup: 'swept', leftovers: [], ended_at_ms: 2 } };
}

const caller: Caller = { user_id: 'usr_a', username: 'ana', role: 'root', token_id: 'tok_a', ip: null };

let folder: string;
let store: Store;
let log: EventLog;
let feed: Feed;
let clock: TestClock;
let node: ScriptedNode;
let agents: Agents;
let idempotency: IdempotencyKeys;
let close: () => Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-lives-'));
  store = await openSqlite({ path: join(folder, 'svc.db'), log: silentLog });
  clock = new TestClock();
  log = openEventLog({ store, data_dir: folder, clock, log: silentLog });
  feed = new Feed({ store, clock });
  node = new ScriptedNode();
  await open();
});
afterEach(async () => {
  await close();
  await feed.close();
  await log.close();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

/** The rooms of a plane, wired as `main/plane.ts` does. */
async function open(): Promise<void> {
  const common = { store, clock, log: silentLog };
  const [facts, outbox, timers] = [new Facts(common), new Outbox(common), new Timers(common)];
  idempotency = new IdempotencyKeys({ store, clock, key: new Uint8Array(32) });
  const context = new AgentsContext({
    idempotency,
    ...{ store, log, feed, facts, outbox, timers, clock, logger: silentLog, plane_id: 'pln_a' },
    actorToken: () => null,
    audit: new Audit(common),
    node: () => node,
    farewell: (tx, session_id) => conversations.farewell(tx, session_id),
  });
  const prompting = new Prompting(context);
  const conversations = new Conversations(context, {
    review_timeout_ms: () => null,
    answered: (id, error) => prompting.answered(id, error),
  });
  const settlement = new Settlement(context);
  const ingest = new Ingest({
    ...{ ...common, node },
    load: (session_id) => settlement.load(session_id, 'main'),
    settle: (session_id, fact) => settlement.settle(session_id, fact),
    frames: (batch) => conversations.frames(batch),
    rebase: (session_id, stream) => settlement.rebase(session_id, stream),
  });
  const lifecycle = new Lifecycle(context, settlement, () => ingest);
  agents = new Agents(context, lifecycle);
  await node.attach(nodeSink(context, settlement, 'main', ingest));
  await facts.open({ 'agent-restarts': restartFacts(context), conversations: conversations.facts() });
  timers.open({ ...restartTimers(context, lifecycle), ...conversations.timers() });
  await outbox.open(lifecycle.handlers());
  close = async () => {
    outbox.close();
    await timers.close();
    await facts.close();
    await node.detach();
    await ingest.close();
  };
}

function create(more: Partial<CreateAgent> = {}, key: string | null = null): Promise<Agent> {
  const none = { argv: null, preset: null, worktree_repo: null, worktree_ref: null, env: {}, labels: {} };
  const request = { ...none, name: 'a', command: 'true', workdir: folder, node_id: 'main' };
  const usual = { worktree_mode: 'use_existing', protocol: 'auto', restart_policy: 'never' } as const;
  const rest = { stdin: false, on_exit: 'kill', prompt: null, start: false } as const;
  return agents.create(caller, { ...request, ...usual, ...rest, ...more }, key);
}

const get = (id: string) => agents.get(caller, id);

async function until(id: string, status: Agent['status']): Promise<Agent> {
  await vi.waitFor(async () => expect((await get(id)).status).toBe(status), 20_000);
  return get(id);
}

test('a preset fills in what is left open; what the request says itself wins', async () => {
  const open = { command: null, protocol: 'plain' as const };
  const codex = await create({ ...open, preset: 'codex', env: { MINE: '1' } });
  const argv = ['codex-acp'];
  expect(codex).toMatchObject({ preset: 'codex', argv, command: 'codex-acp', protocol: 'plain' });
  expect(codex.env_keys.sort()).toEqual(['INITIAL_AGENT_MODE', 'MINE']);
  const changed = await agents.update(caller, codex.id, { env: { OTHER: '1' } });
  expect(changed.env_keys.sort()).toEqual(['INITIAL_AGENT_MODE', 'OTHER']);
  expect(await create({ command: null, preset: 'codex' })).toMatchObject({ protocol: 'acp', stdin: true });

  const own = { preset: 'codex', command: 'npx codex-acp', env: { INITIAL_AGENT_MODE: 'agent' } };
  const started = await create({ ...open, ...own, start: true });
  expect(started).toMatchObject({ preset: 'codex', argv: null, command: 'npx codex-acp' });
  const { launch } = node.views.get(started.session_id!)!;
  expect(launch).toMatchObject({ env: { INITIAL_AGENT_MODE: 'agent' } });
  expect(await create({ preset: 'plain', command: 'true' })).toMatchObject({
    protocol: 'plain',
    preset: 'plain',
  });
});

test('a preset that is unknown is refused, as is one without a command that needs one', async () => {
  const unknown = create({ command: null, preset: 'chess' });
  await expect(unknown).rejects.toMatchObject({ kind: 'invalid', message: 'unknown preset: chess' });
  for (const preset of ['plain', 'acp']) {
    await expect(create({ command: ' ', preset })).rejects.toThrow('command is required');
  }
});

test('a start that is carried out again never settles a process that runs, though its folder is gone since', async () => {
  const agent = await create();
  // The node has the session, and the plane dies before it hears of it.
  const { start } = node;
  node.start = (launch) => {
    node.know(launch);
    return new Promise(() => {});
  };
  void agents.start(caller, agent.id, null).catch(() => {});
  await vi.waitFor(() => expect(node.views.size).toBe(1), 20_000);
  await close();
  node.start = start;
  node.folders.resolve = () => Promise.reject(problems.workdirMissing());
  await open();
  const [session_id] = [...node.views.keys()];
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toEqual([]);
  }, 20_000);
  node.tell(session_id!, { kind: 'started', pid: 7, started_at_ms: 1 });
  expect(await until(agent.id, 'running')).toMatchObject({ session_id, reason: null });
});

test('a stop that comes before its start reached the node ends the session', async () => {
  const agent = await create();
  let go = () => {};
  const resolve = node.folders.resolve;
  node.folders.resolve = async (workdir) => {
    await new Promise<void>((done) => {
      go = done;
    });
    return resolve(workdir);
  };
  node.start = () => Promise.reject(problems.nodeUnreachable());
  const starting = agents.start(caller, agent.id, null).catch((error: Error) => error.message);
  await vi.waitFor(async () => expect((await get(agent.id)).session_id).not.toBeNull(), 20_000);
  const stopping = agents.stop(caller, agent.id, 0);
  await vi.waitFor(async () => {
    go();
    expect(await starting).toBe('failed to connect to remote node');
  }, 20_000);
  const stopped = await stopping;
  expect(stopped).toMatchObject({ status: 'cancelled', pending: null });
});

test('a stop behind a start that is refused is answered', async () => {
  const agent = await create();
  let refuse = (_error: Error) => {};
  node.folders.resolve = () =>
    new Promise((_resolve, reject) => {
      refuse = reject;
    });
  const starting = agents.start(caller, agent.id, null);
  await vi.waitFor(async () => expect((await get(agent.id)).activity).toBe('starting'), 20_000);
  const stopping = agents.stop(caller, agent.id, 0);
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(2);
  }, 20_000);
  refuse(problems.workdirMissing());
  await starting;
  expect((await stopping).status).toBe('cancelled');
});

test('a stop of an agent that is still starting answers when the session is over', async () => {
  const agent = await create();
  const { start } = node;
  node.start = async (launch) => {
    node.know(launch);
    return node.views.get(launch.session_id)!;
  };
  const starting = agents.start(caller, agent.id, null);
  await vi.waitFor(() => expect(node.views.size).toBe(1), 20_000);
  node.start = start;
  node.stop = async (session_id) => {
    setTimeout(() => {
      node.tell(session_id, { kind: 'started', pid: 7, started_at_ms: 1 });
      node.tell(session_id, ended(null));
    }, 200);
    return { cleanup: 'swept', survivors: [] };
  };
  expect((await agents.restart(caller, agent.id, 0, null)).status).toBe('running');
  await starting;
});

test('input that waits while its session ends is refused, not left waiting', async () => {
  const agent = await create({ stdin: true, start: true });
  let go = () => {};
  const taken = new Promise<void>((done) => {
    go = done;
  });
  node.input = async (_id, offset, data) => {
    await taken;
    return offset + data.length;
  };
  const sent = [
    agents.input(caller, agent.id, 'a', false, null),
    agents.input(caller, agent.id, 'b', false, null),
  ];
  const words = sent.map((one) => one.then((after) => after.status).catch((error: Error) => error.message));
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(2);
  }, 20_000);
  node.tell(agent.session_id!, ended(0));
  await until(agent.id, 'completed');
  go();
  expect(await Promise.all(words)).toEqual(['completed', 'agent is not running']);
});

test('restart and a forced delete do what they should for an agent that ends on the way', async () => {
  const agent = await create({ start: true });
  const { stop } = node;
  const endFirst = async () => {
    const { session_id } = await get(agent.id);
    node.tell(session_id!, ended(0));
    await until(agent.id, 'completed');
  };
  // The end is committed after the request found the agent running, and before its stop is decided.
  const write = store.write.bind(store);
  let before: (() => Promise<void>) | null = endFirst;
  store.write = async (fn) => {
    const first = before;
    before = null;
    await first?.();
    return write(fn);
  };
  node.stop = () => Promise.reject(problems.sessionNotFound());
  const restarted = await agents.restart(caller, agent.id, 0, null);
  expect(restarted).toMatchObject({ status: 'running', session_count: 2 });
  before = endFirst;
  await agents.delete(caller, agent.id, { force: true, delete_worktree: false });
  node.stop = stop;
  await expect(get(agent.id)).rejects.toThrow('agent not found');
});

test('a key that is older than a day stands for a new request', async () => {
  const agent = await create({ name: 'old' }, 'key');
  expect((await create({ name: 'old' }, 'key')).id).toBe(agent.id);
  await agents.start(caller, agent.id, 'start');
  expect((await agents.start(caller, agent.id, 'start')).session_count).toBe(1);
  await agents.stop(caller, agent.id, 0);

  clock.advance(limits.idempotency_keep_ms + 1);
  const fresh = await create({ name: 'new' }, 'key');
  expect(fresh).toMatchObject({ name: 'new' });
  expect(fresh.id).not.toBe(agent.id);
  expect(await agents.start(caller, agent.id, 'start')).toMatchObject({
    status: 'running',
    session_count: 2,
  });
});

test('a key whose session was followed by others starts nothing again', async () => {
  const agent = await create();
  await agents.start(caller, agent.id, 'key');
  await agents.stop(caller, agent.id, 0);
  await agents.start(caller, agent.id, null);
  await agents.stop(caller, agent.id, 0);
  expect(await agents.start(caller, agent.id, 'key')).toMatchObject({
    status: 'cancelled',
    session_count: 2,
  });
});

test('the same start asked for again while it is under way waits for it', async () => {
  const agent = await create();
  node.start = async (launch) => {
    node.know(launch);
    setTimeout(() => node.tell(launch.session_id, { kind: 'started', pid: 7, started_at_ms: 1 }), 200);
    return node.views.get(launch.session_id)!;
  };
  const first = agents.start(caller, agent.id, 'key');
  await vi.waitFor(() => expect(node.views.size).toBe(1), 20_000);
  expect((await agents.start(caller, agent.id, 'key')).status).toBe('running');
  expect((await first).status).toBe('running');
});

test('a restart that the policy asks for is tried again after the node refused it', async () => {
  const agent = await create({ restart_policy: 'on_failure', start: true });
  const { start } = node;
  let refused = 0;
  node.start = () => {
    refused += 1;
    return Promise.reject(problems.diskSpace());
  };
  node.tell(agent.session_id!, ended(1));
  await until(agent.id, 'failed');
  const due = async () =>
    (await store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll())))[0];
  const fire = async () => {
    await vi.waitFor(async () => expect(await due()).toBeDefined(), 20_000);
    clock.advance((await due())!.due_at - clock.now());
    await store.write((tx) => {
      tx.run(tx.sql.updateTable('agents').set({ updated_at: clock.now() }).where('id', '=', agent.id));
    });
    // The scheduler sleeps by the real clock: another timer wakes it.
    await close();
    await open();
  };
  await fire();
  await vi.waitFor(() => expect(refused).toBe(1), 20_000);
  node.start = start;
  await fire();
  expect(await until(agent.id, 'running')).toMatchObject({ session_count: 2 });
});

test('a session directory that cannot be removed does not keep the plane from starting', async () => {
  const agent = await create({ start: true });
  const { forget } = node;
  node.forget = () => Promise.reject(new Error('EBUSY'));
  node.tell(agent.session_id!, ended(0));
  await until(agent.id, 'completed');
  const other = await create({ start: true });
  await close();
  await open();
  node.tell(other.session_id!, ended(0));
  expect((await until(other.id, 'completed')).exit_code).toBe(0);
  node.forget = forget;
});

test('an agent deleted while its node is out of reach does not come back as a recovered one', async () => {
  const agent = await create({ start: true });
  const { forget } = node;
  node.forget = () => Promise.reject(problems.nodeUnreachable());
  node.tell(agent.session_id!, ended(0));
  await until(agent.id, 'completed');
  await agents.delete(caller, agent.id, { force: false, delete_worktree: false });
  await close();
  await open();
  expect((await agents.list(caller, {}, {})).items).toEqual([]);
  node.forget = forget.bind(node);
  await close();
  await open();
  await vi.waitFor(() => expect(node.views.size).toBe(0), 20_000);
  expect((await agents.list(caller, {}, {})).items).toEqual([]);
});

test('an agent that is being deleted is not started by its restart policy', async () => {
  const agent = await create({ restart_policy: 'on_failure', worktree_mode: 'create_worktree', start: true });
  const timers = () => store.read((reader) => reader.all(reader.sql.selectFrom('timers').selectAll()));
  node.tell(agent.session_id!, ended(1));
  await vi.waitFor(async () => expect(await timers()).toHaveLength(1), 20_000);
  let owed: unknown[] = [];
  node.folders.removeWorktree = async () => {
    owed = await timers();
    return { removed: true, kept_because: null };
  };
  await agents.delete(caller, agent.id, { force: false, delete_worktree: false });
  expect(owed).toEqual([]);
});

test('input with a key is sent once, whenever the service ends', async () => {
  const agent = await create({ stdin: true, start: true });
  const request = new Uint8Array(32);
  const sent: string[] = [];
  const { input } = node;
  node.input = () => new Promise(() => {});
  expect(await idempotency.begin(caller, 'key', request)).toHaveProperty('first');
  const first = agents.input(caller, agent.id, 'once', false, 'key');
  await vi.waitFor(async () => {
    const intents = await store.read((reader) => reader.all(reader.sql.selectFrom('outbox').selectAll()));
    expect(intents).toHaveLength(1);
  }, 20_000);
  await close();
  expect((await first).status).toBe('running');
  node.input = async (id, offset, data) => {
    sent.push(`${offset} ${Buffer.from(data)}`);
    return input(id, offset, data);
  };
  await open();
  // The first answer was lost: the same request comes again.
  const again = await idempotency.begin(caller, 'key', request);
  expect(again).toMatchObject({ stored: { status: 200, body: { id: agent.id } } });
  await vi.waitFor(() => expect(sent).toEqual(['0 once']), 20_000);
});

test('a stop whose session ends by itself on the way is answered as done', async () => {
  const agent = await create({ start: true });
  node.stop = async (session_id) => {
    node.tell(session_id, ended(0));
    await until(agent.id, 'cancelled');
    // What a link says that breaks just then.
    throw problems.nodeUnreachable();
  };
  expect((await agents.stop(caller, agent.id, 0)).status).toBe('cancelled');
  await agents.start(caller, agent.id, null);
  expect((await agents.restart(caller, agent.id, 0, null)).status).toBe('running');
});
