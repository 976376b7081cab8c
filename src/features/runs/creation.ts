/** Creates runs and the tasks of runs that are created without one, in the caller's transaction. */
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { NodeDirectory } from '../feature.ts';
import type { TeamRow } from '../teams/queries.ts';
import { memberKind, type TeamSpec } from '../teams/rules/team.ts';
import { insertRun, nextRunNumber, type RunRow, runOfNum } from './queries/runs.ts';
import { insertSteps } from './queries/steps.ts';
import { insertTask } from './queries/tasks.ts';
import { runMode, runTitle } from './rules/run.ts';
import { stepRow } from './run-commands.ts';
import type { Scheduler } from './scheduler.ts';

export interface CreateRun {
  id: string;
  team: TeamRow;
  task_num: number;
  input: Record<string, unknown>;
  /** A user's id. */
  created_by: string;
  /** Unix ms. */
  now: number;
}

/** Creates a run from the team's current definition, and starts it. Throws `no_local_node`. */
export async function createRun(
  tx: Tx,
  { scheduler, nodes }: { scheduler: Scheduler; nodes: Pick<NodeDirectory, 'choose'> },
  request: CreateRun,
): Promise<RunRow> {
  const { id, team, task_num, input, created_by, now } = request;
  const spec = JSON.parse(team.spec) as TeamSpec;
  for (const { agent } of spec.members) if (agent) nodes.choose(agent.node_id);
  const run_num = await insertRun(tx, {
    ...{ id, team_num: team.num, task_num, created_by },
    number: await nextRunNumber(tx, team.num),
    status: 'pending',
    spec: team.spec,
    input: JSON.stringify(input),
    title: runTitle(input) ?? '',
    attempt: 1,
    version: 1,
    mode: runMode(spec),
    leader: 'unasked',
    ...{ rounds: 0, steps_seen: 0, created_at: now },
  });
  const kinds = new Map(spec.members.map((member) => [member.member_id, memberKind(member)]));
  const rows = spec.steps.map((step) => stepRow(step, kinds.get(step.member_id)!));
  await insertSteps(tx, run_num, rows);
  await scheduler.apply(tx, run_num, { kind: 'begun' });
  return (await runOfNum(tx, run_num))!;
}

/**
 * The title of the task of a run that is created without one: the input's `title` if it is text, otherwise `Run <number>`.
 */
export async function taskTitle(
  reader: Reader,
  team: TeamRow,
  { title }: Record<string, unknown>,
): Promise<string> {
  const is_title = typeof title === 'string' && title.trim() !== '';
  return is_title ? title.slice(0, limits.name_chars_max) : `Run ${await nextRunNumber(reader, team.num)}`;
}

/** Creates the task of a run that is created without one, with the status `in_progress`. Returns its num. `now`: Unix ms. */
export function createTask(
  tx: Tx,
  { now, ...task }: { team_num: number; title: string; created_by: string; now: number },
): Promise<number> {
  return insertTask(tx, {
    ...task,
    id: newId('task'),
    description: '',
    status: 'in_progress',
    conversation_id: newId('conv'),
    version: 1,
    created_at: now,
    updated_at: now,
  });
}
