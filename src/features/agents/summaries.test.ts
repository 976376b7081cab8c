/** Summaries in the records of agents, with a scripted agent. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ChangedFile, Changes } from '../../core/node.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { startAcp } from '../../testing/scripted-acp.ts';
import { limits } from './limits.ts';
import { progressAtEnd } from './progress.ts';
import { AgentRecords } from './records.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const summaryOf = async (id: string) => (await fixture.get(id)).summary;
const call = (toolCallId: string, title: string) => ({ sessionUpdate: 'tool_call', toolCallId, title });
const NOTHING = { now: null, plan: null, diff: null, usage: null };

const file = (additions: number | null, deletions: number | null) =>
  ({ path: 'a', from: null, status: 'modified', additions, deletions, version: null }) satisfies ChangedFile;
const changed = (files: ChangedFile[]): Changes => ({
  ...{ git: true, branch: 'main', base: null, head: null, remote: null, files },
  truncated: false,
});

test('show what a session reports, until the end of its turn', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  expect(await summaryOf(id)).toEqual(NOTHING);
  await acp.openSession();
  const prompt = await acp.receive('request', 'session/prompt');
  const entries = ['completed', 'in_progress', 'pending'].map((status) => ({ content: 'a', status }));
  acp.sendUpdate({ sessionUpdate: 'plan', entries });
  const cost = { amount: 0.42, currency: 'USD' };
  acp.sendUpdate({ sessionUpdate: 'usage_update', used: 61, size: 100, cost });
  acp.sendUpdate(call('c1', '\n\u001b[1mread\u001b[0m cart.ts \nand more'));
  const reported = { plan: { done: 1, total: 3 }, diff: null, usage: { used: 61, size: 100, cost } };
  await vi.waitFor(
    async () => expect(await summaryOf(id)).toEqual({ now: 'read cart.ts', ...reported }),
    SOON,
  );
  acp.requestPermission('p', undefined, 'npm publish');
  await vi.waitFor(async () => expect(await summaryOf(id)).toMatchObject({ now: 'npm publish' }), SOON);
  acp.send({ kind: 'response', id: prompt.id, result: { stopReason: 'end_turn' } });
  await vi.waitFor(async () => expect(await summaryOf(id)).toEqual({ now: null, ...reported }), SOON);
});

test('are published at most once per interval, and the last one always', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  await vi.waitFor(async () => expect(await fixture.get(id)).toMatchObject({ activity: 'working' }), SOON);
  const publish = vi.spyOn(AgentRecords.prototype, 'publish');
  const begun_ms = performance.now();
  for (let n = 1; n <= 50; n++) acp.sendUpdate(call(`c${n}`, `step ${n}`));
  await vi.waitFor(async () => expect(await summaryOf(id)).toMatchObject({ now: 'step 50' }), SOON);
  const intervals = (performance.now() - begun_ms) / limits.progress_interval_ms;
  expect(publish.mock.calls.length).toBeLessThanOrEqual(Math.ceil(intervals) + 1);
  publish.mockRestore();
});

test('have the size of the changes after each turn, and after the session', async () => {
  let files = [file(2, 1), file(null, null)];
  let git = true;
  const changes = vi.fn(async () => ({ ...changed(files), git }));
  Object.assign(fixture.node.folders, { changes });
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession();
  await acp.respond('session/prompt', { result: { stopReason: 'end_turn' } });
  const diffIs = (diff: object | null) =>
    vi.waitFor(async () => expect(await summaryOf(id)).toMatchObject({ diff }), SOON);
  await diffIs({ files: 2, added: 2, removed: 1 });
  files = [];
  fixture.node.end(acp.session_id, 0);
  await diffIs({ files: 0, added: 0, removed: 0 });
  expect(changes).toHaveBeenCalledTimes(2);
  expect(changes).toHaveBeenLastCalledWith(expect.objectContaining({ skip_remote: true }));
  git = false;
  await fixture.agents.start(ANA, id, null);
  fixture.node.end((await fixture.get(id)).session_id!, 0);
  await diffIs(null);
});

describe('a measurement that fails', () => {
  /** Not used by any other timer. */
  const AGAIN_MS = 3;
  beforeEach(() => {
    vi.spyOn(limits, 'measure_again_ms', 'get').mockReturnValue(AGAIN_MS as never);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** The turn of an agent ends, and the changes in its folder are measured. */
  async function endTurn(changes: () => Promise<Changes>): Promise<string> {
    Object.assign(fixture.node.folders, { changes });
    const { id, acp } = await startAcp(fixture, { prompt: 'go' });
    await acp.openSession();
    await acp.respond('session/prompt', { result: { stopReason: 'end_turn' } });
    return id;
  }

  test('is repeated without another event', async () => {
    const changes = vi.fn(async () => changed([file(2, 1)]));
    changes.mockRejectedValueOnce(new Error('index.lock exists'));
    const id = await endTurn(changes);
    const diff = { files: 1, added: 2, removed: 1 };
    await vi.waitFor(async () => expect(await summaryOf(id)).toMatchObject({ diff }), SOON);
    expect(changes).toHaveBeenCalledTimes(2);
  });

  test('is repeated only a few times', async () => {
    const changes = vi.fn(() => Promise.reject(new Error('index.lock exists')));
    const set = vi.spyOn(globalThis, 'setTimeout');
    await endTurn(changes);
    const times = limits.measure_repetitions + 1;
    await vi.waitFor(() => expect(changes).toHaveBeenCalledTimes(times), SOON);
    // After the last failure there is no timer for another one.
    await new Promise(setImmediate);
    expect(set.mock.calls.filter(([, ms]) => ms === AGAIN_MS)).toHaveLength(limits.measure_repetitions);
  });
});

test('git does not run for programs in existing folders', async () => {
  const changes = vi.fn();
  Object.assign(fixture.node.folders, { changes });
  const agent = await fixture.create({ start: true });
  fixture.node.end(agent.session_id!, 1);
  await vi.waitFor(async () => expect(await fixture.get(agent.id)).toMatchObject({ status: 'failed' }), SOON);
  expect(changes).not.toHaveBeenCalled();
});

test('after a failure, `now` is the last line that was printed', () => {
  const stored = JSON.stringify({ now: 'npm test', plan: { done: 1, total: 2 }, usage: null });
  const at_end = JSON.parse(progressAtEnd(stored, 'warning: x\r\n\u001b[31merror: y\u001b[0m\n\n')!);
  expect(at_end).toEqual({ now: 'error: y', plan: { done: 1, total: 2 }, usage: null });
  expect(JSON.parse(progressAtEnd(stored, null)!)).toMatchObject({ now: null });
  expect(progressAtEnd(null, null)).toBeNull();
  expect(progressAtEnd(null, ' \n')).toBeNull();
});
