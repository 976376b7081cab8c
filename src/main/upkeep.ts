/** What a running plane does in the background: deletes what is no longer needed, and checks its audit log and database. */

import type { Logger } from '../base/log.ts';
import type { Core } from '../features/feature.ts';
import type { FeatureSet } from '../features/feature-set.ts';
import type { DatabaseFiles } from '../store/store.ts';
import type { Closing } from './closing.ts';
import { limits } from './limits.ts';

export function startUpkeep(core: Core, features: FeatureSet, opened: Closing): void {
  const { audit, store, facts, idempotency, log } = core;
  const failed = (err: unknown, feature?: string) => log.warn({ err, feature }, 'housekeeping failed');
  const sweepAll = async () => {
    await features.sweep((feature, error) => failed(error, feature));
    await facts.sweep().catch(failed);
    await idempotency.sweep().catch(failed);
  };
  const sweep = setInterval(() => void sweepAll(), limits.housekeeping_ms);
  opened.push(() => clearInterval(sweep));
  const checking = new AbortController();
  opened.push(() => checking.abort());
  void audit.check(checking.signal);
  const { files } = store;
  if (!files?.unchecked) return;
  const check = setTimeout(() => void checkDatabase(files, log, checking.signal), limits.database_check_ms);
  opened.push(() => clearTimeout(check));
}

/**
 * Checks the whole database and logs any damage as an error. A check that cannot finish is logged as a warning, or not at
 * all if the service is stopping. Never rejects.
 */
export async function checkDatabase(
  files: Pick<DatabaseFiles, 'check'>,
  log: Pick<Logger, 'error' | 'warn'>,
  stopping: AbortSignal,
): Promise<void> {
  try {
    const problems = await files.check();
    if (problems.length > 0)
      log.error({ problems }, 'the database is damaged: restore a backup with svc restore FILE');
  } catch (err) {
    if (stopping.aborted) return;
    log.warn({ err }, 'the database could not be checked: restart svc to check it again');
  }
}
