/**
 * New SQLite databases for tests. Running all migrations takes longer than many tests, so each is a copy of an empty database.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../base/log.ts';
import { type FileStore, openSqlite } from '../store/sqlite.ts';

/** The content of an empty database with the newest schema. */
let empty: Promise<Buffer> | undefined;

/** Opens the database at a path, or a new one if there is none. The caller closes it. */
export async function openTestDatabase(path: string): Promise<FileStore> {
  if (!existsSync(path)) {
    empty ??= createEmpty();
    await writeFile(path, await empty, { mode: 0o600 });
  }
  return openSqlite({ path, log: silentLog });
}

async function createEmpty(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-empty-'));
  try {
    const path = join(folder, 'svc.db');
    await (await openSqlite({ path, log: silentLog })).close();
    return await readFile(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
