/** Says that the event in the page's URL does not exist. */
import { useEffect, useState } from 'react';
import { useStreams } from '../../live/streams.ts';
import { showToast } from '../../ui/toast.tsx';

/** The log may be about to reach the event: what the page knows of its end may be old. */
const WAIT_MS = 2000;

/** `seq`: the number in the URL. `last_seq`: the end of the log, as far as it was read. `ready`: all of it was read. */
export function useMissingEvent(seq: number | null, last_seq: number, ready: boolean): void {
  const [reported, setReported] = useState<number | null>(null);
  const is_connected = useStreams().badge === 'connected';
  const is_missing = ready && is_connected && seq !== null && seq > last_seq && seq !== reported;
  useEffect(() => {
    if (!is_missing) return;
    const timer = setTimeout(() => {
      setReported(seq);
      showToast(`Event ${seq} does not exist`, `The log ends with event ${last_seq}.`);
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [is_missing, seq, last_seq]);
}
