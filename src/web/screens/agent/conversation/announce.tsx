/** Announces each complete message of the agent to screen readers. */
import { useEffect, useRef, useState } from 'react';
import { bodyText } from '../../../../acp/transcript/parts.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';

const CHARS = 600;

export function Announcer({ view, ready }: { view: View; ready: boolean }) {
  const [text, setText] = useState('');
  const announced = useRef<string | null>(null);
  useEffect(() => {
    if (!ready) return;
    const item = view.items.findLast(({ kind, subagent }) => kind === 'agent_message' && subagent === null);
    if (item?.kind !== 'agent_message' || item.ended_ts === null || item.key === announced.current) return;
    // Messages from before the page was opened are not announced.
    if (announced.current !== null) setText(bodyText(item.body).slice(0, CHARS));
    announced.current = item.key;
  }, [view, ready]);
  return (
    <div aria-live="polite" className="sr-only">
      {text}
    </div>
  );
}
