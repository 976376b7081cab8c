/** A small form in a dialog, with its error above the buttons. */
import type { FormEvent, ReactNode } from 'react';
import { Button } from './button.tsx';

export function DialogForm({
  submit_label,
  variant = 'primary',
  busy,
  error,
  onSubmit,
  onCancel,
  children,
}: {
  /** The label of the submit button. */
  submit_label: string;
  variant?: 'primary' | 'danger';
  busy: boolean;
  error?: string | undefined;
  onSubmit: () => void;
  onCancel: () => void;
  children?: ReactNode;
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      {children}
      {error && (
        <p role="alert" className="text-failed">
          {error}
        </p>
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" variant={variant} busy={busy}>
          {submit_label}
        </Button>
      </div>
    </form>
  );
}
