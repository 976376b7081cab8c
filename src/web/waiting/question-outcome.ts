/** How the wait of a step ended, for its card (pure). */
import type { Step } from '../../features/runs/rules/run.ts';

export type SettledStep = Pick<Step, 'status' | 'answer' | 'answered_by'>;

const CHARS = 200;

/** `step`: the step when its wait ended; undefined if it is not known. `me`: the username of the viewer. */
export function questionOutcome(step: SettledStep | undefined, me: string | null): string {
  if (!step) return 'No longer waiting';
  const { status, answered_by } = step;
  if (answered_by === null) {
    return status === 'cancelled' ? 'No longer needed: the run was ended' : 'No longer waiting';
  }
  // An actor is a member of a team: `<member>@<team>`.
  const by = answered_by.split('@')[0]!;
  if (status === 'completed') return `Completed by ${by}`;
  if (status === 'failed') return `Failed by ${by}`;
  const answer = answerText(step.answer);
  return `Answered${by === me ? '' : ` by ${by}`}${answer && `: ${answer}`}`;
}

/** One line of it. */
function answerText(answer: unknown): string {
  if (answer === null || answer === undefined) return '';
  const text = (typeof answer === 'string' ? answer : JSON.stringify(answer)).trim().split('\n')[0]!;
  return text.length > CHARS ? `${text.slice(0, CHARS)}…` : text;
}
