/** The status of a task, with the label of its column. */
import { Ban, Check, Circle, CircleDot, Clock, type LucideIcon } from 'lucide-react';
import { cx } from '../../ui/cx.ts';
import { columnLabel, type TaskStatus } from './columns.ts';

const looks: Record<TaskStatus, [LucideIcon, color: string]> = {
  open: [Circle, 'text-muted'],
  in_progress: [CircleDot, 'text-running'],
  in_review: [Clock, 'text-warning'],
  completed: [Check, 'text-completed'],
  cancelled: [Ban, 'text-muted'],
};

export function TaskStatusLabel({ status, className }: { status: TaskStatus; className?: string }) {
  const [Icon, color] = looks[status];
  return (
    <span className={cx('inline-flex items-center gap-1 whitespace-nowrap', color, className)}>
      <Icon aria-hidden className="size-3.5 shrink-0" />
      {columnLabel(status)}
    </span>
  );
}
