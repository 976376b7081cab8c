/** The question of a step that waits for an answer, with a field for the answer. */
import { skipToken, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CircleSlash, MessageCircleQuestion } from 'lucide-react';
import { memo, useId } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { useAct } from '../api/act.ts';
import { call } from '../api/client.ts';
import { readAgainOnConflict } from '../api/conflict.ts';
import { keys } from '../api/keys.ts';
import type { AgentRecord, WaitingStepRecord } from '../api/queries.ts';
import { useSession } from '../api/session.ts';
import { CommandForm } from '../ui/command-form.tsx';
import { useOnline } from '../ui/online.ts';
import { Ago } from '../ui/time.tsx';
import { Truncated } from '../ui/truncated.tsx';
import { CardBar, CardBody, CardFrame } from './card-frame.tsx';
import { answerDraft, keepLateAnswer } from './late-answer.ts';
import { questionOutcome, type SettledStep } from './question-outcome.ts';
import { RunLink } from './run-link.tsx';

export interface QuestionCardProps {
  step: WaitingStepRecord;
  open: boolean;
  agent: AgentRecord | undefined;
  /** Shows the agent's name, if the card is not on its page. */
  named?: boolean | undefined;
  className?: string;
}

export const QuestionCard = memo(function QuestionCard({
  step,
  open,
  agent,
  named,
  className,
}: QuestionCardProps) {
  const id = useId();
  const online = useOnline();
  const answer = useAnswer(step);
  const settled = useOutcome(step);
  const outcome = answer.isSuccess ? 'Answered' : settled;
  const question = escapeHidden(step.question);
  return (
    <CardFrame
      card={`${step.run_id}/${step.step_key}`}
      open={open}
      answered={answer.isPending || answer.isSuccess}
      {...(open ? { 'aria-labelledby': id } : { 'aria-label': `${question}: ${outcome}` })}
      {...(className && { className })}
    >
      {open ? (
        <>
          <CardBody>
            <header className="flex flex-wrap items-center gap-x-2 text-sm">
              <span className="inline-flex items-center gap-1 font-medium text-needs">
                <MessageCircleQuestion aria-hidden className="size-3.5" /> Question
              </span>
              <RunLink run={step} step_key={step.step_key} />
              <span className="ml-auto text-muted">
                asked <Ago at={step.waiting_since} />
              </span>
            </header>
            <p id={id} className="whitespace-pre-wrap break-words font-medium">
              <bdi>{question || 'This step waits for an answer.'}</bdi>
            </p>
            <p className="flex min-w-0 flex-wrap gap-x-3 text-muted text-sm">
              <span className="min-w-0 break-all">member {escapeHidden(step.member_id)}</span>
              {named && agent && (
                <Link
                  to="/agents/$agent_id"
                  params={{ agent_id: agent.id }}
                  className="min-w-0 break-all underline"
                >
                  {escapeHidden(agent.name)}
                </Link>
              )}
            </p>
          </CardBody>
          <CardBar>
            <CommandForm
              command="resume"
              draft={answerDraft(step)}
              busy={answer.isPending}
              error={answer.error}
              onSend={({ input }) => answer.mutateAsync(input)}
            />
            {!online && <p className="text-muted">You are offline. Answer when you are back online.</p>}
          </CardBar>
        </>
      ) : (
        <>
          <CircleSlash aria-hidden className="size-3.5 shrink-0 text-muted" />
          <RunLink run={step} step_key={step.step_key} />
          <span className="min-w-0 break-words">
            <bdi>{outcome}</bdi>
          </span>
          <Truncated className="min-w-0 text-muted" title={question}>
            {question}
          </Truncated>
        </>
      )}
    </CardFrame>
  );
});

/** How the wait ended, from the live record of the step. */
function useOutcome(step: WaitingStepRecord): string {
  const me = useSession()?.user.username ?? null;
  const { data } = useQuery<SettledStep>({ queryKey: keys.settled_step(step), queryFn: skipToken });
  return escapeHidden(questionOutcome(data, me));
}

function useAnswer(step: WaitingStepRecord) {
  const queries = useQueryClient();
  const { team_id, run_id, step_key, waiting_since } = step;
  // The answer may change other steps and the run.
  const changed = [keys.waiting_steps, keys.steps(run_id), keys.run(run_id)];
  return useAct(
    async (input: unknown, idempotency_key) => {
      const params = { team_id, run_id, step_key };
      const sent = call('resumeStep', { params, body: { input, waiting_since }, idempotency_key });
      try {
        return await readAgainOnConflict(queries, changed, sent);
      } catch (error) {
        keepLateAnswer(queries, step, error);
        throw error;
      }
    },
    () => {
      queries.setQueryData<WaitingStepRecord[]>(keys.waiting_steps, (steps) =>
        steps?.filter((step) => step.run_id !== run_id || step.step_key !== step_key),
      );
      for (const queryKey of changed) void queries.invalidateQueries({ queryKey });
    },
  );
}
