/**
 * A select box: the platform's control, which phones and screen readers support best, with type-ahead and without a script.
 * Where the browser can style its list (`select.css`), it looks like the menus of the page; with a thumb it is the platform's own.
 */
import type { SelectHTMLAttributes } from 'react';
import { cx } from './cx.ts';
import { inputClass } from './field.tsx';

export interface Choice {
  value: string;
  label: string;
  disabled?: boolean;
  /** More about it, after its label. Only browsers that can style the list show it. */
  hint?: string | undefined;
}

const quietClass =
  'tap min-w-0 cursor-pointer gap-1.5 truncate rounded-md bg-transparent px-1.5 text-muted text-sm [field-sizing:content] hover:bg-surface hover:text-text disabled:opacity-60';

export function Select({
  choices,
  value,
  onChange,
  quiet = false,
  className,
  ...rest
}: Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange' | 'value'> & {
  choices: readonly Choice[];
  value: string;
  onChange: (value: string) => void;
  /** As text that is as wide as its choice, instead of a field. */
  quiet?: boolean;
}) {
  return (
    <select
      {...rest}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className={cx(quiet ? quietClass : inputClass, 'select', className)}
    >
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value} disabled={choice.disabled} data-hint={choice.hint}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}
