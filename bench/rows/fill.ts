/** What the rows do to the database of a stopped service, through its own store. */
import type { Store } from '../../src/store/store.ts';

/** Sessions and agents that have no process: a starting service has nothing to look for. */
export function asEnded(store: Store): Promise<void> {
  return store.write((tx) => {
    tx.run(tx.sql.updateTable('sessions').set({ state: 'ended', ended_at: Date.now() }));
    tx.run(tx.sql.updateTable('agents').set({ status: 'completed', ended_at: Date.now() }));
  });
}
