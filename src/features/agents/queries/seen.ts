/** SQL for the marks of how far people have read the logs of agents. */
import type { Insertable } from 'kysely';
import type { View } from '../../../core/policy.ts';
import { preparedQuery } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import { agentInView } from '../../../store/views.ts';

const markOf = preparedQuery((sql, user_id: string, agent_num: number) =>
  sql
    .selectFrom('agents_seen')
    .select('last_seen')
    .where('user_id', '=', user_id)
    .where('agent_num', '=', agent_num),
);

/** The number of the last event that the user has seen; 0: none. */
export async function seenBy(reader: Reader, user_id: string, agent_num: number): Promise<number> {
  return (await reader.get(markOf(reader, user_id, agent_num)))?.last_seen ?? 0;
}

/** A user's marks on the agents in the view, oldest agent first. */
export function listSeen(
  reader: Reader,
  user_id: string,
  view: View,
  { after_num, limit }: { after_num?: number | undefined; limit?: number | undefined },
) {
  let query = reader.sql
    .selectFrom('agents_seen')
    .innerJoin('agents', 'agents.num', 'agents_seen.agent_num')
    .select(['agents.num', 'agents.id as agent_id', 'agents_seen.last_seen'])
    .where('agents_seen.user_id', '=', user_id)
    .where(agentInView(reader, view))
    .orderBy('agents_seen.agent_num');
  if (after_num !== undefined) query = query.where('agents_seen.agent_num', '>', after_num);
  if (limit !== undefined) query = query.limit(limit);
  return reader.all(query);
}

export async function raiseSeen(tx: Tx, mark: Omit<Insertable<Tables['agents_seen']>, 'num'>): Promise<void> {
  const { last_seen } = mark;
  await tx.run(
    tx.sql
      .insertInto('agents_seen')
      .values(mark)
      .onConflict((conflict) => conflict.columns(['user_id', 'agent_num']).doUpdateSet({ last_seen })),
  );
}
