/** The agent's latest plan. */
import type { Plan as PlanOf } from '../../../../acp/transcript/settings.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { cx } from '../../../ui/cx.ts';

const marks: Record<string, { mark: string; word: string; className: string }> = {
  completed: { mark: '✓', word: 'done', className: 'text-completed' },
  in_progress: { mark: '◐', word: 'in progress', className: 'text-running' },
  pending: { mark: '○', word: 'to do', className: 'text-muted' },
};

export function Plan({ plan }: { plan: PlanOf | null }) {
  if (plan === null || plan.total === 0) return null;
  return (
    <section aria-label="Plan">
      <h2 className="font-medium">
        Plan {plan.done}/{plan.total}
      </h2>
      <ol className="flex flex-col gap-0.5">
        {plan.entries.map(({ content, status }, at) => {
          const { mark, word, className } = marks[status] ?? { mark: '·', word: status, className: '' };
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: each update replaces the whole plan
            <li key={at} className="flex gap-1.5">
              <span aria-hidden className={cx('w-4 shrink-0', className)}>
                {mark}
              </span>
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
