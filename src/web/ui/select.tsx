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

export function Select({
  choices,
  value,
  onChange,
  className,
  ...rest
}: Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange' | 'value'> & {
  choices: readonly Choice[];
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <select
      {...rest}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className={cx(inputClass, 'select', className)}
    >
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value} disabled={choice.disabled} data-hint={choice.hint}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}
