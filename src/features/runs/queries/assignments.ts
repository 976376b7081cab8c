/**
 * Queries about assignments, which are in the table `run_attempts`. It stores a round as an attempt of the step with the empty
 * key; only this file knows that.
 */
import { type Selectable, sql } from 'kysely';
import { preparedInsert, preparedQuery, preparedUpdate } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import type { AssignedWork } from '../rules/graph.ts';
import { ROWS } from './steps.ts';

/** An attempt of a step, or a round of the leader, that a member's agent has received or is about to receive. */
export interface Assignment {
  num: number;
  run_num: number;
  /** The attempt of the run to which it belongs; a restart begins the next one. */
  run_attempt: number;
  work: AssignedWork;
  member_id: string;
  agent_id: string;
  /** Null until the agent's process or turn starts. */
  session_id: string | null;
  /** Set only for an agent that speaks ACP. */
  prompt_id: string | null;
  /** Its outcome is recorded; later results are ignored. */
  ended: boolean;
  /** Unix ms. */
  started_at: number | null;
}

export interface NewAssignment
  extends Pick<Assignment, 'run_num' | 'run_attempt' | 'work' | 'member_id' | 'agent_id'> {
  session_id?: string;
  /** Unix ms. */
  created_at: number;
}

type AssignmentRow = Selectable<Tables['run_attempts']>;

function toColumns(work: AssignedWork): { step_key: string; attempt: number } {
  if (work.kind === 'round') return { step_key: '', attempt: work.round };
  return { step_key: work.step_key, attempt: work.attempt };
}

function toAssignment({
  step_key,
  attempt,
  over,
  created_at: _,
  ended_at: __,
  ...row
}: AssignmentRow): Assignment {
  const work: AssignedWork =
    step_key === '' ? { kind: 'round', round: attempt } : { kind: 'step', step_key, attempt };
  return { ...row, work, ended: over === 1 };
}

const newAssignment = preparedInsert('run_attempts', 'num');
const changedAssignment = preparedUpdate('run_attempts', 'num');

/** Returns the num of the new assignment. */
export async function insertAssignment(tx: Tx, { work, ...assignment }: NewAssignment): Promise<number> {
  const row = { ...assignment, ...toColumns(work), over: 0 } as const;
  return (await tx.get(newAssignment(tx, row)))!.num;
}

export function updateAssignment(
  tx: Tx,
  num: number,
  changes: Partial<Pick<Assignment, 'session_id' | 'prompt_id' | 'started_at'>>,
): void {
  tx.queue(changedAssignment(tx, changes, num));
}

/** `ended_at`: Unix ms. */
export function endAssignment(tx: Tx, num: number, ended_at: number): void {
  tx.queue(changedAssignment(tx, { over: 1, ended_at }, num));
}

const assignmentByNum = preparedQuery((builder, num: number) =>
  builder.selectFrom('run_attempts').selectAll().where('num', '=', num),
);

export async function assignmentOfNum(reader: Reader, num: number): Promise<Assignment | undefined> {
  return decoded((await reader.get(assignmentByNum(reader, num))) as AssignmentRow | undefined);
}

const assignmentOfWork = preparedQuery(
  (builder, run_num: number, run_attempt: number, step_key: string, attempt: number) =>
    builder
      .selectFrom('run_attempts')
      .selectAll()
      .where('run_num', '=', run_num)
      .where('run_attempt', '=', run_attempt)
      .where('step_key', '=', step_key)
      .where('attempt', '=', attempt),
);

export async function findAssignment(
  reader: Reader,
  run: { num: number; attempt: number },
  work: AssignedWork,
): Promise<Assignment | undefined> {
  const { step_key, attempt } = toColumns(work);
  return decoded(
    (await reader.get(assignmentOfWork(reader, run.num, run.attempt, step_key, attempt))) as
      | AssignmentRow
      | undefined,
  );
}

const assignmentByPrompt = preparedQuery((builder, prompt_id: string) =>
  builder.selectFrom('run_attempts').selectAll().where('prompt_id', '=', prompt_id),
);

export async function assignmentOfPrompt(reader: Reader, prompt_id: string): Promise<Assignment | undefined> {
  return decoded((await reader.get(assignmentByPrompt(reader, prompt_id))) as AssignmentRow | undefined);
}

const openAssignmentsByAgent = preparedQuery((builder, agent_id: string) =>
  builder
    .selectFrom('run_attempts')
    .selectAll()
    .where('agent_id', '=', agent_id)
    .where('over', '=', sql.lit(0))
    .orderBy('num'),
);

/** The assignments of an agent that have no outcome yet, oldest first. */
export async function openAssignmentsOfAgent(reader: Reader, agent_id: string): Promise<Assignment[]> {
  return ((await reader.all(openAssignmentsByAgent(reader, agent_id))) as AssignmentRow[]).map(toAssignment);
}

/** Whether the current attempt of the run has assigned anything to an agent. */
export async function hasAssignments(
  reader: Reader,
  run: { num: number; attempt: number },
): Promise<boolean> {
  const query = reader.sql.selectFrom('run_attempts').select('num').where('run_num', '=', run.num);
  return (await reader.get(query.where('run_attempt', '=', run.attempt).limit(1))) !== undefined;
}

/** Whether the session has received an assignment. A prompt that was queued for it and then removed does not count. */
export async function hasReceivedAssignment(reader: Reader, session_id: string): Promise<boolean> {
  const query = reader.sql.selectFrom('run_attempts').select('num').where('session_id', '=', session_id);
  return (await reader.get(query.limit(1))) !== undefined;
}

const assignmentsBySession = preparedQuery((builder, session_id: string) =>
  builder.selectFrom('run_attempts').selectAll().where('session_id', '=', session_id).orderBy('num'),
);

/** All assignments that a session has received: one for a plain member, any number for an ACP member. */
export async function assignmentsOfSession(reader: Reader, session_id: string): Promise<Assignment[]> {
  return ((await reader.all(assignmentsBySession(reader, session_id))) as AssignmentRow[]).map(toAssignment);
}

const findNewestAgent = preparedQuery((builder, run_num: number, run_attempt: number, step_key: string) =>
  builder
    .selectFrom('run_attempts')
    .select('agent_id')
    .where('run_num', '=', run_num)
    .where('run_attempt', '=', run_attempt)
    .where('step_key', '=', step_key)
    .orderBy('attempt', 'desc'),
);

/** The agents that have the steps' current attempts, by step key. Without `step_keys`, for all steps. */
export async function agentsOfSteps(
  reader: Reader,
  run: { num: number; attempt: number },
  step_keys?: readonly string[],
): Promise<Map<string, string>> {
  if (step_keys !== undefined && step_keys.length < ROWS) {
    const found = new Map<string, string>();
    for (const key of step_keys) {
      const newest = await reader.get(findNewestAgent(reader, run.num, run.attempt, key));
      if (newest) found.set(key, newest.agent_id);
    }
    return found;
  }
  const rows = await reader.all(
    reader.sql
      .selectFrom('run_attempts')
      .select(['step_key', 'agent_id'])
      .where('run_num', '=', run.num)
      .where('run_attempt', '=', run.attempt)
      .where('step_key', '<>', '')
      .orderBy('num'),
  );
  return new Map(rows.map(({ step_key, agent_id }) => [step_key, agent_id]));
}

function decoded(row: AssignmentRow | undefined): Assignment | undefined {
  return row && toAssignment(row);
}
