/** A run's steps, as a graph or as a table with the same content. */
import { Network, Rows3 } from 'lucide-react';
import type { ReactNode } from 'react';
import { GRAPH_STEPS_MAX, StepsGraph } from '../../graph/lazy.tsx';
import { cx } from '../../ui/cx.ts';
import { Status } from '../../ui/status.tsx';
import { countStatuses, type StepRecord } from './facts.ts';
import { StepsTable } from './steps-table.tsx';

export function StepsView({
  steps,
  selected,
  onSelect,
  view,
  onView,
  adding,
}: {
  steps: readonly StepRecord[];
  selected: string | undefined;
  onSelect: (step_key: string) => void;
  view: string | undefined;
  onView: (view: 'graph' | 'table') => void;
  /** The button that adds a step, if one can be added. */
  adding: ReactNode;
}) {
  const shown = view ?? (steps.length > GRAPH_STEPS_MAX ? 'table' : 'graph');
  return (
    <section aria-label="Steps" className="min-w-0 rounded-md border border-line">
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
          <Choice
            icon={<Network aria-hidden />}
            label="Graph"
            on={shown === 'graph'}
            onPress={() => onView('graph')}
          />
          <Choice
            icon={<Rows3 aria-hidden />}
            label="Table"
            on={shown !== 'graph'}
            onPress={() => onView('table')}
          />
        </div>
      </header>
      {shown === 'graph' ? (
        <div className={cx('w-full', steps.length > 6 ? 'h-80' : 'h-52')}>
          <StepsGraph steps={steps} selected={selected} onSelect={onSelect} label="Step graph" />
        </div>
      ) : (
        <StepsTable steps={steps} selected={selected} onSelect={onSelect} />
      )}
    </section>
  );
}

function Choice({
  icon,
  label,
  on,
  onPress,
}: {
  icon: ReactNode;
  label: string;
  on: boolean;
  onPress: () => void;
}) {
  return (
    <button
      type="button"
      aria-pressed={on}
      onClick={onPress}
      className={cx(
        'tap inline-flex items-center gap-1 rounded-md border px-2 text-sm [&_svg]:size-3.5',
        on ? 'border-accent' : 'border-transparent text-muted hover:text-text',
      )}
    >
      {icon}
      {label}
    </button>
  );
}
