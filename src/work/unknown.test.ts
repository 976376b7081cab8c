/** Work that a newer program stored: an older program leaves it alone, and the newer one continues with it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Logger, silentLog } from '../base/log.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import { SOON } from '../testing/features-fixture.ts';
import { openTestStore } from '../testing/test-store.ts';
import { type Fact, type FactHandlers, type FactKind, Facts } from './facts.ts';
import { limits } from './limits.ts';
import { type Intent, type IntentHandlers, type IntentKind, Outbox } from './outbox.ts';
import { type TimerHandlers, Timers } from './timers.ts';

let folder: string;
let store: Store;
let now = 1_700_000_000_000;
const clock = { now: () => now };
const common = (log: Logger = silentLog) => ({ store, clock, log });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-unknown-'));
  store = await openTestStore(folder);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const refs = async (reader: Reader) =>
  (await reader.all(reader.sql.selectFrom('facts').select('ref').orderBy('id'))).map(({ ref }) => ref);
const storedFacts = () => store.read(refs);

/** Records facts of any kinds, in order. `names`: `<kind> <ref>`. */
async function record(facts: Facts, ...names: string[]): Promise<void> {
  await store.write(async (tx) => {
    for (const name of names) {
      const [kind, ref] = name.split(' ');
      await facts.record(tx, kind as FactKind, ref!, {} as never);
    }
  });
}

/** A consumer of these kinds that notes what it handles. */
function consumer(seen: string[], ...kinds: string[]): FactHandlers {
  const note = async (tx: Tx, { kind, ref }: Fact) => tx.afterCommit(() => void seen.push(`${kind} ${ref}`));
  return Object.fromEntries(kinds.map((kind) => [kind, note]));
}

test('keeps facts of unknown kinds for a newer program, which handles them first and in order', async () => {
  const old_seen: string[] = [];
  const older = new Facts(common());
  await record(older, 'novel a', 'session_ended b', 'novel c', 'session_ended d');
  await older.open({ one: consumer(old_seen, 'session_ended') });
  await vi.waitFor(async () => expect(await storedFacts()).toEqual(['a', 'c']), SOON);
  expect(old_seen).toEqual(['session_ended b', 'session_ended d']);
  expect(await store.read((reader) => older.countUnknown(reader))).toBe(2);
  await older.close();

  const seen: string[] = [];
  const newer = new Facts(common());
  await record(newer, 'session_ended e', 'novel f');
  await newer.open({ one: consumer(seen, 'session_ended', 'novel') });
  await vi.waitFor(async () => expect(await storedFacts()).toEqual([]), SOON);
  expect(seen).toEqual(['novel a', 'novel c', 'session_ended e', 'novel f']);
  await newer.close();
});

test('keeps facts for a consumer that only a newer program has, and does not repeat what it has handled', async () => {
  const seen: string[] = [];
  const newer = new Facts(common());
  await record(newer, 'session_ended a');
  await newer.open({ one: consumer([], 'session_ended'), two: consumer(seen, 'session_ended') });
  await vi.waitFor(async () => expect(await storedFacts()).toEqual([]), SOON);
  await newer.close();

  const old_seen: string[] = [];
  const older = new Facts(common());
  await older.open({ one: consumer(old_seen, 'session_ended') });
  await record(older, 'session_ended b');
  await vi.waitFor(() => expect(old_seen).toEqual(['session_ended b']), SOON);
  await older.close();
  expect(await storedFacts()).toEqual(['b']);

  const again = new Facts(common());
  await again.open({ one: consumer(old_seen, 'session_ended'), two: consumer(seen, 'session_ended') });
  await vi.waitFor(async () => expect(await storedFacts()).toEqual([]), SOON);
  expect(seen).toEqual(['session_ended a', 'session_ended b']);
  expect(old_seen).toEqual(['session_ended b']);
  await again.close();
});

test('deletes unknown facts, and the cursors of removed consumers, once nobody has claimed them for long', async () => {
  const first = new Facts(common());
  await first.open({ one: consumer([], 'session_ended'), removed: consumer([], 'session_ended') });
  await first.close();
  const second = new Facts(common());
  await second.open({ one: consumer([], 'session_ended') });
  await record(second, 'novel a', 'session_ended b');
  await second.close();
  now += limits.unknown_facts_kept_ms;
  const third = new Facts(common());
  await third.open({ one: consumer([], 'session_ended') });
  expect(await storedFacts()).toEqual(['a', 'b']);
  await third.close();
  now += 1;
  const fourth = new Facts(common());
  await fourth.open({ one: consumer([], 'session_ended') });
  expect(await storedFacts()).toEqual([]);
  await fourth.close();
});

