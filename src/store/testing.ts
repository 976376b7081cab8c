/** Rows that many tests need: users, agents, sessions. */
import { isUtf8 } from 'node:buffer';
import type { DatabaseSync } from 'node:sqlite';
import { createHead, headOf, type LogShare } from './event-rows/heads.ts';
import { createSpools } from './event-rows/spools.ts';
import type { IngestBatch, Store } from './store.ts';

export function addAgent(store: Store, id: string, share: Partial<LogShare> = {}): Promise<number> {
  return store.write(async (tx) => {
    const { num } = (await tx.get(
      tx.sql
        .insertInto('agents')
        .values({
          id,
          name: id,
          owner_id: 'usr_1',
          node_id: 'main',
          workdir: '/tmp',
          command: 'true',
          protocol: 'plain',
          worktree_mode: 'use_existing',
          env: '{}',
          labels: '{}',
          restart_policy: 'never',
          stdin: 0,
          on_exit: 'kill',
          leftovers: '[]',
          status: 'created',
          session_count: 0,
          restart_count: 0,
          created_at: 0,
          updated_at: 0,
          ...share,
        })
        .returning('num'),
    ))!;
    await createHead(tx, num);
    return num;
  });
}

export function addSession(store: Store, agent_num: number, id: string, number = 1): Promise<number> {
  return store.write(async (tx) => {
    const head = (await headOf(tx, agent_num))!;
    const { num } = (await tx.get(
      tx.sql
        .insertInto('sessions')
        .values({
          id,
          agent_num,
          node_id: 'main',
          number,
          state: 'running',
          stopping: 0,
          created_at: 0,
          first_seq: head.last_seq + 1,
          fact: 0,
          stdin_bytes: 0,
        })
        .returning('num'),
    ))!;
    await createSpools(tx, num);
    return num;
  });
}

/** Makes a batch of complete events from text. */
export function batch(
  agent_id: string,
  session_id: string,
  from: number,
  texts: readonly (string | Uint8Array)[],
  options: { stream?: 'stdout' | 'stderr'; ts_ms?: number } = {},
): IngestBatch {
  const pieces = texts.map((text) => Buffer.from(text as string));
  const bytes = Buffer.concat(pieces);
  let end = 0;
  return {
    agent_id,
    session_id,
    stream: options.stream ?? 'stdout',
    from,
    to: from + bytes.length,
    tail: bytes.subarray(Math.max(0, bytes.length - 64)),
    ts_ms: options.ts_ms ?? 1_700_000_000_123,
    bytes,
    ends: pieces.map((piece) => (end += piece.length)),
    partial: pieces.map(() => false),
    is_text: pieces.map((piece) => isUtf8(piece)),
  };
}

export type Row = Record<string, string | number | null>;

/** Inserts a row into a database of any version. Columns that must have a value and are not given get 0. */
export function insertRow(db: DatabaseSync, table: string, values: Row = {}): void {
  const columns = db
    .prepare(`SELECT name FROM pragma_table_info('${table}') WHERE "notnull" = 1 AND dflt_value IS NULL`)
    .all();
  const row: Row = { ...Object.fromEntries(columns.map(({ name }) => [`${name}`, 0])), ...values };
  const names = Object.keys(row).map((name) => `"${name}"`);
  db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
    ...Object.values(row),
  );
}
