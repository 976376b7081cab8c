/** Requests for an agent whose node does not answer. The last one is carried out once, when the node is back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { problems } from '../../core/problem.ts';
import { Ingest } from '../../events/ingest/ingest.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended, type ScriptedNode } from '../../testing/scripted-node.ts';
import { type Agent, type PendingKind, pendingKinds } from './rules.ts';

let fixture: FeaturesFixture;
let node: ScriptedNode;

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  ({ node } = fixture);
});
afterEach(() => fixture.end());

const UNREACHABLE = { code: 'node_unreachable', message: 'failed to connect to remote node' };

function leave(): void {
  node.reach = () => Promise.reject(problems.nodeUnreachable());
}

function comeBack(): void {
  node.reach = async () => {};
}

function ask(kind: PendingKind, agent_id: string): Promise<unknown> {
  if (kind === 'start') return fixture.agents.start(ANA, agent_id, null);
  return fixture.agents[kind](ANA, agent_id, 0, null);
}

/** Waits until the agent has no pending work, and this state. */
async function settles(agent_id: string, expected: Partial<Agent>): Promise<void> {
  await vi.waitFor(async () => {
    const left = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('outbox').selectAll()),
    );
    const agent = await fixture.get(agent_id);
    expect([left, agent.pending]).toEqual([[], null]);
    expect(agent).toMatchObject(expected);
  }, SOON);
}

async function audited(): Promise<string[]> {
  const query = (reader: Parameters<Parameters<typeof fixture.store.read>[0]>[0]) =>
    reader.all(reader.sql.selectFrom('audit').select('event').orderBy('id'));
  return (await fixture.store.read(query)).map(({ event }) => event);
}

/** The expected result of the second request, whatever the first one was. */
const outcomes: Record<'created' | 'running', Record<PendingKind | 'withdraw', Partial<Agent>>> = {
  created: {
    start: { status: 'running', session_count: 1 },
    restart: { status: 'running', session_count: 1 },
    stop: { status: 'created', session_count: 0 },
    withdraw: { status: 'created', session_count: 0 },
  },
  running: {
    start: { status: 'running', session_count: 1 },
    restart: { status: 'running', session_count: 2 },
    stop: { status: 'cancelled', session_count: 1 },
    withdraw: { status: 'running', session_count: 1 },
  },
};
const pairs = (['created', 'running'] as const).flatMap((state) =>
  pendingKinds.flatMap((first) =>
    ([...pendingKinds, 'withdraw'] as const).flatMap((second) =>
      // A stop of an agent that is not running is rejected, not kept.
      state === 'created' && first === 'stop' ? [] : [{ state, first, second }],
    ),
  ),
);

test.each(pairs)('$second replaces a kept $first of a $state agent', async ({ state, first, second }) => {
  const agent = await fixture.create({ start: state === 'running' });
  leave();
  await expect(ask(first, agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: first });
  expect(await fixture.get(agent.id)).toMatchObject({ status: state, pending: first });
  if (second === 'withdraw') {
    await fixture.agents.withdraw(ANA, agent.id);
    expect((await fixture.get(agent.id)).pending).toBeNull();
  } else {
    await expect(ask(second, agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: second });
    expect(await fixture.get(agent.id)).toMatchObject({ status: state, pending: second });
  }
  // The plane keeps the request across its own restart.
  await fixture.close();
  await fixture.open();
  comeBack();
  await settles(agent.id, outcomes[state][second]);
});

test('a repeated request is kept and carried out once', async () => {
  const agent = await fixture.create({ start: true });
  leave();
  for (let n = 0; n < 20; n++) await expect(ask('restart', agent.id)).rejects.toMatchObject(UNREACHABLE);
  comeBack();
  await settles(agent.id, { status: 'running', session_count: 2 });
  expect((await audited()).filter((event) => event === 'agent_request_kept')).toHaveLength(1);
});

