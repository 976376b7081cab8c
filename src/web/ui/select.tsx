/** A select box: the platform's control, which phones and screen readers support best. */
import type { SelectHTMLAttributes } from 'react';
import { cx } from './cx.ts';
import { inputClass } from './field.tsx';

export interface Choice {
  value: string;
  label: string;
  disabled?: boolean;
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
      className={cx(inputClass, 'pr-6', className)}
    >
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value} disabled={choice.disabled}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}
