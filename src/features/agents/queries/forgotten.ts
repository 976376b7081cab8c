/** SQL for agents and sessions that were forgotten while their node was away. Their sessions are ended, not adopted. */
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';

/** Idempotent by id. */
export async function insertForgotten(tx: Tx, row: Tables['forgotten']): Promise<void> {
  await tx.run(
    tx.sql
      .insertInto('forgotten')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doNothing()),
  );
}

/** The agent of a forgotten session, or of a session whose agent was forgotten; undefined for other sessions. */
export async function forgottenAgent(
  reader: Reader,
  session_id: string,
  agent_id?: string,
): Promise<string | undefined> {
  const ids = agent_id === undefined ? [session_id] : [session_id, agent_id];
  return (await reader.get(reader.sql.selectFrom('forgotten').select('agent_id').where('id', 'in', ids)))
    ?.agent_id;
}

/** Ids of the node's sessions that were forgotten; ids of forgotten agents are not included. */
export async function forgottenSessions(reader: Reader, node_id: string): Promise<string[]> {
  const query = reader.sql.selectFrom('forgotten').select('id').whereRef('id', '<>', 'agent_id');
  return (await reader.all(query.where('node_id', '=', node_id))).map(({ id }) => id);
}

export async function deleteForgotten(tx: Tx, id: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('forgotten').where('id', '=', id));
}
