/** The status of a run, a step or a member, or that it needs the user; then its status in the API is in the tooltip, and screen readers read it. */
import { cx } from '../../ui/cx.ts';
import { Status, statusText } from '../../ui/status.tsx';

export function RunStatus({
  status,
  needs_you,
  className,
}: {
  status: string;
  /** Something in the run, or the step, or the agent of the step or the member, waits for the user. */
  needs_you: boolean;
  className?: string;
}) {
  if (!needs_you) return <Status status={status} {...(className && { className })} />;
  return (
    <span title={statusText(status)} className={cx('whitespace-nowrap', className)}>
      <Status status="needs_you" />
      <span className="sr-only"> ({statusText(status)})</span>
    </span>
  );
}
