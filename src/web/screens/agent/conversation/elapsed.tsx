/** A duration that ticks until its end is known. Times are Unix seconds, as in the log. */
import { spanText, tookText, useNow } from '../../../ui/time.tsx';

export function Elapsed({ from, to }: { from: number; to: number | null }) {
  return to === null ? (
    <Ticking from={from} />
  ) : (
    <span className="whitespace-nowrap">{tookText(to - from)}</span>
  );
}

function Ticking({ from }: { from: number }) {
  const now = useNow();
  return <span className="whitespace-nowrap">{spanText(now - from * 1000)}</span>;
}
