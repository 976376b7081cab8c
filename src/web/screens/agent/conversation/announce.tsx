/** Announces each complete message of the agent to screen readers. */
import { useEffect, useRef, useState } from 'react';
import type { Item, MessageItem } from '../../../../acp/transcript/items.ts';
import { bodyText } from '../../../../acp/transcript/parts.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';

const CHARS = 600;

function isComplete(item: Item): item is MessageItem {
  return item.kind === 'agent_message' && item.subagent === null && item.ended_ts !== null;
}

export function Announcer({ view, ready }: { view: View; ready: boolean }) {
  const [shown, setShown] = useState({ key: '', text: '' });
  /** The key of the last complete message; null if there was none, undefined while the log is being loaded. */
  const last = useRef<string | null>(undefined);
  useEffect(() => {
    if (!ready) return;
    const item = view.items.findLast(isComplete);
    const key = item?.key ?? null;
    // Messages from before the page was opened are not announced.
    if (item && last.current !== undefined && key !== last.current)
      setShown({ key: item.key, text: bodyText(item.body).slice(0, CHARS) });
    last.current = key;
  }, [view, ready]);
  return (
    <div aria-live="polite" className="sr-only">
      {/* A new element, because a text that stays the same is not announced. */}
      <p key={shown.key}>{shown.text}</p>
    </div>
  );
}
