/** Queries about runs, their steps and attempts: rows in, rows and records out. Rules stand in `services/teams/`. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../base/clock.ts';
import type { Run, RunGraph, RunState, Step, StepState, Tally } from '../domain/run.ts';
import { built } from './built.ts';
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';

export type RunRow = Selectable<Tables['runs']> & { team_id: string; task_id: string };
export type StepRow = Selectable<Tables['run_steps']>;
export type AttemptRow = Selectable<Tables['run_attempts']>;

// --- runs -------------------------------------------------------------------------------------------------------------

function runQuery(builder: Reader['sql']) {
  return builder
    .selectFrom('runs')
    .innerJoin('teams', 'teams.num', 'runs.team_num')
    .innerJoin('tasks', 'tasks.num', 'runs.task_num')
    .selectAll('runs')
    .select(['teams.id as team_id', 'tasks.id as task_id']);
}

const runById = built((builder, id: string) => runQuery(builder).where('runs.id', '=', id));
const runByNum = built((builder, num: number) => runQuery(builder).where('runs.num', '=', num));

export function findRun(reader: Reader, id: string): RunRow | undefined {
  return reader.get(runById(reader, id)) as RunRow | undefined;
}

export function runOfNum(reader: Reader, num: number): RunRow | undefined {
  return reader.get(runByNum(reader, num)) as RunRow | undefined;
}

export interface RunFilter {
  team_num: number;
  task_num?: number | undefined;
  status?: RunRow['status'] | undefined;
  before_num?: number | undefined;
  /** Absent: all of them. */
  limit?: number | undefined;
}

/** Newest first. */
export function listRuns(reader: Reader, filter: RunFilter): RunRow[] {
  let query = runQuery(reader.sql).where('runs.team_num', '=', filter.team_num).orderBy('runs.num', 'desc');
  if (filter.task_num !== undefined) query = query.where('runs.task_num', '=', filter.task_num);
  if (filter.status !== undefined) query = query.where('runs.status', '=', filter.status);
  if (filter.before_num !== undefined) query = query.where('runs.num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return reader.all(query) as RunRow[];
}

/** Those that are not over, oldest first. */
export function openRuns(reader: Reader, team_num: number): RunRow[] {
  return reader.all(
    runQuery(reader.sql)
      .where('runs.team_num', '=', team_num)
      .where('runs.status', 'in', ['pending', 'running', 'input_required'])
      .orderBy('runs.num'),
  ) as RunRow[];
}

/** The number of the team's next run. */
export function nextRunNumber(reader: Reader, team_num: number): number {
  const query = reader.sql
    .selectFrom('runs')
    .select(({ fn }) => fn.max('number').as('number'))
    .where('team_num', '=', team_num);
  return (reader.get(query)?.number ?? 0) + 1;
}

export function insertRun(tx: Tx, row: Insertable<Tables['runs']>): number {
  return tx.get(tx.sql.insertInto('runs').values(row).returning('num'))!.num;
}

export function updateRun(tx: Tx, num: number, changes: Updateable<Tables['runs']>): void {
  tx.run(tx.sql.updateTable('runs').set(changes).where('num', '=', num));
}

export function toRun(row: RunRow): Run {
  return {
    id: row.id,
    number: row.number,
    team_id: row.team_id,
    task_id: row.task_id,
    status: row.status,
    spec: JSON.parse(row.spec),
    input: JSON.parse(row.input),
    output: parsed(row.output),
    error: row.error,
    attempt: row.attempt,
    version: row.version,
    attention: row.attention,
    created_by: row.created_by,
    created_at: rfc3339(row.created_at),
    started_at: rfc3339OrNull(row.started_at),
    ended_at: rfc3339OrNull(row.ended_at),
  };
}

function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json);
}

// --- steps ------------------------------------------------------------------------------------------------------------

/** A step, and what it depends on: steps of the run that are there already. */
export function insertStep(tx: Tx, row: Insertable<Tables['run_steps']>): number {
  const { num } = tx.get(tx.sql.insertInto('run_steps').values(row).returning('num'))!;
  const needs = JSON.parse(row.depends_on) as string[];
  if (needs.length > 0) insertEdges(tx, row.run_num, num, needs);
  return num;
}

function insertEdges(tx: Tx, run_num: number, step_num: number, needs: string[]): void {
  const rows = needs.map((key) => ({ run_num, step_num, needs_num: mustFindStep(tx, run_num, key).num }));
  // Each of the few hundred rows that one statement takes.
  for (let from = 0; from < rows.length; from += 256) {
    tx.run(
      tx.sql
        .insertInto('run_edges')
        .values(rows.slice(from, from + 256))
        .onConflict((conflict) => conflict.doNothing()),
    );
  }
}

const stepByKey = built((builder, run_num: number, step_key: string) =>
  builder.selectFrom('run_steps').selectAll().where('run_num', '=', run_num).where('step_key', '=', step_key),
);

export function findStep(reader: Reader, run_num: number, step_key: string): StepRow | undefined {
  return reader.get(stepByKey(reader, run_num, step_key)) as StepRow | undefined;
}

