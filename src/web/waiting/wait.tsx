/** How long something has waited for the user, in a color that becomes more urgent. */
import { cx } from '../ui/cx.ts';
import { ShortAgo, useNow } from '../ui/time.tsx';

const AMBER_AFTER_MS = 5 * 60_000;
const RED_AFTER_MS = 30 * 60_000;

export function Wait({ since, className }: { since: string; className?: string }) {
  const ms = useNow() - Date.parse(since);
  const color = ms > RED_AFTER_MS ? 'text-failed' : ms > AMBER_AFTER_MS ? 'text-needs' : 'text-muted';
  return <ShortAgo at={since} label="waiting for" className={cx(color, className)} />;
}
