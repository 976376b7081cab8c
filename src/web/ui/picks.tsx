/** Some of many: each that is picked can be taken back, the rest stand in the platform's own list. */
import { X } from 'lucide-react';
import type { ControlProps } from './field.tsx';
import { Select } from './select.tsx';

export function Picks({
  picked,
  others,
  onChange,
  words,
  ...control
}: ControlProps & {
  picked: readonly string[];
  /** What can be picked yet. */
  others: readonly string[];
  onChange: (picked: string[]) => void;
  words: {
    /** Stands in the list while nothing is picked. */
    none: string;
    more: string;
    takeBack: (one: string) => string;
  };
}) {
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-1">
      {picked.map((one) => (
        <button
          key={one}
          type="button"
          aria-label={words.takeBack(one)}
          onClick={() => onChange(picked.filter((other) => other !== one))}
          className="tap inline-flex max-w-full items-center gap-1 rounded-full border border-line bg-surface px-2"
        >
          <span className="truncate">{one}</span> <X aria-hidden className="size-3 shrink-0" />
        </button>
      ))}
      <Select
        {...control}
        value=""
        onChange={(one) => one !== '' && onChange([...picked, one])}
        className="max-w-44"
        choices={[
          { value: '', label: picked.length > 0 ? words.more : words.none },
          ...others.map((one) => ({ value: one, label: one })),
        ]}
      />
    </div>
  );
}

/** Of steps that another one waits for. */
export const needWords = {
  none: 'nothing',
  more: 'and for…',
  takeBack: (need: string) => `No longer wait for ${need}`,
};
