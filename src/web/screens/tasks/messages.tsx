/** The messages of a thread, oldest first. At the end it follows new messages; elsewhere it counts them and does not scroll. */
import { ArrowDown } from 'lucide-react';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import type { TaskRecord } from './data.ts';
import { Message } from './message.tsx';
import type { MessageRecord } from './thread.ts';

/** Distance from the end that counts as the end. */
const NEAR_PX = 40;
/** Distance from the beginning at which the previous page is read. */
const EARLY_PX = 400;

export function Messages({
  task,
  messages,
  is_searched,
  has_older,
  is_reading,
  onOlder,
  onAnswer,
  onThread,
}: {
  task: TaskRecord;
  messages: readonly MessageRecord[];
  is_searched: boolean;
  has_older: boolean;
  is_reading: boolean;
  onOlder: () => void;
  onAnswer: (message: MessageRecord) => void;
  onThread: (message_id: number) => void;
}) {
  const { box, unseen, follow, onScroll, toEnd } = useReadingPlace(messages);
  const by_id = new Map(messages.map((message) => [message.id, message]));
  return (
    <div className="relative min-h-0 flex-1 short:h-40 short:flex-none">
      <div
        ref={box}
        role="log"
        aria-label="Task thread"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
        tabIndex={0}
        onScroll={(event) => {
          onScroll();
          if (event.currentTarget.scrollTop < EARLY_PX && has_older && !is_reading) onOlder();
        }}
        className="scroll-y h-full px-3 py-2 [overflow-anchor:none]"
      >
        <div ref={follow}>
          {has_older && (
            <div className="flex justify-center pb-2">
              <Button variant="quiet" busy={is_reading} onClick={onOlder}>
                {is_reading ? 'Loading…' : 'Show earlier messages'}
              </Button>
            </div>
          )}
          {messages.length === 0 ? (
            <p className="py-10 text-center text-muted">
              {is_searched ? 'No messages match this search.' : 'No messages yet. Write to the team below.'}
            </p>
          ) : (
            <ol className="flex flex-col gap-3">
              {messages.map((message) => (
                <Message
                  key={message.id}
                  task={task}
                  message={message}
                  answered={message.reply_to === null ? null : (by_id.get(message.reply_to) ?? null)}
                  onAnswer={onAnswer}
                  onThread={onThread}
                />
              ))}
            </ol>
          )}
        </div>
      </div>
      {unseen > 0 && (
        <Button
          variant="primary"
          icon={<ArrowDown aria-hidden />}
          onClick={toEnd}
          className="absolute right-4 bottom-3 min-w-24 shadow-overlay"
        >
          {unseen} new
        </Button>
      )}
    </div>
  );
}

function useReadingPlace(messages: readonly MessageRecord[]) {
  const box = useRef<HTMLDivElement>(null);
  const follow = useRef<HTMLDivElement>(null);
  const at_end = useRef(true);
  const before = useRef({ first: 0, height: 0 });
  /** The id of the newest message that was visible. */
  const [seen, setSeen] = useState(Number.POSITIVE_INFINITY);
  const first = messages[0]?.id ?? 0;
  const last = messages.at(-1)?.id ?? 0;

  useLayoutEffect(() => {
    const element = box.current!;
    const { scrollHeight } = element;
    // Messages added above do not move the visible ones.
    if (first < before.current.first && !at_end.current) {
      element.scrollTop += scrollHeight - before.current.height;
    }
    if (at_end.current) {
      element.scrollTop = scrollHeight;
      setSeen(last);
    }
    before.current = { first, height: scrollHeight };
  }, [first, last]);

  useEffect(() => {
    // The form may grow, the window shrink, or a message unfold.
    const watching = new ResizeObserver(() => {
      const element = box.current;
      if (!element) return;
      if (at_end.current) element.scrollTop = element.scrollHeight;
      before.current.height = element.scrollHeight;
    });
    watching.observe(box.current!);
    watching.observe(follow.current!);
    return () => watching.disconnect();
  }, []);

  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!;
    at_end.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    if (at_end.current && seen !== last) setSeen(last);
  };
  const toEnd = () => {
    box.current!.scrollTop = box.current!.scrollHeight;
    box.current!.focus({ preventScroll: true });
  };
  const unseen = messages.filter(({ id }) => id > seen).length;
  return { box, follow, unseen, onScroll, toEnd };
}
