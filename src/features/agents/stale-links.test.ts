/** What a node said over an earlier link arrives after a newer link was made: nothing changes. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Link } from '../../core/node.ts';
import { invalid, problems } from '../../core/problem.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ended, type ScriptedNode } from '../../testing/scripted-node.ts';
import { insertNode, updateNode } from '../nodes/queries.ts';

let fixture: FeaturesFixture;
let node: ScriptedNode;
let epoch = 0;
/** The epochs of the links that were ended. */
let ends: number[] = [];

beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  ({ node } = fixture);
  epoch = 0;
  ends = [];
  const fields = { grpc_target: 'https://main:1', tls_server_name: null, default_worktree_root: null };
  await fixture.store.write((tx) => insertNode(tx, { id: 'main', name: 'main', ...fields }, 1));
  node.link = await newLink();
});
afterEach(() => fixture.end());

/** Makes a newer link to the node, as another process would. The node keeps answering over the earlier one. */
async function newLink(): Promise<Link> {
  epoch += 1;
  const position = { incarnation: 0, epoch };
  await fixture.store.write((tx) => updateNode(tx, 'main', { epoch: position.epoch }));
  return { node_id: 'main', position, end: () => void ends.push(position.epoch) };
}

const UNREACHABLE = { code: 'node_unreachable' };

async function pendingIntents(): Promise<string[]> {
  const query = (await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('outbox').select('kind').orderBy('id')),
  )) as { kind: string }[];
  return query.map(({ kind }) => kind);
}

async function startedAgent() {
  const agent = await fixture.create({ start: true });
  await fixture.until(agent.id, 'running');
  await vi.waitFor(async () => expect(await pendingIntents()).toEqual([]), SOON);
  return { id: agent.id, session_id: (await fixture.get(agent.id)).session_id! };
}

test('a snapshot of an earlier link does not end a session that it does not contain', async () => {
  const { id } = await startedAgent();
  const earlier = node.link!;
  const newer = await newLink();
  await expect(node.sendSnapshot(earlier, [])).rejects.toMatchObject(UNREACHABLE);
  expect(ends).toEqual([1]);
  expect((await fixture.get(id)).status).toBe('running');
  await node.sendSnapshot(newer, []);
  expect(await fixture.get(id)).toMatchObject({ status: 'failed', reason: 'session_lost' });
});

test('a snapshot of an earlier link does not recover a session that the database does not know', async () => {
  const { session_id } = await startedAgent();
  const launch = { ...node.launches.get(session_id)!, session_id: 'ses_unknown', agent_id: 'agt_unknown' };
  node.addSession(launch);
  const newer = await newLink();
  await expect(node.sendSnapshot(node.link!)).rejects.toMatchObject(UNREACHABLE);
  await expect(fixture.get('agt_unknown')).rejects.toThrow('agent not found');
  await node.sendSnapshot(newer);
  expect(await fixture.errors('agt_unknown')).toEqual(['log_gap', 'recovered']);
});

test('a spool that was read over an earlier link does not move the beginning of the stream', async () => {
  const { id, session_id } = await startedAgent();
  node.write(session_id, Buffer.from('before\n'));
  const texts = async () =>
    (await fixture.events(id)).flatMap(({ type, data }) => (type === 'output' ? data : []));
  await vi.waitFor(async () => expect(await texts()).toEqual(['before\n']), SOON);
  const newer = await newLink();
  node.overwrite(session_id, Buffer.from('new\n'));
  await vi.waitFor(() => expect(ends).toEqual([1]), SOON);
  expect(await fixture.errors(id)).toEqual([]);
  node.link = newer;
  await node.sendSnapshot(newer);
  await vi.waitFor(async () => expect(await texts()).toEqual(['before\n', 'new\n']), SOON);
  expect(await fixture.errors(id)).toEqual(['output_truncated']);
});

test('a stop over an earlier link does not end a session that the node does not know', async () => {
  const { id } = await startedAgent();
  const { stop } = node;
  let newer!: Link;
  node.stop = async () => {
    newer = await newLink();
    throw problems.sessionNotFound();
  };
  await expect(fixture.agents.stop(ANA, id, 0)).rejects.toMatchObject(UNREACHABLE);
  expect((await fixture.get(id)).status).toBe('running');
  expect(await pendingIntents()).toContain('stop');
  expect(ends).toEqual([1]);
  // The newer link knows better: the session runs.
  [node.link, node.stop] = [newer, stop];
  fixture.core.outbox.retryNow('main');
  expect(await fixture.until(id, 'cancelled')).toMatchObject({ reason: null });
});

test.each([
  ['an invalid workdir', () => invalid('workdir is not allowed'), 'workdir_refused'],
  ['a full disk', () => problems.diskSpace(), 'session_refused'],
])('a start that was rejected over an earlier link because of %s is sent again', async (_name, problem) => {
  const agent = await fixture.create();
  const { start } = node;
  let newer!: Link;
  node.start = async () => {
    newer = await newLink();
    throw problem();
  };
  await expect(fixture.agents.start(ANA, agent.id, null)).rejects.toMatchObject(UNREACHABLE);
  const { session_id } = await fixture.get(agent.id);
  expect(session_id).not.toBeNull();
  expect(await pendingIntents()).toContain('start');
  [node.link, node.start] = [newer, start];
  fixture.core.outbox.retryNow('main');
  expect(await fixture.until(agent.id, 'running')).toMatchObject({ session_id });
  expect(await fixture.errors(agent.id)).toEqual([]);
});

test('a session that starts while a snapshot is processed is not lost', async () => {
  const first = await startedAgent();
  const view = node.views.get(first.session_id)!;
  node.sendFact(first.session_id, ended(0));
  await fixture.until(first.id, 'completed');
  await vi.waitFor(() => expect(node.views.size).toBe(0), SOON);

  const second = await fixture.create({ name: 'b' });
  const { start, forget } = node;
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  node.start = async (launch) => {
    await released;
    return start.call(node, launch);
  };
  const starting = fixture.agents.start(ANA, second.id, null);
  await vi.waitFor(async () => expect(await pendingIntents()).toEqual(['start']), SOON);
  node.forget = async () => {
    release();
    await starting;
    await vi.waitFor(async () => expect(await pendingIntents()).toEqual([]), SOON);
  };
  await node.sendSnapshot(node.link!, [view]);
  [node.start, node.forget] = [start, forget];
  expect((await fixture.get(second.id)).status).toBe('running');
});
