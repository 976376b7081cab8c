/** Query conditions that select what a caller may see. They match the policy. */
import { type Expression, expressionBuilder, type SqlBool } from 'kysely';
import type { View } from '../core/policy.ts';
import { preparedQuery } from './prepared-query.ts';
import type { Reader } from './store.ts';
import type { Tables } from './tables.ts';

/** A condition on `agents`. */
export function agentInView({ sql }: Pick<Reader, 'sql'>, { user_id, limits }: View): Expression<SqlBool> {
  const eb = expressionBuilder<Tables, 'agents'>();
  const conditions: Expression<SqlBool>[] = [];
  if (user_id !== null) {
    const own = eb.and([eb('agents.owner_id', '=', user_id), eb('agents.team_num', 'is', null)]);
    conditions.push(eb.or([own, eb('agents.team_num', 'in', teamsOf({ sql }, user_id))]));
  }
  if (limits !== null) {
    const teams = sql.selectFrom('teams').select('num').where('id', 'in', limits.team_ids);
    conditions.push(eb.or([eb('agents.id', 'in', limits.agent_ids), eb('agents.team_num', 'in', teams)]));
  }
  return eb.and(conditions);
}

/** A subquery: the `num` of each team in the view. */
export function teamsInView({ sql }: Pick<Reader, 'sql'>, { user_id, limits }: View) {
  let query = sql.selectFrom('teams').select('num');
  if (user_id !== null) query = query.where('num', 'in', teamsOf({ sql }, user_id));
  if (limits !== null) query = query.where('id', 'in', limits.team_ids);
  return query;
}

/** A subquery: the `num` of each team that the user created or is a human member of. */
export function teamsOf({ sql }: Pick<Reader, 'sql'>, user_id: string) {
  return sql
    .selectFrom('teams')
    .select('num')
    .where('created_by', '=', user_id)
    .union(sql.selectFrom('team_humans').select('team_num as num').where('user_id', '=', user_id));
}

const humanIds = preparedQuery((sql, num: number) =>
  sql
    .selectFrom('teams')
    .select('created_by as user_id')
    .where('num', '=', num)
    .unionAll(sql.selectFrom('team_humans').select('user_id').where('team_num', '=', num)),
);

/** Ids of the creator and the human members of a team. */
export async function peopleOf(reader: Reader, team_num: number): Promise<string[]> {
  return (await reader.all(humanIds(reader, team_num))).map(({ user_id }) => user_id);
}
