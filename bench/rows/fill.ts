/** Changes of the database of a stopped service, with its own store. */
import type { Store } from '../../src/store/store.ts';

/** Marks all sessions and agents as ended, so that a starting service does not look for their processes. */
export function asEnded(store: Store): Promise<void> {
  return store.write(async (tx) => {
    await tx.run(tx.sql.updateTable('sessions').set({ state: 'ended', ended_at: Date.now() }));
    await tx.run(tx.sql.updateTable('agents').set({ status: 'completed', ended_at: Date.now() }));
  });
}
