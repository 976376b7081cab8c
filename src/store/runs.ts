/** Queries about runs, their steps and attempts: rows in, rows and records out. Rules stand in `services/teams/`. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import {
  isRunOver,
  isStepOver,
  type Run,
  type RunGraph,
  type RunState,
  type Step,
  type StepState,
  type StepStatus,
} from '../domain/run.ts';
import type { TeamSpec } from '../domain/team.ts';
import { shownSpec } from '../domain/team-env.ts';
import { built } from './built.ts';
import { listed } from './listed.ts';
import type { Reader, Tx } from './store.ts';
import type { Tables } from './tables.ts';

export type RunRow = Selectable<Tables['runs']> & { spec: string; team_id: string; task_id: string };
export type NewRun = Insertable<Tables['runs']> & { spec: string };
export type StepRow = Selectable<Tables['run_steps']>;
export type NewStep = Insertable<Tables['run_steps']>;
export type AttemptRow = Selectable<Tables['run_attempts']>;

// --- runs -------------------------------------------------------------------------------------------------------------

function runQuery(builder: Reader['sql']) {
  return builder
    .selectFrom('runs')
    .innerJoin('teams', 'teams.num', 'runs.team_num')
    .innerJoin('tasks', 'tasks.num', 'runs.task_num')
    .innerJoin('run_specs', 'run_specs.run_num', 'runs.num')
    .selectAll('runs')
    .select(['run_specs.spec', 'teams.id as team_id', 'tasks.id as task_id']);
}

const runById = built((builder, id: string) => runQuery(builder).where('runs.id', '=', id));
const runByNum = built((builder, num: number) => runQuery(builder).where('runs.num', '=', num));

const headByNum = built((builder, num: number) =>
  builder
    .selectFrom('runs')
    .select([
      'id',
      'status',
      'mode',
      'rounds',
      'rounds_before',
      'leader',
      'steps_seen',
      'error',
      'attempt',
      'version',
    ])
    .select(['attention', 'attention_at', 'started_at', 'ended_at', 'output'])
    .where('num', '=', num),
);

/** The run as it is now, where all that never changes of it is known: its spec can be large. */
export function refreshed(reader: Reader, run: RunRow): RunRow {
  return { ...run, ...reader.get(headByNum(reader, run.num))! };
}

export function findRun(reader: Reader, id: string): RunRow | undefined {
  return reader.get(runById(reader, id)) as RunRow | undefined;
}

export function runOfNum(reader: Reader, num: number): RunRow | undefined {
  const head = reader.get(headByNum(reader, num));
  if (!head) return undefined;
  const kept = keptOf(reader);
  const known = kept.get(head.id);
  if (known) return { ...known, ...head };
  const row = reader.get(runByNum(reader, num)) as RunRow;
  kept.set(head.id, row);
  if (kept.size > limits.run_specs_cached_max) kept.delete(kept.keys().next().value!);
  return row;
}

/** Of each database, rows of runs that were asked for last, for what never changes of them: a spec can be large. */
const kept = new WeakMap<object, Map<string, RunRow>>();

function keptOf({ database }: Reader): Map<string, RunRow> {
  const rows = kept.get(database) ?? new Map<string, RunRow>();
  kept.set(database, rows);
  return rows;
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

export function insertRun(tx: Tx, { spec, ...row }: NewRun): number {
  const { num } = tx.get(tx.sql.insertInto('runs').values(row).returning('num'))!;
  tx.run(tx.sql.insertInto('run_specs').values({ run_num: num, spec }));
  return num;
}

const versionPut = built((builder, num: number, version: number) =>
  builder.updateTable('runs').set({ version }).where('num', '=', num),
);

export function putVersion(tx: Tx, num: number, version: number): void {
  tx.run(versionPut(tx, num, version));
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
    spec: shownSpec(specOf(row)),
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

const specs = new Map<string, { json: string; spec: TeamSpec }>();

/** The run's spec. It never changes and can be large, so it is kept: change nothing in it. */
export function specOf({ id, spec: json }: Pick<RunRow, 'id' | 'spec'>): TeamSpec {
  const known = specs.get(id);
  if (known?.json === json) return known.spec;
  const spec = JSON.parse(json) as TeamSpec;
  specs.delete(id);
  specs.set(id, { json, spec });
  if (specs.size > limits.run_specs_cached_max) specs.delete(specs.keys().next().value!);
  return spec;
}

function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json);
}