test('a request that is kept just before the intent of an earlier one ends is carried out', async () => {
  const agent = await fixture.create({ start: true });
  leave();
  await expect(ask('stop', agent.id)).rejects.toMatchObject(UNREACHABLE);
  await fixture.agents.withdraw(ANA, agent.id);
  const { store } = fixture;
  const { write } = store;
  const kept = Promise.withResolvers<unknown>();
  // The next write completes the intent, which has found nothing to carry out.
  store.write = async (body, options) => {
    store.write = write;
    leave();
    kept.resolve(await ask('restart', agent.id).catch((error: unknown) => error));
    comeBack();
    return write.call(store, body, options) as never;
  };
  comeBack();
  fixture.core.outbox.retryNow(node.id);
  expect(await kept.promise).toMatchObject({ ...UNREACHABLE, pending: 'restart' });
  await settles(agent.id, { status: 'running', session_count: 2 });
});

test('a request that an earlier version kept is carried out for the user who made it', async () => {
  const agent = await fixture.create({ start: true });
  leave();
  await expect(ask('stop', agent.id)).rejects.toMatchObject(UNREACHABLE);
  await fixture.store.write(async (tx) => {
    const { pending_request } = (await tx.get(tx.sql.selectFrom('agents').select('pending_request')))!;
    const before = pending_request!.replace('"principal":', '"doer":');
    expect(before).not.toBe(pending_request);
    await tx.run(tx.sql.updateTable('agents').set({ pending_request: before }));
  });
  comeBack();
  await settles(agent.id, { status: 'cancelled' });
  const stopped = await fixture.store.read((reader) =>
    reader.get(reader.sql.selectFrom('audit').select('user_id').where('event', '=', 'agent_stopped')),
  );
  expect(stopped).toEqual({ user_id: ANA.user_id });
});

test('a kept start that the node refuses is given up, with the reason in the log', async () => {
  const agent = await fixture.create();
  leave();
  await expect(ask('start', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'start' });
  node.start = () => Promise.reject(problems.diskSpace());
  comeBack();
  await settles(agent.id, { status: 'created', session_count: 0 });
  expect(await fixture.errors(agent.id)).toEqual(['disk_space']);
});

test('a request that the node answers replaces the kept one', async () => {
  const agent = await fixture.create({ start: true });
  leave();
  await expect(ask('stop', agent.id)).rejects.toMatchObject(UNREACHABLE);
  comeBack();
  await expect(ask('start', agent.id)).rejects.toMatchObject({ code: 'agent_already_running' });
  await settles(agent.id, { status: 'running', session_count: 1 });
});

test('rejects a stop if the agent is not running and has no pending request', async () => {
  const agent = await fixture.create();
  leave();
  await expect(ask('stop', agent.id)).rejects.toMatchObject({ code: 'agent_not_running' });
});

test('if the agent ended while its node was away, a kept restart starts it and a kept stop does nothing', async () => {
  const [again, done] = [await fixture.create({ start: true }), await fixture.create({ start: true })];
  leave();
  await expect(ask('restart', again.id)).rejects.toMatchObject(UNREACHABLE);
  await expect(ask('stop', done.id)).rejects.toMatchObject(UNREACHABLE);
  for (const { session_id } of [again, done]) node.sendFact(session_id!, ended(0));
  comeBack();
  await settles(done.id, { status: 'completed', session_count: 1 });
  await settles(again.id, { status: 'running', session_count: 2 });
});

test('a start whose response was lost creates one session', async () => {
  const agent = await fixture.create();
  const { start } = node;
  node.start = async (launch) => {
    node.addSession(launch);
    leave();
    throw problems.nodeUnreachable();
  };
  await expect(ask('start', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'start' });
  await expect(ask('start', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'start' });
  node.start = start.bind(node);
  comeBack();
  const [session_id] = [...node.views.keys()];
  node.sendFact(session_id!, { kind: 'started', pid: 7, started_at_ms: 1 });
  await settles(agent.id, { status: 'running', session_count: 1, session_id });
});

