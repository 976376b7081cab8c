/** The agent's context usage and cost, as it reports them. */
import type { Usage } from '../../../../acp/transcript/settings.ts';

export function UsageGauge({ usage }: { usage: Usage | null }) {
  if (usage === null || usage.size <= 0) return null;
  const share = Math.min(1, usage.used / usage.size);
  const percent = Math.round(share * 100);
  return (
    <section aria-label="Context">
      <h2 className="flex justify-between font-medium">
        <span>Context {percent}%</span>
        {usage.cost && <span>{costText(usage.cost)}</span>}
      </h2>
      <meter
        min={0}
        max={1}
        value={share}
        aria-label="Context used"
        title={`${usage.used.toLocaleString()} of ${usage.size.toLocaleString()} tokens`}
        className="h-2 w-full"
      />
    </section>
  );
}

function costText({ amount, currency }: { amount: number; currency: string }): string {
  try {
    return amount.toLocaleString(undefined, { style: 'currency', currency });
  } catch {
    // The browser does not know this currency.
    return `${amount.toFixed(2)} ${currency}`;
  }
}