// --- steps ------------------------------------------------------------------------------------------------------------

/** Rows that one statement takes. */
const ROWS = 256;

/** Steps in their order, each with what it depends on: steps among them, or of the run already. */
export function insertSteps(tx: Tx, run_num: number, rows: readonly Omit<NewStep, 'run_num'>[]): void {
  const nums = new Map<string, number>();
  for (let from = 0; from < rows.length; from += ROWS) {
    const values = rows.slice(from, from + ROWS).map((row) => ({ ...row, run_num }));
    const query = tx.sql.insertInto('run_steps').values(values).returning(['num', 'step_key']);
    for (const { num, step_key } of tx.all(query)) nums.set(step_key, num);
  }
  const numOf = (key: string) => nums.get(key) ?? findStep(tx, run_num, key)!.num;
  const edges = rows.flatMap(({ step_key, depends_on }) =>
    (JSON.parse(depends_on) as string[]).map((key) => ({
      run_num,
      step_num: nums.get(step_key)!,
      needs_num: numOf(key),
    })),
  );
  for (let from = 0; from < edges.length; from += ROWS)
    tx.run(tx.sql.insertInto('run_edges').values(edges.slice(from, from + ROWS)));
}

const stepByKey = built((builder, run_num: number, step_key: string) =>
  builder.selectFrom('run_steps').selectAll().where('run_num', '=', run_num).where('step_key', '=', step_key),
);

export function findStep(reader: Reader, run_num: number, step_key: string): StepRow | undefined {
  return reader.get(stepByKey(reader, run_num, step_key)) as StepRow | undefined;
}

