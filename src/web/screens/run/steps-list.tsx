/** Steps on a phone, from top to bottom: each with its member, its duration, and what it waits for. */
import { cx } from '../../ui/cx.ts';
import { StatusIcon, sentenceCase, statusText } from '../../ui/status.tsx';
import { Duration } from '../../ui/time.tsx';
import type { ShownStepRecord } from './facts.ts';

export function StepsList({
  steps,
  selected,
  onSelect,
}: {
  steps: readonly ShownStepRecord[];
  selected: string | undefined;
  onSelect: (step_key: string) => void;
}) {
  const open = new Set(steps.filter(({ status }) => status !== 'completed').map(({ step_key }) => step_key));
  return (
    <ol className="divide-y divide-line">
      {steps.map((step) => (
        <li key={step.step_key}>
          <button
            type="button"
            aria-pressed={step.step_key === selected}
            onClick={() => onSelect(step.step_key)}
            className={cx(
              'flex min-h-12 w-full min-w-0 items-start gap-2.5 px-3 py-2 text-left -outline-offset-2',
              step.step_key === selected && 'bg-selected',
            )}
          >
            <StatusIcon status={step.status} className="mt-0.5 size-4" />
            <span className="flex min-w-0 flex-1 flex-col">
              <span className="truncate font-medium">{step.step_key}</span>
              <Facts step={step} blockers={step.depends_on.filter((key) => open.has(key))} />
            </span>
            {step.started_at && (
              <span className="shrink-0 text-muted text-sm tabular-nums">
                <Duration from={step.started_at} to={step.ended_at} />
              </span>
            )}
          </button>
        </li>
      ))}
    </ol>
  );
}

function Facts({ step, blockers }: { step: ShownStepRecord; blockers: readonly string[] }) {
  const { status, member_id, error_text, waits_for } = step;
  const note = error_text ?? (waits_for && `Waits for ${waits_for}`);
  return (
    <>
      <span className="truncate text-muted text-sm">
        {sentenceCase(statusText(status))} · {member_id}
        {status === 'pending' && blockers.length > 0 && ` · blocked by ${blockers.slice(0, 20).join(', ')}`}
      </span>
      {note && (
        <span
          className={cx(
            'line-clamp-2 break-words text-sm',
            status === 'failed' ? 'text-failed' : 'text-needs',
          )}
        >
          {note}
        </span>
      )}
    </>
  );
}
