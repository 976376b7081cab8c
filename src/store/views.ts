/** What a caller may see, as parts of queries: the same that the policy lets the caller read. */
import { type Expression, expressionBuilder, type SqlBool } from 'kysely';
import type { View } from '../domain/policy.ts';
import type { Reader } from './store.ts';
import type { Tables } from './tables.ts';

/** A condition on `agents`. */
export function agentInView({ sql }: Pick<Reader, 'sql'>, { user_id, limits }: View): Expression<SqlBool> {
  const eb = expressionBuilder<Tables, 'agents'>();
  const conditions: Expression<SqlBool>[] = [];
  if (user_id !== null) {
    const of_team = eb('agents.team_num', 'in', teamsOf({ sql }, user_id));
    conditions.push(eb.or([eb('agents.owner_id', '=', user_id), of_team]));
  }
  if (limits !== null) {
    const teams = sql.selectFrom('teams').select('num').where('id', 'in', limits.team_ids);
    conditions.push(eb.or([eb('agents.id', 'in', limits.agent_ids), eb('agents.team_num', 'in', teams)]));
  }
  return eb.and(conditions);
}

/** As a part of a query: the `num` of each team. */
export function teamsInView({ sql }: Pick<Reader, 'sql'>, { user_id, limits }: View) {
  let query = sql.selectFrom('teams').select('num');
  if (user_id !== null) query = query.where('num', 'in', teamsOf({ sql }, user_id));
  if (limits !== null) query = query.where('id', 'in', limits.team_ids);
  return query;
}

/** As a part of a query: the `num` of each team that the user made or is a human of. */
function teamsOf({ sql }: Pick<Reader, 'sql'>, user_id: string) {
  return sql
    .selectFrom('teams')
    .select('num')
    .where('created_by', '=', user_id)
    .union(sql.selectFrom('team_humans').select('team_num as num').where('user_id', '=', user_id));
}
