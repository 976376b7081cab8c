/** An answer to a question of a step that somebody else has answered by then. */
import type { QueryClient } from '@tanstack/react-query';
import { Problem } from '../../core/problem.ts';
import { keys } from '../api/keys.ts';
import type { WaitingStepRecord } from '../api/queries.ts';
import { session } from '../api/session.ts';
import { getDraft, placeOf, setDraft } from '../ui/drafts.ts';
import { showToast } from '../ui/toast.tsx';

/** The key of the draft of the answer. An answer to one question of the step is not one to the next. */
export function answerDraft({ run_id, step_key, waiting_since }: WaitingStepRecord): string {
  return `step-resume.${run_id}.${step_key}.${waiting_since}`;
}

/**
 * If the step asks something else by now, moves what the user has typed to the field of that question, and says so. `error`: why
 * the answer was not accepted. Call it when the waiting steps have been read again.
 */
export function keepLateAnswer(queries: QueryClient, step: WaitingStepRecord, error: unknown): void {
  if (!(error instanceof Problem) || error.code !== 'step_changed') return;
  const next = queries
    .getQueryData<WaitingStepRecord[]>(keys.waiting_steps)
    ?.find(({ run_id, step_key }) => run_id === step.run_id && step_key === step.step_key);
  if (!next || next.waiting_since === step.waiting_since) return;
  const [from, to] = [step, next].map((item) => placeOf(session.get(), answerDraft(item)));
  if (getDraft(to!) === '') {
    setDraft(to!, getDraft(from!));
    setDraft(from!, '');
  }
  showToast('Not sent: the question was already answered', 'The step asks something else now.');
}
