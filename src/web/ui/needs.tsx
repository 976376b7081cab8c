/** The dependencies of a step: each can be removed, and others chosen from a list. */
import { X } from 'lucide-react';
import type { ControlProps } from './field.tsx';
import { Select } from './select.tsx';

export function Needs({
  needs,
  steps,
  onChange,
  ...control
}: ControlProps & {
  needs: readonly string[];
  /** All steps that it can wait for. */
  steps: readonly string[];
  onChange: (needs: string[]) => void;
}) {
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-1">
      {needs.map((need) => (
        <button
          key={need}
          type="button"
          aria-label={`Remove dependency on ${need}`}
          onClick={() => onChange(needs.filter((item) => item !== need))}
          className="tap inline-flex max-w-full items-center gap-1 rounded-full border border-line bg-surface px-2"
        >
          <span className="truncate">{need}</span> <X aria-hidden className="size-3 shrink-0" />
        </button>
      ))}
      <Select
        {...control}
        value=""
        onChange={(need) => need !== '' && onChange([...needs, need])}
        className="max-w-44"
        choices={[
          { value: '', label: needs.length > 0 ? 'Add a step…' : 'No other step' },
          ...steps.filter((step) => !needs.includes(step)).map((step) => ({ value: step, label: step })),
        ]}
      />
    </div>
  );
}
