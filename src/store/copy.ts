/**
 * Copies of the database: taken while another process may be writing, and made ready to live again after a restore. A
 * copy is one snapshot. It is not for the process that has the store open; that one asks `Store.backup`.
 */
import { existsSync } from 'node:fs';
import { chmod, unlink } from 'node:fs/promises';
import { backup, DatabaseSync } from 'node:sqlite';
import { limits } from '../base/limits.ts';
import { quickCheck } from './integrity.ts';

/** Writes a snapshot of `from` to the new file `to`. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  const source = new DatabaseSync(from, { readOnly: true, timeout: limits.database_busy_ms });
  try {
    // A snapshot held open: without it the copy begins again at every commit.
    source.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
    await backup(source, to, { rate: limits.backup_pages_per_step });
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

/** What is wrong with a database file; nothing when it is sound. */
export function damageOf(path: string): string[] {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return quickCheck(db);
  } finally {
    db.close();
  }
}

const ERROR_EVENT = 4;

/**
 * Makes a restored copy ready to live: every log goes on above any number that was given out since the copy was made,
 * and says so with a `log_gap`. Numbers come from the database it replaces; without a readable one they jump.
 */
export function moveLogsOn(copy: string, replaced: string | null, now_ms: number): void {
  const given = replaced !== null && existsSync(replaced) ? headsOf(replaced) : null;
  const db = new DatabaseSync(copy);
  try {
    db.exec('BEGIN IMMEDIATE');
    const heads = db
      .prepare('SELECT agents.id, agents.num, last_seq FROM heads JOIN agents ON agents.num = agent_num')
      .all();
    const event = db.prepare('INSERT INTO events (agent_num, seq, ts, type, data) VALUES (?, ?, ?, ?, ?)');
    const move = db.prepare('UPDATE heads SET last_seq = ?, bytes = bytes + ? WHERE agent_num = ?');
    for (const { id, num, last_seq } of heads) {
      const had = Number(last_seq);
      const known = given === null ? had + limits.restore_jump_events : (given.get(String(id)) ?? had);
      if (known <= had) continue;
      const data = Buffer.from(
        JSON.stringify({
          code: 'log_gap',
          error: 'the service was restored from a backup; events since then are not in it',
          from: had + 1,
          to: known,
        }),
      );
      event.run(Number(num), known + 1, now_ms, ERROR_EVENT, data);
      move.run(known + 1, data.length + limits.event_row_bytes, Number(num));
    }
    db.prepare(
      "INSERT INTO meta (key, value) VALUES ('restored_at_ms', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    ).run(String(now_ms));
    db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
  } finally {
    db.close();
  }
}

/** The last number of every agent's log; null when the database cannot be read. */
function headsOf(path: string): Map<string, number> | null {
  try {
    const db = new DatabaseSync(path, { readOnly: true });
    try {
      if (quickCheck(db).length > 0) return null;
      const rows = db
        .prepare('SELECT agents.id, last_seq FROM heads JOIN agents ON agents.num = agent_num')
        .all();
      return new Map(rows.map((row) => [String(row.id), Number(row.last_seq)]));
    } finally {
      db.close();
    }
  } catch {
    return null;
  }
}
