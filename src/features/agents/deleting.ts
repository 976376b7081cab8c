/** Deletes agents only while they are stopped. */
import { problems } from '../../core/problem.ts';
import type { Reader } from '../../store/store.ts';
import type { AgentCore } from './core.ts';
import { type AgentRow, updateAgent } from './queries/agents.ts';
import { isLive } from './records.ts';

/**
 * Calls `remove`, which removes what the agent leaves. Until it is done, the agent cannot start in a folder that is about to
 * disappear. Throws `agent is running`, and what `remove` throws.
 */
export async function whileStopped<T>(
  { store, deleting }: AgentCore,
  find: (reader: Reader) => Promise<AgentRow>,
  remove: (row: AgentRow) => Promise<T>,
): Promise<T> {
  const { id } = await store.read(find);
  deleting.add(id);
  try {
    // A write to the same row as a start: if both commit at the same time, one of them runs again and is refused.
    const row = await store.write(async (tx) => {
      const found = await find(tx);
      if (isLive(found)) throw problems.agentRunning();
      updateAgent(tx, found.num, { updated_at: found.updated_at });
      return found;
    });
    return await remove(row);
  } finally {
    deleting.delete(id);
  }
}