/** Those of the keys that are there; in the order of the keys, unless they are many. */
export function findSteps(reader: Reader, run_num: number, step_keys: readonly string[]): StepRow[] {
  if (step_keys.length < ROWS)
    return step_keys.map((key) => findStep(reader, run_num, key)).filter((step) => step !== undefined);
  const wanted = new Set(step_keys);
  return stepsOf(reader, run_num).filter(({ step_key }) => wanted.has(step_key));
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

export function countSteps(reader: Reader, run_num: number): number {
  const query = reader.sql
    .selectFrom('run_steps')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('run_num', '=', run_num);
  return reader.get(query)!.count;
}

/** Outputs of the steps that nothing depends on, by their keys. */
export function lastOutputs(reader: Reader, run_num: number): Record<string, unknown> {
  const query = reader.sql
    .selectFrom('run_steps')
    .leftJoin('run_edges', 'run_edges.needs_num', 'run_steps.num')
    .select(['run_steps.step_key', 'run_steps.output'])
    .where('run_steps.run_num', '=', run_num)
    .where('run_edges.step_num', 'is', null)
    .orderBy('run_steps.num');
  return Object.fromEntries(reader.all(query).map(({ step_key, output }) => [step_key, parsed(output)]));
}

export function updateStep(tx: Tx, num: number, changes: Updateable<Tables['run_steps']>): void {
  tx.run(tx.sql.updateTable('run_steps').set(changes).where('num', '=', num));
}

/** Bytes of the outputs of a run's other steps, as JSON. */
export function outputBytes(reader: Reader, run_num: number, except_key: string): number {
  const query = reader.sql
    .selectFrom('run_steps')
    .select(sql<number | null>`sum(octet_length(output))`.as('bytes'))
    .where('run_num', '=', run_num);
  return reader.get(query.where('step_key', '<>', except_key))?.bytes ?? 0;
}

/** Takes away what people gave the steps of a run when they resumed them. */
export function dropAnswers(tx: Tx, run_num: number): void {
  const answered = tx.sql.updateTable('run_steps').set({ answer: null }).where('run_num', '=', run_num);
  tx.run(answered.where('answer', 'is not', null));
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

const attemptByNum = built((builder, num: number) =>
  builder.selectFrom('run_attempts').selectAll().where('num', '=', num),
);

export function attemptOfNum(reader: Reader, num: number): AttemptRow | undefined {
  return reader.get(attemptByNum(reader, num)) as AttemptRow | undefined;
}

const attemptByKey = built(
  (builder, run_num: number, run_attempt: number, step_key: string, attempt: number) =>
    builder
      .selectFrom('run_attempts')
      .selectAll()
      .where('run_num', '=', run_num)
      .where('run_attempt', '=', run_attempt)
      .where('step_key', '=', step_key)
      .where('attempt', '=', attempt),
);

/** `step_key`: empty for a round of the leader. */
export function findAttempt(
  reader: Reader,
  run: { num: number; attempt: number },
  step_key: string,
  attempt: number,
): AttemptRow | undefined {
  return reader.get(attemptByKey(reader, run.num, run.attempt, step_key, attempt)) as AttemptRow | undefined;
}

const attemptsByPrompt = built((builder, prompt_id: string) =>
  builder.selectFrom('run_attempts').selectAll().where('prompt_id', '=', prompt_id),
);

export function attemptOfPrompt(reader: Reader, prompt_id: string): AttemptRow | undefined {
  return reader.get(attemptsByPrompt(reader, prompt_id)) as AttemptRow | undefined;
}

const attemptsByAgent = built((builder, agent_id: string) =>
  builder
    .selectFrom('run_attempts')
    .selectAll()
    .where('agent_id', '=', agent_id)
    .where('over', '=', sql.lit(0))
    .orderBy('num'),
);

/** Those that an agent has, or is about to get. */
export function openAttemptsOfAgent(reader: Reader, agent_id: string): AttemptRow[] {
  return reader.all(attemptsByAgent(reader, agent_id)) as AttemptRow[];
}

/** Whether anything of this attempt of the run was given to an agent. */
export function hasAttempts(reader: Reader, run: { num: number; attempt: number }): boolean {
  const query = reader.sql.selectFrom('run_attempts').select('num').where('run_num', '=', run.num);
  return reader.get(query.where('run_attempt', '=', run.attempt).limit(1)) !== undefined;
}

/** Whether an attempt ever reached the session: what is queued for it may be taken back before. */
export function wasGivenAny(reader: Reader, session_id: string): boolean {
  const query = reader.sql.selectFrom('run_attempts').select('num').where('session_id', '=', session_id);
  return reader.get(query.limit(1)) !== undefined;
}

const attemptsBySession = built((builder, session_id: string) =>
  builder.selectFrom('run_attempts').selectAll().where('session_id', '=', session_id).orderBy('num'),
);

/** What a session was, or is, there for: one attempt of a plain member, any number of an ACP member. */
export function attemptsOfSession(reader: Reader, session_id: string): AttemptRow[] {
  return reader.all(attemptsBySession(reader, session_id)) as AttemptRow[];
}

const newestAgent = built((builder, run_num: number, run_attempt: number, step_key: string) =>
  builder
    .selectFrom('run_attempts')
    .select('agent_id')
    .where('run_num', '=', run_num)
    .where('run_attempt', '=', run_attempt)
    .where('step_key', '=', step_key)
    .orderBy('attempt', 'desc'),
);

/** The agents of the steps' present attempts, by step. `step_keys` absent: of all of them. */
export function agentsOfSteps(
  reader: Reader,
  run: { num: number; attempt: number },
  step_keys?: readonly string[],
): Map<string, string> {
  if (step_keys !== undefined && step_keys.length < ROWS) {
    const found = step_keys.map(
      (key) => [key, reader.get(newestAgent(reader, run.num, run.attempt, key))?.agent_id] as const,
    );
    return new Map(found.filter((pair): pair is [string, string] => pair[1] !== undefined));
  }
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

// --- events -----------------------------------------------------------------------------------------------------------

const newEvents = built((builder, run_num: number, ts: number, type: string, records: string) =>
  builder
    .insertInto('run_events')
    .columns(['run_num', 'ts', 'type', 'data'])
    .expression((eb) =>
      eb
        .selectFrom(listed(records).as('each'))
        .select([eb.val(run_num).as('run_num'), eb.val(ts).as('ts'), eb.val(type).as('type'), 'each.value'])
        .orderBy('each.key'),
    ),
);

/** `records`: each as JSON, in their order. */
export function insertRunEvents(
  tx: Tx,
  run_num: number,
  ts: number,
  type: 'run' | 'step' | 'mail',
  records: readonly string[],
): void {
  tx.run(newEvents(tx, run_num, ts, type, JSON.stringify(records)));
}

const eventsAfter = built((builder, run_num: number, after: number) =>
  builder
    .selectFrom('run_events')
    .selectAll()
    .where('run_num', '=', run_num)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limits.follow_rows_per_read),
);

/** Oldest first; some at a time. */
export function runEventsAfter(
  reader: Reader,
  run_num: number,
  after: number,
): Selectable<Tables['run_events']>[] {
  return reader.all(eventsAfter(reader, run_num, after));
}

/** The id of the run's newest event; 0 before the first. */
export function lastRunEvent(reader: Reader, run_num: number): number {
  const query = reader.sql
    .selectFrom('run_events')
    .select('id')
    .where('run_num', '=', run_num)
    .orderBy('id', 'desc')
    .limit(1);
  return reader.get(query)?.id ?? 0;
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
    .select(({ fn }) => ['member_id', fn.min('num').as('num')])
    .where('run_num', '=', run_num)
    .where('status', '=', sql.lit('ready'))
    .where('launched', '=', sql.lit(0))
    .where('kind', '=', sql.lit('acp'))
    .groupBy('member_id')
    .orderBy(sql.ref('num')),
);

const stepByNum = built((builder, num: number) =>
  builder.selectFrom('run_steps').selectAll().where('num', '=', num),
);

const launchedMembers = built((builder, run_num: number) =>
  builder
    .selectFrom('run_steps')
    .select(['member_id', 'kind'])
    .where('run_num', '=', run_num)
    .where('launched', '=', sql.lit(1)),
);

const dependents = built((builder, run_num: number, step_key: string) =>
  builder
    .selectFrom('run_steps as needed')
    .innerJoin('run_edges', 'run_edges.needs_num', 'needed.num')
    .innerJoin('run_steps', 'run_steps.num', 'run_edges.step_num')
    .selectAll('run_steps')
    .where('needed.run_num', '=', run_num)
    .where('needed.step_key', '=', step_key)
    .orderBy('run_steps.num'),
);

const stepsWith = built((builder, run_num: number, status: StepStatus) =>
  builder
    .selectFrom('run_steps')
    .select('num')
    .where('run_num', '=', run_num)
    .where('status', '=', status)
    .limit(sql.lit(1)),
);

/** The graph of a run in its tables. `now`: the time that steps and the run get that begin or end by what is put. */
export function graphOf(tx: Tx, row: RunRow, now: number): RunGraph {
  const { num } = row;
  const { leader_member_id, max_rounds } = specOf(row);
  const { status, mode, rounds, rounds_before, leader, steps_seen, error } = row;
  let run: RunState = { status, mode, rounds, rounds_before, max_rounds, leader, steps_seen, error };
  /** Steps that were read or put: nobody else changes them meanwhile. */
  const known = new Map<string, StepState>();
  const read = (found: StepRow): StepState => {
    const step = toState(found);
    known.set(step.step_key, step);
    return step;
  };
  return {
    run: () => run,
    putRun: (next) => {
      const { max_rounds: _, ...columns } = next;
      const begins = run.status === 'pending' && next.status !== 'pending';
      run = next;
      const ended_at = isRunOver(next) ? now : null;
      updateRun(tx, num, { ...columns, ended_at, ...(begins && { started_at: now }) });
    },
    step: (step_key) => {
      const found = known.has(step_key) ? undefined : findStep(tx, num, step_key);
      return found ? read(found) : known.get(step_key);
    },
    putStep: (step) => {
      putStep(tx, num, step, now);
      known.set(step.step_key, step);
    },
    dependents: (step_key) => (tx.all(dependents(tx, num, step_key)) as StepRow[]).map(read),
    steps: () => stepsOf(tx, num).map(read),
    dropAdded: () => {
      known.clear();
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
      count === 0 ? [] : (tx.all(waitingPlain(tx, num, count)) as StepRow[]).map(read),
    waitingAcp: () => {
      const waiting = tx.all(waitingAcp(tx, num));
      if (waiting.length === 0) return [];
      const busy = new Set(tx.all(launchedMembers(tx, num)).map(({ member_id }) => member_id));
      if (run.leader === 'asking' && leader_member_id !== null) busy.add(leader_member_id);
      const free = waiting.filter(({ member_id }) => !busy.has(member_id));
      return free.map((first) => read(tx.get(stepByNum(tx, first.num))!));
    },
    tally: () => {
      const some = (...statuses: StepStatus[]) =>
        statuses.some((wanted) => tx.get(stepsWith(tx, num, wanted)) !== undefined);
      const active = some('ready', 'running');
      return {
        active,
        open: active || some('input_required', 'pending'),
        failed: some('failed'),
      };
    },
    plainLive: () => tx.all(launchedMembers(tx, num)).filter(({ kind }) => kind === 'plain').length,
    size: () => countSteps(tx, num),
  };
}

function toState(row: StepRow): StepState {
  return {
    step_key: row.step_key,
    member_id: row.member_id,
    kind: row.kind,
    depends_on: needsOf(row),
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

const needs = new Map<number, { json: string; keys: string[] }>();

/** What a step depends on. It never changes and can be long, so it is kept: change nothing in it. */
function needsOf({ num, depends_on: json }: StepRow): string[] {
  const known = needs.get(num);
  if (known?.json === json) return known.keys;
  const keys = JSON.parse(json) as string[];
  if (keys.length < limits.step_needs_kept_min) return keys;
  needs.delete(num);
  needs.set(num, { json, keys });
  if (needs.size > limits.step_needs_cached_max) needs.delete(needs.keys().next().value!);
  return keys;
}

const stepPut = built(
  (
    builder,
    run_num: number,
    now: number,
    ended_at: number | null,
    fresh: number,
    runs: number,
    status: StepStatus,
    waits_for: number,
    spoiled: number,
    attempt: number,
    tries: number,
    launched: number,
    error_text: string | null,
    step_key: string,
  ) =>
    builder
      .updateTable('run_steps')
      .set({
        status,
        waits_for,
        spoiled,
        attempt,
        tries,
        launched,
        error_text,
        ended_at,
        output: sql`CASE WHEN ${fresh} THEN NULL ELSE output END`,
        started_at: sql`CASE WHEN ${fresh} THEN NULL WHEN ${runs} THEN coalesce(started_at, ${now}) ELSE started_at END`,
      })
      .where('run_num', '=', run_num)
      .where('step_key', '=', step_key),
);

function putStep(tx: Tx, run_num: number, step: StepState, now: number): void {
  const { status, waits_for, attempt, tries, error_text, step_key } = step;
  const ended_at = isStepOver(step) ? now : null;
  // What an attempt of before left is not shown with the next one.
  const fresh = status === 'pending' || (status === 'ready' && !step.launched) ? 1 : 0;
  const runs = status === 'running' ? 1 : 0;
  const [spoiled, launched] = [step.spoiled ? 1 : 0, step.launched ? 1 : 0];
  tx.run(
    stepPut(
      ...([
        tx,
        run_num,
        now,
        ended_at,
        fresh,
        runs,
        status,
        waits_for,
        spoiled,
        attempt,
        tries,
        launched,
      ] as const),
      error_text,
      step_key,
    ),
  );
}
