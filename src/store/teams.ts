/** Queries about teams and the humans in them: rows in, rows and records out. Rules stand in `services/teams/`. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import { rfc3339 } from '../base/clock.ts';
import type { Team } from '../domain/team.ts';
import { built } from './built.ts';
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';

export type TeamRow = Selectable<Tables['teams']>;

const teamById = built((sql, id: string) => sql.selectFrom('teams').selectAll().where('id', '=', id));

export function findTeam(reader: Reader, id: string): TeamRow | undefined {
  return reader.get(teamById(reader, id)) as TeamRow | undefined;
}

export function teamOfNum(reader: Reader, num: number): TeamRow | undefined {
  return reader.get(reader.sql.selectFrom('teams').selectAll().where('num', '=', num));
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
    spec: JSON.parse(row.spec),
    version: row.version,
    human_members: humans.map(({ username }) => username),
    created_by: row.created_by,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}