test('a start whose response was lost is not repeated if it failed on the node', async () => {
  const agent = await fixture.create();
  const { start } = node;
  node.start = async (launch) => {
    node.addSession(launch);
    leave();
    throw problems.nodeUnreachable();
  };
  await expect(ask('start', agent.id)).rejects.toMatchObject(UNREACHABLE);
  node.start = start.bind(node);
  comeBack();
  const [session_id] = [...node.views.keys()];
  node.sendFact(session_id!, ended(127));
  await settles(agent.id, { status: 'failed', session_count: 1, session_id });
});

test.each(['withdraw', 'stop'] as const)(
  'ends a start that reached the node before a %s, and restores the agent’s state',
  async (second) => {
    const agent = await fixture.create();
    const { start } = node;
    node.start = async (launch) => {
      node.addSession(launch);
      leave();
      throw problems.nodeUnreachable();
    };
    await expect(ask('start', agent.id)).rejects.toMatchObject(UNREACHABLE);
    if (second === 'withdraw') await fixture.agents.withdraw(ANA, agent.id);
    else await expect(ask('stop', agent.id)).rejects.toMatchObject(UNREACHABLE);
    node.start = start.bind(node);
    comeBack();
    const [session_id] = [...node.views.keys()];
    node.sendFact(session_id!, { kind: 'started', pid: 7, started_at_ms: 1 });
    await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
    await settles(agent.id, { status: 'created', session_count: 0, session_id: null });
    expect(await audited()).toContain('forgotten_session_ended');
  },
);

test.each([
  ['withdraw', { status: 'running', session_count: 1 }],
  ['stop', { status: 'cancelled', session_count: 1 }],
] as const)(
  'a %s after a start that ran before its response was lost keeps the session',
  async (second, end) => {
    const agent = await fixture.create();
    const { start } = node;
    node.start = async (launch) => {
      await start.call(node, launch);
      await fixture.until(agent.id, 'running');
      leave();
      throw problems.nodeUnreachable();
    };
    await expect(ask('start', agent.id)).rejects.toMatchObject(UNREACHABLE);
    if (second === 'withdraw') await fixture.agents.withdraw(ANA, agent.id);
    else await expect(ask('stop', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'stop' });
    expect(await fixture.get(agent.id)).toMatchObject({ status: 'running', session_count: 1 });
    comeBack();
    await settles(agent.id, end);
  },
);

test('a withdrawn start that has only begun on its node is ended there before it runs', async () => {
  const agent = await fixture.create();
  let session_id = '';
  node.start = (launch) => {
    session_id = launch.session_id;
    leave();
    return Promise.reject(problems.nodeUnreachable());
  };
  await expect(ask('start', agent.id)).rejects.toMatchObject(UNREACHABLE);
  await fixture.agents.withdraw(ANA, agent.id);
  comeBack();
  const stop = vi.spyOn(node, 'stop');
  await node.sendSnapshot(node.link!, [], [session_id]);
  await settles(agent.id, { status: 'created', session_count: 0 });
  expect(stop.mock.calls.map(([id]) => id)).toEqual([session_id]);
});

test('a start withdraws a stop whose connection broke', async () => {
  const agent = await fixture.create({ start: true });
  const { stop } = node;
  node.stop = async () => {
    leave();
    throw problems.nodeUnreachable();
  };
  await expect(ask('stop', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'stop' });
  await expect(ask('start', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'start' });
  node.stop = stop.bind(node);
  comeBack();
  await settles(agent.id, { status: 'running', session_count: 1 });
});

test('a stop during which the node disconnects is kept and carried out once', async () => {
  const agent = await fixture.create({ start: true });
  const { stop } = node;
  let stops = 0;
  let fail = (_error: Error) => {};
  node.stop = () => {
    stops += 1;
    leave();
    return new Promise((_resolve, reject) => {
      fail = reject;
    });
  };
  await expect(ask('stop', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'stop' });
  await expect(ask('stop', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'stop' });
  expect(stops).toBe(1);
  node.stop = (session_id) => {
    stops += 1;
    return stop.call(node, session_id);
  };
  comeBack();
  fail(problems.nodeUnreachable());
  await settles(agent.id, { status: 'cancelled', session_count: 1 });
  expect(stops).toBe(2);
});

