/**
 * The frame of a card that waits for an answer. It stays the same element when the card is settled, so the focus is never lost:
 * it stays on the card, or moves on if the screen says where to.
 */
import {
  type ComponentPropsWithoutRef,
  createContext,
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useContext,
  useEffect,
  useLayoutEffect,
  useRef,
} from 'react';
import { cx } from '../ui/cx.ts';
import { isEarlyPress } from '../ui/early-press.ts';
import { hasModifier, isComposing, isTyping } from '../ui/keys.ts';
import { useReducedMotion } from '../ui/media.ts';
import { leaveCard } from './focus.ts';

/** How long a settled card takes to shrink to one line. */
const COLLAPSE_MS = 140;

export interface CardKeys {
  /** The key that selects a card; null: none. */
  select_key: string | null;
  /** Called after the user has answered a card that has the focus; it may move the focus. */
  onAnswered?: (card: HTMLElement) => void;
}

/** Set by the screen that shows the cards. */
export const CardKeysContext = createContext<CardKeys>({ select_key: null });

/** Set if the card fills the screen of a phone. */
export interface CardScreen {
  /** Called when the card is settled. `answered_here`: the user has given an answer, which may have come too late. */
  onSettled: (answered_here: boolean) => void;
}

export const CardScreenContext = createContext<CardScreen | null>(null);

export interface CardFrameProps extends ComponentPropsWithoutRef<'article'> {
  /** The id of the item. */
  card: string;
  open: boolean;
  /** An answer by this user was given here. */
  answered: boolean;
}

export function CardFrame({
  card,
  open,
  answered,
  className,
  onKeyDown,
  children,
  ...rest
}: CardFrameProps): ReactNode {
  const ref = useRef<HTMLElement>(null);
  const focus = useKeptFocus(ref, open, answered);
  const screen = useContext(CardScreenContext);
  useSettled(open, answered, screen);
  useCollapse(ref, open, screen === null);
  const is_answered = useRef(answered);
  is_answered.current = answered;
  // React runs this before it removes the card.
  useLayoutEffect(() => {
    const element = ref.current;
    return () => {
      if (element?.contains(document.activeElement)) leaveCard({ id: card, answered: is_answered.current });
    };
  }, [card]);
  return (
    <article
      ref={ref}
      tabIndex={-1}
      data-waiting={card}
      data-open={open ? '' : undefined}
      {...focus}
      onKeyDown={(event) => {
        if (isComposing(event.nativeEvent)) return;
        if (open) onKeyDown?.(event);
        if (!event.defaultPrevented) pressKey(event);
      }}
      onClickCapture={ignoreEarly}
      className={cx('group/card flex min-w-0', screen ? screenClass(open) : inlineClass(open), className)}
      {...rest}
    >
      {children}
    </article>
  );
}

function inlineClass(open: boolean): string {
  return cx(
    'outline-offset-2 focus-within:outline-2 focus-within:outline-accent',
    open
      ? 'flex-col gap-2 rounded-lg border border-needs/70 bg-raised p-3'
      : 'flex-wrap items-center gap-x-2 rounded-md border border-line px-3 py-1 text-sm',
  );
}

function screenClass(open: boolean): string {
  return cx(
    'min-h-0 flex-1 flex-col outline-none',
    !open && 'items-center justify-center gap-2 px-4 text-center text-prose [&>svg]:size-8 [&>svg]:text-text',
  );
}

/** What to read in an open card. It scrolls if the card fills the screen. */
export function CardBody({ children }: { children: ReactNode }) {
  const fills_screen = useContext(CardScreenContext) !== null;
  if (!fills_screen) return children;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
    <div tabIndex={0} className="scroll-y flex min-h-0 flex-1 flex-col gap-2 p-3">
      {children}
    </div>
  );
}

/** The ways to answer an open card. They stay within reach of the thumb if the card fills the screen. */
export function CardBar({ children }: { children: ReactNode }) {
  const fills_screen = useContext(CardScreenContext) !== null;
  if (!fills_screen) return children;
  return (
    <div className="scroll-y flex max-h-[75dvh] shrink-0 flex-col gap-2 border-line border-t bg-raised px-3 pt-3 pb-[calc(env(safe-area-inset-bottom)+8px)] [&_:is(a,button)]:min-h-12 [&_:is(a,button)]:grow">
      {children}
    </div>
  );
}

/** The second tap of a double tap may hit a card that has just appeared under the finger. */
function ignoreEarly(event: MouseEvent<HTMLElement>): void {
  if (!isEarlyPress(event.currentTarget, event.nativeEvent)) return;
  event.preventDefault();
  event.stopPropagation();
}

function useSettled(open: boolean, answered: boolean, screen: CardScreen | null): void {
  const was_open = useRef(open);
  useEffect(() => {
    if (was_open.current && !open) screen?.onSettled(answered);
    was_open.current = open;
  }, [open, answered, screen]);
}

/** Shrinks a card that is settled, so that the cards below it do not jump. */
function useCollapse(ref: RefObject<HTMLElement | null>, open: boolean, enabled: boolean): void {
  const is_still = useReducedMotion();
  const height = useRef(0);
  useLayoutEffect(() => {
    const card = ref.current;
    if (!open || !card) return;
    const observer = new ResizeObserver(() => {
      height.current = card.offsetHeight;
    });
    observer.observe(card);
    return () => observer.disconnect();
  }, [ref, open]);
  useLayoutEffect(() => {
    const card = ref.current;
    const from = height.current;
    if (open || from === 0 || !card) return;
    height.current = 0;
    if (is_still || !enabled) return;
    const frames = [from, card.offsetHeight].map((px) => ({ height: `${px}px`, overflow: 'clip' }));
    card.animate(frames, { duration: COLLAPSE_MS, easing: 'ease-out' });
  }, [ref, open, enabled, is_still]);
}

/** Esc leaves a field, then the card; Enter on the card itself goes to its first field. */
function pressKey(event: KeyboardEvent<HTMLElement>): void {
  const { currentTarget: card, key } = event;
  if (hasModifier(event.nativeEvent)) return;
  if (key === 'Escape') {
    if (isTyping(event.nativeEvent)) card.focus({ preventScroll: true });
    else (document.activeElement as HTMLElement | null)?.blur();
  } else if (key === 'Enter' && event.target === card) {
    const field = card.querySelector<HTMLElement>('input, textarea, select');
    if (!field) return;
    field.focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

function useKeptFocus(ref: RefObject<HTMLElement | null>, open: boolean, answered: boolean) {
  const { onAnswered } = useContext(CardKeysContext);
  const inside = useRef(false);
  const was_open = useRef(open);
  useLayoutEffect(() => {
    const settled = was_open.current && !open;
    was_open.current = open;
    const card = ref.current;
    if (!settled || !inside.current || !card) return;
    // The focused control may be gone.
    card.focus({ preventScroll: true });
    if (answered) onAnswered?.(card);
  }, [ref, open, answered, onAnswered]);
  useLayoutEffect(() => {
    const control = document.activeElement;
    // A button that is disabled while the answer is sent loses the focus.
    if (answered && inside.current && control?.matches(':disabled, body'))
      ref.current?.focus({ preventScroll: true });
  }, [ref, answered]);
  return {
    onFocus: () => {
      inside.current = true;
    },
    // React does not call it for controls that it removes.
    onBlur: ({
      currentTarget,
      relatedTarget,
    }: {
      currentTarget: Element;
      relatedTarget: EventTarget | null;
    }) => {
      inside.current = relatedTarget instanceof Node && currentTarget.contains(relatedTarget);
    },
  };
}
