/** Events as rows, on every kind of database. */
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { limits } from '../../base/limits.ts';
import { stores, type TestStore } from '../../testing/stores.ts';
import { jsonArrayTable } from '../dialects.ts';
import { type Reader, StaleBatch, type Store, type Tx } from '../store.ts';
import { addAgent, addSession, batch } from '../testing.ts';
import {
  bytesOfLogs,
  bytesOfShares,
  headOf,
  headsWithEvents,
  largestLogOf,
  resizeHead,
  skipTo,
} from './heads.ts';
import { EventDecoder, lastOutputText, selectEventsOf, selectOutput, selectRange } from './read.ts';
import { deleteEvents, newestTs, oldestEvents, unsealedBefore } from './retention.ts';
import { rebaseSpool, spoolsOf } from './spools.ts';
import { appendEvents, type NewEvent } from './write.ts';

const BINARY = new Uint8Array([0, 255, 10]);
const status: NewEvent = {
  ...{ ts_ms: 5, type: 'status', session_id: null, stream: null, offset: null, partial: false },
  data: '{"status":"running"}',
};

describe.each(stores)('$kind', ({ open, it }) => {
  let opened: TestStore;
  let store: Store;
  let agent_num: number;
  let session_num: number;

  beforeEach(async () => {
    opened = await open();
    store = opened.store;
    agent_num = await addAgent(store, 'agt_1');
    session_num = await addSession(store, agent_num, 'ses_1');
    await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n', '\ufeffä\0\n', BINARY]));
    await store.write((tx) => appendEvents(tx, agent_num, [status]));
  });
  afterEach(() => opened.remove());

  async function events(reader: Reader) {
    const decoder = new EventDecoder();
    const rows = await reader.arrays(selectRange(reader, agent_num, { after: 0, up_to: Infinity }, 10));
    const decoded = [];
    for (const row of rows) decoded.push(await decoder.event(reader, agent_num, row));
    return decoded;
  }

  it('reads what was stored', async () => {
    const output = {
      ...{ ts_ms: 1_700_000_000_123, type: 'output', session_id: 'ses_1', stream: 'stdout', partial: false },
    };
    const { offset: _, ...stored_status } = status;
    expect(await store.read(events)).toEqual([
      { seq: 1, ...output, data: 'one\n' },
      { seq: 2, ...output, data: '\ufeffä\0\n' },
      { seq: 3, ...output, data: BINARY },
      { seq: 4, ...stored_status },
    ]);
    const types = await store.read(async (reader) =>
      (await reader.arrays(selectEventsOf(reader, agent_num, ['status']))).map(([seq]) => seq),
    );
    expect(types).toEqual([4]);
  });

  it('reads the output of a session', async () => {
    await store.read(async (reader) => {
      const of = { agent_num, session_num, streams: ['stdout'] as const };
      expect(await reader.arrays(selectOutput(reader, of, 1))).toEqual([
        [2, 4, 7],
        [3, 11, 3],
      ]);
      const stdout = { agent_num, session_num, stream: 'stdout' } as const;
      expect(await lastOutputText(reader, stdout, 10)).toBe('one\n\ufeffä\0\n');
    });
  });

  it('moves the head and the spool', async () => {
    const bytes = 4 + 7 + 3 + String(status.data).length + 4 * limits.event_row_bytes;
    const head = { agent_num, first_seq: 1, last_seq: 4, bytes };
    await store.read(async (reader) => {
      expect(await headOf(reader, agent_num)).toEqual(head);
      expect(await headsWithEvents(reader)).toEqual([head]);
      expect(await bytesOfLogs(reader)).toBe(bytes);
      const share = { owner_id: 'usr_1', recovered_from: null };
      expect(await bytesOfShares(reader)).toEqual([{ ...share, bytes }]);
      expect(await largestLogOf(reader, share)).toBe(agent_num);
      const { stdout } = await spoolsOf(reader, session_num);
      expect({ ...stdout, tail: stdout.tail.length }).toMatchObject({
        offset: 14,
        base: 0,
        output: null,
        tail: 14,
      });
    });
    await store.write(async (tx) => {
      expect(await resizeHead(tx, agent_num, -bytes, 5)).toBe(true);
      await skipTo(tx, agent_num, 100);
      await expect(rebaseSpool(tx, session_num, 'stdout', 13)).rejects.toThrow(StaleBatch);
      await rebaseSpool(tx, session_num, 'stdout', 14);
      expect((await spoolsOf(tx, session_num)).stdout).toMatchObject({ offset: 14, base: 14 });
    });
    expect(await store.read((reader) => headOf(reader, agent_num))).toEqual({
      ...{ agent_num, first_seq: 5, last_seq: 100, bytes: 0 },
    });
    const next = await store.ingest(batch('agt_1', 'ses_1', 14, ['x']));
    expect(next).toMatchObject({ first_seq: 101, last_seq: 101 });
  });

  it('redacted output is shorter than what was read', async () => {
    const redacted = { ...batch('agt_1', 'ses_1', 14, ['***\n']), to: 30 };
    await store.ingest(redacted);
    await store.ingest({ ...batch('agt_1', 'ses_1', 30, ['end\n']), output_from: 18 });
    const of = { agent_num, session_num, streams: ['stdout'] as const };
    await store.read(async (reader) => {
      expect(await reader.arrays(selectOutput(reader, of, 4))).toEqual([
        [5, 14, 4],
        [6, 18, 4],
      ]);
      expect((await spoolsOf(reader, session_num)).stdout).toMatchObject({ offset: 34, output: 22 });
    });
  });

  it('deletes old events, except status events', async () => {
    const oldest = (tx: Tx | Reader) => oldestEvents(tx, agent_num, 0, 10);
    await store.write(async (tx) => {
      expect((await oldest(tx)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
      expect(await unsealedBefore(tx, [agent_num], Date.now())).toEqual([agent_num]);
      expect(await newestTs(tx, agent_num)).toBe(5);
      await deleteEvents(tx, agent_num, 1, 4);
      expect(await oldest(tx)).toEqual([]);
    });
    expect((await store.read(events)).map(({ seq }) => seq)).toEqual([4]);
  });

  it('a statement takes a list of texts as one parameter', async () => {
    const records = ['a', 'b "', 'c'];
    await store.write(async (tx) => {
      await tx.run(
        tx.sql
          .insertInto('feed')
          .columns(['ts', 'kind', 'owner_id', 'record'])
          .expression((eb) =>
            eb
              .selectFrom(jsonArrayTable(tx, JSON.stringify(records)))
              .select([
                eb.val(7).as('ts'),
                eb.val('kind').as('kind'),
                eb.val('usr_1').as('owner_id'),
                'each.value',
              ])
              .orderBy('each.key'),
          ),
      );
    });
    const rows = await store.read((reader) =>
      reader.all(reader.sql.selectFrom('feed').select(['ts', 'record']).orderBy('id')),
    );
    expect(rows).toEqual(records.map((record) => ({ ts: 7, record })));
  });
});
