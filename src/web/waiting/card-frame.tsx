/**
 * The frame of a card that waits for an answer. It stays the same element when the card is settled, so the focus is never lost:
 * it stays on the card, or moves on if the screen says where to.
 */
import {
  type ComponentPropsWithoutRef,
  createContext,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useContext,
  useLayoutEffect,
  useRef,
} from 'react';
import { cx } from '../ui/cx.ts';
import { hasModifier, isTyping } from '../ui/keys.ts';
import { leaveCard } from './focus.ts';

export interface CardKeys {
  /** The key that selects a card; null: none. */
  select_key: string | null;
  /** Called after the user has answered a card that has the focus; it may move the focus. */
  onAnswered?: (card: HTMLElement) => void;
}

/** Set by the screen that shows the cards. */
export const CardKeysContext = createContext<CardKeys>({ select_key: null });

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
  // React runs this before it removes the card.
  useLayoutEffect(() => {
    const element = ref.current;
    return () => {
      if (element?.contains(document.activeElement)) leaveCard(card);
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
        if (open) onKeyDown?.(event);
        if (!event.defaultPrevented) pressKey(event);
      }}
      className={cx(
        'group/card flex min-w-0 outline-offset-2 focus-within:outline-2 focus-within:outline-accent',
        open
          ? 'flex-col gap-2 rounded-lg border border-needs/70 bg-raised p-3'
          : 'flex-wrap items-center gap-x-2 rounded-md border border-line px-3 py-1 text-sm',
        className,
      )}
      {...rest}
    >
      {children}
    </article>
  );
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
