/** The graph of a run, read from and written to its tables. The state machine in `rules/advance.ts` works on it. */
import { sql } from 'kysely';
import { preparedQuery } from '../../../store/prepared-query.ts';
import type { Tx } from '../../../store/store.ts';
import { limits } from '../limits.ts';
import type { RunGraph, RunState, StepState, Tally } from '../rules/graph.ts';
import { isRunOver, isStepOver, type StepStatus } from '../rules/run.ts';
import { parseSpec, type RunRow, updateRun } from './runs.ts';
import { countSteps, findStep, listRunSteps, type StepRow } from './steps.ts';

const waitingPlain = preparedQuery((builder, run_num: number, count: number) =>
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

const waitingAcp = preparedQuery((builder, run_num: number) =>
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

const stepByNum = preparedQuery((builder, num: number) =>
  builder.selectFrom('run_steps').selectAll().where('num', '=', num),
);

const launchedMembers = preparedQuery((builder, run_num: number) =>
  builder
    .selectFrom('run_steps')
    .select(['member_id', 'kind'])
    .where('run_num', '=', run_num)
    .where('launched', '=', sql.lit(1)),
);

const dependents = preparedQuery((builder, run_num: number, step_key: string) =>
  builder
    .selectFrom('run_steps as needed')
    .innerJoin('run_edges', 'run_edges.needs_num', 'needed.num')
    .innerJoin('run_steps', 'run_steps.num', 'run_edges.step_num')
    .selectAll('run_steps')
    .where('needed.run_num', '=', run_num)
    .where('needed.step_key', '=', step_key)
    .orderBy('run_steps.num'),
);

const stepsWith = preparedQuery((builder, run_num: number, status: StepStatus) =>
  builder
    .selectFrom('run_steps')
    .select('num')
    .where('run_num', '=', run_num)
    .where('status', '=', status)
    .limit(sql.lit(1)),
);

/** The stored graph of a run. `now`: Unix ms, recorded when a `put` starts or ends the run or its steps. */
export function loadGraph(tx: Tx, row: RunRow, now: number): RunGraph {
  const { num } = row;
  const { leader_member_id, max_rounds } = parseSpec(row);
  const { status, mode, rounds, rounds_before, leader, steps_seen, error } = row;
  let { waiting_since } = row;
  let run: RunState = {
    status,
    mode,
    rounds,
    rounds_before,
    max_rounds,
    round_state: leader,
    steps_seen,
    error,
  };
  /** Steps that were read or written. Nothing else changes them during the transaction. */
  const known = new Map<string, StepState>();
  const read = (found: StepRow): StepState => {
    const step = toState(found);
    known.set(step.step_key, step);
    return step;
  };
  return {
    run: () => run,
    putRun: async (next) => {
      const { max_rounds: _, round_state, ...columns } = next;
      const times = runTimes(run, next, waiting_since, now);
      run = next;
      waiting_since = times.waiting_since;
      await updateRun(tx, num, { ...columns, leader: round_state, ...times });
    },
    step: async (step_key) => {
      const found = known.has(step_key) ? undefined : await findStep(tx, num, step_key);
      return found ? read(found) : known.get(step_key);
    },
    putStep: async (step) => {
      await putStep(tx, num, step, now);
      known.set(step.step_key, step);
    },
    dependents: async (step_key) => ((await tx.all(dependents(tx, num, step_key))) as StepRow[]).map(read),
    steps: async () => (await listRunSteps(tx, num)).map(read),
    dropAdded: async () => {
      known.clear();
      const added = tx.sql
        .selectFrom('run_steps')
        .select('num')
        .where('run_num', '=', num)
        .where('added', '=', 1);
      await tx.run(
        tx.sql
          .deleteFrom('run_edges')
          .where('run_num', '=', num)
          .where(({ or, eb }) => or([eb('step_num', 'in', added), eb('needs_num', 'in', added)])),
      );
      await tx.run(tx.sql.deleteFrom('run_steps').where('run_num', '=', num).where('added', '=', 1));
    },
    waitingPlain: async (count) =>
      count === 0 ? [] : ((await tx.all(waitingPlain(tx, num, count))) as StepRow[]).map(read),
    waitingAcp: async () => {
      const waiting = await tx.all(waitingAcp(tx, num));
      if (waiting.length === 0) return [];
      const busy = new Set((await tx.all(launchedMembers(tx, num))).map(({ member_id }) => member_id));
      if (run.round_state === 'asking' && leader_member_id !== null) busy.add(leader_member_id);
      const free = waiting.filter(({ member_id }) => !busy.has(member_id));
      const steps: StepState[] = [];
      for (const first of free) steps.push(read((await tx.get(stepByNum(tx, first.num)))!));
      return steps;
    },
    tally: () => tally(tx, num),
    plainLive: async () =>
      (await tx.all(launchedMembers(tx, num))).filter(({ kind }) => kind === 'plain').length,
    size: () => countSteps(tx, num),
  };
}

async function tally(tx: Tx, run_num: number): Promise<Tally> {
  const active = await hasStep(tx, run_num, ['ready', 'running']);
  return {
    active,
    open: active || (await hasStep(tx, run_num, ['input_required', 'pending'])),
    failed: await hasStep(tx, run_num, ['failed']),
  };
}

async function hasStep(tx: Tx, run_num: number, statuses: readonly StepStatus[]): Promise<boolean> {
  for (const status of statuses) if (await tx.get(stepsWith(tx, run_num, status))) return true;
  return false;
}

/** The times of a run that change with its state. */
function runTimes(before: RunState, next: RunState, waiting_since: number | null, now: number) {
  const begins = before.status === 'pending' && next.status !== 'pending';
  return {
    ended_at: isRunOver(next) ? now : null,
    waiting_since: next.status === 'input_required' ? (waiting_since ?? now) : null,
    ...(begins && { started_at: now }),
  };
}

function toState(row: StepRow): StepState {
  return {
    step_key: row.step_key,
    member_id: row.member_id,
    kind: row.kind,
    depends_on: parseNeeds(row),
    when: row.when,
    max_attempts: row.max_attempts,
    status: row.status,
    waits_for: row.waits_for,
    upstream_failed: row.upstream_failed === 1,
    attempt: row.attempt,
    tries_since_resume: row.tries,
    launched: row.launched === 1,
    error_text: row.error_text,
  };
}

const needs = new Map<number, { json: string; keys: string[] }>();

/**
 * The keys of the steps that a step depends on. They never change and can be many, so the result is cached. Do not modify
 * it.
 */
function parseNeeds({ num, depends_on: json }: StepRow): string[] {
  const known = needs.get(num);
  if (known?.json === json) return known.keys;
  const keys = JSON.parse(json) as string[];
  if (keys.length < limits.step_needs_kept_min) return keys;
  needs.delete(num);
  needs.set(num, { json, keys });
  if (needs.size > limits.step_needs_cached_max) needs.delete(needs.keys().next().value!);
  return keys;
}

const stepPut = preparedQuery(
  (
    builder,
    run_num: number,
    now: number,
    ended_at: number | null,
    fresh: number,
    runs: number,
    waits: number,
    status: StepStatus,
    waits_for: number,
    upstream_failed: number,
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
        upstream_failed,
        attempt,
        tries,
        launched,
        error_text,
        ended_at,
        output: sql`CASE WHEN ${fresh} THEN NULL ELSE output END`,
        started_at: sql`CASE WHEN ${fresh} THEN NULL WHEN ${runs} THEN coalesce(started_at, ${now}) ELSE started_at END`,
        waiting_since: sql`CASE WHEN ${waits} THEN coalesce(waiting_since, ${now}) END`,
        answered_by: sql`CASE WHEN ${waits} THEN NULL ELSE answered_by END`,
      })
      .where('run_num', '=', run_num)
      .where('step_key', '=', step_key),
);

async function putStep(tx: Tx, run_num: number, step: StepState, now: number): Promise<void> {
  const { status, waits_for, attempt, tries_since_resume: tries, error_text, step_key } = step;
  const ended_at = isStepOver(step) ? now : null;
  // The output of an earlier attempt is not shown with the next one.
  const fresh = status === 'pending' || (status === 'ready' && !step.launched) ? 1 : 0;
  const runs = status === 'running' ? 1 : 0;
  const waits = status === 'input_required' ? 1 : 0;
  const [upstream_failed, launched] = [step.upstream_failed ? 1 : 0, step.launched ? 1 : 0];
  await tx.run(
    stepPut(
      ...([
        tx,
        run_num,
        now,
        ended_at,
        fresh,
        runs,
        waits,
        status,
        waits_for,
        upstream_failed,
        attempt,
        tries,
        launched,
      ] as const),
      error_text,
      step_key,
    ),
  );
}
