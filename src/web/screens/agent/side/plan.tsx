/** The agent's latest plan. */
import { Check, Circle, CircleDot, type LucideIcon } from 'lucide-react';
import type { Plan as PlanOf } from '../../../../acp/transcript/settings.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { table } from '../../../table.ts';
import { cx } from '../../../ui/cx.ts';

interface Mark {
  icon: LucideIcon;
  word: string;
  className: string;
}

const marks = table<Mark>({
  completed: { icon: Check, word: 'done', className: 'text-completed' },
  in_progress: { icon: CircleDot, word: 'in progress', className: 'text-running' },
  pending: { icon: Circle, word: 'to do', className: 'text-muted' },
});

export function Plan({ plan }: { plan: PlanOf | null }) {
  if (plan === null || plan.total === 0) return null;
  return (
    <section aria-label="Plan">
      <h2 className="font-medium">
        Plan {plan.done}/{plan.total}
      </h2>
      <ol className="flex flex-col gap-0.5">
        {plan.entries.map(({ content, status }, at) => {
          const { icon: Icon, word, className } = marks[status] ?? { ...marks.pending!, word: status };
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: each update replaces the whole plan
            <li key={at} className="flex gap-1.5">
              <Icon aria-hidden className={cx('mt-0.75 size-3.5 shrink-0', className)} />
              <span className={cx('min-w-0 break-words', status === 'completed' && 'text-muted')}>
                <bdi>{escapeHidden(content)}</bdi>
                <span className="sr-only"> ({word})</span>
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
