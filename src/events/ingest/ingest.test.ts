import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { StreamName } from '../../core/event.ts';
import type { Node, SessionEnd, SessionFact } from '../../core/node.ts';
import { problems } from '../../core/problem.ts';
import { Redactor } from '../../core/redaction.ts';
import type { StreamSizes } from '../../core/session.ts';
import type { IngestBatch, Store } from '../../store/store.ts';
import { limits } from '../limits.ts';
import { Ingest } from './ingest.ts';
import type { IngestOptions, SessionCursor } from './source.ts';

/** The spools of a session, and everything that was committed from them, in memory. */
function world(
  spools: Record<StreamName, string | null>,
  commit: (batch: IngestBatch) => Promise<void> = async () => {},
  redactor: Redactor | null = null,
  hold_ms = 1_000_000,
) {
  const stored: string[] = [];
  const raw: Uint8Array[] = [];
  const reads: StreamName[] = [];
  const rebased: StreamName[] = [];
  let over = () => {};
  const ended = new Promise<void>((resolve) => (over = resolve));
  const node = {
    async read(_session: string, stream: StreamName, from: number, max: number) {
      reads.push(stream);
      // A reader that never stops must fail its test, not block it.
      if (reads.length > 100) await nextTurn();
      const spool = spools[stream];
      if (spool === null || from > spool.length) throw problems.outputLost();
      return Buffer.from(spool.slice(from, from + max), 'latin1');
    },
    committed() {},
  } as unknown as Node;
  const store = {
    async ingest(batch: IngestBatch) {
      await commit(batch);
      stored.push(Buffer.from(batch.bytes).toString());
      raw.push(Buffer.from(batch.bytes));
    },
  } as unknown as Store;
  const cursor: SessionCursor = {
    session_id: 'ses_1',
    agent_id: 'agt_1',
    owner_id: 'usr_1',
    fact: 1,
    acp: null,
    redactor: () => redactor,
    streams: {
      stdout: { offset: 9, base: 0, tail: Buffer.from('committed'), output: 9 },
      stderr: { offset: 0, base: 0, tail: new Uint8Array(), output: 0 },
    },
  };
  const options: IngestOptions = {
    ...{ node, store, clock: systemClock, log: silentLog, hold_ms },
    load: async () => cursor,
    handleFact: async (_session, fact) => {
      if (fact.body.kind === 'ended') over();
    },
    frames: () => Promise.reject(new Error('no frames are expected')),
    rebase: async (_session, { stream }) => {
      rebased.push(stream);
      if (rebased.length > 10) throw new Error('rebased repeatedly');
    },
  };
  const again = () => new Ingest(options);
  return { ingest: again(), again, cursor, stored, raw, reads, rebased, ended, spools };
}

function end(sizes: StreamSizes): SessionFact {
  const exit = { exit_code: 0, exit_signal: null, reason: null, message: null };
  const end: SessionEnd = { exit, sizes, cleanup: 'swept', leftovers: [], ended_at_ms: 0 };
  return { session_id: 'ses_1', number: 2, at_ms: 0, body: { kind: 'ended', end } };
}

test('reads a truncated spool to its last byte before the session ends', async () => {
  const { ingest, stored, rebased, ended } = world({ stdout: 'anew\n', stderr: '' });
  ingest.follow('ses_1', [end({ stdout: 5, stderr: 0 })]);
  await ended;
  expect(rebased).toEqual(['stdout']);
  expect(stored).toEqual(['anew\n']);
  await ingest.close();
});

test('the end of a session counts, after its last byte, even if its number is that of a committed fact', async () => {
  const { ingest, stored, ended } = world({ stdout: 'committedlast\n', stderr: '' });
  ingest.follow('ses_1', [{ ...end({ stdout: 14, stderr: 0 }), number: 1 }]);
  await ended;
  expect(stored).toEqual(['last\n']);
  await ingest.close();
});

