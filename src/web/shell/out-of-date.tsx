/** Says that lists may be out of date while the stream of changes, which keeps them current, is not connected. */
import { CloudOff } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useStreams } from '../live/streams.ts';
import { TimeOfDay } from '../ui/time.tsx';

/** Shorter interruptions are not shown. */
const SHOWN_AFTER_MS = 3_000;

/** Below the screen, so that it does not move the rows that the user may be about to press. On phones, it takes at most two lines. */
export function OutOfDate() {
  const is_connected = useStreams().fleet === 'connected';
  const [since, setSince] = useState<number | null>(null);
  useEffect(() => {
    if (is_connected) return;
    const lost_at = Date.now();
    const timer = setTimeout(() => setSince(lost_at), SHOWN_AFTER_MS);
    return () => {
      clearTimeout(timer);
      setSince(null);
    };
  }, [is_connected]);
  if (since === null) return null;
  return (
    <p
      role="status"
      data-out-of-date
      className="flex shrink-0 items-center gap-2 border-line border-t bg-surface px-3 py-1 text-sm text-warning md:px-4"
    >
      <CloudOff aria-hidden className="size-3.5 shrink-0" />
      <span>
        Lists may be out of date: no connection since <TimeOfDay ts={since / 1000} />.
      </span>
    </p>
  );
}
