/** Checks of `svc doctor` about the database on a server. */
import { type DoctorCheck, failed, passed } from '../cli/context.ts';
import type { Config } from '../core/config.ts';
import { readDatabaseCa, serverDatabase } from './database.ts';

/** Null for the embedded database. */
export async function databaseCheck(config: Config): Promise<DoctorCheck | null> {
  const url = config.get('database.url');
  const database = serverDatabase(config);
  if (url === null || database === null) return null;
  const unusable = (problem: string) =>
    failed('database', `${database}: ${problem}`, 'svc does not start until this is fixed');
  let ca: string | undefined;
  try {
    ca = await readDatabaseCa(config);
  } catch (error) {
    return unusable((error as Error).message);
  }
  const { examinePostgres } = await import('../store/postgres/examine.ts');
  const found = await examinePostgres({ url, ca });
  if ('problem' in found) return unusable(found.problem);
  const used = found.holder === null ? '' : `, used by ${found.holder}`;
  return passed('database', `${database}, PostgreSQL ${found.version}${used}`);
}
