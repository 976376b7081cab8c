/** The rows of one turn, below the line with its prompt's author, which stays at the top while they are on the screen. */
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import { PromptHead } from './messages.tsx';
import type { TurnRows } from './turns.ts';

export function TurnBlock({
  turn,
  of_run,
  children,
}: {
  turn: TurnRows;
  /** See `UserPrompt`. */
  of_run: boolean;
  children: ReactNode;
}) {
  const top = useRef<HTMLDivElement>(null);
  const is_stuck = useAbove(top, turn.prompt !== null);
  return (
    <section className="flex min-w-0 flex-col gap-2 not-first:mt-4">
      <div ref={top} className="-mb-2" />
      {turn.prompt && <PromptHead item={turn.prompt} of_run={of_run} is_stuck={is_stuck} />}
      {children}
    </section>
  );
}

/** Whether an element has been scrolled above the top of the conversation. */
function useAbove(ref: RefObject<HTMLElement | null>, enabled: boolean): boolean {
  const [is_above, setAbove] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (!element || !enabled) return;
    const observer = new IntersectionObserver(
      ([entry]) => {
        const { isIntersecting, boundingClientRect, rootBounds } = entry!;
        setAbove(!isIntersecting && boundingClientRect.top < (rootBounds?.top ?? 0));
      },
      { root: element.closest('[role="log"]') },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref, enabled]);
  return is_above;
}
