/** The status of a node's link, as icon, text and color. */
import { Check, CircleAlert, CircleDashed, type LucideIcon, Unplug } from 'lucide-react';
import { table } from '../../table.ts';
import { sentenceCase } from '../../ui/status.tsx';

const looks = table<[LucideIcon, color: string]>({
  connecting: [CircleDashed, 'text-muted'],
  connected: [Check, 'text-completed'],
  suspect: [CircleAlert, 'text-warning'],
  unreachable: [Unplug, 'text-failed'],
});

export function NodeStatus({ status, labelClassName }: { status: string; labelClassName?: string }) {
  const [Icon, color] = looks[status] ?? [CircleDashed, 'text-muted'];
  return (
    <span className={`inline-flex items-center gap-1 whitespace-nowrap ${color}`}>
      <Icon aria-hidden className="size-3.5 shrink-0" />
      <span className={labelClassName}>{sentenceCase(status)}</span>
    </span>
  );
}
