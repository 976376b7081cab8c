/** The keys of a screen that shows several cards. */
import { type RefObject, useEffect, useMemo } from 'react';
import { appearance } from '../shell/appearance.ts';
import { hasModifier, isTyping } from '../ui/keys.ts';
import type { CardKeys } from './card-frame.tsx';
import { focusCard, focusNextCard, nextOpenCard, OPEN_CARD } from './focus.ts';

/** `j` and `k` move the focus between open cards. After an answer, it moves to the next one. */
export function useCardKeys(list: RefObject<HTMLElement | null>): CardKeys {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = { j: 1, k: -1 }[event.key];
      if (!step || hasModifier(event) || isTyping(event) || !appearance().shortcuts) return;
      const open = [...(list.current?.querySelectorAll<HTMLElement>(OPEN_CARD) ?? [])];
      const next = cardFrom(open, document.activeElement, step);
      if (!next) return;
      event.preventDefault();
      focusCard(next);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [list]);
  return useMemo(
    () => ({
      select_key: 'j',
      onAnswered: (card: HTMLElement) => {
        const next = list.current && nextOpenCard(list.current, card);
        if (next) focusNextCard(next);
      },
    }),
    [list],
  );
}

/** The next card in the direction `step` from the focused element; the first open one if no card has the focus. */
function cardFrom(
  cards: readonly HTMLElement[],
  from: Element | null,
  step: number,
): HTMLElement | undefined {
  const card = from?.closest<HTMLElement>('[data-waiting]');
  if (!card) return step > 0 ? cards[0] : cards.at(-1);
  const isBefore = (other: HTMLElement) =>
    (card.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
  const others = cards.filter((other) => other !== card);
  return step > 0 ? others.find((other) => !isBefore(other)) : others.findLast(isBefore);
}
