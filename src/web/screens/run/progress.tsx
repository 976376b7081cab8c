/** What a run has achieved so far, on one line: its steps, its time, its cost, and who started it. */
import { useQuery } from '@tanstack/react-query';
import { agentsQuery, type RunRecord } from '../../api/queries.ts';
import { Duration } from '../../ui/time.tsx';
import { countStatuses, type StepRecord, sumCosts } from './facts.ts';

export function RunProgress({ run, steps }: { run: RunRecord; steps: readonly StepRecord[] }) {
  const { data: agents = [] } = useQuery(agentsQuery);
  const costs = sumCosts(agents.filter(({ run_id }) => run_id === run.id));
  const done = steps.filter(({ status }) => status === 'completed').length;
  const facts = [
    steps.length > 0 && `${done}/${steps.length} steps`,
    run.started_at && <Duration key="time" from={run.started_at} to={run.ended_at} />,
    ...costs,
    run.created_by_name !== null && `started by ${run.created_by_name}`,
    run.attempt > 1 && `attempt ${run.attempt}`,
  ].filter(Boolean);
  return (
    <div className="flex flex-col gap-1.5">
      <p className="flex flex-wrap items-center gap-x-1.5 text-muted tabular-nums">
        {facts.map((fact, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the facts have no other identity
          <span key={at} className="inline-flex gap-1.5">
            {at > 0 && <span aria-hidden>·</span>}
            {fact}
          </span>
        ))}
      </p>
      {steps.length > 0 && <Segments steps={steps} />}
    </div>
  );
}

const fills = { completed: 'bg-completed', failed: 'bg-failed' };
const filled = ['completed', 'failed'] as const;

/** Completed and failed steps fill it; the words are in the header of the steps. */
function Segments({ steps }: { steps: readonly StepRecord[] }) {
  const counts = new Map(countStatuses(steps));
  const rest = steps.length - filled.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0);
  return (
    <div aria-hidden className="flex h-1 gap-0.5 overflow-hidden rounded-full">
      {filled.map((status) => {
        const count = counts.get(status) ?? 0;
        return count > 0 && <span key={status} style={{ flexGrow: count }} className={fills[status]} />;
      })}
      {rest > 0 && <span style={{ flexGrow: rest }} className="bg-selected" />}
    </div>
  );
}
