/** SQL for teams and their human members: rows in, rows and records out. The rules are in the service. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import { rfc3339 } from '../../base/clock.ts';
import type { View } from '../../core/policy.ts';
import { preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { peopleOf, teamsInView } from '../../store/views.ts';
import { redactSpec } from './rules/env.ts';
import { deriveTeamKey } from './rules/key.ts';
import type { Team } from './rules/team.ts';

export type TeamRow = Selectable<Tables['teams']>;

const teamById = preparedQuery((sql, id: string) => sql.selectFrom('teams').selectAll().where('id', '=', id));

export async function findTeam(reader: Reader, id: string): Promise<TeamRow | undefined> {
  return (await reader.get(teamById(reader, id))) as TeamRow | undefined;
}

const teamByNum = preparedQuery((sql, num: number) =>
  sql.selectFrom('teams').selectAll().where('num', '=', num),
);

export function teamOfNum(reader: Reader, num: number): Promise<TeamRow | undefined> {
  return reader.get(teamByNum(reader, num));
}

/**
 * Ids of everyone who may have written a part of the team's definition: its creator, and everyone who has changed it. They
 * may be users, or tokens with limits.
 */
export function parseEditors(team: Pick<TeamRow, 'created_by' | 'spec_editors'>): string[] {
  return [...new Set([team.created_by, ...(JSON.parse(team.spec_editors) as string[])])];
}

/** The `num` of each team in the view. */
export async function teamNumsInView(reader: Reader, view: View): Promise<number[]> {
  return (await reader.all(teamsInView(reader, view))).map(({ num }) => num);
}

export async function createdTeams(reader: Reader, user_id: string): Promise<boolean> {
  const teams = reader.sql.selectFrom('teams').select('id').where('created_by', '=', user_id);
  return (await reader.get(teams.limit(1))) !== undefined;
}

export interface TeamFilter {
  view: View;
  before_num?: number | undefined;
  /** Without this, there is no limit. */
  limit?: number | undefined;
}

/** Newest first. */
export function listTeams(reader: Reader, filter: TeamFilter): Promise<TeamRow[]> {
  let query = reader.sql
    .selectFrom('teams')
    .selectAll()
    .where('num', 'in', teamsInView(reader, filter.view))
    .orderBy('num', 'desc');
  if (filter.before_num !== undefined) query = query.where('num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return reader.all(query);
}

export async function isTeamName(reader: Reader, name: string): Promise<boolean> {
  return (
    (await reader.get(reader.sql.selectFrom('teams').select('num').where('name', '=', name))) !== undefined
  );
}

export async function isTeamKey(reader: Reader, key: string): Promise<boolean> {
  return (
    (await reader.get(reader.sql.selectFrom('teams').select('num').where('key', '=', key))) !== undefined
  );
}

/** The keys that begin with two letters. Keys have at most five. */
async function teamKeysFrom(reader: Reader, start: string): Promise<string[]> {
  const keys = reader.sql.selectFrom('teams').select('key').where('key', '>=', start);
  return (await reader.all(keys.where('key', '<=', `${start}ZZZ`))).map(({ key }) => key);
}

/** Deletes the team. Agents and worktrees of people who had left it go to its creator, so that the former owners do not see them again. */
export async function deleteTeam(tx: Tx, num: number): Promise<void> {
  const { created_by: owner_id } = (await teamOfNum(tx, num))!;
  const people = await peopleOf(tx, num);
  const root = tx.sql.selectFrom('users').select('id').where('role', '=', 'root');
  for (const table of ['agents', 'kept_worktrees'] as const) {
    const of_others = tx.sql.updateTable(table).set({ owner_id }).where('team_num', '=', num);
    await tx.run(of_others.where('owner_id', 'not in', people).where('owner_id', 'not in', root));
  }
  await tx.run(tx.sql.deleteFrom('teams').where('num', '=', num));
}

/** Replaces the team's human members. */
export async function putHumans(tx: Tx, team_num: number, user_ids: readonly string[]): Promise<void> {
  await tx.run(tx.sql.deleteFrom('team_humans').where('team_num', '=', team_num));
  if (user_ids.length === 0) return;
  const rows = user_ids.map((user_id) => ({ team_num, user_id }));
  await tx.run(tx.sql.insertInto('team_humans').values(rows));
}

/** Inserts a team; without a `key`, with one that is derived from its name (see `deriveTeamKey`). Returns its num. */
export async function insertTeam(
  tx: Tx,
  row: Omit<Insertable<Tables['teams']>, 'key'> & { key?: string | undefined },
): Promise<number> {
  const key = row.key ?? (await deriveTeamKey(row.name, (start) => teamKeysFrom(tx, start)));
  return (await tx.get(
    tx.sql
      .insertInto('teams')
      .values({ ...row, key })
      .returning('num'),
  ))!.num;
}

export async function updateTeam(tx: Tx, num: number, changes: Updateable<Tables['teams']>): Promise<void> {
  await tx.run(tx.sql.updateTable('teams').set(changes).where('num', '=', num));
}

/** Ids and names of the users who can see and edit the team, besides its creator and root, sorted by name. */
export function listHumans(
  reader: Reader,
  team_num: number,
): Promise<{ user_id: string; username: string }[]> {
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
    key: row.key,
    description: row.description,
    spec: redactSpec(JSON.parse(row.spec)),
    version: row.version,
    human_members: humans.map(({ username }) => username),
    created_by: row.created_by,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}
