/** Queries about runs. A run has a row for its state, and one for its spec, which never changes. */
import { type Insertable, sql as literal, type Selectable, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../../base/clock.ts';
import type { View } from '../../../core/policy.ts';
import { preparedQuery, preparedUpdate } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import { teamsInView } from '../../../store/views.ts';
import { redactSpec } from '../../teams/rules/env.ts';
import type { TeamSpec } from '../../teams/rules/team.ts';
import { limits } from '../limits.ts';
import { attentionText } from '../rules/attention.ts';
import { type ListedRun, type Run, runTitle } from '../rules/run.ts';

export type RunRow = Selectable<Tables['runs']> & {
  spec: string;
  team_id: string;
  /** The id of the user who created the team. */
  team_created_by: string;
  task_id: string;
  /** Null: the user was deleted. */
  created_by_name: string | null;
  created_by_role: string | null;
  /** The creator's id if they are a human member of the team. */
  created_by_member: string | null;
};
type RunHead = Pick<RunRow, 'id' | 'num'> & Partial<RunRow>;
export type NewRun = Insertable<Tables['runs']> & { spec: string };

/**
 * Id of the user to whom the run and its new agents belong: its creator or, if that user was deleted or has left the team, the
 * team's.
 */
export function ownerOf({
  created_by,
  created_by_role,
  created_by_member,
  team_created_by,
}: Pick<RunRow, 'created_by' | 'created_by_role' | 'created_by_member' | 'team_created_by'>): string {
  return created_by_role === 'root' || created_by_member !== null ? created_by : team_created_by;
}

/** With the columns of its creator that can change. */
function runsWithCreator(builder: Reader['sql']) {
  return builder
    .selectFrom('runs')
    .leftJoin('users', 'users.id', 'runs.created_by')
    .leftJoin('team_humans', (join) =>
      join
        .onRef('team_humans.team_num', '=', 'runs.team_num')
        .onRef('team_humans.user_id', '=', 'runs.created_by'),
    )
    .select(['users.username as created_by_name', 'users.role as created_by_role'])
    .select('team_humans.user_id as created_by_member');
}

function runQuery(builder: Reader['sql']) {
  return runsWithCreator(builder)
    .innerJoin('teams', 'teams.num', 'runs.team_num')
    .innerJoin('tasks', 'tasks.num', 'runs.task_num')
    .innerJoin('run_specs', 'run_specs.run_num', 'runs.num')
    .selectAll('runs')
    .select(['run_specs.spec', 'teams.id as team_id', 'teams.created_by as team_created_by'])
    .select('tasks.id as task_id');
}

const runByNum = preparedQuery((builder, num: number) => runQuery(builder).where('runs.num', '=', num));

/** The columns of a run that can change. */
function headQuery(builder: Reader['sql']) {
  return runsWithCreator(builder)
    .select(['runs.num', 'runs.id', 'runs.status', 'runs.mode', 'runs.rounds', 'runs.rounds_before'])
    .select(['runs.leader', 'runs.steps_seen', 'runs.error', 'runs.attempt', 'runs.version', 'runs.output'])
    .select([
      'runs.attention',
      'runs.attention_at',
      'runs.started_at',
      'runs.ended_at',
      'runs.waiting_since',
    ]);
}

const headById = preparedQuery((builder, id: string) => headQuery(builder).where('runs.id', '=', id));
const headByNum = preparedQuery((builder, num: number) => headQuery(builder).where('runs.num', '=', num));

/** The current state of a run. Does not read its spec again, which never changes and can be large. */
export async function readAgain(reader: Reader, run: RunRow): Promise<RunRow> {
  return { ...run, ...(await reader.get(headByNum(reader, run.num)))! };
}

export async function findRun(reader: Reader, id: string): Promise<RunRow | undefined> {
  return complete(reader, await reader.get(headById(reader, id)));
}

export async function runOfNum(reader: Reader, num: number): Promise<RunRow | undefined> {
  return complete(reader, await reader.get(headByNum(reader, num)));
}

/** Adds the columns that never change. */
async function complete(reader: Reader, head: RunHead | undefined): Promise<RunRow | undefined> {
  if (!head) return undefined;
  const cache = cacheFor(reader);
  const known = cache.get(head.id);
  if (known) return { ...known, ...head } as RunRow;
  const row = (await reader.get(runByNum(reader, head.num)))!;
  const fixed = Object.fromEntries(Object.entries(row).filter(([column]) => !(column in head)));
  const remember = () => {
    cache.set(head.id, fixed);
    if (cache.size > limits.run_specs_cached_max) cache.delete(cache.keys().next().value!);
  };
  // A transaction that creates the run may be rolled back and run again, with another task and other numbers.
  if (isTx(reader)) reader.afterCommit(remember);
  else remember();
  return row;
}

function isTx(reader: Reader): reader is Tx {
  return 'afterCommit' in reader;
}

/** Columns that never change, of the most recently read runs of each database. A spec can be large. */
const cache = new WeakMap<object, Map<string, Partial<RunRow>>>();

function cacheFor({ database }: Reader): Map<string, Partial<RunRow>> {
  const rows = cache.get(database) ?? new Map<string, Partial<RunRow>>();
  cache.set(database, rows);
  return rows;
}

export interface RunFilter {
  team_num: number;
  task_num?: number | undefined;
  status?: RunRow['status'] | undefined;
  before_num?: number | undefined;
  /** Without this, there is no limit. */
  limit?: number | undefined;
}

interface RunPage extends Pick<RunFilter, 'status' | 'before_num'> {
  limit: number;
}

/** Newest first. */
export async function listRuns(reader: Reader, filter: RunFilter): Promise<RunRow[]> {
  let query = runQuery(reader.sql).where('runs.team_num', '=', filter.team_num).orderBy('runs.num', 'desc');
  if (filter.task_num !== undefined) query = query.where('runs.task_num', '=', filter.task_num);
  if (filter.status !== undefined) query = query.where('runs.status', '=', filter.status);
  if (filter.before_num !== undefined) query = query.where('runs.num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return (await reader.all(query)) as RunRow[];
}

export type ListedRunRow = Awaited<ReturnType<typeof listRunsInView>>[number];

/** The runs of all teams in the view, newest first, without their specs, inputs and outputs. */
export function listRunsInView(reader: Reader, view: View, { status, before_num, limit }: RunPage) {
  let query = reader.sql
    .selectFrom('runs')
    .innerJoin('teams', 'teams.num', 'runs.team_num')
    .innerJoin('tasks', 'tasks.num', 'runs.task_num')
    .leftJoin('users', 'users.id', 'runs.created_by')
    .select(['runs.num', 'runs.id', 'runs.number', 'runs.status', 'runs.error', 'runs.attempt'])
    .select(['runs.version', 'runs.attention', 'runs.created_by', 'runs.created_at'])
    .select(['runs.started_at', 'runs.ended_at', 'teams.id as team_id', 'teams.name as team_name'])
    .select(['tasks.id as task_id', 'users.username as created_by_name', 'runs.title'])
    // Inputs can be large, so they are read only for titles that are not stored.
    .select(({ eb }) =>
      eb.case().when('runs.title', 'is', null).then(eb.ref('runs.input')).end().as('untitled_input'),
    )
    // The `+` makes SQLite read runs in their order instead of sorting those of all teams.
    .where(({ eb, ref }) => eb(literal<number>`+${ref('runs.team_num')}`, 'in', teamsInView(reader, view)))
    .orderBy('runs.num', 'desc')
    .limit(limit);
  if (status !== undefined) query = query.where('runs.status', '=', status);
  if (before_num !== undefined) query = query.where('runs.num', '<', before_num);
  return reader.all(query);
}

/** Whether a run of the team has not ended. */
export async function hasOpenRuns(reader: Reader, team_num: number): Promise<boolean> {
  return (await openRuns(reader, team_num)).length > 0;
}

/** Runs that have not ended, oldest first. */
export async function openRuns(reader: Reader, team_num: number): Promise<RunRow[]> {
  return (await reader.all(
    runQuery(reader.sql)
      .where('runs.team_num', '=', team_num)
      .where('runs.status', 'in', ['pending', 'running', 'input_required'])
      .orderBy('runs.num'),
  )) as RunRow[];
}

/** The number of the team's next run. Numbers of deleted runs are not used again. */
export async function nextRunNumber(reader: Reader, team_num: number): Promise<number> {
  const newest = reader.sql
    .selectFrom('runs')
    .select(({ fn }) => fn.max('number').as('number'))
    .where('team_num', '=', team_num);
  const team = reader.sql.selectFrom('teams').select('deleted_run_number').where('num', '=', team_num);
  return (
    Math.max((await reader.get(newest))?.number ?? 0, (await reader.get(team))?.deleted_run_number ?? 0) + 1
  );
}

/** Deletes a run with its steps, events and mail. */
export async function deleteRun(tx: Tx, { id, num, number, team_num }: RunRow): Promise<void> {
  await tx.run(
    tx.sql
      .updateTable('teams')
      .set({ deleted_run_number: number })
      .where('num', '=', team_num)
      .where('deleted_run_number', '<', number),
  );
  await tx.run(tx.sql.deleteFrom('runs').where('num', '=', num));
  cacheFor(tx).delete(id);
}

export async function insertRun(tx: Tx, { spec, ...row }: NewRun): Promise<number> {
  const { num } = (await tx.get(tx.sql.insertInto('runs').values(row).returning('num')))!;
  await tx.run(tx.sql.insertInto('run_specs').values({ run_num: num, spec }));
  return num;
}

const changedRun = preparedUpdate('runs', 'num');

export function updateRun(tx: Tx, num: number, changes: Updateable<Tables['runs']>): void {
  tx.queue(changedRun(tx, changes, num));
}

export function toRun(row: RunRow): Run {
  const { id, number, team_id, task_id, status, ...rest } = toOutline(row);
  return {
    ...{ id, number, team_id, task_id, status },
    spec: redactSpec(parseSpec(row)),
    input: JSON.parse(row.input),
    output: parsed(row.output),
    ...rest,
  };
}

export function toListedRun(row: ListedRunRow): ListedRun {
  const { team_name, title, untitled_input } = row;
  return {
    ...toOutline(row),
    team_name,
    title: untitled_input === null ? title || null : runTitle(JSON.parse(untitled_input)),
  };
}

/** The fields of a run that are never large. */
function toOutline(
  row: Omit<ListedRunRow, 'team_name' | 'untitled_input'>,
): Omit<ListedRun, 'team_name' | 'title'> {
  return {
    id: row.id,
    number: row.number,
    team_id: row.team_id,
    task_id: row.task_id,
    status: row.status,
    error: row.error,
    attempt: row.attempt,
    version: row.version,
    attention: attentionText(row.attention),
    created_by: row.created_by,
    created_by_name: row.created_by_name,
    created_at: rfc3339(row.created_at),
    started_at: rfc3339OrNull(row.started_at),
    ended_at: rfc3339OrNull(row.ended_at),
  };
}

const specs = new Map<string, { json: string; spec: TeamSpec }>();

/** The spec of a run or team. It rarely changes and can be large, so the result is cached. Do not modify it. */
export function parseSpec({ id, spec: json }: Pick<RunRow, 'id' | 'spec'>): TeamSpec {
  const known = specs.get(id);
  if (known?.json === json) return known.spec;
  const spec = JSON.parse(json) as TeamSpec;
  specs.delete(id);
  specs.set(id, { json, spec });
  if (specs.size > limits.run_specs_cached_max) specs.delete(specs.keys().next().value!);
  return spec;
}

export function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json);
}