test('never deletes an old fact that a consumer has not handled yet', async () => {
  const facts = new Facts(common());
  await facts.open({ one: consumer([], 'session_ended') });
  await facts.close();
  await record(facts, 'session_ended a');
  now += 2 * limits.unknown_facts_kept_ms;
  const seen: string[] = [];
  const again = new Facts(common());
  await again.open({ one: consumer(seen, 'session_ended') });
  await vi.waitFor(() => expect(seen).toEqual(['session_ended a']), SOON);
  await again.close();
});

test('removes known facts and timers that nothing handles, because their feature was removed', async () => {
  const facts = new Facts(common());
  const timers = new Timers(common());
  await record(facts, 'run_progressed a');
  await store.write((tx) => timers.set(tx, 'trigger', 'x', now - 1, {}));
  await facts.open({ one: consumer([], 'session_ended') });
  timers.open({});
  await vi.waitFor(async () => {
    expect(await storedFacts()).toEqual([]);
    expect(await store.read((reader) => reader.all(reader.sql.selectFrom('timers').select('ref')))).toEqual(
      [],
    );
  }, SOON);
  await facts.close();
  await timers.close();
});

test('leaves timers of unknown kinds due, fires the later ones, and does not look at them again and again', async () => {
  const timers = new Timers(common());
  await store.write(async (tx) => {
    await timers.set(tx, 'novel' as 'trigger', 'x', now - 2, {});
    await timers.set(tx, 'trigger', 'y', now - 1, {});
  });
  const fired: string[] = [];
  const read = store.read.bind(store);
  let reads = 0;
  store.read = (fn) => {
    reads += 1;
    return read(fn);
  };
  timers.open({ trigger: async (tx, { ref }) => tx.afterCommit(() => void fired.push(ref)) });
  await vi.waitFor(() => expect(fired).toEqual(['y']), SOON);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await timers.close();
  store.read = read;
  expect(reads).toBeLessThanOrEqual(3);
  expect(await store.read((reader) => timers.countUnknown(reader))).toBe(1);

  const newer = new Timers(common());
  const handlers = {
    novel: async (tx: Tx, { ref }: { ref: string }) => tx.afterCommit(() => void fired.push(ref)),
  };
  newer.open(handlers as unknown as Partial<TimerHandlers>);
  await vi.waitFor(() => expect(fired).toEqual(['y', 'x']), SOON);
  await newer.close();
});

function handlers(done: string[], ...kinds: string[]): IntentHandlers {
  const carryOut = async ({ lane, kind }: Intent) => void done.push(`${lane} ${kind}`);
  return Object.fromEntries(kinds.map((kind) => [kind, carryOut])) as unknown as IntentHandlers;
}

test('an intent of an unknown kind holds up its own lane only, until a newer program carries it out', async () => {
  const warnings: object[] = [];
  const log = { ...silentLog, warn: (fields: object) => void warnings.push(fields) } as Logger;
  const first = new Outbox(common());
  await store.write(async (tx) => {
    await first.enqueue(tx, 'main', 'ses_a', 'novel' as IntentKind, {});
    await first.enqueue(tx, 'main', 'ses_a', 'start', {});
    await first.enqueue(tx, 'main', 'ses_b', 'start', {});
  });
  first.close();

  const done: string[] = [];
  const older = new Outbox(common(log));
  await older.open(handlers(done, 'start', 'stop'));
  await vi.waitFor(() => expect(done).toEqual(['ses_b start']), SOON);
  const stop = await store.write((tx) => older.enqueue(tx, 'main', 'ses_a', 'stop', { grace_ms: 0 }));
  await expect(older.outcome(stop)).rejects.toMatchObject({ code: 'newer_version_required' });
  older.retryNow('main');
  const other = await store.write((tx) => older.enqueue(tx, 'main', 'ses_b', 'stop', { grace_ms: 0 }));
  await older.outcome(other);
  expect(done).toEqual(['ses_b start', 'ses_b stop']);
  expect(warnings).toEqual([{ intent: 'novel', lane: 'ses_a', node_id: 'main' }]);
  expect(await store.read((reader) => older.countUnknown(reader))).toBe(1);
  older.close();

  const continued: string[] = [];
  const newer = new Outbox(common());
  await newer.open(handlers(continued, 'start', 'stop', 'novel'));
  await vi.waitFor(() => expect(continued).toEqual(['ses_a novel', 'ses_a start', 'ses_a stop']), SOON);
  newer.close();
});
