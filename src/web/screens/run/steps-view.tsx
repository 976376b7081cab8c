/** A run's steps, as a graph or as a table with the same content; as a list on phones. */
import { Network, Rows3 } from 'lucide-react';
import type { ReactNode } from 'react';
import { GRAPH_STEPS_MAX, StepsGraph } from '../../graph/lazy.tsx';
import { useNarrow } from '../../ui/media.ts';
import { Segmented } from '../../ui/segmented.tsx';
import { Status } from '../../ui/status.tsx';
import { countStatuses, type ShownStepRecord } from './facts.ts';
import { StepsList } from './steps-list.tsx';
import { StepsTable } from './steps-table.tsx';

const views = [
  {
    value: 'graph',
    label: (
      <>
        <Network aria-hidden /> Graph
      </>
    ),
  },
  {
    value: 'table',
    label: (
      <>
        <Rows3 aria-hidden /> Table
      </>
    ),
  },
] as const;

export function StepsView({
  steps,
  selected,
  onSelect,
  view,
  onView,
  adding,
}: {
  steps: readonly ShownStepRecord[];
  selected: string | undefined;
  onSelect: (step_key: string) => void;
  view: string | undefined;
  onView: (view: 'graph' | 'table') => void;
  /** The button that adds a step, if one can be added. */
  adding: ReactNode;
}) {
  // A graph on a phone is too small to read.
  const as_list = useNarrow() && steps.length <= GRAPH_STEPS_MAX;
  const shown = view ?? (steps.length > GRAPH_STEPS_MAX ? 'table' : 'graph');
  return (
    <section aria-label="Steps" className="min-w-0 overflow-clip rounded-lg border border-line">
      <header className="flex flex-wrap items-center justify-between gap-2 border-line border-b px-3 py-1">
        <div className="flex flex-wrap items-center gap-x-3">
          <h2 className="font-medium">Steps</h2>
          {countStatuses(steps).map(([status, count]) => (
            <span key={status} className="inline-flex gap-1 text-sm">
              {count} <Status status={status} />
            </span>
          ))}
        </div>
        <div className="flex flex-wrap items-center gap-1">
          {adding}
          {!as_list && (
            <Segmented
              label="View"
              segments={views}
              value={shown === 'graph' ? 'graph' : 'table'}
              onValue={onView}
            />
          )}
        </div>
      </header>
      {as_list ? (
        <StepsList steps={steps} selected={selected} onSelect={onSelect} />
      ) : shown === 'graph' ? (
        <StepsGraph steps={steps} selected={selected} onSelect={onSelect} label="Step graph" />
      ) : (
        <StepsTable steps={steps} selected={selected} onSelect={onSelect} />
      )}
    </section>
  );
}
