import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import type { StreamName } from '../domain/event.ts';
import type { Node, SessionEnd, SessionFact } from '../domain/node.ts';
import { problems } from '../domain/problem.ts';
import type { StreamSizes } from '../domain/session.ts';
import type { IngestBatch, Store } from '../store/store.ts';
import { Ingest, type SessionCursor } from './ingest.ts';

/** A session's spools and what became of them, in memory. */
function world(
  spools: Record<StreamName, string | null>,
  commit: (batch: IngestBatch) => Promise<void> = async () => {},
) {
  const stored: string[] = [];
  const rebased: StreamName[] = [];
  let over = () => {};
  const ended = new Promise<void>((resolve) => (over = resolve));
  const node = {
    async read(_session: string, stream: StreamName, from: number, max: number) {
      const spool = spools[stream];
      if (spool === null || from > spool.length) throw problems.outputLost();
      return Buffer.from(spool.slice(from, from + max));
    },
    committed() {},
  } as unknown as Node;
  const store = {
    async ingest(batch: IngestBatch) {
      await commit(batch);
      stored.push(Buffer.from(batch.bytes).toString());
    },
  } as unknown as Store;
  const cursor: SessionCursor = {
    session_id: 'ses_1',
    agent_id: 'agt_1',
    fact: 1,
    acp: null,
    streams: {
      stdout: { offset: 9, base: 0, tail: Buffer.from('committed') },
      stderr: { offset: 0, base: 0, tail: new Uint8Array() },
    },
  };
  const ingest = new Ingest({
    node,
    store,
    clock: systemClock,
    log: silentLog,
    load: async () => cursor,
    settle: async (_session, fact) => {
      if (fact.body.kind === 'ended') over();
    },
    frames: () => Promise.reject(new Error('no frames are expected')),
    rebase: async (_session, stream) => {
      rebased.push(stream);
      if (rebased.length > 10) throw new Error('told again and again');
    },
  });
  return { ingest, stored, rebased, ended, spools };
}

function end(sizes: StreamSizes): SessionFact {
  const exit = { exit_code: 0, exit_signal: null, reason: null, message: null };
  const end: SessionEnd = { exit, sizes, cleanup: 'swept', leftovers: [], ended_at_ms: 0 };
  return { session_id: 'ses_1', number: 2, at_ms: 0, body: { kind: 'ended', end } };
}

test('what a truncated spool holds is read to its last byte before the session ends', async () => {
  const { ingest, stored, rebased, ended } = world({ stdout: 'anew\n', stderr: '' });
  ingest.follow('ses_1', [end({ stdout: 5, stderr: 0 })]);
  await ended;
  expect(rebased).toEqual(['stdout']);
  expect(stored).toEqual(['anew\n']);
  await ingest.close();
});

test('a spool of which not even the beginning can be read is told once while the session runs', async () => {
  const { ingest, stored, rebased, ended, spools } = world({ stdout: null, stderr: 'first\n' });
  ingest.follow('ses_1');
  await expect.poll(() => stored).toEqual(['first\n']);
  expect(rebased).toEqual(['stdout']);
  spools.stderr += 'last\n';
  ingest.follow('ses_1', [end({ stdout: 9, stderr: 11 })]);
  await ended;
  expect(stored).toEqual(['first\n', 'last\n']);
  await ingest.close();
});

test('a stream is read on while its last piece is committed; what fails is committed again, in order', async () => {
  const text = 'a line of output\n'.repeat(200_000);
  const size = 'committed'.length + text.length;
  let committed = 'committed'.length;
  let fails = true;
  let under_way = 0;
  let most = 0;
  const { ingest, stored, ended } = world({ stdout: `committed${text}`, stderr: '' }, async (batch) => {
    most = Math.max(most, ++under_way);
    await nextTurn();
    under_way--;
    if (fails && committed > size / 2) {
      fails = false;
      throw new Error('no space');
    }
    if (batch.from !== committed) throw new Error('stale');
    committed = batch.to;
  });
  ingest.follow('ses_1', [end({ stdout: size, stderr: 0 })]);
  await ended;
  expect(stored.join('') === text).toBe(true);
  expect(fails).toBe(false);
  expect(most).toBe(2);
  await ingest.close();
});
