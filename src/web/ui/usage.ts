/** The tokens, the context and the cost of an agent, in words (pure). */

/** How full the context is; at most 100. */
export function usedPercent({ used, size }: { used: number; size: number }): number {
  return Math.round(100 * Math.min(1, used / size));
}

/** To create one takes longer than to use it a hundred times. */
const formats = new Map<string, Intl.NumberFormat>();

/** Null while there is no cost. */
export function costText(cost: { amount: number; currency: string } | null | undefined): string | null {
  if (!cost || cost.amount <= 0) return null;
  const { amount, currency } = cost;
  try {
    const known = formats.get(currency);
    const format = known ?? new Intl.NumberFormat(undefined, { style: 'currency', currency });
    if (!known) formats.set(currency, format);
    return format.format(amount);
  } catch {
    // The browser does not know this currency.
    return `${amount.toFixed(2)} ${currency}`;
  }
}

/** `4k`, `1.2M`. */
export function compactCount(count: number): string {
  if (count < 1000) return String(count);
  const thousands = Math.round(count / 1000);
  return thousands < 1000 ? `${thousands}k` : `${(count / 1_000_000).toFixed(1)}M`;
}
