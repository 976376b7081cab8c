/** A labeled control with a hint and an error. The control gets its id and ARIA attributes. */
import { type ComponentProps, type ReactNode, useId } from 'react';
import { cx } from './cx.ts';

export interface ControlProps {
  id: string;
  /** That of the text in it. */
  dir?: 'auto';
  'aria-describedby'?: string | undefined;
  'aria-invalid'?: true | undefined;
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: ReactNode;
  className?: string | undefined;
}

export function Field({
  label,
  hint,
  error,
  className,
  children,
}: FieldProps & { children: (control: ControlProps) => ReactNode }) {
  const id = useId();
  const described = cx(error ? `${id}-error` : null, hint ? `${id}-hint` : null) || undefined;
  return (
    <div className={cx('flex min-w-0 flex-col gap-1', className)}>
      <label htmlFor={id} className="font-medium text-sm">
        {label}
      </label>
      {children({ id, dir: 'auto', 'aria-describedby': described, 'aria-invalid': error ? true : undefined })}
      {error && (
        <p id={`${id}-error`} role="alert" className="text-failed text-sm">
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="text-muted text-sm">
          {hint}
        </p>
      )}
    </div>
  );
}

export const inputClass =
  'tap w-full min-w-0 rounded-md border border-control-line bg-ground px-2 py-1 text-base transition-colors enabled:hover:border-line-strong aria-invalid:border-failed disabled:opacity-60';

/** A single-line field, for text, a password or a date. */
export function TextField({
  label,
  hint,
  error,
  className,
  mono = false,
  onText,
  ...input
}: FieldProps & {
  value: string;
  onText?: (text: string) => void;
  mono?: boolean;
} & Omit<ComponentProps<'input'>, 'onChange' | 'value' | 'className'>) {
  return (
    <Field label={label} hint={hint} error={error} className={className}>
      {(control) => (
        <input
          {...control}
          {...input}
          onChange={(event) => onText?.(event.target.value)}
          className={cx(inputClass, mono && 'font-mono')}
        />
      )}
    </Field>
  );
}
