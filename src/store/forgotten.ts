/** Agents and sessions that were given up while their node was away: what is found of them there is ended, not adopted. */
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';

/** Idempotent by id. */
export function insertForgotten(tx: Tx, row: Tables['forgotten']): void {
  tx.run(
    tx.sql
      .insertInto('forgotten')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doNothing()),
  );
}

/** The agent of a session that was forgotten, alone or with its agent; undefined for any other session. */
export function forgottenAgent(reader: Reader, session_id: string, agent_id?: string): string | undefined {
  const ids = agent_id === undefined ? [session_id] : [session_id, agent_id];
  return reader.get(reader.sql.selectFrom('forgotten').select('agent_id').where('id', 'in', ids))?.agent_id;
}

/** Ids of the sessions that were forgotten without their agent, and that a node may still have. */
export function forgottenSessions(reader: Reader, node_id: string): string[] {
  const query = reader.sql.selectFrom('forgotten').select('id').whereRef('id', '<>', 'agent_id');
  return reader.all(query.where('node_id', '=', node_id)).map(({ id }) => id);
}

export function deleteForgotten(tx: Tx, id: string): void {
  tx.run(tx.sql.deleteFrom('forgotten').where('id', '=', id));
}
