/** Text about a run and its steps (pure): columns, what a step waits for, and questions that must be answered. */

import type { Column } from '../../../cli/output.ts';
import { formatSpan } from '../../../cli/span.ts';
import { printable } from '../../../cli/terminal.ts';
import { showArgv } from '../../../core/argv.ts';
import type { Line, TextStyle } from '../../conversations/commands/acp-lines.ts';
import { memberKind } from '../../teams/rules/team.ts';
import {
  isRunOver,
  isStepOver,
  type Run,
  runMode,
  type Step,
  type StepStatus,
  type WaitingRun,
  type WaitingStep,
} from '../rules/run.ts';

export const statusStyles: Partial<Record<StepStatus, TextStyle>> = {
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  input_required: 'yellow',
  pending: 'dim',
  skipped: 'dim',
  cancelled: 'dim',
};

/** Maximum number of steps that a note names. */
const NEEDS_NAMED = 5;

/** A question that must be answered before the run continues. A new question has a new id. */
export interface Question {
  id: string;
  lines: Line[];
}

/** `steps`: all steps of the run, by key. */
export function stepColumns(run: Run, steps: ReadonlyMap<string, Step>, now_ms: number): Column<Step>[] {
  const outside = listExternalMembers(run);
  return [
    { title: 'STEP', value: (step) => step.step_key },
    { title: 'MEMBER', value: (step) => step.member_id },
    { title: 'STATUS', value: (step) => step.status },
    { title: 'TRY', value: (step) => step.attempt },
    { title: 'TIME', value: (step) => formatElapsed(step, now_ms) },
    { title: 'NOTE', value: (step) => formatNote(step, steps, outside, isRunOver(run)) },
  ];
}

export function waitingColumns(now_ms: number): Column<WaitingStep>[] {
  return [
    { title: 'RUN', value: (step) => `${step.team_name}#${step.run_number}` },
    { title: 'STEP', value: (step) => step.step_key },
    { title: 'MEMBER', value: (step) => step.member_id },
    { title: 'WAITS', value: (step) => formatSpan(Date.parse(step.waiting_since), now_ms) },
    { title: 'QUESTION', value: (step) => step.question },
  ];
}

export function waitingRunColumns(now_ms: number): Column<WaitingRun>[] {
  return [
    { title: 'RUN', value: (run) => `${run.team_name}#${run.run_number}` },
    { title: 'WAITS', value: (run) => formatSpan(Date.parse(run.waiting_since), now_ms) },
    { title: 'REASON', value: (run) => run.reason },
    { title: 'CONTINUE', value: (run) => `svc runs resume ${run.run_id}` },
  ];
}

/** The time from start to end, or until now; null if it has not started. */
export function formatElapsed(
  { started_at, ended_at }: Pick<Run, 'started_at' | 'ended_at'>,
  now_ms: number,
): string | null {
  if (started_at === null) return null;
  return formatSpan(Date.parse(started_at), ended_at === null ? now_ms : Date.parse(ended_at));
}

/** Formats counts such as `2 running, 3 pending`, in the order of first appearance. */
export function formatCounts(steps: Iterable<Step>): string {
  const counts = new Map<StepStatus, number>();
  for (const { status } of steps) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
}

/** What a running run needs from a person or an external program, and the command that provides it. */
export function listQuestions(run: Run, steps: ReadonlyMap<string, Step>): Question[] {
  if (isRunOver(run)) return [];
  const waiting = [...steps.values()].filter(({ status }) => status === 'input_required');
  if (waiting.length > 0) return waiting.map((step) => stepQuestion(run, step));
  if (run.status === 'input_required') {
    const why = run.error === null ? '' : `: ${printable(run.error)}`;
    return [
      question(`run ${run.attempt} ${why}`, `the run waits for an answer${why}`, `svc runs resume ${run.id}`),
    ];
  }
  const open = [...steps.values()].some((step) => !isStepOver(step));
  if (runMode(run.spec) !== 'outside' || open) return [];
  const command = `svc runs complete ${run.id} --output <json>`;
  return [question(`result ${run.attempt}`, 'the run waits for its result', command)];
}

function stepQuestion({ id }: Run, { step_key, attempt, error_text }: Step): Question {
  const why = error_text === null ? '' : `: ${printable(error_text)}`;
  const command = `svc steps resume ${id} ${printable(showArgv([step_key]))} --input <json>`;
  return question(
    `step ${attempt} ${step_key} ${why}`,
    `step ${printable(step_key)} waits for an answer${why}`,
    command,
  );
}

function question(id: string, text: string, command: string): Question {
  return {
    id,
    lines: [
      { text, style: 'yellow' },
      { text: `  ${command}`, style: 'dim' },
    ],
  };
}

function listExternalMembers({ spec }: Run): ReadonlySet<string> {
  return new Set(
    spec.members.filter((member) => memberKind(member) === 'outside').map(({ member_id }) => member_id),
  );
}

function formatNote(
  step: Step,
  steps: ReadonlyMap<string, Step>,
  outside: ReadonlySet<string>,
  over: boolean,
): string {
  if (step.error_text !== null && step.status !== 'completed') return step.error_text.replaceAll('\n', ' ');
  if (over) return '';
  if (step.status === 'pending') {
    const open = step.depends_on.filter((key) => {
      const needed = steps.get(key);
      return needed && !isStepOver(needed);
    });
    return open.length === 0 ? '' : `waits for ${abbreviatedList(open)}`;
  }
  if (step.status === 'ready') return outside.has(step.member_id) ? 'waits for its member' : 'waits its turn';
  return '';
}

/** The first keys, and the number of the others. */
function abbreviatedList(keys: readonly string[]): string {
  const first = keys.slice(0, NEEDS_NAMED).join(', ');
  return keys.length > NEEDS_NAMED ? `${first} and ${keys.length - NEEDS_NAMED} more` : first;
}