test('a dry run of a deletion is rejected, and keeps an earlier request and nothing else', async () => {
  const agent = await fixture.create({ start: true });
  leave();
  await expect(ask('stop', agent.id)).rejects.toMatchObject(UNREACHABLE);
  const before = await audited();
  const options = { force: true, delete_worktree: true };
  await expect(fixture.agents.previewDeletion(ANA, agent.id, options)).rejects.toMatchObject(UNREACHABLE);
  expect(await fixture.get(agent.id)).toMatchObject({ status: 'running', pending: 'stop' });
  expect(await audited()).toEqual(before);
  comeBack();
  await settles(agent.id, { status: 'cancelled' });
});

test('input and delete are rejected and change nothing', async () => {
  const agent = await fixture.create({ stdin: true, start: true });
  leave();
  await expect(fixture.agents.input(ANA, agent.id, 'x', false, null)).rejects.toMatchObject(UNREACHABLE);
  const options = { force: true, delete_worktree: true };
  await expect(fixture.agents.delete(ANA, agent.id, options)).rejects.toMatchObject(UNREACHABLE);
  expect(await fixture.get(agent.id)).toMatchObject({ status: 'running', pending: null });
  comeBack();
  await fixture.agents.input(ANA, agent.id, 'y', false, null);
  expect(node.stdin(agent.session_id!).toString()).toBe('y');
});

