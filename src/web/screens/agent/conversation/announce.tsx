/** Says to who listens what the agent has said, message by message, once each is complete. */
import { useEffect, useRef, useState } from 'react';
import { textOf } from '../../../../acp/transcript/parts.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';

const CHARS = 600;

export function Announcer({ view, ready }: { view: View; ready: boolean }) {
  const [words, setWords] = useState('');
  const told = useRef<string | null>(null);
  useEffect(() => {
    if (!ready) return;
    const item = view.items.findLast(({ kind, subagent }) => kind === 'agent_message' && subagent === null);
    if (item?.kind !== 'agent_message' || item.ended_ts === null || item.key === told.current) return;
    // What was said before somebody came is there to be read.
    if (told.current !== null) setWords(textOf(item.body).slice(0, CHARS));
    told.current = item.key;
  }, [view, ready]);
  return (
    <div aria-live="polite" className="sr-only">
      {words}
    </div>
  );
}
