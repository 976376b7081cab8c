/** The agent's context usage and cost, as it reports them. */
import type { Usage } from '../../../../acp/transcript/settings.ts';
import { cx } from '../../../ui/cx.ts';

/** From here on, the agent may soon have to forget what was said. */
const HIGH_PERCENT = 80;

export function UsageGauge({ usage }: { usage: Usage | null }) {
  if (usage === null || usage.size <= 0) return null;
  const percent = usedPercent(usage);
  const cost = costText(usage);
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

export function usedPercent({ used, size }: Usage): number {
  return Math.round(100 * Math.min(1, used / size));
}

/** Null until there is a cost. */
export function costText({ cost }: Usage): string | null {
  if (cost === null || cost.amount <= 0) return null;
  const { amount, currency } = cost;
  try {
    return amount.toLocaleString(undefined, { style: 'currency', currency });
  } catch {
    // The browser does not know this currency.
    return `${amount.toFixed(2)} ${currency}`;
  }
}
