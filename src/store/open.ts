/** Opens databases of any kind. */
import { openSqliteReader } from './sqlite.ts';
import type { StoreReader, StoreSource } from './store.ts';

/** Opens a reader for another thread. Each `read` has its own snapshot, unless another one of SQLite is running. */
export async function openReader(source: StoreSource): Promise<StoreReader> {
  if (source.kind === 'sqlite') return openSqliteReader(source.path);
  // Loaded on demand, because most services do not need the driver.
  const { openPostgresReader } = await import('./postgres/reads.ts');
  return openPostgresReader(source);
}