test('the end of a session counts even if its number is that of a fact that was not handled yet', async () => {
  const { ingest, ended } = world({ stdout: 'committed', stderr: '' });
  const { body: _, ...fact } = end({ stdout: 9, stderr: 0 });
  const warning = { kind: 'trouble', code: 'pump_restarted', error: '', details: {} } as const;
  ingest.follow(
    'ses_1',
    [2, 3].map((number) => ({ ...fact, number, body: warning })),
  );
  ingest.follow('ses_1', [end({ stdout: 9, stderr: 0 })]);
  await ended;
  await ingest.close();
});

test('a wake about one stream reads only that stream, and the end of the session reads both', async () => {
  const { ingest, stored, reads, ended, spools } = world({ stdout: 'committed', stderr: '' });
  ingest.follow('ses_1');
  await expect.poll(() => reads).toEqual(['stdout', 'stderr']);
  spools.stdout += 'out\n';
  spools.stderr += 'err\n';
  ingest.wake('ses_1', 'stdout');
  await expect.poll(() => stored).toEqual(['out\n']);
  expect(reads).toEqual(['stdout', 'stderr', 'stdout']);
  // Both streams may be waiting when their reader gets its turn.
  spools.stdout += 'more\n';
  ingest.wake('ses_1', 'stderr');
  ingest.wake('ses_1', 'stdout');
  await expect.poll(() => stored.toSorted()).toEqual(['err\n', 'more\n', 'out\n']);
  // The wakes about the last lines are lost.
  spools.stdout += 'last\n';
  spools.stderr += 'last\n';
  ingest.follow('ses_1', [end({ stdout: 23, stderr: 9 })]);
  await ended;
  expect(stored.slice(3)).toEqual(['last\n', 'last\n']);
  await ingest.close();
});

test('a wake about one stream does not delay bytes that are held back in the other', async () => {
  const { ingest, stored, spools } = committing(Redactor.of([SECRET])!, 50);
  spools.stdout = 'committed[Y/n]? k3y-';
  ingest.follow('ses_1');
  await expect.poll(() => stored.length).toBeGreaterThan(0);
  ingest.wake('ses_1', 'stderr');
  await expect.poll(() => stored.join('')).toBe('[Y/n]? k3y-');
  await ingest.close();
});

test('reads both streams again after a failed commit', async () => {
  let fails = true;
  const { ingest, stored, spools } = world({ stdout: 'committed', stderr: '' }, async () => {
    if (!fails) return;
    fails = false;
    spools.stderr = 'err\n';
    throw new Error('no space');
  });
  spools.stdout += 'out\n';
  ingest.follow('ses_1');
  await expect.poll(() => stored.toSorted()).toEqual(['err\n', 'out\n']);
  await ingest.close();
});