describe('a restart whose stop takes time', () => {
  let agent: Agent;
  let stops: number;
  /** Lets the stop continue. */
  let go: () => void;

  beforeEach(async () => {
    agent = await fixture.create({ start: true });
    const { stop } = node;
    stops = 0;
    const { promise: held, resolve } = Promise.withResolvers<void>();
    go = resolve;
    node.stop = async (session_id) => {
      stops += 1;
      await held;
      return stop.call(node, session_id);
    };
  });

  /** Requests a restart, and waits until the node stops the session. */
  async function restarting(): Promise<{ restart: Promise<unknown> }> {
    const restart = ask('restart', agent.id);
    restart.catch(() => {});
    await vi.waitFor(() => expect(stops).toBe(1), SOON);
    return { restart };
  }

  test('is not shown as pending', async () => {
    const { restart } = await restarting();
    expect(await fixture.get(agent.id)).toMatchObject({ status: 'running', pending: null });
    go();
    expect(await restart).toMatchObject({ status: 'running', pending: null, session_count: 2 });
    await settles(agent.id, { status: 'running', session_count: 2 });
    expect(await audited()).not.toContain('agent_request_kept');
  });

  test('starts the agent even if the plane ends in the meantime', async () => {
    const { restart } = await restarting();
    await fixture.close();
    await expect(restart).rejects.toMatchObject({ code: 'shutdown_interrupted' });
    await fixture.open();
    expect(await fixture.get(agent.id)).toMatchObject({ status: 'running', pending: 'restart' });
    go();
    await settles(agent.id, { status: 'running', session_count: 2 });
  });

  test('starts the agent even if the plane ends after the stop', async () => {
    await restarting();
    await fixture.close();
    go();
    await vi.waitFor(() => expect(node.views.get(agent.session_id!)!.phase).toBe('ended'), SOON);
    await fixture.open();
    await settles(agent.id, { status: 'running', session_count: 2 });
  });

  test('does not start the agent if it is stopped in the meantime', async () => {
    const { restart } = await restarting();
    const stop = ask('stop', agent.id);
    // The stop has joined the other one.
    await vi.waitFor(async () => expect(await unshown()).toBeNull(), SOON);
    go();
    expect(await stop).toMatchObject({ status: 'cancelled' });
    await expect(restart).rejects.toMatchObject({ code: 'agent_not_running' });
    await fixture.close();
    await fixture.open();
    await settles(agent.id, { status: 'cancelled', session_count: 1 });
    expect(stops).toBe(1);
  });

  test('does not start the agent if it is stopped before the restart is stored', async () => {
    const { store } = fixture;
    const { write } = store;
    const stored = Promise.withResolvers<void>();
    let writes = 0;
    store.write = async (fn, options) => {
      // As if the first one had conflicted with others.
      if (++writes === 1) await stored.promise;
      return write.call(store, fn, options) as never;
    };
    const restart = ask('restart', agent.id);
    restart.catch(() => {});
    await vi.waitFor(() => expect(writes).toBe(1), SOON);
    const stop = ask('stop', agent.id);
    // Usually, the stop has joined the other one by then. If it joins later, the result is the same.
    await sleep(50);
    stored.resolve();
    await vi.waitFor(() => expect(stops).toBe(1), SOON);
    await vi.waitFor(async () => expect(await unshown()).toBeNull(), SOON);
    go();
    expect(await stop).toMatchObject({ status: 'cancelled' });
    await expect(restart).rejects.toMatchObject({ code: 'agent_not_running' });
    store.write = write;
    await settles(agent.id, { status: 'cancelled', session_count: 1 });
  });

  test('is left alone by the intent of an earlier request', async () => {
    leave();
    await expect(ask('start', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'start' });
    comeBack();
    const { restart } = await restarting();
    await vi.waitFor(async () => expect(await intents()).toEqual(['stop']), SOON);
    go();
    expect(await restart).toMatchObject({ status: 'running', session_count: 2 });
  });

  test('is never shown as a stop', async () => {
    node.stop = async () => {
      leave();
      throw problems.nodeUnreachable();
    };
    await expect(ask('restart', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'restart' });
    const feed = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('feed').select('record').where('kind', '=', 'agent').orderBy('id')),
    );
    const shown = new Set(feed.map(({ record }) => (JSON.parse(record) as Agent).pending));
    expect([...shown]).toEqual([null, 'restart']);
  });

  test('can be withdrawn after the plane ended in the meantime', async () => {
    await restarting();
    await fixture.close();
    await fixture.open();
    await fixture.agents.withdraw(ANA, agent.id);
    go();
    // The node had begun to stop it.
    await vi.waitFor(async () => expect((await fixture.get(agent.id)).ended_at).not.toBeNull(), SOON);
    await settles(agent.id, { session_count: 1 });
  });

  test('is kept if the node disconnects in the meantime', async () => {
    const { restart } = await restarting();
    leave();
    await expect(restart).rejects.toMatchObject({ ...UNREACHABLE, pending: 'restart' });
    expect(await fixture.get(agent.id)).toMatchObject({ status: 'running', pending: 'restart' });
    comeBack();
    go();
    await settles(agent.id, { status: 'running', session_count: 2 });
  });

  test('does not start the agent next to a process that survived', async () => {
    node.stop = async () => ({ cleanup: 'swept', survivors: [7] as never[] });
    await expect(ask('restart', agent.id)).rejects.toMatchObject({ code: 'agent_processes_survived' });
    expect(await unshown()).toBeNull();
    await fixture.close();
    await fixture.open();
    await settles(agent.id, { status: 'running', session_count: 1 });
  });

  async function unshown(): Promise<string | null> {
    const query = fixture.store.read((reader) =>
      reader.get(reader.sql.selectFrom('agents').select('pending_request')),
    );
    return (await query)!.pending_request;
  }

  async function intents(): Promise<string[]> {
    const query = fixture.store.read((reader) => reader.all(reader.sql.selectFrom('outbox').select('kind')));
    return (await query).map(({ kind }) => kind);
  }
});

test('a stop that replaces a kept restart is carried out although a process has survived the stop of the restart', async () => {
  const agent = await fixture.create({ start: true });
  const { stop } = node;
  leave();
  await expect(ask('restart', agent.id)).rejects.toMatchObject(UNREACHABLE);
  const stopping = Promise.withResolvers<void>();
  const report = Promise.withResolvers<{ cleanup: 'swept'; survivors: never[] }>();
  node.stop = () => {
    stopping.resolve();
    return report.promise;
  };
  comeBack();
  await stopping.promise;
  leave();
  await expect(ask('stop', agent.id)).rejects.toMatchObject({ ...UNREACHABLE, pending: 'stop' });
  node.stop = stop.bind(node);
  report.resolve({ cleanup: 'swept', survivors: [7] as never[] });
  comeBack();
  await settles(agent.id, { status: 'cancelled', session_count: 1 });
});

