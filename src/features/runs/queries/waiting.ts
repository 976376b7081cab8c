/** Queries about steps that wait for an answer, in all runs, and about runs that wait without such a step. */
import { sql as literal } from 'kysely';
import { rfc3339 } from '../../../base/clock.ts';
import type { View } from '../../../core/policy.ts';
import type { Reader } from '../../../store/store.ts';
import { teamsInView } from '../../../store/views.ts';
import type { WaitingRun, WaitingStep } from '../rules/run.ts';

export type WaitingStepRow = Awaited<ReturnType<typeof listWaitingSteps>>[number];

function waitingSteps({ sql }: Pick<Reader, 'sql'>, view: View) {
  return (
    sql
      .selectFrom('run_steps')
      // A cross join keeps its order: otherwise, SQLite reads all steps of all runs in the view.
      .crossJoin('runs')
      .whereRef('runs.num', '=', 'run_steps.run_num')
      .where('run_steps.waiting_since', 'is not', null)
      .where('runs.team_num', 'in', teamsInView({ sql }, view))
  );
}

/** The longest wait first. `after`: the time and the number of the last step of the previous page. */
export function listWaitingSteps(
  reader: Reader,
  view: View,
  { after, limit }: { after?: [number, number] | undefined; limit?: number | undefined } = {},
) {
  let query = waitingSteps(reader, view)
    .innerJoin('teams', 'teams.num', 'runs.team_num')
    .select(['teams.id as team_id', 'teams.name as team_name'])
    .select(['runs.id as run_id', 'runs.number as run_number'])
    .select(['run_steps.num', 'run_steps.step_key', 'run_steps.member_id', 'run_steps.attempt'])
    .select(['run_steps.error_text', 'run_steps.waiting_since'])
    .select((eb) =>
      eb
        .selectFrom('run_attempts')
        .select('run_attempts.agent_id')
        .whereRef('run_attempts.run_num', '=', 'runs.num')
        .whereRef('run_attempts.run_attempt', '=', 'runs.attempt')
        .whereRef('run_attempts.step_key', '=', 'run_steps.step_key')
        .orderBy('run_attempts.attempt', 'desc')
        .limit(1)
        .as('agent_id'),
    )
    .orderBy('run_steps.waiting_since')
    .orderBy('run_steps.num');
  if (after !== undefined) {
    const [since, num] = after;
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('run_steps.waiting_since', 'run_steps.num'), '>', tuple(since, num)),
    );
  }
  if (limit !== undefined) query = query.limit(limit);
  return reader.all(query);
}

export function toWaitingStep(row: WaitingStepRow): WaitingStep {
  const { team_id, team_name, run_id, run_number, step_key, member_id, agent_id, attempt } = row;
  return {
    ...{ team_id, team_name, run_id, run_number, step_key, member_id, agent_id, attempt },
    question: row.error_text ?? '',
    waiting_since: rfc3339(row.waiting_since!),
  };
}

/** Number of waiting steps in the view, up to `most`. */
export async function countWaitingSteps(reader: Reader, view: View, most: number): Promise<number> {
  return (await reader.all(waitingSteps(reader, view).select('run_steps.num').limit(most))).length;
}

export type WaitingRunRow = Awaited<ReturnType<typeof listWaitingRuns>>[number];

function allWaitingRuns({ sql }: Pick<Reader, 'sql'>) {
  return sql
    .selectFrom('runs')
    .where('runs.waiting_since', 'is not', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('run_steps')
            .select('run_steps.num')
            .whereRef('run_steps.run_num', '=', 'runs.num')
            .where('run_steps.status', '=', literal.lit('input_required')),
        ),
      ),
    );
}

function waitingRuns({ sql }: Pick<Reader, 'sql'>, view: View) {
  // The `+` keeps SQLite from using the index of this column, with which it reads all runs in the view.
  return allWaitingRuns({ sql }).where(({ eb, ref }) =>
    eb(literal<number>`+${ref('runs.team_num')}`, 'in', teamsInView({ sql }, view)),
  );
}

/** Since when the run is in the list of waiting runs, Unix ms; null if it is not. */
export async function findRunWait(
  reader: Reader,
  { num, waiting_since }: { num: number; waiting_since: number | null },
): Promise<number | null> {
  // Most runs do not wait, and this is read for every event of a run.
  if (waiting_since === null) return null;
  const query = allWaitingRuns(reader).select('runs.waiting_since').where('runs.num', '=', num);
  return (await reader.get(query))?.waiting_since ?? null;
}

/** The longest wait first. `after`: the time and the number of the last run of the previous page. */
export function listWaitingRuns(
  reader: Reader,
  view: View,
  { after, limit }: { after?: [number, number] | undefined; limit?: number | undefined } = {},
) {
  let query = waitingRuns(reader, view)
    .innerJoin('teams', 'teams.num', 'runs.team_num')
    .select(['teams.id as team_id', 'teams.name as team_name'])
    .select(['runs.id as run_id', 'runs.number as run_number'])
    .select(['runs.num', 'runs.version', 'runs.error', 'runs.waiting_since'])
    .orderBy('runs.waiting_since')
    .orderBy('runs.num');
  if (after !== undefined) {
    const [since, num] = after;
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('runs.waiting_since', 'runs.num'), '>', tuple(since, num)),
    );
  }
  if (limit !== undefined) query = query.limit(limit);
  return reader.all(query);
}

export function toWaitingRun(row: WaitingRunRow): WaitingRun {
  const { team_id, team_name, run_id, run_number, version, error, waiting_since } = row;
  return {
    ...{ team_id, team_name, run_id, run_number, version, reason: error ?? '' },
    waiting_since: rfc3339(waiting_since!),
  };
}

/** Number of waiting runs in the view, up to `most`. */
export async function countWaitingRuns(reader: Reader, view: View, most: number): Promise<number> {
  return (await reader.all(waitingRuns(reader, view).select('runs.num').limit(most))).length;
}
