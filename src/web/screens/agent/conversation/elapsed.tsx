/** A duration that ticks until its end is known. Times are Unix seconds, as in the log. */
import { spanText, useNow } from '../../../ui/time.tsx';

export function Elapsed({ from, to }: { from: number; to: number | null }) {
  return to === null ? (
    <Ticking from={from} />
  ) : (
    <span className="whitespace-nowrap">{spent(to - from)}</span>
  );
}

function Ticking({ from }: { from: number }) {
  const now = useNow();
  return <span className="whitespace-nowrap">{spanText(now - from * 1000)}</span>;
}

export function spent(seconds: number): string {
  return seconds < 10 ? `${Math.max(0, seconds).toFixed(1)} s` : spanText(seconds * 1000);
}
