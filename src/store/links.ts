/**
 * Decisions that follow from what a node said. Each link to a node has an epoch, which is higher than those of all earlier
 * links and is recorded in the node's row before the link is opened (`features/nodes`). A restored database gets a higher
 * incarnation. So what a node said over a link is out of date as soon as the row shows another epoch: another link, perhaps
 * of another process, now speaks for the node.
 */
import type { Link } from '../core/node.ts';
import { Problem, problems } from '../core/problem.ts';
import { currentIncarnation } from './plane-id.ts';
import type { Reader, Store, Tx } from './store.ts';

/** Thrown for a decision over a link that is not the newest one of its node. To callers, the node did not answer. */
class StaleLink extends Problem {
  constructor() {
    const { kind, code, message } = problems.nodeUnreachable();
    super(kind, code, message);
  }
}

/**
 * Runs a transaction that stores a decision about what a node said over a link, for example that it does not have a session.
 * Get the link from the node before you ask it, so that the link is never newer than the answer. If a newer link to the node
 * exists, or `link` is null, the transaction does nothing, the link ends, and the call throws `node_unreachable`.
 *
 * Facts and output do not need this: both have a position that the transaction compares with the committed one.
 */
export async function writeForLink<T>(
  store: Store,
  link: Link | null,
  body: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await store.write(async (tx) => {
      if (!(await isCurrent(tx, link))) throw new StaleLink();
      return body(tx);
    });
  } catch (error) {
    if (error instanceof StaleLink) link?.end();
    throw error;
  }
}

async function isCurrent(reader: Reader, link: Link | null): Promise<boolean> {
  if (link === null) return false;
  const { node_id, position } = link;
  if (position === null) return true;
  const row = await reader.get(reader.sql.selectFrom('nodes').select('epoch').where('id', '=', node_id));
  return row?.epoch === position.epoch && (await currentIncarnation(reader)) === position.incarnation;
}
