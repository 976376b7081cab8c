/** Moving the focus between cards that wait for an answer. */
import { expectNoPress } from '../ui/early-press.ts';

/** A card that has just appeared or got the focus cannot be answered for this long: a double press must not answer what nobody has read. */
const UNREAD_MS = 400;

const CARD = '[data-waiting]';
export const OPEN_CARD = '[data-waiting][data-open]';

/** Also scrolls to it: to its beginning, if it does not fit. */
export function focusCard(card: HTMLElement): void {
  card.focus({ preventScroll: true });
  const view_height = card.closest('.scroll-y')?.clientHeight ?? window.innerHeight;
  card.scrollIntoView({ block: card.offsetHeight > view_height ? 'start' : 'nearest' });
}

/** Focuses a card that the user has not read yet. */
export function focusNextCard(card: HTMLElement): void {
  expectNoPress(card, UNREAD_MS);
  focusCard(card);
}

/** The id of the card that has the focus. */
export function focusedCard(): string | undefined {
  return document.activeElement?.closest<HTMLElement>(CARD)?.dataset.waiting;
}

/** The open card after another one, else the first open one of the container. */
export function nextOpenCard(container: ParentNode, after: Element): HTMLElement | undefined {
  const cards = [...container.querySelectorAll<HTMLElement>(OPEN_CARD)];
  const isAfter = (card: Element) =>
    (after.compareDocumentPosition(card) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
  return cards.find((card) => card !== after && isAfter(card)) ?? cards.find((card) => card !== after);
}

/** A card that was removed while it had the focus. */
interface LeftCard {
  id: string;
  /** Whether the user answered it on this page. */
  answered: boolean;
}

let left_card: LeftCard | null = null;

export function leaveCard(card: LeftCard): void {
  left_card = card;
}

/** This card, if it was removed while it had the focus and nothing else has taken the focus since. */
export function takeLeftCard(id: string): LeftCard | null {
  const left = left_card;
  if (left?.id !== id) return null;
  left_card = null;
  return document.activeElement === document.body ? left : null;
}
