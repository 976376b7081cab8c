/** The agent's context usage and cost, as it reports them. */
import type { Usage } from '../../../../acp/transcript/settings.ts';
import { cx } from '../../../ui/cx.ts';
import { costText, usedPercent } from '../../../ui/usage.ts';

/** From here on, the agent may soon have to forget what was said. */
const HIGH_PERCENT = 80;

export function UsageGauge({ usage }: { usage: Usage | null }) {
  if (usage === null || usage.size <= 0) return null;
  const percent = usedPercent(usage);
  const cost = costText(usage.cost);
  return (
    <section aria-label="Context">
      <h2 className="flex justify-between font-medium">
        <span>Context {percent}%</span>
        {cost !== null && <span className="font-normal text-muted">{cost}</span>}
      </h2>
      <div
        aria-hidden
        title={`${usage.used.toLocaleString()} of ${usage.size.toLocaleString()} tokens`}
        className="my-1 h-1 overflow-hidden rounded-full bg-line"
      >
        <div
          style={{ width: `${percent}%` }}
          className={cx('h-full rounded-full', percent >= HIGH_PERCENT ? 'bg-needs' : 'bg-muted')}
        />
      </div>
    </section>
  );
}