test('reports an unreadable spool once while the session runs', async () => {
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

test('logs each reason why output cannot be committed once, with its stack', async () => {
  const warn = vi.spyOn(silentLog, 'warn');
  let tries = 0;
  const { ingest, ended } = world({ stdout: 'committedlast\n', stderr: '' }, async () => {
    if (++tries < 5) throw new TypeError(tries < 3 ? 'x is not a function' : 'y is not a function');
  });
  ingest.follow('ses_1', [end({ stdout: 14, stderr: 0 })]);
  await ended;
  expect(tries).toBe(5);
  const logged = warn.mock.calls.map(([fields]) => fields as unknown as { err: Error });
  expect(logged.map(({ err }) => err.message)).toEqual(['x is not a function', 'y is not a function']);
  expect(logged[0]!.err.stack).toContain('ingest.test.ts');
  warn.mockRestore();
  await ingest.close();
});

test('a session that is no longer followed is not read', async () => {
  const { ingest, stored, reads, spools } = world({ stdout: 'committedfirst\n', stderr: '' });
  ingest.follow('ses_1');
  await expect.poll(() => stored).toEqual(['first\n']);
  ingest.unfollow('ses_1');
  await nextTurn();
  const before = reads.length;
  spools.stdout += 'last\n';
  ingest.wake('ses_1');
  await nextTurn();
  expect(reads.length).toBe(before);
  await ingest.close();
});

test('reads ahead during a commit, and retries failed commits in order', async () => {
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

const SECRET = { name: 'KEY', value: 'k3y-of-mine\nin two lines' };

/** Everything committed of stdout: each piece with its position in the stream and in the output. */
function committing(redactor: Redactor, hold_ms?: number) {
  const places: { from: number; to: number; output_from: number; size: number }[] = [];
  const made = world(
    { stdout: 'committed', stderr: '' },
    async ({ from, to, output_from, bytes }) => {
      places.push({ from, to, output_from: output_from!, size: bytes.length });
    },
    redactor,
    hold_ms,
  );
  return { ...made, places };
}

test('redacts a secret that is written in pieces, and offsets count the bytes written', async () => {
  const { ingest, stored, ended, spools, places } = committing(Redactor.of([SECRET])!);
  let written = 'committed';
  const say = (text: string) => {
    written += text;
    spools.stdout = written;
  };
  say('the key: k3y-of-');
  ingest.follow('ses_1');
  await expect.poll(() => stored.join('')).toBe('the key: ');
  say('mine\nin two');
  ingest.wake('ses_1');
  say(' lines');
  ingest.wake('ses_1');
  await expect.poll(() => stored.join('')).toBe('the key: [redacted:KEY]');
  say('.\nk3y-of-mine\nin two lin');
  ingest.follow('ses_1', [end({ stdout: written.length, stderr: 0 })]);
  await ended;
  // At the end, the beginning of a secret cannot be completed any more.
  expect(stored.join('')).toBe('the key: [redacted:KEY].\nk3y-of-mine\nin two lin');
  let [at, output] = [9, 9];
  for (const place of places) {
    expect(place).toMatchObject({ from: at, output_from: output });
    at = place.to;
    output += place.size;
  }
  expect(at).toBe(written.length);
  await ingest.close();
});

test('shows a harmless beginning of a secret if nothing follows, and still redacts its rest', async () => {
  const { ingest, stored, ended, spools } = committing(Redactor.of([SECRET])!, 200);
  spools.stdout = 'committed[Y/n]? k3y-';
  ingest.follow('ses_1');
  await expect.poll(() => stored.join(''), { timeout: 20_000 }).toBe('[Y/n]? k3y-');
  spools.stdout += 'of-mine\nin two lines, and k3';
  ingest.follow('ses_1', [end({ stdout: spools.stdout.length, stderr: 0 })]);
  await ended;
  expect(stored.join('')).toBe('[Y/n]? k3y-[redacted:KEY], and k3');
  await ingest.close();
});

test('commits held-back bytes before it gives up the rest of a stream', async () => {
  const { ingest, stored, ended, spools, rebased } = committing(Redactor.of([SECRET])!);
  spools.stdout = 'committedthe k3y-of-mine';
  ingest.follow('ses_1', [end({ stdout: 1_000, stderr: 0 })]);
  await ended;
  expect(stored.join('')).toBe('the k3y-of-mine');
  expect(rebased).toEqual(['stdout']);
  await ingest.close();
});

test('the committed output does not depend on how a stream arrives or is read', async () => {
  const secrets = [SECRET, { name: 'ONE', value: 'one-two3' }, { name: 'FOUR', value: 'one-two3-four' }];
  const redactor = Redactor.of(secrets)!;
  const part = fc.oneof(
    fc.constantFrom(...secrets.map(({ value }) => value), 'one-', 'k3y-', '\n', 'é', 'other words '),
    fc.string({ maxLength: 4 }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { maxLength: 20 }),
      fc.array(fc.tuple(fc.nat(12), fc.boolean())),
      async (parts, steps) => {
        const whole = parts.join('');
        const spool = Buffer.from(`committed${whole}`);
        const { spools, ...made } = committing(redactor);
        const cursor = made.cursor.streams;
        let size = 9;
        let ingest = made.ingest;
        for (const [more, killed] of steps) {
          size = Math.min(size + more, spool.length);
          spools.stdout = spool.toString('latin1', 0, size);
          ingest.follow('ses_1');
          await nextTurn();
          if (!killed) continue;
          await ingest.close();
          ingest = made.again();
        }
        spools.stdout = spool.toString('latin1');
        ingest.follow('ses_1', [end({ stdout: spool.length, stderr: 0 })]);
        await made.ended;
        await ingest.close();
        const expected = redactor.take(Buffer.from(whole), { last: true }).bytes;
        expect(Buffer.concat(made.raw).toString()).toBe(Buffer.from(expected).toString());
        expect(cursor.stdout.offset).toBe(spool.length);
        expect(cursor.stdout.output).toBe(9 + expected.length);
      },
    ),
    { numRuns: 150 },
  );
});

test('continues after a full read that redaction makes shorter than an event', async () => {
  const key = { name: 'KEY', value: 'k3y-of-mine'.padEnd(2_000, '.') };
  const count = 1_100;
  const spool = `committed${key.value.repeat(count)}`;
  const { ingest, stored, ended } = world({ stdout: spool, stderr: '' }, undefined, Redactor.of([key]));
  ingest.follow('ses_1', [end({ stdout: spool.length, stderr: 0 })]);
  await ended;
  expect(stored.join('')).toBe('[redacted:KEY]'.repeat(count));
  await ingest.close();
});

test('continues after a full read of escape sequences within a possible secret', async () => {
  const text = `k3y-${'\x1b[m'.repeat(500_000)}of-mine, k3y-of-mine`;
  const redactor = Redactor.of([{ name: 'KEY', value: 'k3y-of-mine' }]);
  const { ingest, stored, ended } = world({ stdout: `committed${text}`, stderr: '' }, undefined, redactor);
  ingest.follow('ses_1', [end({ stdout: 9 + text.length, stderr: 0 })]);
  await ended;
  expect(stored.join('') === text.replace(/k3y-of-mine$/, '[redacted:KEY]')).toBe(true);
  await ingest.close();
});

test('redacts full reads without newlines, and every commit covers whole secrets', async () => {
  const secrets = [
    { name: 'SHORT', value: 'sh0rt-k3y' },
    { name: 'A_NAME_LONGER_THAN_ITS_VALUE', value: 'k3y-of-mine' },
    { name: 'LONG', value: `l0ng-${'0123456789'.repeat(5)}-end` },
    // A full read becomes less than one event.
    { name: 'VERY_LONG', value: `v3ry-l0ng-${'0123456789'.repeat(200)}-end` },
  ];
  const redactor = Redactor.of(secrets)!;
  const redacted = (text: string) => redactor.take(Buffer.from(text, 'latin1'), { last: true }).bytes;
  const value = fc.constantFrom(...secrets.map((secret) => secret.value));
  const part = fc.oneof(
    { weight: 3, arbitrary: value },
    // The sequences within a secret, which precede its mark, can be longer than an event.
    fc
      .tuple(value, fc.constantFrom(1, 30, 15_000))
      .map(([key, count]) => key.slice(0, 5) + '\x1b[1;31m'.repeat(count) + key.slice(5)),
    fc.constantFrom('\xc3\xa9', '\r', 'k3y-', 'l0ng-0123', 'v3ry-l0ng-0'),
    fc.integer({ min: 1, max: 60 }).map((count) => 'x'.repeat(count)),
  );
  const unit = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
  const size = fc.integer({ min: 1_000_000, max: 2_500_000 });
  await fc.assert(
    fc.asyncProperty(unit, size, fc.boolean(), async (unit, size, fails_once) => {
      const whole = unit.repeat(Math.ceil(size / unit.length));
      const spool = `committed${whole}`;
      const commits: IngestBatch[] = [];
      let fails = fails_once;
      const commit = async (batch: IngestBatch) => {
        if (fails && batch.from > 9) {
          fails = false;
          throw new Error('no space');
        }
        if (batch.from !== (commits.at(-1)?.to ?? 9)) throw new Error('stale');
        commits.push(batch);
      };
      const { ingest, cursor, raw, ended } = world({ stdout: spool, stderr: '' }, commit, redactor);
      ingest.follow('ses_1', [end({ stdout: spool.length, stderr: 0 })]);
      await ended;
      await ingest.close();
      for (const [n, { from, to, tail, ends }] of commits.entries()) {
        expect(Buffer.compare(redacted(spool.slice(from, to)), raw[n]!)).toBe(0);
        expect(Buffer.from(tail).toString('latin1')).toBe(spool.slice(Math.max(0, to - 64), to));
        expect(ends.at(-1)).toBe(raw[n]!.length);
        const sizes = ends.map((end, n) => end - (ends[n - 1] ?? 0));
        expect(Math.min(...sizes)).toBeGreaterThan(0);
        expect(Math.max(...sizes)).toBeLessThanOrEqual(limits.event_output_bytes_max);
      }
      const expected = redacted(whole);
      expect(Buffer.compare(Buffer.concat(raw), expected)).toBe(0);
      expect(cursor.streams.stdout).toMatchObject({ offset: spool.length, output: 9 + expected.length });
    }),
    { numRuns: 15, examples: secrets.map((secret) => [secret.value, 2_200_000, false]) },
  );
}, 60_000);

/**
 * ACP sessions whose stdout is what a test has written so far. `committed`: the text of the committed pieces. A transaction
 * ends with the first frame after `pieces_max - 1` pieces.
 */
function conversations(
  owners: Record<string, string>,
  waiting_bytes_max: number = limits.acp_waiting_bytes_max,
  pieces_max = Number.POSITIVE_INFINITY,
) {
  const spools = new Map(Object.keys(owners).map((id) => [id, '']));
  const committed = new Map(Object.keys(owners).map((id) => [id, '']));
  const kinds = new Map<string, Set<string>>(Object.keys(owners).map((id) => [id, new Set()]));
  const options: IngestOptions = {
    ...{ clock: systemClock, log: silentLog, waiting_bytes_max },
    store: {} as Store,
    node: {
      async read(id: string, stream: StreamName, from: number, max: number) {
        await nextTurn();
        const bytes = Buffer.from(stream === 'stdout' ? spools.get(id)!.slice(from, from + max) : '');
        return bytes;
      },
      committed() {},
    } as unknown as Node,
    load: async (session_id) => ({
      ...{ session_id, agent_id: session_id, owner_id: owners[session_id]!, fact: 1 },
      ...{ acp: { spilling: false }, redactor: () => null },
      streams: {
        stdout: { offset: 0, base: 0, tail: new Uint8Array(), output: 0 },
        stderr: { offset: 0, base: 0, tail: new Uint8Array(), output: 0 },
      },
    }),
    handleFact: async () => {},
    async frames(batch) {
      const { session_id, pieces } = batch;
      const split = pieces.findIndex(({ kind }, n) => kind === 'frame' && n + 1 >= pieces_max) + 1;
      const count = split || pieces.length;
      await nextTurn();
      const { from, to, tail } = batch.after(count);
      expect(from).toBe(committed.get(session_id)!.length);
      for (const piece of pieces.slice(0, count)) {
        kinds.get(session_id)!.add(piece.kind);
        if (piece.kind === 'too_large') continue;
        const text = piece.kind === 'frame' ? `${piece.text}\n` : Buffer.from(piece.bytes).toString();
        committed.set(session_id, committed.get(session_id)! + text);
      }
      expect(to).toBe(committed.get(session_id)!.length);
      expect(committed.get(session_id)!.endsWith(Buffer.from(tail).toString())).toBe(true);
      return count;
    },
    rebase: () => Promise.reject(new Error('nothing is lost')),
  };
  const ingest = new Ingest({ ...options, frames: (batch) => options.frames(batch) });
  const write = (id: string, text: string) => {
    spools.set(id, spools.get(id)! + text);
    ingest.follow(id);
  };
  return { ingest, write, spools, committed, kinds, options };
}

test('bounds the memory of lines that never end; other lines stay intact, and no byte is lost', async () => {
  const owners = { a1: 'alice', a2: 'alice', a3: 'alice', a4: 'alice', b1: 'bob' };
  const { ingest, write, spools, committed, kinds } = conversations(owners, 1_500_000);
  const message = (size: number) => `{"jsonrpc":"2.0","method":"x","params":{"x":"${'y'.repeat(size)}"}}`;
  write('b1', message(300_000));
  for (const id of ['a1', 'a2', 'a3', 'a4']) write(id, message(700_000));
  // Lines that fit wait; the bytes of the others become output even if their agents write nothing more.
  await expect.poll(() => [...kinds].filter(([, found]) => found.has('too_large')).length).toBeGreaterThan(1);
  expect([...kinds.get('b1')!]).toEqual([]);
  for (const id of Object.keys(owners)) write(id, '\n');
  await expect
    .poll(() => [...committed.values()].map((text) => text.length))
    .toEqual([...spools.values()].map((text) => text.length));
  expect([...kinds.get('b1')!]).toEqual(['frame']);
  for (const id of Object.keys(owners)) expect(committed.get(id) === spools.get(id)).toBe(true);
  await ingest.close();
});

test('messages that take long to handle are committed in parts, and those of other agents do not wait for them', async () => {
  const { ingest, write, spools, committed } = conversations({ a1: 'alice', b1: 'bob' }, undefined, 3);
  const backlog = 'noise\n{"jsonrpc":"2.0","method":"x"}\n{"jsonrpc":"2.0","method":"y"}\n'.repeat(8_000);
  write('a1', backlog);
  await expect.poll(() => committed.get('a1')!.length).toBeGreaterThan(0);
  write('b1', '{"jsonrpc":"2.0","method":"x"}\n'.repeat(3));
  await expect.poll(() => committed.get('b1')).toBe(spools.get('b1'));
  expect(committed.get('a1')!.length).toBeLessThan(backlog.length / 2);
  await ingest.close();
  expect(backlog.startsWith(committed.get('a1')!)).toBe(true);
  expect(committed.get('a1')!.length).toBeLessThan(backlog.length / 2);
});

test('agents whose messages take long to handle take turns, fairly for their owners', async () => {
  const owners = { a1: 'alice', a2: 'alice', a3: 'alice', b1: 'bob' };
  const { ingest, spools, committed, options, write } = conversations(owners, undefined, 1);
  const { frames } = options;
  const turns: string[] = [];
  let [running, most] = [0, 0];
  options.frames = async (batch) => {
    turns.push(batch.session_id);
    most = Math.max(most, ++running);
    const count = await frames(batch);
    running--;
    return count;
  };
  // Afterwards, all of them are known to be costly.
  for (const id of Object.keys(owners)) write(id, '{"jsonrpc":"2.0","method":"x"}\n'.repeat(2));
  await expect.poll(() => [...committed.values()]).toEqual([...spools.values()]);
  turns.length = most = 0;
  for (const id of Object.keys(owners)) write(id, '{"jsonrpc":"2.0","method":"x"}\n'.repeat(20));
  await expect.poll(() => [...committed.values()]).toEqual([...spools.values()]);
  await ingest.close();
  expect(most).toBe(1);
  // Half of the turns are Bob's, although Alice has more agents.
  expect(turns.lastIndexOf('b1')).toBeLessThan(2 * 20 + 4);
});

test('a session that ends while its line is dropped is still read to its last byte', async () => {
  const { ingest, committed, spools, options } = conversations({ a1: 'alice' }, 200_000);
  let over = () => {};
  const ended = new Promise<void>((resolve) => (over = resolve));
  options.handleFact = async (_id, fact) => {
    if (fact.body.kind === 'ended') over();
  };
  await ingest.close();
  const again = new Ingest(options);
  spools.set('a1', `{"jsonrpc":"2.0","x":"${'y'.repeat(600_000)}`);
  again.follow('a1', [{ ...end({ stdout: spools.get('a1')!.length, stderr: 0 }), session_id: 'a1' }]);
  await ended;
  expect(committed.get('a1') === spools.get('a1')).toBe(true);
  await again.close();
});