test.each(['before', 'during'] as const)('restarts an agent that starts %s its stop', async (when) => {
  const agent = await fixture.create();
  const { start, stop } = node;
  node.start = async (launch) => {
    node.addSession(launch);
    node.start = start;
    return node.views.get(launch.session_id)!;
  };
  const starting = ask('start', agent.id);
  await vi.waitFor(() => expect(node.views.size).toBe(1), SOON);
  node.stop = async (session_id) => {
    if (when === 'during') node.sendFact(session_id, { kind: 'started', pid: 7, started_at_ms: 1 });
    return stop.call(node, session_id);
  };
  expect(await ask('restart', agent.id)).toMatchObject({ status: 'running', session_count: 2 });
  await starting;
});

describe('forgetting', () => {
  test('lists the remaining sessions, and ends them when the node comes back', async () => {
    const agent = await fixture.create({ start: true });
    const session_id = agent.session_id!;
    leave();
    const dry = await fixture.forgetting.forget(ANA, agent.id, { dry_run: true });
    expect(await fixture.get(agent.id)).toMatchObject({ status: 'running' });
    const left = await fixture.forgetting.forget(ANA, agent.id);
    expect(left).toEqual(dry);
    expect(left).toMatchObject({
      agent_id: agent.id,
      workdir: agent.workdir,
      sessions: [{ id: session_id, pid: 7 }],
    });
    await expect(fixture.get(agent.id)).rejects.toThrow('agent not found');
    await fixture.close();
    comeBack();
    await fixture.open();
    await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
    await vi.waitFor(async () => expect(await audited()).toContain('forgotten_session_ended'), SOON);
    expect((await fixture.agents.list(ANA, {}, {})).items).toEqual([]);
  });

  test('ends the reader of a live session', async () => {
    const agent = await fixture.create({ start: true });
    leave();
    const unfollow = vi.spyOn(Ingest.prototype, 'unfollow');
    await fixture.forgetting.forget(ANA, agent.id);
    expect(unfollow.mock.calls).toEqual([[agent.session_id]]);
  });

  test('records the processes that were left running without their command lines', async () => {
    const { id, session_id } = await fixture.create({ on_exit: 'keep', start: true });
    const leftovers = [{ pid: 4711, command: 'serve --key secret' }];
    node.sendFact(session_id!, ended(0, 0, leftovers));
    await fixture.until(id, 'completed');
    leave();
    expect(await fixture.forgetting.forget(ANA, id)).toMatchObject({ leftovers });
    const record = await fixture.store.read((reader) =>
      reader.get(reader.sql.selectFrom('audit').select('details').where('event', '=', 'agent_forgotten')),
    );
    expect(JSON.parse(record!.details)).toMatchObject({ left_behind: { leftovers: [4711] } });
    expect(record!.details).not.toContain('secret');
  });

  test('also ends a session that only the node knows', async () => {
    const agent = await fixture.create();
    leave();
    await fixture.forgetting.forget(ANA, agent.id);
    await fixture.close();
    const launch = { ...agent, agent_id: agent.id, agent_name: 'a', argv: ['true'], session_id: 'ses_lost' };
    node.addSession({ ...launch, plane_id: 'pln_a', env: {} });
    comeBack();
    await fixture.open();
    await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);
    expect((await fixture.agents.list(ANA, {}, {})).items).toEqual([]);
  });

  test('requires root and an unreachable node', async () => {
    const agent = await fixture.create({}, null, BEN);
    await expect(fixture.forgetting.forget(ANA, agent.id)).rejects.toMatchObject({
      code: 'agent_node_answers',
    });
    leave();
    await expect(fixture.forgetting.forget(BEN, agent.id)).rejects.toThrow('root required');
    await expect(fixture.forgetting.forget(ANA, 'agt_none')).rejects.toThrow('agent not found');
    expect(await fixture.get(agent.id)).toMatchObject({ status: 'created' });
  });
});