function mustFindStep(reader: Reader, run_num: number, step_key: string): StepRow {
  const row = findStep(reader, run_num, step_key);
  if (!row) throw new Error(`there is no step ${step_key}`);
  return row;
}

/** Whether a step of the member's was given to it, and is not over. */
export function hasLaunched(reader: Reader, run_num: number, member_id: string): boolean {
  const query = reader.sql.selectFrom('run_steps').select('num').where('run_num', '=', run_num);
  const launched = query.where('launched', '=', sql.lit(1)).where('member_id', '=', member_id);
  return reader.get(launched.limit(1)) !== undefined;
}

/** In the order in which they were defined or added. */
export function stepsOf(reader: Reader, run_num: number): StepRow[] {
  return reader.all(
    reader.sql.selectFrom('run_steps').selectAll().where('run_num', '=', run_num).orderBy('num'),
  );
}

export function updateStep(tx: Tx, num: number, changes: Updateable<Tables['run_steps']>): void {
  tx.run(tx.sql.updateTable('run_steps').set(changes).where('num', '=', num));
}

/** `agent_id`: whose the present attempt is. */
export function toStep(row: StepRow, run_id: string, agent_id: string | null): Step {
  return {
    run_id,
    step_key: row.step_key,
    member_id: row.member_id,
    depends_on: JSON.parse(row.depends_on),
    when: row.when,
    prompt: row.prompt,
    status: row.status,
    input: parsed(row.input),
    output: parsed(row.output),
    error_text: row.error_text,
    attempt: row.attempt,
    max_attempts: row.max_attempts,
    timeout_seconds: row.timeout_seconds,
    agent_id,
    started_at: rfc3339OrNull(row.started_at),
    ended_at: rfc3339OrNull(row.ended_at),
  };
}

// --- attempts ---------------------------------------------------------------------------------------------------------

export function insertAttempt(tx: Tx, row: Insertable<Tables['run_attempts']>): number {
  return tx.get(tx.sql.insertInto('run_attempts').values(row).returning('num'))!.num;
}

export function updateAttempt(tx: Tx, num: number, changes: Updateable<Tables['run_attempts']>): void {
  tx.run(tx.sql.updateTable('run_attempts').set(changes).where('num', '=', num));
}

/** `step_key`: empty for a round of the leader. */
export function findAttempt(
  reader: Reader,
  run: { num: number; attempt: number },
  step_key: string,
  attempt: number,
): AttemptRow | undefined {
  return reader.get(
    reader.sql
      .selectFrom('run_attempts')
      .selectAll()
      .where('run_num', '=', run.num)
      .where('run_attempt', '=', run.attempt)
      .where('step_key', '=', step_key)
      .where('attempt', '=', attempt),
  );
}

const attemptsBySession = built((builder, session_id: string) =>
  builder.selectFrom('run_attempts').selectAll().where('session_id', '=', session_id).orderBy('num'),
);

/** What a session was, or is, there for: one attempt of a plain member, any number of an ACP member. */
export function attemptsOfSession(reader: Reader, session_id: string): AttemptRow[] {
  return reader.all(attemptsBySession(reader, session_id)) as AttemptRow[];
}

/** The agents of the steps' present attempts, by step. */
export function agentsOfSteps(reader: Reader, run: { num: number; attempt: number }): Map<string, string> {
  const rows = reader.all(
    reader.sql
      .selectFrom('run_attempts')
      .select(['step_key', 'agent_id'])
      .where('run_num', '=', run.num)
      .where('run_attempt', '=', run.attempt)
      .orderBy('num'),
  );
  return new Map(rows.map(({ step_key, agent_id }) => [step_key, agent_id]));
}

// --- the graph --------------------------------------------------------------------------------------------------------

const waitingPlain = built((builder, run_num: number, count: number) =>
  builder
    .selectFrom('run_steps')
    .selectAll()
    .where('run_num', '=', run_num)
    .where('status', '=', sql.lit('ready'))
    .where('launched', '=', sql.lit(0))
    .where('kind', '=', sql.lit('plain'))
    .orderBy('num')
    .limit(count),
);

const waitingAcp = built((builder, run_num: number) =>
  builder
    .selectFrom('run_steps')
    .selectAll()
    .where('run_num', '=', run_num)
    .where('status', '=', sql.lit('ready'))
    .where('launched', '=', sql.lit(0))
    .where('kind', '=', sql.lit('acp'))
    .orderBy('num'),
);

const launchedMembers = built((builder, run_num: number) =>
  builder
    .selectFrom('run_steps')
    .select(['member_id', 'kind'])
    .where('run_num', '=', run_num)
    .where('launched', '=', sql.lit(1)),
);

const dependentKeys = built((builder, run_num: number, step_key: string) =>
  builder
    .selectFrom('run_steps as needed')
    .innerJoin('run_edges', 'run_edges.needs_num', 'needed.num')
    .innerJoin('run_steps', 'run_steps.num', 'run_edges.step_num')
    .select('run_steps.step_key')
    .where('needed.run_num', '=', run_num)
    .where('needed.step_key', '=', step_key)
    .orderBy('run_steps.num'),
);

