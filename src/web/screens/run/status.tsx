/** The status of a run, or that it needs the user; then its status in the API is in the tooltip, and screen readers read it. */
import type { RunRecord } from '../../api/queries.ts';
import { cx } from '../../ui/cx.ts';
import { Status, statusText } from '../../ui/status.tsx';

export function RunStatus({
  run: { status },
  needs_you,
  className,
}: {
  run: Pick<RunRecord, 'status'>;
  /** Something in the run waits for the user. */
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
