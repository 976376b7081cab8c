/** The graph of a run, read from and written to its tables. The state machine in `rules/advance.ts` works on it. */
import { sql } from 'kysely';
import { preparedQuery } from '../../../store/prepared-query.ts';
import type { Tx } from '../../../store/store.ts';
import { memberKind } from '../../teams/rules/team.ts';
import { limits } from '../limits.ts';
import type { RunGraph, RunState, StepState, Tally } from '../rules/graph.ts';
import { isRunOver, isStepOver } from '../rules/run.ts';
import { parseSpec, type RunRow, updateRun } from './runs.ts';
import { countSteps, findStep, listRunSteps, type StepRow, updateStep } from './steps.ts';

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

/** Which statuses of steps that have not ended occur. */
const openStatuses = preparedQuery((builder, run_num: number) =>
  builder.selectNoFrom(({ exists, selectFrom }) =>
    (['ready', 'running', 'input_required', 'pending'] as const).map((status) =>
      exists(
        selectFrom('run_steps')
          .select('num')
          .where('run_num', '=', run_num)
          .where('status', '=', sql.lit(status)),
      ).as(status),
    ),
  ),
);

const failedStep = preparedQuery((builder, run_num: number) =>
  builder
    .selectFrom('run_steps')
    .select('num')
    .where('run_num', '=', run_num)
    .where('status', '=', sql.lit('failed'))
    .limit(sql.lit(1)),
);

/** A graph whose steps have rows. */
export interface StoredGraph extends RunGraph {
  /** The row of a step that was read or written. */
  row(step_key: string): StepRow;
}

/**
 * The stored graph of a run. `now`: Unix ms, recorded when a `put` starts or ends the run or its steps. On PostgreSQL, a read
 * is a round trip, so nothing is read twice, and nothing about kinds of members that the run does not have.
 */
export function loadGraph(tx: Tx, row: RunRow, now: number): StoredGraph {
  const { num } = row;
  const { leader_member_id, max_rounds, members } = parseSpec(row);
  const kinds = new Set(members.map(memberKind));
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
  const rows = new Map<string, StepRow>();
  const read = (found: StepRow): StepState => {
    rows.set(found.step_key, found);
    return toState(found);
  };
  const find = async (step_key: string): Promise<StepRow | undefined> =>
    rows.get(step_key) ?? (await findStep(tx, num, step_key));
  return {
    run: () => run,
    putRun: async (next) => {
      const { max_rounds: _, round_state, ...columns } = next;
      const times = runTimes(run, next, waiting_since, now);
      run = next;
      waiting_since = times.waiting_since;
      updateRun(tx, num, { ...columns, leader: round_state, ...times });
    },
    step: async (step_key) => {
      const found = await find(step_key);
      return found && read(found);
    },
    putStep: async (step) => {
      const before = (await find(step.step_key))!;
      const changes = stepChanges(before, step, now);
      updateStep(tx, before.num, changes);
      rows.set(step.step_key, { ...before, ...changes });
    },
    row: (step_key) => rows.get(step_key)!,
    dependents: async (step_key) => ((await tx.all(dependents(tx, num, step_key))) as StepRow[]).map(read),
    steps: async () => (await listRunSteps(tx, num)).map(read),
    dropAdded: async () => {
      rows.clear();
      await deleteAdded(tx, num);
    },
    waitingPlain: async (count) =>
      count === 0 || !kinds.has('plain')
        ? []
        : ((await tx.all(waitingPlain(tx, num, count))) as StepRow[]).map(read),
    waitingAcp: async () => {
      if (!kinds.has('acp')) return [];
      const waiting = await tx.all(waitingAcp(tx, num));
      if (waiting.length === 0) return [];
      const busy = new Set((await tx.all(launchedMembers(tx, num))).map(({ member_id }) => member_id));
      if (run.round_state === 'asking' && leader_member_id !== null) busy.add(leader_member_id);
      const free = waiting.filter(({ member_id }) => !busy.has(member_id));
      const steps: StepState[] = [];
      for (const first of free) steps.push(read((await tx.get(stepByNum(tx, first.num)))!));
      return steps;
    },
    tally: () => tally(tx, num, rows.values()),
    hasFailed: async () => (await tx.get(failedStep(tx, num))) !== undefined,
    plainLive: async () =>
      kinds.has('plain')
        ? (await tx.all(launchedMembers(tx, num))).filter(({ kind }) => kind === 'plain').length
        : 0,
    size: () => countSteps(tx, num),
  };
}

async function deleteAdded(tx: Tx, run_num: number): Promise<void> {
  const added = tx.sql
    .selectFrom('run_steps')
    .select('num')
    .where('run_num', '=', run_num)
    .where('added', '=', 1);
  await tx.run(
    tx.sql
      .deleteFrom('run_edges')
      .where('run_num', '=', run_num)
      .where(({ or, eb }) => or([eb('step_num', 'in', added), eb('needs_num', 'in', added)])),
  );
  await tx.run(tx.sql.deleteFrom('run_steps').where('run_num', '=', run_num).where('added', '=', 1));
}

async function tally(tx: Tx, run_num: number, known: Iterable<StepRow>): Promise<Tally> {
  for (const { status } of known)
    if (status === 'ready' || status === 'running') return { active: true, open: true };
  const found = (await tx.get(openStatuses(tx, run_num)))!;
  const active = Boolean(found.ready || found.running);
  return { active, open: active || Boolean(found.input_required || found.pending) };
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
    attempts_since_resume: row.tries,
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

/** The columns that a new state changes. */
function stepChanges(before: StepRow, step: StepState, now: number) {
  const { status, waits_for, attempt, attempts_since_resume: tries, error_text } = step;
  // The output of an earlier attempt is not shown with the next one.
  const fresh = status === 'pending' || (status === 'ready' && !step.launched);
  const started_at = status === 'running' ? (before.started_at ?? now) : before.started_at;
  const waits = status === 'input_required';
  return {
    ...{ status, waits_for, attempt, tries, error_text },
    upstream_failed: step.upstream_failed ? 1 : 0,
    launched: step.launched ? 1 : 0,
    started_at: fresh ? null : started_at,
    ended_at: isStepOver(step) ? now : null,
    waiting_since: waits ? (before.waiting_since ?? now) : null,
    answered_by: waits ? null : before.answered_by,
    ...(fresh && { output: null }),
  };
}
