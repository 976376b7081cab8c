/**
 * Copies the database, even while another process is writing, and prepares copies for use after a restore. A copy is
 * one snapshot. The process that has the store open must use `DatabaseFiles.backup` instead.
 */
import { existsSync } from 'node:fs';
import { chmod, unlink } from 'node:fs/promises';
import { backup, DatabaseSync } from 'node:sqlite';
import { Connection } from './connection.ts';
import { quickCheck } from './integrity.ts';
import { limits } from './limits.ts';
import { migrations, schemaVersion } from './migrate.ts';
import { recordRestore, skipNumbers, skipStreamNumbers, streamed_tables } from './restored.ts';
import { WriteTransaction } from './transaction.ts';

/** Writes a snapshot of `from` to the new file `to` (mode 0600). On an error, or if aborted, deletes `to` and throws. */
export async function copyDatabase(from: string, to: string, signal?: AbortSignal): Promise<void> {
  const source = new DatabaseSync(from, { readOnly: true, timeout: limits.database_busy_ms });
  try {
    // Keep a snapshot open. Otherwise, the copy would restart at every commit.
    source.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
    await backup(source, to, {
      rate: limits.backup_pages_per_step,
      progress: () => signal?.throwIfAborted(),
    });
    signal?.throwIfAborted();
    await chmod(to, 0o600);
  } catch (error) {
    await unlink(to).catch(() => {});
    throw error;
  } finally {
    source.close();
  }
}

/** Segment files that the log of a copy needs, relative to `{data_dir}/log`. */
export function segmentPaths(path: string): string[] {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return db
      .prepare('SELECT path FROM segments ORDER BY id')
      .all()
      .map((row) => String(row.path));
  } finally {
    db.close();
  }
}

/** Whether a newer version of svc made the database. */
export function isTooNew(path: string): boolean {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return schemaVersion(db) > migrations.length;
  } finally {
    db.close();
  }
}

/** The problems found in a database file; empty if it is intact. */
export function findDamage(path: string): string[] {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return quickCheck(db);
  } finally {
    db.close();
  }
}

/**
 * Prepares a restored copy for use. Every log continues above all numbers that were assigned since the copy was made,
 * and records that with a `log_gap`. The numbers come from the replaced database; if it is unreadable, or does not know the
 * agent, they skip far ahead. So do the numbers of other streams.
 */
export async function skipLogNumbers(copy: string, replaced: string | null, now_ms: number): Promise<void> {
  const old = replaced !== null && existsSync(replaced) ? numbersOf(replaced) : null;
  const jump = limits.restore_jump_events;
  const db = new DatabaseSync(copy);
  try {
    db.exec('BEGIN IMMEDIATE');
    const heads = db
      .prepare('SELECT agents.id, agents.num, last_seq FROM heads JOIN agents ON agents.num = agent_num')
      .all();
    const writer = new WriteTransaction(new Connection(db));
    for (const { id, num, last_seq } of heads) {
      const log = { agent_num: Number(num), last_seq: Number(last_seq) };
      const far_ahead = log.last_seq + jump;
      const skip_to_seq = old?.heads.get(String(id)) ?? far_ahead;
      await skipNumbers(writer, log, skip_to_seq, now_ms);
    }
    await skipStreamNumbers(writer, async (table) => {
      const last = Math.max(lastNumber(db, table), old?.streams.get(table) ?? 0) + jump;
      db.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(table);
      db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(table, last);
      return last;
    });
    await recordRestore(writer, now_ms);
    db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
  } finally {
    db.close();
  }
}

/** The last numbers of a database: of every agent's log, by agent id, and of streams; null if it is missing, damaged or unreadable. */
function numbersOf(path: string): { heads: Map<string, number>; streams: Map<string, number> } | null {
  try {
    const db = new DatabaseSync(path, { readOnly: true });
    try {
      if (quickCheck(db).length > 0) return null;
      const rows = db
        .prepare('SELECT agents.id, last_seq FROM heads JOIN agents ON agents.num = agent_num')
        .all();
      return {
        heads: new Map(rows.map((row) => [String(row.id), Number(row.last_seq)])),
        streams: new Map(streamed_tables.map((table) => [table, lastNumber(db, table)])),
      };
    } finally {
      db.close();
    }
  } catch {
    return null;
  }
}

/** The last number that a table has assigned. */
function lastNumber(db: DatabaseSync, table: string): number {
  return Number(db.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').get(table)?.seq ?? 0);
}
