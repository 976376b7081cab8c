/**
 * Queries about attempts: each attempt of a step, and each round of a leader. A row stores a round as an attempt of the
 * step with the empty key; only this file knows that.
 */
import { type Selectable, sql } from 'kysely';
import { preparedInsert, preparedQuery, preparedUpdate } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import type { AttemptTarget } from '../rules/graph.ts';
import { ROWS } from './steps.ts';

/** One attempt of a step, or one round of the leader. */
export interface Attempt {
  num: number;
  run_num: number;
  /** The attempt of the run that it belongs to. */
  run_attempt: number;
  target: AttemptTarget;
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

export interface NewAttempt
  extends Pick<Attempt, 'run_num' | 'run_attempt' | 'target' | 'member_id' | 'agent_id'> {
  session_id?: string;
  /** Unix ms. */
  created_at: number;
}

type AttemptRow = Selectable<Tables['run_attempts']>;

/** The columns of a target. */
function toColumns(target: AttemptTarget): { step_key: string; attempt: number } {
  if (target.kind === 'round') return { step_key: '', attempt: target.round };
  return { step_key: target.step_key, attempt: target.attempt };
}

function toAttempt({ step_key, attempt, over, created_at: _, ended_at: __, ...row }: AttemptRow): Attempt {
  const target: AttemptTarget =
    step_key === '' ? { kind: 'round', round: attempt } : { kind: 'step', step_key, attempt };
  return { ...row, target, ended: over === 1 };
}

const newAttempt = preparedInsert('run_attempts', 'num');
const changedAttempt = preparedUpdate('run_attempts', 'num');

/** Returns the num of the new attempt. */
export async function insertAttempt(tx: Tx, { target, ...attempt }: NewAttempt): Promise<number> {
  const row = { ...attempt, ...toColumns(target), over: 0 } as const;
  return (await tx.get(newAttempt(tx, row)))!.num;
}

export function updateAttempt(
  tx: Tx,
  num: number,
  changes: Partial<Pick<Attempt, 'session_id' | 'prompt_id' | 'started_at'>>,
): void {
  tx.queue(changedAttempt(tx, changes, num));
}

/** `ended_at`: Unix ms. */
export function endAttempt(tx: Tx, num: number, ended_at: number): void {
  tx.queue(changedAttempt(tx, { over: 1, ended_at }, num));
}

const attemptByNum = preparedQuery((builder, num: number) =>
  builder.selectFrom('run_attempts').selectAll().where('num', '=', num),
);

export async function attemptOfNum(reader: Reader, num: number): Promise<Attempt | undefined> {
  return decoded((await reader.get(attemptByNum(reader, num))) as AttemptRow | undefined);
}

const attemptByKey = preparedQuery(
  (builder, run_num: number, run_attempt: number, step_key: string, attempt: number) =>
    builder
      .selectFrom('run_attempts')
      .selectAll()
      .where('run_num', '=', run_num)
      .where('run_attempt', '=', run_attempt)
      .where('step_key', '=', step_key)
      .where('attempt', '=', attempt),
);

export async function findAttempt(
  reader: Reader,
  run: { num: number; attempt: number },
  target: AttemptTarget,
): Promise<Attempt | undefined> {
  const { step_key, attempt } = toColumns(target);
  return decoded(
    (await reader.get(attemptByKey(reader, run.num, run.attempt, step_key, attempt))) as
      | AttemptRow
      | undefined,
  );
}

const attemptsByPrompt = preparedQuery((builder, prompt_id: string) =>
  builder.selectFrom('run_attempts').selectAll().where('prompt_id', '=', prompt_id),
);

export async function attemptOfPrompt(reader: Reader, prompt_id: string): Promise<Attempt | undefined> {
  return decoded((await reader.get(attemptsByPrompt(reader, prompt_id))) as AttemptRow | undefined);
}

const openAttemptsByAgent = preparedQuery((builder, agent_id: string) =>
  builder
    .selectFrom('run_attempts')
    .selectAll()
    .where('agent_id', '=', agent_id)
    .where('over', '=', sql.lit(0))
    .orderBy('num'),
);

/** Attempts without an outcome that an agent has received or is about to receive. */
export async function openAttemptsOfAgent(reader: Reader, agent_id: string): Promise<Attempt[]> {
  return ((await reader.all(openAttemptsByAgent(reader, agent_id))) as AttemptRow[]).map(toAttempt);
}

/** Whether this attempt of the run has assigned anything to an agent. */
export async function hasAttempts(reader: Reader, run: { num: number; attempt: number }): Promise<boolean> {
  const query = reader.sql.selectFrom('run_attempts').select('num').where('run_num', '=', run.num);
  return (await reader.get(query.where('run_attempt', '=', run.attempt).limit(1))) !== undefined;
}

/** Whether the session has received an attempt. A prompt that was queued for it and then removed does not count. */
export async function hasReceivedAttempt(reader: Reader, session_id: string): Promise<boolean> {
  const query = reader.sql.selectFrom('run_attempts').select('num').where('session_id', '=', session_id);
  return (await reader.get(query.limit(1))) !== undefined;
}

const attemptsBySession = preparedQuery((builder, session_id: string) =>
  builder.selectFrom('run_attempts').selectAll().where('session_id', '=', session_id).orderBy('num'),
);

/** All attempts that a session has received: one for a plain member, any number for an ACP member. */
export async function attemptsOfSession(reader: Reader, session_id: string): Promise<Attempt[]> {
  return ((await reader.all(attemptsBySession(reader, session_id))) as AttemptRow[]).map(toAttempt);
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

/** The agents of the steps' current attempts, by step key. Without `step_keys`, for all steps. */
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

function decoded(row: AttemptRow | undefined): Attempt | undefined {
  return row && toAttempt(row);
}
