/** Queries about the steps of runs. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { rfc3339OrNull } from '../../../base/clock.ts';
import { preparedQuery, preparedUpdate } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import type { Step } from '../rules/run.ts';
import { parsed } from './runs.ts';

export type StepRow = Selectable<Tables['run_steps']>;
export type NewStep = Insertable<Tables['run_steps']>;

/** Maximum number of rows that one statement writes. */
export const ROWS = 256;

/** Inserts steps, in order. They may depend on each other and on steps of the run. */
export async function insertSteps(
  tx: Tx,
  run_num: number,
  rows: readonly Omit<NewStep, 'run_num'>[],
): Promise<void> {
  const nums = new Map<string, number>();
  for (let from = 0; from < rows.length; from += ROWS) {
    const values = rows.slice(from, from + ROWS).map((row) => ({ ...row, run_num }));
    const query = tx.sql.insertInto('run_steps').values(values).returning(['num', 'step_key']);
    for (const { num, step_key } of await tx.all(query)) nums.set(step_key, num);
  }
  const findStepNum = async (key: string) => nums.get(key) ?? (await findStep(tx, run_num, key))!.num;
  const edges: Insertable<Tables['run_edges']>[] = [];
  for (const { step_key, depends_on } of rows) {
    for (const key of JSON.parse(depends_on) as string[]) {
      const needs_num = await findStepNum(key);
      edges.push({ run_num, step_num: nums.get(step_key)!, needs_num });
    }
  }
  for (let from = 0; from < edges.length; from += ROWS)
    await tx.run(tx.sql.insertInto('run_edges').values(edges.slice(from, from + ROWS)));
}

const stepByKey = preparedQuery((builder, run_num: number, step_key: string) =>
  builder.selectFrom('run_steps').selectAll().where('run_num', '=', run_num).where('step_key', '=', step_key),
);

export async function findStep(
  reader: Reader,
  run_num: number,
  step_key: string,
): Promise<StepRow | undefined> {
  return (await reader.get(stepByKey(reader, run_num, step_key))) as StepRow | undefined;
}

/**
 * The existing steps with these keys. They are in the order of the keys if there are fewer than `ROWS` keys; otherwise in
 * the order of the steps.
 */
export async function findSteps(
  reader: Reader,
  run_num: number,
  step_keys: readonly string[],
): Promise<StepRow[]> {
  if (step_keys.length < ROWS) {
    const steps: StepRow[] = [];
    for (const key of step_keys) {
      const step = await findStep(reader, run_num, key);
      if (step) steps.push(step);
    }
    return steps;
  }
  const requested_keys = new Set(step_keys);
  return (await listRunSteps(reader, run_num)).filter(({ step_key }) => requested_keys.has(step_key));
}

/** Whether the member has a launched step. */
export async function hasLaunched(reader: Reader, run_num: number, member_id: string): Promise<boolean> {
  const query = reader.sql.selectFrom('run_steps').select('num').where('run_num', '=', run_num);
  const launched = query.where('launched', '=', sql.lit(1)).where('member_id', '=', member_id);
  return (await reader.get(launched.limit(1))) !== undefined;
}

/** The steps, in the order in which they were defined or added. */
export function listRunSteps(reader: Reader, run_num: number): Promise<StepRow[]> {
  return reader.all(
    reader.sql.selectFrom('run_steps').selectAll().where('run_num', '=', run_num).orderBy('num'),
  );
}

export async function countSteps(reader: Reader, run_num: number): Promise<number> {
  const query = reader.sql
    .selectFrom('run_steps')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('run_num', '=', run_num);
  return (await reader.get(query))!.count;
}

/** Outputs of the steps that no other step depends on, by step key. */
export async function lastOutputs(reader: Reader, run_num: number): Promise<Record<string, unknown>> {
  const query = reader.sql
    .selectFrom('run_steps')
    .leftJoin('run_edges', 'run_edges.needs_num', 'run_steps.num')
    .select(['run_steps.step_key', 'run_steps.output'])
    .where('run_steps.run_num', '=', run_num)
    .where('run_edges.step_num', 'is', null)
    .orderBy('run_steps.num');
  return Object.fromEntries(
    (await reader.all(query)).map(({ step_key, output }) => [step_key, parsed(output)]),
  );
}

const changedStep = preparedUpdate('run_steps', 'num');

export function updateStep(tx: Tx, num: number, changes: Updateable<Tables['run_steps']>): void {
  tx.queue(changedStep(tx, changes, num));
}

/** Total size in bytes of the outputs of the other steps, as JSON. */
export async function otherOutputsBytes(
  reader: Reader,
  run_num: number,
  except_key: string,
): Promise<number> {
  const query = reader.sql
    .selectFrom('run_steps')
    .select(sql<number | null>`sum(octet_length(output))`.as('bytes'))
    .where('run_num', '=', run_num);
  return (await reader.get(query.where('step_key', '<>', except_key)))?.bytes ?? 0;
}

/** Removes the inputs that people gave when they resumed steps of the run, and their names. */
export async function dropAnswers(tx: Tx, run_num: number): Promise<void> {
  const none = { answer: null, answered_by: null };
  const answered = tx.sql.updateTable('run_steps').set(none).where('run_num', '=', run_num);
  await tx.run(
    answered.where(({ or, eb }) => or([eb('answer', 'is not', null), eb('answered_by', 'is not', null)])),
  );
}

/** `agent_id`: the agent of the current attempt. */
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
    waiting_since: rfc3339OrNull(row.waiting_since),
    answer: parsed(row.answer),
    answered_by: row.answered_by,
  };
}