const tallies = built((builder, run_num: number) =>
  builder
    .selectFrom('run_steps')
    .select(['status', ({ fn }) => fn.countAll<number>().as('count')])
    .where('run_num', '=', run_num)
    .groupBy('status'),
);

/** The graph of a run in its tables. `ended_at`: the time that steps and the run get that end by what is put. */
export function graphOf(tx: Tx, row: RunRow, leader_member_id: string | null, now: number): RunGraph {
  const { num } = row;
  let run: RunState = {
    status: row.status,
    mode: row.mode,
    rounds: row.rounds,
    max_rounds: (JSON.parse(row.spec) as { max_rounds: number }).max_rounds,
    leader: row.leader,
    steps_seen: row.steps_seen,
    error: row.error,
  };
  return {
    run: () => run,
    putRun: (next) => {
      const { max_rounds: _, ...columns } = next;
      const over = ['completed', 'failed', 'cancelled'].includes(next.status);
      const begins = run.status === 'pending' && next.status !== 'pending';
      run = next;
      updateRun(tx, num, { ...columns, ended_at: over ? now : null, ...(begins && { started_at: now }) });
    },
    step: (step_key) => {
      const found = findStep(tx, num, step_key);
      return found && toState(found);
    },
    putStep: (step) => putStep(tx, num, step, now),
    dependents: (step_key) =>
      (tx.all(dependentKeys(tx, num, step_key)) as { step_key: string }[]).map((found) => found.step_key),
    steps: () => stepsOf(tx, num).map(toState),
    dropAdded: () => {
      const added = tx.sql
        .selectFrom('run_steps')
        .select('num')
        .where('run_num', '=', num)
        .where('added', '=', 1);
      tx.run(
        tx.sql
          .deleteFrom('run_edges')
          .where('run_num', '=', num)
          .where(({ or, eb }) => or([eb('step_num', 'in', added), eb('needs_num', 'in', added)])),
      );
      tx.run(tx.sql.deleteFrom('run_steps').where('run_num', '=', num).where('added', '=', 1));
    },
    waitingPlain: (count) =>
      count === 0 ? [] : (tx.all(waitingPlain(tx, num, count)) as StepRow[]).map(toState),
    waitingAcp: () => {
      const waiting = tx.all(waitingAcp(tx, num)) as StepRow[];
      if (waiting.length === 0) return [];
      const launched = tx.all(launchedMembers(tx, num)) as { member_id: string }[];
      const busy = new Set(launched.map(({ member_id }) => member_id));
      if (run.leader === 'asking' && leader_member_id !== null) busy.add(leader_member_id);
      return waiting.filter(({ member_id }) => !busy.has(member_id) && busy.add(member_id)).map(toState);
    },
    tally: () => {
      const counts = new Map(
        (tx.all(tallies(tx, num)) as { status: StepState['status']; count: number }[]).map(
          ({ status, count }) => [status, count],
        ),
      );
      const of = (...statuses: StepState['status'][]) =>
        statuses.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0);
      const launched = tx.all(launchedMembers(tx, num)) as { kind: StepState['kind'] }[];
      const tally: Tally = {
        total: [...counts.values()].reduce((sum, count) => sum + count, 0),
        open: of('pending', 'ready', 'running', 'input_required'),
        active: of('ready', 'running'),
        failed: of('failed'),
        input_required: of('input_required'),
        plain_live: launched.filter(({ kind }) => kind === 'plain').length,
      };
      return tally;
    },
  };
}

function toState(row: StepRow): StepState {
  return {
    step_key: row.step_key,
    member_id: row.member_id,
    kind: row.kind,
    depends_on: JSON.parse(row.depends_on),
    when: row.when,
    max_attempts: row.max_attempts,
    status: row.status,
    waits_for: row.waits_for,
    spoiled: row.spoiled === 1,
    attempt: row.attempt,
    tries: row.tries,
    launched: row.launched === 1,
    error_text: row.error_text,
  };
}

function putStep(tx: Tx, run_num: number, step: StepState, now: number): void {
  const over = ['completed', 'failed', 'cancelled', 'skipped'].includes(step.status);
  const begins = step.status === 'pending' || (step.status === 'ready' && !step.launched);
  tx.run(
    tx.sql
      .updateTable('run_steps')
      .set({
        status: step.status,
        waits_for: step.waits_for,
        spoiled: step.spoiled ? 1 : 0,
        attempt: step.attempt,
        tries: step.tries,
        launched: step.launched ? 1 : 0,
        error_text: step.error_text,
        ended_at: over ? now : null,
        // What an attempt of before left is not shown with this one.
        ...(begins && { output: null, started_at: null }),
        ...(step.status === 'running' && { started_at: sql<number>`coalesce(started_at, ${now})` }),
      })
      .where('run_num', '=', run_num)
      .where('step_key', '=', step.step_key),
  );
}
