/** An answer to a question of a step that somebody else has answered by then. */
import type { QueryClient } from '@tanstack/react-query';
import { errorMessage } from '../api/client.ts';
import { isConflict } from '../api/conflict.ts';
import { keys } from '../api/keys.ts';
import type { WaitingStepRecord } from '../api/queries.ts';
import { session } from '../api/session.ts';
import { getDraft, jsonDraft, placeOf, setDraft } from '../ui/drafts.ts';
import { showToast } from '../ui/toast.tsx';

/** The key of the draft of the answer. An answer to one question of the step is not one to the next. */
export function answerDraft({ run_id, step_key, waiting_since }: WaitingStepRecord): string {
  return `step-resume.${run_id}.${step_key}.${waiting_since}`;
}

/**
 * If the step no longer asks this, says that the answer was not sent: the card is gone by then. What the user has typed moves to
 * the step's next question, if there is one. `error`: why the answer was not accepted. Call it when the waiting steps have been
 * read again.
 */
export function keepLateAnswer(queries: QueryClient, step: WaitingStepRecord, error: unknown): void {
  if (!isConflict(error)) return;
  const next = queries
    .getQueryData<WaitingStepRecord[]>(keys.waiting_steps)
    ?.find(({ run_id, step_key }) => run_id === step.run_id && step_key === step.step_key);
  if (next?.waiting_since === step.waiting_since) return;
  if (next) moveDraft(answerDraft(step), answerDraft(next));
  const now = next ? 'The step asks something else now.' : errorMessage(error);
  showToast('Not sent: the question was already answered', now);
}

/** Unless there is something in the other field. */
function moveDraft(from: string, to: string): void {
  const place = (key: string) => placeOf(session.get(), key);
  if (getDraft(place(to)) !== '') return;
  for (const draftOf of [String, jsonDraft]) {
    setDraft(place(draftOf(to)), getDraft(place(draftOf(from))));
    setDraft(place(draftOf(from)), '');
  }
}
