/** How a run begins: its row, its steps and, where there is none yet, its task, in the caller's transaction. */
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { runMode } from '../../domain/run.ts';
import { memberKind, type TeamSpec } from '../../domain/team.ts';
import { insertRun, insertSteps, nextRunNumber, type RunRow, runOfNum } from '../../store/runs.ts';
import type { Tx } from '../../store/store.ts';
import { insertTask } from '../../store/tasks.ts';
import type { TeamRow } from '../../store/teams.ts';
import type { Progress } from './progress.ts';
import { stepRow } from './words.ts';

export interface BeginRun {
  id: string;
  team: TeamRow;
  task_num: number;
  input: Record<string, unknown>;
  /** A user's id. */
  created_by: string;
  now: number;
}

/** A run of the team as it is now, which begins with this very transaction. */
export function beginRun(tx: Tx, progress: Progress, asked: BeginRun): RunRow {
  const { id, team, task_num, input, created_by, now } = asked;
  const spec = JSON.parse(team.spec) as TeamSpec;
  const run_num = insertRun(tx, {
    ...{ id, team_num: team.num, task_num, created_by },
    number: nextRunNumber(tx, team.num),
    status: 'pending',
    spec: team.spec,
    input: JSON.stringify(input),
    attempt: 1,
    version: 1,
    mode: runMode(spec),
    leader: 'unasked',
    ...{ rounds: 0, steps_seen: 0, created_at: now },
  });
  const kinds = new Map(spec.members.map((member) => [member.member_id, memberKind(member)]));
  const rows = spec.steps.map((step) => stepRow(step, kinds.get(step.member_id)!));
  insertSteps(tx, run_num, rows);
  progress.apply(tx, run_num, { kind: 'begun' });
  return runOfNum(tx, run_num)!;
}

/** The task of a run that was asked for without one. `input.title` names it where it is text. */
export function taskOfRun(
  tx: Tx,
  { team, input, created_by, now }: Omit<BeginRun, 'id' | 'task_num'>,
): { id: string; num: number } {
  const { title } = input;
  const named = typeof title === 'string' && title.trim() !== '';
  const id = newId('task');
  const num = insertTask(tx, {
    ...{ id, team_num: team.num, created_by },
    title: named ? title.slice(0, limits.name_chars_max) : `Run ${nextRunNumber(tx, team.num)}`,
    description: '',
    status: 'in_progress',
    conversation_id: newId('conv'),
    version: 1,
    created_at: now,
    updated_at: now,
  });
  return { id, num };
}
