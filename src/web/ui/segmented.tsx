/** A choice between a few views or values, of which one is always pressed. */
import type { ReactNode } from 'react';
import { cx } from './cx.ts';

export interface Segment<T extends string> {
  value: T;
  label: ReactNode;
  /** Why it cannot be chosen. */
  disabled?: string | undefined;
}

export function Segmented<T extends string>({
  label,
  segments,
  value,
  onValue,
  className,
}: {
  label: string;
  segments: readonly Segment<T>[];
  value: T;
  onValue: (value: T) => void;
  className?: string;
}) {
  return (
    <fieldset
      className={cx(
        'inline-flex w-fit max-w-full shrink-0 gap-0.5 overflow-x-auto rounded-md bg-surface p-0.5',
        className,
      )}
    >
      <legend className="sr-only">{label}</legend>
      {segments.map((segment) => (
        <button
          key={segment.value}
          type="button"
          aria-pressed={segment.value === value}
          disabled={segment.disabled !== undefined}
          title={segment.disabled}
          onClick={() => onValue(segment.value)}
          className={cx(
            'inline-flex h-6 shrink-0 items-center gap-1.5 whitespace-nowrap rounded-sm px-2.5 transition-colors pointer-coarse:h-10 [&_svg]:size-4',
            '-outline-offset-2 disabled:opacity-50',
            segment.value === value
              ? 'bg-thumb font-medium text-text shadow-thumb'
              : 'text-muted enabled:hover:text-text',
          )}
        >
          {segment.label}
        </button>
      ))}
    </fieldset>
  );
}
