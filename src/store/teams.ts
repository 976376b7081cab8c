/** Queries about teams and the humans in them: rows in, rows and records out. Rules stand in `services/teams/`. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import { rfc3339 } from '../base/clock.ts';
import type { View } from '../domain/policy.ts';
import type { Team } from '../domain/team.ts';
import { shownSpec } from '../domain/team-env.ts';
import { built } from './built.ts';
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';
import { teamsInView } from './views.ts';

export type TeamRow = Selectable<Tables['teams']>;

const teamById = built((sql, id: string) => sql.selectFrom('teams').selectAll().where('id', '=', id));

export function findTeam(reader: Reader, id: string): TeamRow | undefined {
  return reader.get(teamById(reader, id)) as TeamRow | undefined;
}

const teamByNum = built((sql, num: number) => sql.selectFrom('teams').selectAll().where('num', '=', num));

export function teamOfNum(reader: Reader, num: number): TeamRow | undefined {
  return reader.get(teamByNum(reader, num));
}

const creatorByNum = built((sql, num: number) =>
  sql.selectFrom('teams').select('created_by').where('num', '=', num),
);

/** The id of the user who made the team. */
export function creatorOf(reader: Reader, team_num: number): string {
  return reader.get(creatorByNum(reader, team_num))!.created_by;
}

export interface TeamFilter {
  view: View;
  before_num?: number | undefined;
  /** Absent: all of them. */
  limit?: number | undefined;
}

/** Newest first. */
export function listTeams(reader: Reader, filter: TeamFilter): TeamRow[] {
  let query = reader.sql
    .selectFrom('teams')
    .selectAll()
    .where('num', 'in', teamsInView(reader, filter.view))
    .orderBy('num', 'desc');
  if (filter.before_num !== undefined) query = query.where('num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return reader.all(query);
}

export function isTeamName(reader: Reader, name: string): boolean {
  return reader.get(reader.sql.selectFrom('teams').select('num').where('name', '=', name)) !== undefined;
}

export function deleteTeam(tx: Tx, num: number): void {
  tx.run(tx.sql.deleteFrom('teams').where('num', '=', num));
}

/** Makes these the team's humans, and nobody else. */
export function putHumans(tx: Tx, team_num: number, user_ids: readonly string[]): void {
  tx.run(tx.sql.deleteFrom('team_humans').where('team_num', '=', team_num));
  if (user_ids.length === 0) return;
  const rows = user_ids.map((user_id) => ({ team_num, user_id }));
  tx.run(tx.sql.insertInto('team_humans').values(rows));
}

const humanIds = built((sql, num: number) =>
  sql
    .selectFrom('teams')
    .select('created_by as user_id')
    .where('num', '=', num)
    .unionAll(sql.selectFrom('team_humans').select('user_id').where('team_num', '=', num)),
);

/** Ids of the users whose team it is: its creator and its humans. */
export function peopleOf(reader: Reader, team_num: number): string[] {
  return reader.all(humanIds(reader, team_num)).map(({ user_id }) => user_id);
}

export function insertTeam(tx: Tx, row: Insertable<Tables['teams']>): number {
  return tx.get(tx.sql.insertInto('teams').values(row).returning('num'))!.num;
}

export function updateTeam(tx: Tx, num: number, changes: Updateable<Tables['teams']>): void {
  tx.run(tx.sql.updateTable('teams').set(changes).where('num', '=', num));
}

/** Ids and names of the users who see and edit the team, besides its creator and root; by name. */
export function humansOf(reader: Reader, team_num: number): { user_id: string; username: string }[] {
  return reader.all(
    reader.sql
      .selectFrom('team_humans')
      .innerJoin('users', 'users.id', 'team_humans.user_id')
      .select(['users.id as user_id', 'users.username'])
      .where('team_humans.team_num', '=', team_num)
      .orderBy('users.username'),
  );
}

export function toTeam(row: TeamRow, humans: readonly { username: string }[]): Team {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    spec: shownSpec(JSON.parse(row.spec)),
    version: row.version,
    human_members: humans.map(({ username }) => username),
    created_by: row.created_by,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}
