/** The scrolling conversation: the rows in the window, a button to the latest row, and links to events. */
import { useNavigate, useRouterState } from '@tanstack/react-router';
import { ArrowDown } from 'lucide-react';
import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import type { Item } from '../../../../acp/transcript/items.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { useStepKeys } from '../../../shell/step-keys.ts';
import { Button } from '../../../ui/button.tsx';
import { hasModifier, isTyping } from '../../../ui/keys.ts';
import { RowBlock } from './row.tsx';
import { buildRows, failureNextTo, findItem, holds, parseSeq } from './rows.ts';
import { useWindow } from './window.ts';

export function TranscriptList({
  view,
  agent,
  end,
  toEnd,
}: {
  view: View;
  agent: AgentRecord;
  /** Shown after the last item. */
  end: ReactNode;
  /** Set to a function that scrolls to the end. */
  toEnd: RefObject<(() => void) | null>;
}) {
  const { items, left_out } = view;
  const frame = useWindow({ left_out, total: items.length });
  const { start, live, followNewest } = frame;
  const rows = useMemo(() => buildRows(items, start, frame.end), [items, start, frame.end]);
  const folder = useMemo(() => ({ agent_id: agent.id, workdir: agent.workdir }), [agent.id, agent.workdir]);
  const target = useTarget(view, frame);
  useEnd(followNewest);
  useFailureKeys(items, target);
  useEffect(() => {
    toEnd.current = followNewest;
  }, [toEnd, followNewest]);
  const after = items[frame.end - 1]?.seq;
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={frame.scroller}
        onScroll={frame.onScroll}
        role="log"
        aria-live="off"
        aria-label="Conversation"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
        tabIndex={0}
        className="scroll-y h-full"
      >
        <div ref={frame.content} className="mx-auto flex max-w-4xl flex-col gap-2 px-3 py-3 md:px-4">
          {frame.hasOlder ? (
            <Edge key={`older ${start}`} onVisible={frame.showOlder}>
              Earlier
            </Edge>
          ) : (
            left_out > 0 && <p className="text-muted">Earlier items are in the Events tab.</p>
          )}
          {rows.map((row) => (
            <RowBlock
              key={row.key}
              row={row}
              folder={folder}
              agent={agent}
              marked={target !== null && holds(row, target) ? target : null}
            />
          ))}
          {frame.end < items.length ? (
            <Edge key={`newer ${after}`} onVisible={frame.showNewer}>
              Later
            </Edge>
          ) : (
            end
          )}
        </div>
      </div>
      {!live && (
        <Button
          onClick={followNewest}
          className="absolute bottom-3 left-1/2 min-w-32 -translate-x-1/2 rounded-full bg-raised shadow-overlay"
          icon={<ArrowDown aria-hidden />}
        >
          {frame.news > 0 ? `${frame.news} new` : 'Jump to latest'}
        </Button>
      )}
    </div>
  );
}

/** Loads more rows when it scrolls into view; also a button. */
function Edge({ onVisible, children }: { onVisible: () => void; children: ReactNode }) {
  const ref = useRef<HTMLButtonElement>(null);
  const latest = useRef(onVisible);
  latest.current = onVisible;
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) latest.current();
    });
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <Button ref={ref} variant="quiet" onClick={onVisible}>
      {children}
    </Button>
  );
}

/** Scrolls to the item in the page's URL once it is loaded. Returns the number of its first event. */
function useTarget(
  { items, last_seq }: View,
  { show, scroller }: ReturnType<typeof useWindow>,
): number | null {
  const hash = useRouterState({ select: ({ location }) => location.hash });
  const target_seq = parseSeq(hash);
  const [found, setFound] = useState<{ target_seq: number; seq: number } | null>(null);
  const done = useRef<number | null>(null);
  useEffect(() => {
    if (target_seq === null || target_seq === done.current || last_seq < target_seq) return;
    const item = findItem(items, target_seq) ?? items[0];
    if (!item) return;
    done.current = target_seq;
    setFound({ target_seq, seq: item.seq });
    show(items.indexOf(item));
  }, [target_seq, items, last_seq, show]);
  useEffect(() => {
    if (found) scroller.current?.querySelector(`#e${found.seq}`)?.scrollIntoView({ block: 'center' });
  }, [found, scroller]);
  return found !== null && found.target_seq === target_seq ? found.seq : null;
}

/** `n` and `p` put the next or previous failure into the URL, which shows and marks it. */
function useFailureKeys(items: readonly Item[], from: number | null): void {
  const navigate = useNavigate();
  useStepKeys((direction) => {
    const failure = failureNextTo(items, from, direction);
    if (!failure) return;
    const hash = `e${failure.seq}`;
    void navigate({
      to: '.',
      search: true,
      hash,
      replace: true,
      resetScroll: false,
      hashScrollIntoView: false,
    });
  });
}

function useEnd(followNewest: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'End' || hasModifier(event) || isTyping(event)) return;
      event.preventDefault();
      followNewest();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [followNewest]);
}
