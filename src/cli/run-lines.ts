/** A run and its steps as people read them (pure): columns, what a step waits for, and what waits for somebody's word. */
import { showArgv } from '../domain/command.ts';
import { isRunOver, isStepOver, type Run, runMode, type Step, type StepStatus } from '../domain/run.ts';
import { memberKind } from '../domain/team.ts';
import type { Line, Look } from './acp-lines.ts';
import type { Column } from './output.ts';
import { span } from './span.ts';
import { visible } from './terminal.ts';

export const statusLooks: Partial<Record<StepStatus, Look>> = {
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  input_required: 'yellow',
  pending: 'dim',
  skipped: 'dim',
  cancelled: 'dim',
};

/** Steps that a line names of those that it waits for. */
const NEEDS_NAMED = 5;

/** Something that goes on only by somebody's word. `id`: another one is another question. */
export interface Question {
  id: string;
  lines: Line[];
}

/** `steps`: all of the run's, by key. */
export function stepColumns(run: Run, steps: ReadonlyMap<string, Step>, now_ms: number): Column<Step>[] {
  const outside = outsideOf(run);
  return [
    { title: 'STEP', value: (step) => step.step_key },
    { title: 'MEMBER', value: (step) => step.member_id },
    { title: 'STATUS', value: (step) => step.status },
    { title: 'TRY', value: (step) => step.attempt },
    { title: 'TIME', value: (step) => timeOf(step, now_ms) },
    { title: 'NOTE', value: (step) => noteOf(step, steps, outside, isRunOver(run)) },
  ];
}

/** From its start to its end, or to now; null: it has not begun. */
export function timeOf(
  { started_at, ended_at }: Pick<Run, 'started_at' | 'ended_at'>,
  now_ms: number,
): string | null {
  if (started_at === null) return null;
  return span(Date.parse(started_at), ended_at === null ? now_ms : Date.parse(ended_at));
}

/** `2 running, 3 pending`, in the order in which they are listed first. */
export function countsOf(steps: Iterable<Step>): string {
  const counts = new Map<StepStatus, number>();
  for (const { status } of steps) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
}

/** What of a run that is not over waits for a person or a program outside, with the command that answers. */
export function questionsOf(run: Run, steps: ReadonlyMap<string, Step>): Question[] {
  if (isRunOver(run)) return [];
  const asking = [...steps.values()].filter(({ status }) => status === 'input_required');
  if (asking.length > 0) return asking.map((step) => stepQuestion(run, step));
  if (run.status === 'input_required') {
    const why = run.error === null ? '' : `: ${visible(run.error)}`;
    return [
      question(`run ${run.attempt} ${why}`, `the run waits for somebody${why}`, `svc runs resume ${run.id}`),
    ];
  }
  const open = [...steps.values()].some((step) => !isStepOver(step));
  if (runMode(run.spec) !== 'outside' || open) return [];
  const command = `svc runs complete ${run.id} --output <json>`;
  return [question(`result ${run.attempt}`, 'the run waits for its result', command)];
}

function stepQuestion({ id }: Run, { step_key, attempt, error_text }: Step): Question {
  const why = error_text === null ? '' : `: ${visible(error_text)}`;
  const command = `svc steps resume ${id} ${visible(showArgv([step_key]))} --input <json>`;
  return question(
    `step ${attempt} ${step_key} ${why}`,
    `step ${visible(step_key)} waits for somebody${why}`,
    command,
  );
}

function question(id: string, text: string, command: string): Question {
  return {
    id,
    lines: [
      { text, look: 'yellow' },
      { text: `  ${command}`, look: 'dim' },
    ],
  };
}

function outsideOf({ spec }: Run): ReadonlySet<string> {
  return new Set(
    spec.members.filter((member) => memberKind(member) === 'outside').map(({ member_id }) => member_id),
  );
}

function noteOf(
  step: Step,
  steps: ReadonlyMap<string, Step>,
  outside: ReadonlySet<string>,
  over: boolean,
): string {
  if (step.error_text !== null && step.status !== 'completed') return step.error_text;
  if (over) return '';
  if (step.status === 'pending') {
    const open = step.depends_on.filter((key) => {
      const needed = steps.get(key);
      return needed && !isStepOver(needed);
    });
    return open.length === 0 ? '' : `waits for ${someOf(open)}`;
  }
  if (step.status === 'ready') return outside.has(step.member_id) ? 'waits for its member' : 'waits its turn';
  return '';
}

/** The first of them, and how many more there are. */
function someOf(keys: readonly string[]): string {
  const first = keys.slice(0, NEEDS_NAMED).join(', ');
  return keys.length > NEEDS_NAMED ? `${first} and ${keys.length - NEEDS_NAMED} more` : first;
}
